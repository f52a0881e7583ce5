"""The journal in SQLite: WAL mode, flushed to disk at every commit, written by one thread.

Whatever waits while a commit is under way goes into the next one together (group commit), so that many clients share
the price of a flush. A failed commit changes nothing: those who waited for it are told, and rounds, which nobody waits
for, are tried again.

Each commit is made in the name of one term, which a start begins: a server that another one has followed can write no
more. Each commit is counted, and after it the mark moves (see `mark`), by which a start finds that the log has lost
its end. A folder that was copied, or restored from a copy, or whose log has lost something, begins a new epoch: no
round that is shown from then on is taken for one that another copy has shown.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom
from time import sleep
from typing import Any, NamedTuple

from ranktron.errors import DataError
from ranktron.service.folder_lock import FolderLock
from ranktron.service.journal import (
    CAPACITY,
    EPOCHS,
    AddRanker,
    Append,
    Call,
    Define,
    Done,
    DropRounds,
    Job,
    JournalError,
    Prune,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
    Write,
)
from ranktron.service.losses import doubts_about, lost_rankers
from ranktron.service.mark import Mark, RankerMark
from ranktron.service.ranker_rows import RankerRow, alone, chained, follows, own_half, read_rankers, whole

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rankers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, definition BLOB NOT NULL, next INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, asked BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS names ON rankers (name) WHERE NOT deleted;
CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER, round INTEGER);
CREATE TABLE IF NOT EXISTS rounds (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER);
CREATE TABLE IF NOT EXISTS owner (
    id INTEGER PRIMARY KEY, term INTEGER NOT NULL, commits INTEGER NOT NULL, facts TEXT NOT NULL,
    epoch INTEGER NOT NULL);
"""
_LATER = {"asked": "BLOB", "incarnation": "INTEGER", "epochs": "BLOB", "checksum": "INTEGER"}  # columns since 0.1.0
_COMPANY = 0.005  # seconds that an open round waits for others to be written with
_PAUSE = 0.1  # seconds until a disk that refused is tried again
_random = SystemRandom()
_logger = logging.getLogger("ranktron.service")


class Known(NamedTuple):
    """A ranker as far as it is written: its row, its last version, and the checksum of that entry."""

    row: RankerRow
    version: int
    checksum: int

    @property
    def mark(self) -> RankerMark:
        row = self.row
        return RankerMark(row.id, row.name, self.version, own_half(self.checksum), row.next, bool(row.deleted))


class SQLiteJournal:
    """The journal of one folder, which it locks: a second server on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "log.sqlite"
        self.ready = True
        self._lock = FolderLock(folder)
        self._known: dict[int, Known] = {}
        self._lost: list[StoredRanker] = []
        try:
            self._connection = _connected(self.path)
            try:
                self._mark = Mark(folder / "mark")
            except OSError as error:
                self._connection.close()
                raise DataError(f"{folder}: the state cannot be kept there: {error.strerror}") from None
        except BaseException:
            self._lock.close()
            raise
        self._jobs: deque[Job | StoreRound | Append] = deque()
        self._again: list[Job | StoreRound | Append] = []
        self._bell: SimpleQueue[bool] = SimpleQueue()  # true: there are jobs; false: there will be no more
        self._rung = self._alarm = False
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        try:
            with _explained(self.path):
                self._take_over()
        except BaseException:
            self.close()
            raise

    # Reading, before it starts

    def _take_over(self) -> None:
        """Begins a term, and an epoch if the folder is not provably the one that it was."""
        owner = self._connection.execute("SELECT commits, facts, epoch FROM owner WHERE id = 1").fetchone()
        rows, damaged = read_rankers(self._connection)
        commits, facts, self._epoch = owner or (0, "", 0)
        doubts = doubts_about(self._mark, commits, owner is None)
        if owner is not None and facts != self._lock.facts(self.path):
            doubts.append("the folder is a copy, or was restored from one")
        if damaged:
            doubts.append("rows of rankers are damaged")
        if doubts:
            used = {epoch for row in rows for _, epoch in row.epochs} | {self._epoch}
            self._epoch = _random.choice([epoch for epoch in range(1, EPOCHS) if epoch not in used] or [self._epoch])
            _logger.warning("%s: %s; rounds are numbered in a new epoch", self.folder, "; ".join(doubts))
        self._term, self._commits = _random.getrandbits(62), max(commits, self._mark.commits)
        self._lost = lost_rankers(self._connection, rows, damaged, self._mark)
        for row in rows:
            marked = self._mark.rankers.get(row.id)
            row = row._replace(next=max(row.next, 0 if marked is None else marked.next))
            if doubts and not row.deleted:
                row = row._replace(epochs=(*row.epochs, (row.next, self._epoch)))
            self._known[row.id] = Known(row, *self._end(row.id, row.incarnation))
        self._connection.execute("BEGIN IMMEDIATE")
        for ranker, known in self._known.items():
            if ranker not in damaged:  # a damaged one stays as it is
                known.row.write(self._connection)
        values = self._term, self._commits, self._lock.facts(self.path), self._epoch
        self._connection.execute("INSERT OR REPLACE INTO owner VALUES (1, ?, ?, ?, ?)", values)
        self._connection.execute("COMMIT")

    def _end(self, ranker: int, incarnation: int = 0) -> tuple[int, int]:
        """The last version of a ranker, and the checksum of that entry."""
        query = "SELECT key, checksum FROM entries WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1"
        found = self._connection.execute(query, (ranker * CAPACITY, (ranker + 1) * CAPACITY)).fetchone()
        return (0, incarnation) if found is None else (found[0] - ranker * CAPACITY, found[1])

    def rankers(self) -> list[StoredRanker]:
        lost, marks = {stored.id for stored in self._lost}, self._mark.rankers
        rows = [known.row for known in self._known.values() if not known.row.deleted and known.row.id not in lost]
        told = [marks[row.id].version if row.id in marks else -1 for row in rows]
        return [
            *(
                StoredRanker(
                    row.id, row.name, row.definition, row.next, row.asked, row.incarnation, row.epochs, version
                )
                for row, version in zip(rows, told, strict=True)
            ),
            *self._lost,
        ]

    def entries(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        incarnation = self._known[ranker].row.incarnation
        before: int | None = None
        for key, body, answers, checksum in self._rows("entries", ranker, "round"):
            if key == ranker * CAPACITY + 1:
                before = incarnation << 32 | incarnation
            fits = whole(key, body, answers, checksum) and (before is None or follows(checksum, before))
            yield key - ranker * CAPACITY, body if fits else None
            before = checksum if fits else None

    def rounds(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        for key, body, _, checksum in self._rows("rounds", ranker, "NULL"):
            yield key - ranker * CAPACITY, body if whole(key, body, None, checksum) else None

    def _rows(self, table: str, ranker: int, answers: str) -> list[Any]:
        columns = f"key, CAST(body AS BLOB), {answers}, checksum"
        query = f"SELECT {columns} FROM {table} WHERE key >= ? AND key < ? ORDER BY key"
        with _explained(self.path):
            return self._connection.execute(query, (ranker * CAPACITY, (ranker + 1) * CAPACITY)).fetchall()

    def checksum(self, ranker: int, version: int) -> int | None:
        with _explained(self.path):
            key = ranker * CAPACITY + version
            query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
            found = self._connection.execute(query, (key,)).fetchone()
        return own_half(found[2]) if found and whole(key, *found) else None

    def cut(self, ranker: int, version: int, entry: bytes, *, learnt: bool) -> None:
        key = ranker * CAPACITY + version
        with _explained(self.path):
            connection = self._connection
            before = connection.execute("SELECT checksum FROM entries WHERE key = ?", (key - 1,)).fetchone()
            seed = self._known[ranker].row.incarnation if before is None else own_half(before[0])
            connection.execute("BEGIN IMMEDIATE")
            if learnt:
                connection.execute("DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)", (key,))
            change = "UPDATE entries SET body = ?, checksum = ?, round = NULL WHERE key = ?"
            connection.execute(change, (entry, chained(key, entry, None, seed), key))
            connection.execute("COMMIT")

    def write_now(self, write: Write) -> None:
        with _explained(self.path):
            self._commit([Job(write)])

    def follow(self, ranker: int, version: int) -> None:
        row = self._known[ranker].row
        with _explained(self.path):
            last, checksum = self._end(ranker, row.incarnation)
        self._known[ranker] = Known(row, max(version, last), checksum)
        self._move_mark([self._known[ranker]])

    def _move_mark(self, moved: list[Known]) -> None:
        try:
            self._mark.write(self._commits, [known.mark for known in moved])
        except OSError as error:  # what was written is written; only a loss of it might go unnoticed
            _logger.error("%s cannot be written: %s", self._mark.path, error)

    @property
    def size(self) -> int:
        files = (self.folder / f"log.sqlite{ending}" for ending in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    # Writing

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def put(self, job: Job | Append) -> None:
        self._jobs.append(job)
        if not self._rung:  # one bell for all that this turn of the loop brings
            self._rung = True
            assert self._loop is not None
            self._loop.call_soon(self._ring)

    def put_later(self, job: StoreRound) -> None:
        self._jobs.append(job)
        if not self._rung and not self._alarm:
            self._alarm = True
            assert self._loop is not None
            self._loop.call_later(_COMPANY, self._ring)

    def _ring(self) -> None:
        self._rung = self._alarm = False
        self._bell.put(True)

    def close(self) -> None:
        if self._thread is not None:
            self._bell.put(False)
            self._thread.join()
        self._connection.close()
        self._mark.close()
        self._lock.close()

    def _write(self) -> None:
        going = True
        while going:
            going = self._bell.get()
            jobs = self._again
            self._again = []
            while self._jobs:
                jobs.append(self._jobs.popleft())
            if jobs:
                self._try(jobs, going)

    def _try(self, jobs: list[Job | StoreRound | Append], going: bool) -> None:
        try:
            told = self._commit(jobs)
        except Exception as error:
            self._fail(jobs, error)
            if going:
                sleep(_PAUSE)
                self._bell.put(True)
        else:
            if not self.ready:
                _logger.warning("the disk takes writes again")
            self.ready = True
            self._tell(_finish, told)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has been closed: there is nobody left to tell
            self._loop.call_soon_threadsafe(function, *arguments)

    def _commit(self, jobs: list[Job | StoreRound | Append]) -> list[tuple[Done, Any]]:
        before = dict(self._known)
        connection = self._connection
        if connection.in_transaction:  # the disk did not even take that it was to be forgotten
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        try:
            counted = "UPDATE owner SET commits = ? WHERE id = 1 AND term = ?"
            if connection.execute(counted, (self._commits + 1, self._term)).rowcount != 1:
                raise JournalError(f"another server has taken {self.folder} over: stop one of them")
            told = self._do(connection, jobs)
            connection.execute("COMMIT")
        except BaseException:
            self._known = before
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._commits += 1
        self._move_mark([known for ranker, known in self._known.items() if before.get(ranker) is not known])
        return [(done, result) for done, result in told if done is not None]

    def _do(
        self, connection: sqlite3.Connection, jobs: list[Job | StoreRound | Append]
    ) -> list[tuple[Done | None, Any]]:
        told: list[tuple[Done | None, Any]] = []
        keys = [(job.ranker * CAPACITY + job.number, job.body) for job in jobs if isinstance(job, StoreRound)]
        _insert(connection, "rounds", [(key, body, alone(key, body)) for key, body in keys])
        entries = []
        for job in jobs:
            if isinstance(job, Append):
                row, version, checksum = self._known[job.ranker]
                version, key = version + 1, job.ranker * CAPACITY + version + 1
                answers = None if job.round is None else job.ranker * CAPACITY + job.round
                checksum = chained(key, job.body, answers, own_half(checksum))
                self._known[job.ranker] = Known(row, version, checksum)
                entries.append((key, job.body, checksum, answers))
                told.append((job.done, version))
            elif isinstance(job, Job):
                told.append((job.done, self._write_one(job.write)))
        _insert(connection, "entries", entries)
        return told

    def _fail(self, jobs: list[Job | StoreRound | Append], error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False
        self._again = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._tell(job.failed, error)

    # What can be written

    def _write_one(self, write: Write) -> Any:
        if isinstance(write, AddRanker):
            return self._add_ranker(write)
        if isinstance(write, Call):
            further = write.function()
            return None if further is None else self._write_one(further)
        if isinstance(write, Define | Reserve | Settle | RemoveRanker):
            self._change_row(write)
        if isinstance(write, RemoveRanker | DropRounds | Prune):
            for statement, rows in _deletions(write):
                self._connection.executemany(statement, rows)
        return None

    def _add_ranker(self, write: AddRanker) -> StoredRanker:
        marks, rows = self._mark.rankers, [known.row for known in self._known.values()]
        first = max((each.next for each in (*rows, *marks.values()) if each.name == write.name), default=0)
        ranker, incarnation = max((*marks, *self._known), default=0) + 1, _random.randrange(1, 1 << 32)
        row = RankerRow(
            ranker,
            write.name,
            write.definition,
            first + write.reserve,
            0,
            write.asked,
            incarnation,
            ((0, self._epoch),),
        )
        row.write(self._connection)
        self._known[ranker] = Known(row, 0, incarnation)
        return StoredRanker(ranker, row.name, row.definition, first, row.asked, incarnation, row.epochs)

    def _change_row(self, write: Define | Reserve | Settle | RemoveRanker) -> None:
        known = self._known.get(write.ranker)
        if known is None:  # the log has lost it, and only its mark is left
            row = RankerRow(write.ranker, self._mark.rankers[write.ranker].name, b"", 0, 0, b"", 0, ((0, 0),))
            known = Known(row, 0, 0)
        row = known.row
        if isinstance(write, Define):
            row = row._replace(definition=write.definition, asked=write.asked)
        elif isinstance(write, Reserve):  # what is set aside stays so
            row = row._replace(next=max(row.next, write.next))
        elif isinstance(write, Settle):
            row = row._replace(next=write.next)
        else:
            row = row._replace(next=max(write.next, 0), deleted=1)
        row.write(self._connection)
        self._known[write.ranker] = known._replace(row=row)


def _deletions(write: RemoveRanker | DropRounds | Prune) -> list[tuple[str, list[Any]]]:
    """What a write deletes, as SQL: statements, each with the rows that it is executed for."""
    base = write.ranker * CAPACITY
    if isinstance(write, RemoveRanker):
        span = base, base + CAPACITY
        return [(f"DELETE FROM {table} WHERE key >= ? AND key < ?", [span]) for table in ("entries", "rounds")]
    if isinstance(write, DropRounds):
        return [("DELETE FROM rounds WHERE key = ?", [(base + number,) for number in write.numbers])]
    answered = "SELECT round FROM entries WHERE key > ? AND key <= ?"
    return [
        (f"DELETE FROM rounds WHERE key IN ({answered})", [(base, base + write.settled)]),
        ("DELETE FROM entries WHERE key > ? AND key <= ?", [(base, base + min(write.remembered, write.settled))]),
    ]


def _insert(connection: sqlite3.Connection, table: str, rows: list[Any]) -> None:
    """Inserts many rows with each statement: between statements the event loop's thread would have its turn."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            some, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * size)
            connection.execute(f"INSERT INTO {table} VALUES {values}", [value for row in some for value in row])


def _finish(told: list[tuple[Done, Any]]) -> None:
    for done, result in told:
        try:
            done(result)
        except Exception:  # those who come after it are told all the same
            _logger.exception("what was written could not be told")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:
        raise JournalError(f"{path}: the log cannot be opened for writing: {error}") from None
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} is damaged ({error}): restore it from a copy, or start in another folder") from None


def _connected(path: Path) -> sqlite3.Connection:
    with _explained(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
            columns = {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}
            for column, kind in _LATER.items():
                if column not in columns:
                    connection.execute(f"ALTER TABLE rankers ADD COLUMN {column} {kind}")
        except BaseException:
            connection.close()
            raise
        return connection
