"""Tokens: who may do what. Only their hashes are kept; a token itself is seen once, when it is made."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ranktron.errors import DataError

SCOPES = ("rank", "feedback", "admin")
VARIABLE = "RANKTRON_TOKENS"
_LINE = re.compile(r"(?P<name>\S{1,64})\s+(?P<scopes>[a-z,]+)\s+sha256:(?P<hash>[0-9a-f]{64})")


class Holder(NamedTuple):
    """Whom a token belongs to, and what it allows; `admin` allows everything."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """The tokens that are known, by their hashes.

    >>> token, line = new_token("shop", ["rank", "feedback"])
    >>> Tokens([line]).holder(token).may("rank"), Tokens([line]).holder(token).may("admin")
    (True, False)
    >>> Tokens([line]).holder("guess") is None
    True
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._known: list[tuple[bytes, Holder]] = []
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip()
            if text:
                self._known.append(_parsed(text, number))

    def __len__(self) -> int:
        return len(self._known)

    def holder(self, token: str) -> Holder | None:
        """Whose token this is. All hashes are compared, each in constant time, so that time tells nothing."""
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, holder in self._known:
            if hmac.compare_digest(known, given):
                found = holder
        return found


def _parsed(text: str, number: int) -> tuple[bytes, Holder]:
    parts = _LINE.fullmatch(text)
    scopes = frozenset(parts["scopes"].split(",")) if parts else frozenset()
    if parts is None or not scopes <= set(SCOPES):
        # the line itself is not shown: it may be a token that someone wrote down by mistake
        raise DataError(
            f"line {number} of the tokens is not 'name scopes sha256:hash', scopes being some of "
            f"{','.join(SCOPES)}: make one with `ranktron token NAME`"
        )
    return bytes.fromhex(parts["hash"]), Holder(parts["name"], scopes)


def new_token(name: str, scopes: Iterable[str]) -> tuple[str, str]:
    """A token that nobody can guess, and the line that lets the service know it."""
    token = "rt_" + secrets.token_urlsafe(32)
    line = f"{name} {','.join(scopes)} sha256:{hashlib.sha256(token.encode()).hexdigest()}"
    _parsed(line, 1)
    return token, line


def read_tokens(path: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file and of the environment, where they are separated by semicolons."""
    lines = environment.get(VARIABLE, "").split(";")
    if path is not None:
        try:
            lines = [*path.read_text("utf-8").splitlines(), *lines]
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the tokens in {path}: {getattr(error, 'strerror', error)}") from None
    return Tokens(lines)
