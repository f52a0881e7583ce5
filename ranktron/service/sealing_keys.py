"""Keys of rounds that carry themselves: a file with one active key, and others that only open what they once sealed.

A sealed round is AES-256-GCM with a nonce drawn at random. By NIST SP 800-38D, 8.3, a key may seal 2^32 messages with
such nonces: 24 days at 2,000 lists a second, over all processes that share the key. Change it every week.
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

MOST_SEALED = 1 << 32  # by one key
_FORMAT = 1
_ABOUT = b"ranktron: a round that carries itself"
_HEAD, _NONCE, _TAG = 5, 12, 16
_STATES = ("active", "next", "old")
_LINE = re.compile(
    r"(?P<state>active|next|old)\s+(?P<id>[0-9a-f]{8})\s+(?P<day>\d{4}-\d\d-\d\d)\s+(?P<key>[A-Za-z0-9+/]{43}=)"
)
_logger = logging.getLogger("ranktron.service")


class CarryKey(NamedTuple):
    """One key: whether it seals ("active"), will ("next") or did ("old"), and since which day."""

    state: str
    id: str
    day: date
    secret: bytes

    @property
    def line(self) -> str:
        return f"{self.state} {self.id} {self.day} {base64.b64encode(self.secret).decode()}"


class SealingKeys:
    """Seals with the active key, and opens what any of the keys has sealed.

    >>> keys = SealingKeys([new_key("active", date(2026, 1, 1))])
    >>> keys.open(keys.seal(b"a round"), 1000)
    b'a round'
    >>> keys.open("AQID", 1000)
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: `carry` is damaged or forged: send it exactly as the ranking had it; ...
    """

    def __init__(self, keys: Iterable[CarryKey]) -> None:
        self.sealed, self._head = 0, b""
        self._use(list(keys))

    def _use(self, keys: list[CarryKey]) -> None:
        active = [key for key in keys if key.state == "active"]
        if len(active) != 1 or len({key.id for key in keys}) < len(keys):
            raise DataError("there must be one active key, and no id twice: make them with `ranktron keys FILE`")
        before = self._head
        self._ciphers = {bytes.fromhex(key.id): AESGCM(key.secret) for key in keys}
        self._head = bytes([_FORMAT]) + bytes.fromhex(active[0].id)
        self._cipher = self._ciphers[self._head[1:]]
        self.sealed = self.sealed if before == self._head else 0

    def __len__(self) -> int:
        return len(self._ciphers)

    def reload(self) -> None:
        """Reads again what can be read again: here nothing."""

    def seal(self, content: bytes) -> str:
        """Content that only holders of the keys can read, and nobody can change."""
        self.sealed += 1
        if self.sealed > MOST_SEALED:
            raise RequestError(
                503, "key_used_up", "the key has sealed 2^32 rounds: change it with `ranktron keys FILE`"
            )
        nonce = os.urandom(_NONCE)
        sealed = self._head + nonce + self._cipher.encrypt(nonce, content, _ABOUT + self._head)
        return base64.urlsafe_b64encode(sealed).decode()

    def open(self, text: str, most: int) -> bytes:
        """What was sealed, after it has been verified; text longer than `most` is not even looked at."""
        if len(text) > most:
            raise RequestError(413, "carry_too_large", f"`carry` may have at most {most} characters (`max_carry`)")
        try:
            sealed = base64.b64decode(text.encode("ascii"), b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error, ValueError):
            raise _damaged() from None
        if len(sealed) < _HEAD + _NONCE + _TAG or base64.urlsafe_b64encode(sealed).decode() != text:
            raise _damaged()
        head, nonce = sealed[:_HEAD], sealed[_HEAD : _HEAD + _NONCE]
        cipher = self._ciphers.get(head[1:])
        if head[0] != _FORMAT or cipher is None:
            why = "`carry` was sealed with a key that is not, or no longer, in the file of keys"
            raise RequestError(422, "unknown_key", f"{why}: rank again; this request changed nothing")
        try:
            return cipher.decrypt(nonce, sealed[_HEAD + _NONCE :], _ABOUT + head)
        except InvalidTag:
            raise _damaged() from None


class StoredSealingKeys(SealingKeys):
    """The keys of a file, which `reload` reads again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(read_keys(path))

    def reload(self) -> None:
        """Reads the file again; if it makes no sense, the keys of before stay in use."""
        try:
            self._use(read_keys(self._path))
        except DataError as error:
            _logger.error("%s; the keys read before stay in use", error)
            return
        _logger.warning("read the keys in %s again: %d of them", self._path, len(self))


def _damaged() -> RequestError:
    why = "`carry` is damaged or forged: send it exactly as the ranking had it"
    return RequestError(422, "bad_carry", f"{why}; this request changed nothing")


def new_key(state: str, day: date) -> CarryKey:
    """A key that nobody can guess."""
    return CarryKey(state, secrets.token_hex(4), day, secrets.token_bytes(32))


def read_keys(path: Path) -> list[CarryKey]:
    """The keys of a file: a line each, with state, id, day and secret."""
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the keys in {path}: {getattr(error, 'strerror', error)}") from None
    keys = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        parts = _LINE.fullmatch(text)
        if parts is not None:
            day, secret = date.fromisoformat(parts["day"]), base64.b64decode(parts["key"])
            keys.append(CarryKey(parts["state"], parts["id"], day, secret))
        elif text:  # which is not shown: it may be a secret
            raise DataError(f"{path}, line {number} is no key: make them with `ranktron keys {path}`")
    if sum(key.state == "active" for key in keys) != 1:
        raise DataError(f"{path} must have one active key: make them with `ranktron keys {path}`")
    return keys


def write_keys(path: Path, keys: Iterable[CarryKey]) -> None:
    """Writes a file of keys, which only its owner can read; it is there complete or not at all."""
    ordered = sorted(keys, key=lambda key: _STATES.index(key.state))
    content = "".join(f"{key.line}\n" for key in ordered)
    umask = os.umask(0o077)
    try:
        with atomically(path) as file:
            file.write(content.encode("ascii"))
    finally:
        os.umask(umask)


def change_keys(keys: list[CarryKey], today: date, days: int, *, prepare: bool) -> list[CarryKey]:
    """The keys after a change: the next one, or a new one, seals from now on; old ones open for some days more.

    With `prepare` a next key is made, which opens but does not seal yet: every machine gets it before any uses it.

    >>> first = change_keys([], date(2026, 1, 1), 8, prepare=False)
    >>> second = change_keys(first, date(2026, 1, 8), 8, prepare=False)
    >>> [(key.state, str(key.day)) for key in second]
    [('active', '2026-01-08'), ('old', '2026-01-08')]
    >>> [key.state for key in change_keys(second, date(2026, 1, 20), 8, prepare=True)]
    ['active', 'next']
    """
    kept = [key for key in keys if key.state != "old" or today - key.day <= timedelta(days)]
    if prepare and any(key.state == "active" for key in kept):
        return kept if any(key.state == "next" for key in kept) else [*kept, new_key("next", today)]
    following = next((key for key in kept if key.state == "next"), new_key("next", today))
    old = [key if key.state == "old" else key._replace(state="old", day=today) for key in kept if key != following]
    return [following._replace(state="active", day=today), *old]
