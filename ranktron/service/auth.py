"""Authentication, authorization, and limits on the rate and size of requests."""

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
_CHECK_INTERVAL = 1.0  # seconds between checks whether the token file has changed
_LINE = re.compile(r"(?P<name>\S{1,64})\s+(?P<scopes>[a-z,]+)\s+sha256:(?P<hash>[0-9a-f]{64})")


class Holder(NamedTuple):
    """The holder of a token and its scopes; `admin` includes all scopes."""

    name: str
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """Hashes of valid tokens, each with its holder.

    >>> token, line = new_token("shop", ["rank", "feedback"])
    >>> Tokens([line]).holder(token).may("rank"), Tokens([line]).holder(token).may("admin")
    (True, False)
    >>> Tokens([line]).holder("guess") is None
    True
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._holders = _parse_lines(lines, _raise)

    def __len__(self) -> int:
        return len(self._holders)

    @property
    def required(self) -> bool:
        """Whether a request needs a token."""
        return bool(self._holders)

    def reload(self) -> None:
        """Does nothing: only a file can be reloaded."""

    def holder(self, token: str) -> Holder | None:
        """The holder of a token. Compares every hash in constant time, against timing attacks."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        match = None
        for valid, holder in self._holders:
            if hmac.compare_digest(valid, digest):
                match = holder
        return match


class StoredTokens(Tokens):
    """The tokens of a file and of the environment; a changed file is reloaded within a second.

    Once there has been a token, every request needs one: emptying the file refuses all requests.
    """

    def __init__(self, path: Path, environment_lines: Iterable[str]) -> None:
        self._path, self._environment_lines = path, list(environment_lines)
        self._loaded = _file_signature(path)
        try:
            super().__init__([*path.read_text("utf-8").splitlines(), *self._environment_lines])
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read the tokens in {path}: {getattr(error, 'strerror', error)}") from None
        self._required, self._checked_at = bool(self._holders), monotonic()

    @property
    def required(self) -> bool:
        now = monotonic()
        if now - self._checked_at >= _CHECK_INTERVAL:
            self._checked_at = now
            if _file_signature(self._path) != self._loaded:
                self.reload()
        return self._required

    def reload(self) -> None:
        """Reads the file again. Invalid lines are logged and skipped: the valid ones count at once."""
        self._loaded = _file_signature(self._path)
        try:
            lines = self._path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            _logger.error("cannot read the tokens in %s (%s): the previous tokens stay valid", self._path, error)
            return
        self._holders = _parse_lines([*lines, *self._environment_lines], lambda error: _logger.error("%s", error))
        self._required = self._required or bool(self._holders)
        _logger.warning("reloaded the tokens in %s: %d accepted", self._path, len(self._holders))


def _file_signature(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _raise(error: DataError) -> None:
    raise error


def _parse_lines(lines: Iterable[str], on_error: Callable[[DataError], None]) -> list[tuple[bytes, Holder]]:
    holders = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        try:
            holders += [_parse_line(text, number)] if text else []
        except DataError as error:
            on_error(error)
    return holders


def _parse_line(text: str, number: int) -> tuple[bytes, Holder]:
    match = _LINE.fullmatch(text)
    scopes = frozenset(match["scopes"].split(",")) if match else frozenset()
    if match is None or not scopes <= set(SCOPES):
        # never quotes the line: it may be a token, pasted by mistake
        raise DataError(
            f"line {number} of the tokens is not 'name scopes sha256:hash', with scopes from "
            f"{','.join(SCOPES)}: make one with `ranktron token NAME`"
        )
    return bytes.fromhex(match["hash"]), Holder(match["name"], scopes)


def new_token(name: str, scopes: Iterable[str]) -> tuple[str, str]:
    """A random token, and the line for the token file."""
    token = "rt_" + secrets.token_urlsafe(32)
    line = f"{name} {','.join(scopes)} sha256:{hashlib.sha256(token.encode()).hexdigest()}"
    _parse_line(line, 1)
    return token, line


def read_tokens(path: Path | None, environment: Mapping[str, str] = os.environ) -> Tokens:
    """The tokens of a file and of `RANKTRON_TOKENS`, which holds lines separated by semicolons."""
    lines = environment.get(VARIABLE, "").split(";")
    return Tokens(lines) if path is None else StoredTokens(path, lines)


_LOOPBACK = (b"localhost", b"127.0.0.1", b"[::1]")
_ANYONE = "anyone"
_UNIQUE = (b"host", b"authorization", b"origin", b"content-type", b"content-length")  # headers that are checked here


class Bucket:
    """A token bucket: `rate` requests a second, with bursts of twice as many.

    >>> now = [0.0]
    >>> bucket = Bucket(1.0, lambda: now[0])
    >>> [bucket.take() for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, rate: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._level, self._updated_at = 2.0 * rate, clock()

    def take(self) -> bool:
        now = self._clock()
        self._level = min(2.0 * self._rate, self._level + (now - self._updated_at) * self._rate)
        self._updated_at = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True


def _check_unique(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses repeated headers: a proxy in front may have checked the other value."""
    names = [name for name, _ in headers]
    for name in _UNIQUE:
        if names.count(name) > 1:
            raise RequestError(400, "duplicate_header", f"the header {name.decode()} is repeated")


class Authenticator:
    """Checks the headers of every request before its body is read."""

    def __init__(self, config: Config, tokens: Tokens) -> None:
        self.config, self.tokens = config, tokens
        self._buckets: dict[str, Bucket] = {}  # by name of the holder
        self.arriving = 0  # sum of the content lengths of bodies being read
        self._origins = {origin.encode("ascii") for origin in config.origins}

    def authorize(self, scope: Mapping[str, Any], needed: str | None) -> Mapping[bytes, bytes]:
        """The headers of a request, if it is allowed; `needed` is the scope that it needs."""
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if len(headers) < len(scope["headers"]):
            _check_unique(scope["headers"])
        name = _ANYONE
        if not self.tokens.required:
            # against DNS rebinding: a foreign page may resolve its own host name to this machine
            host = headers.get(b"host", b"localhost").lower()
            hostname, _, port = host.rpartition(b":")
            if host not in _LOOPBACK and not (hostname in _LOOPBACK and port.isdigit()):
                raise RequestError(
                    403, "bad_host", "with authentication off, the service answers only requests to localhost"
                )
        elif needed is not None:
            name = self._holder(headers, needed)
        if scope["method"] != "GET":
            self._check_origin(headers)
        if self.config.rate > 0.0 and needed is not None:
            self._limit_rate(name)
        return headers

    def _check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuses cross-origin requests of browsers; other clients send neither of the two headers."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if (origin is None and site is None) or origin in self._origins:
            return
        same_origin = origin is None or origin.partition(b"://")[2].lower() == headers.get(b"host", b"").lower()
        if not same_origin or site not in (None, b"same-origin", b"none"):
            raise RequestError(
                403, "foreign_page", "a web page of another origin may not send this unless `origins` lists its origin"
            )

    def _holder(self, headers: Mapping[bytes, bytes], needed: str) -> str:
        kind, _, token = headers.get(b"authorization", b"").partition(b" ")
        holder = self.tokens.holder(token.strip().decode("latin-1")) if kind.lower() == b"bearer" else None
        if holder is None:
            raise RequestError(401, "no_token", "this needs a valid token, sent as Authorization: Bearer TOKEN")
        if not holder.may(needed):
            raise RequestError(403, "wrong_scope", f"this needs a token with the scope {needed}")
        return holder.name

    def _limit_rate(self, name: str) -> None:
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = Bucket(self.config.rate)
        if not bucket.take():
            raise RequestError(
                429, "too_many_requests", f"a token may send {self.config.rate:g} requests a second: slow down"
            )

    def check_kind(self, headers: Mapping[bytes, bytes], *kinds: str) -> str:
        """The content type of a body, one of `kinds`: types that a form of a foreign page cannot send."""
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower().decode("latin-1")
        if kind not in kinds:
            raise RequestError(415, "wrong_content_type", f"the body must be {' or '.join(kinds)}: set Content-Type")
        if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
            raise RequestError(415, "compressed", "compressed bodies are refused: send it without Content-Encoding")
        return kind

    def check_length(self, headers: Mapping[bytes, bytes]) -> int:
        """The content length of a request, or the limit if it has none; longer ones are refused."""
        limit = self.config.max_body
        length = headers.get(b"content-length", str(limit).encode())
        if not length.isdigit() or len(length) > 15 or int(length) > limit:
            raise RequestError(413, "too_large", f"the body of a request may have at most {limit} bytes")
        if self.arriving + int(length) > max(self.config.max_arriving, limit):
            raise RequestError(503, "too_many_bodies", "too many large requests are arriving: try again in a moment")
        return int(length)

    def preflight(self, scope: Mapping[str, Any], methods: Iterable[str]) -> list[tuple[bytes, bytes]]:
        """The CORS headers of the answer to a preflight request; none for origins that are not configured."""
        allow_origin = self.headers(dict(scope["headers"]))
        if not allow_origin:
            return []
        names = ", ".join(methods).encode("ascii")
        allow_methods = [(b"access-control-allow-methods", names), (b"access-control-max-age", b"600")]
        return [*allow_origin, *allow_methods, (b"access-control-allow-headers", b"authorization, content-type")]

    def headers(self, headers: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """The CORS headers of an answer; none for origins that are not configured."""
        origin = headers.get(b"origin")
        if origin is None or origin not in self._origins:
            return []
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
