"""Authentication and limits: tokens, and who may do what, how often, and with how much."""

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
from typing import Any, NamedTuple

from ranktron.errors import DataError
from ranktron.service.config import Config
from ranktron.store.errors import RequestError

_logger = logging.getLogger("ranktron.service")


SCOPES = ("rank", "feedback", "admin")
VARIABLE = "RANKTRON_TOKENS"
_PAUSE = 1.0  # seconds between two looks at the file of tokens
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


_LOOPBACK = (b"localhost", b"127.0.0.1", b"[::1]")
_ANYONE = "anyone"
_ONCE = (b"host", b"authorization", b"origin", b"content-type", b"content-length")  # headers that decide something


class Bucket:
    """A rate with bursts of twice as many.

    >>> now = [0.0]
    >>> bucket = Bucket(1.0, lambda: now[0])
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._left, self._at = 2.0 * rate, clock()

    def take(self) -> bool:
        now = self._clock()
        self._left = min(2.0 * self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def _check_once(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses a header that is there twice: a proxy in front may have looked at the other one."""
    names = [name for name, _ in headers]
    for name in _ONCE:
        if names.count(name) > 1:
            raise RequestError(400, "duplicate_header", f"the header {name.decode()} may be there once only")


class Authenticator:
    """Checks every request before any of its body is read."""

    def __init__(self, config: Config, tokens: Tokens) -> None:
        self.config, self.tokens = config, tokens
        self._buckets: dict[str, Bucket] = {}
        self.arriving = 0  # bytes of bodies that are being read, as far as they have been announced
        self._origins = {origin.encode("ascii") for origin in config.origins}

    def authorize(self, scope: Mapping[str, Any], needed: str | None) -> Mapping[bytes, bytes]:
        """The headers of a request that may come in."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(headers) < len(scope["headers"]):
            _check_once(scope["headers"])
        name = _ANYONE
        if not self.tokens.required:
            # A page from elsewhere may have had its own name resolved to this machine.
            host = headers.get(b"host", b"localhost").lower()
            known, _, port = host.rpartition(b":")
            if host not in _LOOPBACK and not (known in _LOOPBACK and port.isdigit()):
                raise RequestError(
                    403, "bad_host", "with authentication off, the service answers only requests to localhost"
                )
        elif needed is not None:
            name = self._holder(headers, needed)
        if scope["method"] != "GET":
            self._check_page(headers)
        if self.config.rate > 0.0 and needed is not None:
            self._pace(name)
        return headers

    def _check_page(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuses what a page from elsewhere makes a browser send; browsers say so, other clients say nothing."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if (origin is None and site is None) or origin in self._origins:
            return
        own = origin is None or origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower()
        if not own or site not in (None, b"same-origin", b"none"):
            raise RequestError(
                403, "foreign_page", "a web page from elsewhere may not do this unless its origin is in `origins`"
            )

    def _holder(self, headers: Mapping[bytes, bytes], needed: str) -> str:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        holder = self.tokens.holder(token.strip().decode("latin-1")) if kind.lower() == b"bearer" else None
        if holder is None:
            raise RequestError(401, "no_token", "this needs a valid token, sent as Authorization: Bearer TOKEN")
        if not holder.may(needed):
            raise RequestError(403, "wrong_scope", f"this needs a token with the scope {needed}")
        return holder.name

    def _pace(self, name: str) -> None:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(self.config.rate)
        if not bucket.take():
            raise RequestError(
                429, "too_many_requests", f"a token may send {self.config.rate:g} requests a second: slow down"
            )

    def check_kind(self, headers: Mapping[bytes, bytes], *kinds: str) -> str:
        """The kind of a body; others are refused. A form on a page from elsewhere cannot send these unasked."""
        given = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if given not in kinds:
            raise RequestError(415, "wrong_content_type", f"the body must be {' or '.join(kinds)}: set Content-Type")
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise RequestError(415, "compressed", "compressed bodies are not taken: send it without Content-Encoding")
        return given

    def check_length(self, headers: Mapping[bytes, bytes]) -> int:
        """The bytes that a body announces, the most it may have if it does not say; one that is too long is refused."""
        limit = self.config.max_body
        length = headers.get(b"content-length", str(limit).encode())
        if not length.isdigit() or len(length) > 15 or int(length) > limit:
            raise RequestError(413, "too_large", f"the body of a request may have at most {limit} bytes")
        if self.arriving + int(length) > max(self.config.max_arriving, limit):
            raise RequestError(503, "too_many_bodies", "too many large requests are arriving: try again in a moment")
        return int(length)

    def preflight(self, scope: Mapping[str, Any], methods: Iterable[str]) -> list[tuple[bytes, bytes]]:
        """What a browser is told that asks beforehand, for a page from a configured origin."""
        allowed = self.headers(dict(scope["headers"]))
        if not allowed:
            return []
        names = ", ".join(methods).encode("ascii")
        more = [(b"access-control-allow-methods", names), (b"access-control-max-age", b"600")]
        return [*allowed, *more, (b"access-control-allow-headers", b"authorization, content-type")]

    def headers(self, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """What lets a page from a configured origin read the answer; nothing for all others."""
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
