"""Rows of the journal and their checksums: those of rankers, and those of entries, each of which holds the one before.

An entry's checksum has two halves: its own, and that of the entry before it; the first entry's other half is the
ranker's incarnation, a number that was drawn when it was made. So entries that were lost, changed, moved or taken from
another log do not fit. Rows of rounds follow none, and are checked alone.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from ranktron.store.journal.sql_database import Database

_HALF = 0xFFFFFFFF
_ENTRY = Struct("<qqI")
_COLUMNS = ("name", "definition", "next", "deleted", "incarnation", "epochs", "checksum")
_WRITE = f"""
INSERT INTO rankers (id, {", ".join(_COLUMNS)}) VALUES (?{", ?" * len(_COLUMNS)})
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _COLUMNS)}
"""


class RankerRow(NamedTuple):
    """A ranker in the journal. `epochs` says from which number of its rounds on which epoch counts."""

    id: int
    name: str
    definition: bytes
    next: int
    deleted: int
    incarnation: int
    epochs: tuple[tuple[int, int], ...]

    def write(self, database: Database) -> None:
        """Writes the row anew; that another ranker has its name is an error."""
        row = (*self[:-1], msgspec.json.encode(self.epochs))
        database.execute(_WRITE, (*row, _checksum(row)))


def read_rankers(database: Database) -> tuple[list[RankerRow], set[int]]:
    """All rows, and the ids of those that are damaged."""
    text = "CAST(name AS BLOB), CAST(definition AS BLOB), next, deleted, incarnation, epochs"
    rows, damaged = [], set()
    for ranker, name, definition, *numbers, checksum in database.execute(
        f"SELECT id, {text}, checksum FROM rankers ORDER BY id"
    ).fetchall():
        following, deleted, incarnation, epochs = numbers
        name = name.decode(errors="replace")
        if checksum != _checksum((ranker, name, definition, following, deleted, incarnation, epochs)):
            damaged.add(ranker)
            following, incarnation, epochs = _number(following), _number(incarnation), b"[[0,0]]"
        parts = msgspec.json.decode(epochs, type=tuple[tuple[int, int], ...])
        rows.append(RankerRow(ranker, name, definition, following, deleted, incarnation, parts))
    return rows, damaged


def _number(value: Any) -> int:
    """A number of a damaged row; it is not trusted."""
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def _checksum(row: tuple[Any, ...]) -> int:
    return crc32(msgspec.msgpack.encode(row))


# Entries and rounds


def chain_checksum(key: int, body: bytes, answers: int | None, before: int) -> int:
    """The checksum of an entry that follows one whose own half is `before`.

    >>> first = chain_checksum(1, b"one", None, 5)
    >>> second = chain_checksum(2, b"two", None, own_half(first))
    >>> is_whole(2, b"two", None, second), is_whole(2, b"ten", None, second)
    (True, False)
    >>> follows(second, first), follows(first, second)
    (True, False)
    """
    both = before << 32 | _own(key, body, answers, before)
    return both - (1 << 64) if both >> 63 else both


def is_whole(key: int, body: Any, answers: Any, checksum: Any) -> bool:
    """Whether an entry is as it was written."""
    if not isinstance(body, bytes) or not isinstance(checksum, int) or not isinstance(answers, int | None):
        return False
    return _own(key, body, answers, checksum >> 32 & _HALF) == own_half(checksum)


def follows(checksum: int, before: int) -> bool:
    """Whether an entry follows the one that has the checksum `before`."""
    return checksum >> 32 & _HALF == own_half(before)


def round_checksum(key: int, body: bytes) -> int:
    """The checksum of a round.

    >>> is_whole_round(2, b"two", round_checksum(2, b"two")), is_whole_round(1, b"two", round_checksum(2, b"two"))
    (True, False)
    """
    return crc32(body, key & _HALF)


def is_whole_round(key: int, body: Any, checksum: Any) -> bool:
    """Whether a round is as it was written."""
    return isinstance(body, bytes) and isinstance(checksum, int) and round_checksum(key, body) == checksum


def own_half(checksum: int) -> int:
    return checksum & _HALF


def _own(key: int, body: bytes, answers: int | None, before: int) -> int:
    return crc32(body, crc32(_ENTRY.pack(key, -1 if answers is None else answers, before)))
