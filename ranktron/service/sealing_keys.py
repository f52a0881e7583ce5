"""Keys that seal rounds: a file with one active key, and older ones that only open tokens.

A token is encrypted by AES-256-GCM with a random nonce. By NIST SP 800-38D, 8.3, a key may seal 2^32 messages with
random nonces: 24 days at 2,000 lists a second, over all processes that share the key. Rotate it every week.
"""

from __future__ import annotations

import base64
import binascii
import logging
import os
import re
import secrets
from collections.abc import Iterable
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ranktron.data.files import atomically
from ranktron.errors import DataError
from ranktron.store.errors import RequestError

MAX_SEALED = 1 << 32  # tokens per key
_FORMAT = 1
_CONTEXT = b"ranktron: a round that carries itself"  # authenticated with each token: a part of the format
_HEAD, _NONCE, _TAG = 5, 12, 16  # bytes
_STATES = ("active", "next", "old")
_LINE = re.compile(
    r"(?P<state>active|next|old)\s+(?P<id>[0-9a-f]{8})\s+(?P<day>\d{4}-\d\d-\d\d)\s+(?P<key>[A-Za-z0-9+/]{43}=)"
)
_logger = logging.getLogger("ranktron.service")


class SealingKey(NamedTuple):
    """A key with its state, "active" (it seals), "next" or "old", and the day since which it has been active or old."""

    state: str
    id: str
    day: date
    secret: bytes

    @property
    def line(self) -> str:
        return f"{self.state} {self.id} {self.day} {base64.b64encode(self.secret).decode()}"


class SealingKeys:
    """Seals with the active key, and opens tokens sealed by any of the keys.

    >>> keys = SealingKeys([new_key("active", date(2026, 1, 1))])
    >>> keys.open(keys.seal(b"a round"), 1000)
    b'a round'
    >>> keys.open("AQID", 1000)
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: `carry` is damaged or forged: send it exactly as the ranking had it; ...
    """

    def __init__(self, keys: Iterable[SealingKey]) -> None:
        self.sealed, self._head = 0, b""
        self._load(list(keys))

    def _load(self, keys: list[SealingKey]) -> None:
        active = [key for key in keys if key.state == "active"]
        if len(active) != 1 or len({key.id for key in keys}) < len(keys):
            raise DataError("there must be one active key, and unique ids: make keys with `ranktron keys FILE`")
        previous = self._head
        self._ciphers = {bytes.fromhex(key.id): AESGCM(key.secret) for key in keys}
        self._head = bytes([_FORMAT]) + bytes.fromhex(active[0].id)
        self._cipher = self._ciphers[self._head[1:]]
        self.sealed = self.sealed if previous == self._head else 0

    def __len__(self) -> int:
        return len(self._ciphers)

    def reload(self) -> None:
        """Does nothing: only a file can be reloaded."""

    def seal(self, content: bytes) -> str:
        """The token of the content, encrypted and authenticated."""
        self.sealed += 1
        if self.sealed > MAX_SEALED:
            raise RequestError(
                503, "key_used_up", "the key has sealed 2^32 rounds: rotate it with `ranktron keys FILE`"
            )
        nonce = os.urandom(_NONCE)
        sealed = self._head + nonce + self._cipher.encrypt(nonce, content, _CONTEXT + self._head)
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, token: str, limit: int) -> bytes:
        """The content of a token of at most `limit` characters, verified."""
        if len(token) > limit:
            raise RequestError(413, "carry_too_large", f"`carry` may have at most {limit} characters (`max_carry`)")
        try:
            sealed = base64.b64decode(token.encode("ascii"), b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error, ValueError):
            raise _damaged() from None
        if len(sealed) < _HEAD + _NONCE + _TAG or base64.urlsafe_b64encode(sealed).decode() != token:
            raise _damaged()
        head, nonce = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE]
        cipher = self._ciphers.get(head[1:])
        if head[0] != _FORMAT or cipher is None:
            reason = "`carry` was sealed with a key that is not, or no longer, in the key file"
            raise RequestError(422, "unknown_key", f"{reason}: rank again; this request changed nothing")
        try:
            return cipher.decrypt(nonce, sealed[_HEAD + _NONCE :], _CONTEXT + head)
        except InvalidTag:
            raise _damaged() from None


class StoredSealingKeys(SealingKeys):
    """The keys of a file; `reload` reads it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(read_keys(path))

    def reload(self) -> None:
        """Reads the file again; keeps the previous keys if the file is invalid."""
        try:
            self._load(read_keys(self._path))
        except DataError as error:
            _logger.error("%s; the previous keys stay in use", error)
            return
        _logger.warning("reloaded %d keys from %s", len(self), self._path)


def _damaged() -> RequestError:
    reason = "`carry` is damaged or forged: send it exactly as the ranking had it"
    return RequestError(422, "bad_carry", f"{reason}; this request changed nothing")


def new_key(state: str, day: date) -> SealingKey:
    """A random key."""
    return SealingKey(state, secrets.token_hex(4), day, secrets.token_bytes(32))


def read_keys(path: Path) -> list[SealingKey]:
    """The keys of a file: one per line, with state, id, day and secret."""
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the keys in {path}: {getattr(error, 'strerror', error)}") from None
    keys = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        match = _LINE.fullmatch(text)
        if match is not None:
            day, secret = date.fromisoformat(match["day"]), base64.b64decode(match["key"])
            keys.append(SealingKey(match["state"], match["id"], day, secret))
        elif text:  # never quoted: it may be a secret
            raise DataError(f"{path}, line {number} is not a key: make keys with `ranktron keys {path}`")
    if sum(key.state == "active" for key in keys) != 1:
        raise DataError(f"{path} must have one active key: make keys with `ranktron keys {path}`")
    return keys


def write_keys(path: Path, keys: Iterable[SealingKey]) -> None:
    """Writes a key file, atomically and readable by its owner only."""
    ordered = sorted(keys, key=lambda key: _STATES.index(key.state))
    content = "".join(f"{key.line}\n" for key in ordered)
    umask = os.umask(0o077)
    try:
        with atomically(path) as file:
            file.write(content.encode("ascii"))
    finally:
        os.umask(umask)


def change_keys(keys: list[SealingKey], today: date, days: int, *, prepare: bool) -> list[SealingKey]:
    """The keys after a rotation: the next key, or a new one, becomes active; old keys are dropped after `days`.

    With `prepare` only a next key is added, which opens tokens but does not seal yet: distribute the file to every
    machine before the rotation that makes it active.

    >>> first = change_keys([], date(2026, 1, 1), 8, prepare=False)
    >>> second = change_keys(first, date(2026, 1, 8), 8, prepare=False)
    >>> [(key.state, str(key.day)) for key in second]
    [('active', '2026-01-08'), ('old', '2026-01-08')]
    >>> [key.state for key in change_keys(second, date(2026, 1, 20), 8, prepare=True)]
    ['active', 'next']
    """
    valid = [key for key in keys if key.state != "old" or today - key.day <= timedelta(days)]
    if prepare and any(key.state == "active" for key in valid):
        return valid if any(key.state == "next" for key in valid) else [*valid, new_key("next", today)]
    active = next((key for key in valid if key.state == "next"), new_key("next", today))
    old = [key if key.state == "old" else key._replace(state="old", day=today) for key in valid if key != active]
    return [active._replace(state="active", day=today), *old]
