"""Tokens: who may do what. Only their hashes are kept; a token itself is seen once, when it is made."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from ranktron.errors import DataError

SCOPES = ("rank", "feedback", "admin")
VARIABLE = "RANKTRON_TOKENS"
_PAUSE = 1.0  # seconds between two looks at the file of tokens
_logger = logging.getLogger("ranktron.service")
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
        self._known = _parsed_lines(lines, _raise)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def required(self) -> bool:
        """Whether a request needs a token."""
        return bool(self._known)

    def reload(self) -> None:
        """Reads again what can be read again: here nothing."""

    def holder(self, token: str) -> Holder | None:
        """Whose token this is. All hashes are compared, each in constant time, so that time tells nothing."""
        given = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = None
        for known, holder in self._known:
            if hmac.compare_digest(known, given):
                found = holder
        return found


class StoredTokens(Tokens):
    """The tokens of a file and of the environment. A file that has changed is read again, within a second.

    Once there has been a token, one is required for ever: an empty file lets nobody in.
    """

    def __init__(self, path: Path, more: Iterable[str]) -> None:
        self._path, self._more = path, list(more)
        self._seen = _signature(path)
        try:
            super().__init__([*path.read_text("utf-8").splitlines(), *self._more])
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the tokens in {path}: {getattr(error, 'strerror', error)}") from None
        self._required, self._at = bool(self._known), monotonic()

    @property
    def required(self) -> bool:
        now = monotonic()
        if now - self._at >= _PAUSE:
            self._at = now
            if _signature(self._path) != self._seen:
                self.reload()
        return self._required

    def reload(self) -> None:
        """Reads the file again. A line that makes no sense is passed over and reported: the others count at once."""
        self._seen = _signature(self._path)
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            _logger.error("cannot read the tokens in %s (%s): those read before stay valid", self._path, error)
            return
        self._known = _parsed_lines([*lines, *self._more], lambda error: _logger.error("%s", error))
        self._required = self._required or bool(self._known)
        _logger.warning("read the tokens in %s again: %d accepted", self._path, len(self._known))


def _signature(path: Path) -> tuple[int, ...]:
    """What changes when a file does."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _raise(error: DataError) -> None:
    raise error


def _parsed_lines(lines: Iterable[str], bad: Callable[[DataError], None]) -> list[tuple[bytes, Holder]]:
    known = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        try:
            known += [_parse_line(text, number)] if text else []
        except DataError as error:
            bad(error)
    return known


def _parse_line(text: str, number: int) -> tuple[bytes, Holder]:
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
    _parse_line(line, 1)
    return token, line


def read_tokens(path: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file and of the environment, where they are separated by semicolons."""
    lines = environment.get(VARIABLE, "").split(";")
    return Tokens(lines) if path is None else StoredTokens(path, lines)
