"""The tables of a journal: statements in the common dialect of SQLite and PostgreSQL, rows, and checksums."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from struct import Struct
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import msgspec

from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import CAPACITY, AdvanceSource, DropRounds, Erase, JournalError, Prune, RemoveRanker
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
ERASED = encode(JournalEntry("nothing", 0, 0.0, b"erased"))  # the body of an erased entry
MAX_DEAD_LETTERS = 10_000  # per source; older ones are deleted
ACCEPTED = "SELECT version, digest FROM accepted WHERE key = ?"
LAST_ROUNDS = """
SELECT key, CAST(body AS BLOB), checksum FROM rounds WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?
"""


class Database(Protocol):
    """A connection to the tables of a journal, for its only writer."""

    mark_needed: bool  # whether a missing mark, in a journal that is not new, is a sign of loss

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """A cursor over the rows of a statement."""
        ...

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Executes a statement for each row of values."""
        ...

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows as of the last commit, outside the journal's transactions; on the caller's thread."""
        ...

    def begin(self) -> None:
        """Begins a write transaction; rolls back an open one first."""
        ...

    def lock(self) -> None:
        """Within a transaction, waits for other writers and excludes them."""
        ...

    def commit(self) -> None:
        """Commits; raises UnknownOutcomeError if the outcome is unknown."""
        ...

    def rollback(self) -> None:
        """Rolls back the open transaction, if any."""
        ...

    def explained(self) -> AbstractContextManager[None]:
        """Turns errors of the database into JournalErrors."""
        ...

    def facts(self) -> str:
        """Properties that a copy cannot share."""
        ...

    def check(self) -> None:
        """Raises before a commit that would be lost, as to a deleted file."""
        ...

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        """The snapshots of a ranker."""
        ...

    def overwrite_deleted(self) -> None:
        """From now on, what is deleted in this transaction is overwritten, where the database can."""
        ...

    def scrub(self) -> None:
        """After such a transaction: removes what was deleted from the database's own log, where it can."""
        ...

    def close(self) -> None: ...

    @property
    def size(self) -> int:
        """Its size on disk, in bytes."""
        ...


def deletions(write: RemoveRanker | DropRounds | Prune | Erase) -> list[tuple[str, list[Any]]]:
    """The deletions of a write: SQL statements, each with its rows of values."""
    base = write.ranker * CAPACITY
    if isinstance(write, RemoveRanker):
        span = base, base + CAPACITY
        tables = ("entries", "rounds", "accepted")
        return [(f"DELETE FROM {table} WHERE key >= ? AND key < ?", [span]) for table in tables]
    if isinstance(write, DropRounds):
        return [("DELETE FROM rounds WHERE key = ?", [(base + number,) for number in write.numbers])]
    if isinstance(write, Erase):
        rounds = [(base + number,) for number in write.rounds]
        return [
            ("UPDATE entries SET body = ?, round = NULL WHERE key = ?", [(ERASED, base + v) for v in write.versions]),
            ("DELETE FROM rounds WHERE key = ?", rounds),
            ("DELETE FROM accepted WHERE key = ?", rounds),
        ]
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
    """Advances a source; a JournalError if it is not at `start`."""
    name, start, end, dead = write
    database.execute("INSERT INTO sources VALUES (?, 0) ON CONFLICT (name) DO NOTHING", (name,))
    moved = database.execute("UPDATE sources SET next = ? WHERE name = ? AND next = ?", (end, name, start))
    if moved.rowcount != 1:
        raise JournalError(f"source {name!r} is not at {start}")
    for place, reason, body in dead:
        database.execute("INSERT INTO dead_letters VALUES (?, ?, ?, ?)", (name, place, reason, body))
    if dead:
        last = "SELECT place FROM dead_letters WHERE source = ? ORDER BY place DESC LIMIT 1 OFFSET ?"
        database.execute(
            f"DELETE FROM dead_letters WHERE source = ? AND place <= ({last})", (name, name, MAX_DEAD_LETTERS)
        )


def insert(database: Database, table: str, rows: list[Any]) -> None:
    """Inserts many rows per statement: after each statement another thread may take the interpreter lock."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            chunk, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(chunk[0]))})"] * size)
            database.execute(f"INSERT INTO {table} VALUES {values}", [value for row in chunk for value in row])


_HALF = 0xFFFFFFFF
_ENTRY = Struct("<qqI")
_COLUMNS = ("name", "definition", "next", "deleted", "incarnation", "epochs", "checksum")
_WRITE = f"""
INSERT INTO rankers (id, {", ".join(_COLUMNS)}) VALUES (?{", ?" * len(_COLUMNS)})
ON CONFLICT (id) DO UPDATE SET {", ".join(f"{column} = excluded.{column}" for column in _COLUMNS)}
"""


class RankerRow(NamedTuple):
    """The row of a ranker. `epochs` holds pairs of an epoch's first round number and the epoch."""

    id: int
    name: str
    definition: bytes
    next: int
    deleted: int
    incarnation: int
    epochs: tuple[tuple[int, int], ...]

    def write(self, database: Database) -> None:
        """Inserts or updates the row; names must be unique."""
        row = (*self[:-1], msgspec.json.encode(self.epochs))
        database.execute(_WRITE, (*row, _checksum(row)))


def read_rankers(database: Database) -> tuple[list[RankerRow], set[int]]:
    """All rows, and the ids of damaged ones."""
    text = "CAST(name AS BLOB), CAST(definition AS BLOB), next, deleted, incarnation, epochs"
    rows, damaged = [], set()
    for ranker, name, definition, *numbers, checksum in database.execute(
        f"SELECT id, {text}, checksum FROM rankers ORDER BY id"
    ).fetchall():
        next_round, deleted, incarnation, epochs = numbers
        name = name.decode(errors="replace")
        if checksum != _checksum((ranker, name, definition, next_round, deleted, incarnation, epochs)):
            damaged.add(ranker)
            next_round, incarnation, epochs = _number(next_round), _number(incarnation), b"[[0,0]]"
        parts = msgspec.json.decode(epochs, type=tuple[tuple[int, int], ...])
        rows.append(RankerRow(ranker, name, definition, next_round, deleted, incarnation, parts))
    return rows, damaged


def _number(value: Any) -> int:
    """A number of a damaged row; 0 if it is implausible."""
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def _checksum(row: tuple[Any, ...]) -> int:
    return crc32(msgspec.msgpack.encode(row))


# Entries and rounds


def chain_checksum(key: int, body: bytes, answers: int | None, before: int) -> int:
    """The checksum of an entry: the own half of the entry before it, then its own.

    >>> first = chain_checksum(1, b"one", None, 5)
    >>> second = chain_checksum(2, b"two", None, own_half(first))
    >>> is_intact(2, b"two", None, second), is_intact(2, b"ten", None, second)
    (True, False)
    >>> follows(second, first), follows(first, second)
    (True, False)
    """
    checksum = before << 32 | _own(key, body, answers, before)
    return checksum - (1 << 64) if checksum >> 63 else checksum  # columns are signed


def is_intact(key: int, body: Any, answers: Any, checksum: Any) -> bool:
    """Whether an entry is intact. An erased one keeps its checksum, to which the next entry is chained."""
    if body == ERASED:
        return isinstance(checksum, int) and answers is None
    if not isinstance(body, bytes) or not isinstance(checksum, int) or not isinstance(answers, int | None):
        return False
    return _own(key, body, answers, checksum >> 32 & _HALF) == own_half(checksum)


def follows(checksum: int, before: int) -> bool:
    """Whether an entry follows the entry with the checksum `before`."""
    return checksum >> 32 & _HALF == own_half(before)


def round_checksum(key: int, body: bytes) -> int:
    """The checksum of a round.

    >>> is_intact_round(2, b"two", round_checksum(2, b"two")), is_intact_round(1, b"two", round_checksum(2, b"two"))
    (True, False)
    """
    return crc32(body, key & _HALF)


def is_intact_round(key: int, body: Any, checksum: Any) -> bool:
    """Whether a round is intact."""
    return isinstance(body, bytes) and isinstance(checksum, int) and round_checksum(key, body) == checksum


def own_half(checksum: int) -> int:
    """The half of a checksum that covers the entry itself."""
    return checksum & _HALF


def _own(key: int, body: bytes, answers: int | None, before: int) -> int:
    return crc32(body, crc32(_ENTRY.pack(key, -1 if answers is None else answers, before)))
