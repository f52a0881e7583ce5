"""The tables of a journal: statements that SQLite and PostgreSQL both understand, rows, and their checksums."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from struct import Struct
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import msgspec

from ranktron.store.journal.journal import CAPACITY, AdvanceSource, DropRounds, JournalError, Prune, RemoveRanker
from ranktron.store.journal.snapshots import Snapshots

ENTRIES = """
SELECT e.key, CAST(e.body AS BLOB), e.round, e.checksum, CAST(r.body AS BLOB), r.checksum
FROM entries e LEFT JOIN rounds r ON r.key = e.round WHERE e.key >= ? AND e.key < ? ORDER BY e.key LIMIT ?
"""
ANSWERS = "SELECT key, round FROM entries WHERE key >= ? AND key < ? AND round IS NOT NULL ORDER BY key DESC"
OPEN_ROUNDS = """
SELECT key, CAST(body AS BLOB), checksum FROM rounds WHERE key >= ? AND key < ?
AND key NOT IN (SELECT round FROM entries WHERE key >= ? AND key < ? AND round IS NOT NULL) ORDER BY key
"""
MOST_DEAD = 10_000  # dead letters that are kept of a source
ACCEPTED = "SELECT version, digest FROM accepted WHERE key = ?"
LAST_ROUNDS = """
SELECT key, CAST(body AS BLOB), checksum FROM rounds WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?
"""


class Database(Protocol):
    """A connection to the tables of a journal, which one server at a time may write."""

    mark_needed: bool  # whether a journal that is not new must have a mark in this folder

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """A cursor over the rows of a statement."""
        ...

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Executes a statement for each of some rows."""
        ...

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of the last commit, outside of the journal's transactions; on the caller's thread."""
        ...

    def begin(self) -> None:
        """Begins a transaction that writes; rolls back an open one first."""
        ...

    def lock(self) -> None:
        """Within a transaction, waits for other writers and excludes them."""
        ...

    def commit(self) -> None:
        """Commits; raises UnknownOutcomeError if the outcome is unknown."""
        ...

    def rollback(self) -> None:
        """Rolls back, if there is a transaction."""
        ...

    def explained(self) -> AbstractContextManager[None]:
        """Turns errors of the database into JournalErrors with a sentence."""
        ...

    def facts(self) -> str:
        """Properties that a copy cannot share."""
        ...

    def check(self) -> None:
        """Refuses a commit that could not be read again."""
        ...

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        """The snapshots of a ranker."""
        ...

    def close(self) -> None: ...

    @property
    def size(self) -> int:
        """How many bytes it takes on disk."""
        ...


def deletions(write: RemoveRanker | DropRounds | Prune) -> list[tuple[str, list[Any]]]:
    """The deletions of a write, as SQL: statements with the rows that each is executed for."""
    base = write.ranker * CAPACITY
    if isinstance(write, RemoveRanker):
        span = base, base + CAPACITY
        tables = ("entries", "rounds", "accepted")
        return [(f"DELETE FROM {table} WHERE key >= ? AND key < ?", [span]) for table in tables]
    if isinstance(write, DropRounds):
        return [("DELETE FROM rounds WHERE key = ?", [(base + number,) for number in write.numbers])]
    old = min(write.old, write.settled)
    answered = "SELECT round FROM entries WHERE key > ? AND key <= ?"
    oldest = "SELECT key, expires FROM accepted WHERE key >= ? AND key < ? ORDER BY key LIMIT 20000"
    last = "SELECT max(key) FROM entries WHERE key > ? AND key < ? AND round IS NOT NULL GROUP BY round"
    return [
        (f"DELETE FROM rounds WHERE key IN ({answered})", [(base, base + min(write.explained, write.settled))]),
        ("DELETE FROM entries WHERE key > ? AND key <= ?", [(base, base + min(write.remembered, old))]),
        (
            f"DELETE FROM entries WHERE key > ? AND key <= ? AND key NOT IN ({last})",
            [(base, base + old, base, base + CAPACITY)],
        ),
        (
            f"DELETE FROM accepted WHERE key IN (SELECT key FROM ({oldest}) AS oldest WHERE expires <= ?)",
            [(base, base + CAPACITY, write.expired)],
        ),
    ]


def advance_source(database: Database, write: AdvanceSource) -> None:
    """Advances a source; if it is not at `start`, the transaction fails."""
    name, start, end, dead = write
    database.execute("INSERT INTO sources VALUES (?, 0) ON CONFLICT (name) DO NOTHING", (name,))
    moved = database.execute("UPDATE sources SET next = ? WHERE name = ? AND next = ?", (end, name, start))
    if moved.rowcount != 1:
        raise JournalError(f"source {name!r} is not at {start}")
    for place, reason, body in dead:
        database.execute("INSERT INTO dead_letters VALUES (?, ?, ?, ?)", (name, place, reason, body))
    if dead:
        last = "SELECT place FROM dead_letters WHERE source = ? ORDER BY place DESC LIMIT 1 OFFSET ?"
        database.execute(f"DELETE FROM dead_letters WHERE source = ? AND place <= ({last})", (name, name, MOST_DEAD))


def insert(database: Database, table: str, rows: list[Any]) -> None:
    """Inserts many rows per statement: between statements another thread may take the interpreter."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            some, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * size)
            database.execute(f"INSERT INTO {table} VALUES {values}", [value for row in some for value in row])


_HALF = 0xFFFFFFFF
_ENTRY = Struct("<qqI")
_COLUMNS = ("name", "definition", "next", "deleted", "incarnation", "epochs", "checksum")
_WRITE = f"""
INSERT INTO rankers (id, {", ".join(_COLUMNS)}) VALUES (?{", ?" * len(_COLUMNS)})
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _COLUMNS)}
"""


class RankerRow(NamedTuple):
    """The row of a ranker. `epochs` has the first round number of each epoch."""

    id: int
    name: str
    definition: bytes
    next: int
    deleted: int
    incarnation: int
    epochs: tuple[tuple[int, int], ...]

    def write(self, database: Database) -> None:
        """Writes the row; another ranker of the same name is an error."""
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
    """A number of a damaged row, if plausible."""
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
