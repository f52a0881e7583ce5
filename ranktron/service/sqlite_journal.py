"""The journal in SQLite: WAL mode, flushed to disk at every commit, written by one thread.

Whatever waits while a commit is under way goes into the next one together (group commit), so that many clients share
the price of a flush. A failed commit changes nothing: those who waited for it are told, and rounds, which nobody waits
for, are tried again.
"""

from __future__ import annotations

import fcntl
import logging
import sqlite3
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from time import sleep
from typing import IO, Any
from zlib import crc32

from ranktron.errors import DataError
from ranktron.service.journal import (
    CAPACITY,
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

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rankers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, definition BLOB NOT NULL, next INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, asked BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS names ON rankers (name) WHERE NOT deleted;
CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER, round INTEGER);
CREATE TABLE IF NOT EXISTS rounds (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER);
"""
_COMPANY = 0.005  # seconds that an open round waits for others to be written with
_PAUSE = 0.1  # seconds until a disk that refused is tried again
_logger = logging.getLogger("ranktron.service")


class SQLiteJournal:
    """The journal of one folder, which it locks: a second server on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready = True
        self._versions: dict[int, int] = {}
        self._lock = _locked(folder)
        try:
            self._connection = _connected(folder / "log.sqlite")
        except BaseException:
            self._lock.close()
            raise
        self._jobs: deque[Job | StoreRound | Append] = deque()
        self._again: list[Job | StoreRound | Append] = []
        self._bell: SimpleQueue[bool] = SimpleQueue()  # true: there are jobs; false: there will be no more
        self._rung = self._alarm = False
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        # 0.1.0 kept definitions as they were sent, and nothing beside them
        columns = "id, name, definition, next, coalesce(asked, definition)"
        with _explained(self.folder / "log.sqlite"):
            rows = self._connection.execute(f"SELECT {columns} FROM rankers WHERE NOT deleted ORDER BY id").fetchall()
        return [StoredRanker(*row) for row in rows]

    def entries(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        yield from self._checked("entries", ranker)

    def rounds(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        yield from self._checked("rounds", ranker)

    def _checked(self, table: str, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        query = f"SELECT key, CAST(body AS BLOB), checksum FROM {table} WHERE key >= ? AND key < ? ORDER BY key"
        with _explained(self.folder / "log.sqlite"):
            rows = self._connection.execute(query, (ranker * CAPACITY, (ranker + 1) * CAPACITY)).fetchall()
        for key, body, checksum in rows:
            whole = isinstance(body, bytes) and crc32(body, key & 0xFFFFFFFF) == checksum
            yield key - ranker * CAPACITY, body if whole else None

    def cut(self, ranker: int, version: int, *, learnt: bool) -> None:
        key = (ranker * CAPACITY + version,)
        with _explained(self.folder / "log.sqlite"):
            if learnt:
                answered = "DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)"
                self._connection.execute(answered, key)
            self._connection.execute("DELETE FROM entries WHERE key = ?", key)

    def write_now(self, write: Write) -> None:
        with _explained(self.folder / "log.sqlite"):
            self._write_one(write)

    def follow(self, ranker: int, version: int) -> None:
        self._versions[ranker] = version

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
        before = dict(self._versions)
        connection = self._connection
        if connection.in_transaction:  # the disk did not even take that it was to be forgotten
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        try:
            told = self._do(connection, jobs)
            connection.execute("COMMIT")
        except BaseException:
            self._versions = before
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return [(done, result) for done, result in told if done is not None]

    def _do(
        self, connection: sqlite3.Connection, jobs: list[Job | StoreRound | Append]
    ) -> list[tuple[Done | None, Any]]:
        told: list[tuple[Done | None, Any]] = []
        kept = [job for job in jobs if isinstance(job, StoreRound)]
        _insert(connection, "rounds", [_row(job.ranker * CAPACITY + job.number, job.body) for job in kept])
        entries = []
        for job in jobs:
            if isinstance(job, Append):
                version = self._versions[job.ranker] = self._versions[job.ranker] + 1
                answers = None if job.round is None else job.ranker * CAPACITY + job.round
                entries.append((*_row(job.ranker * CAPACITY + version, job.body), answers))
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
        connection = self._connection
        if isinstance(write, AddRanker):
            return self._add_ranker(write)
        if isinstance(write, Call):
            further = write.function()
            return None if further is None else self._write_one(further)
        for statement, rows in _statements(write):
            connection.executemany(statement, rows)
        return None

    def _add_ranker(self, write: AddRanker) -> StoredRanker:
        first_number = "SELECT coalesce(max(next), 0) FROM rankers WHERE name = ?"
        (first,) = self._connection.execute(first_number, (write.name,)).fetchone()
        added = self._connection.execute(
            "INSERT INTO rankers (name, definition, next, asked) VALUES (?, ?, ?, ?)",
            (write.name, write.definition, first + write.reserve, write.asked),
        )
        assert added.lastrowid is not None
        self._versions[added.lastrowid] = 0
        return StoredRanker(added.lastrowid, write.name, write.definition, first, write.asked)


def _statements(write: Define | Reserve | Settle | RemoveRanker | DropRounds | Prune) -> list[tuple[str, list[Any]]]:
    """A write as SQL: statements, each with the rows that it is executed for."""
    ranker, base = write.ranker, write.ranker * CAPACITY
    if isinstance(write, Define):
        changed = write.definition, write.asked, ranker
        return [("UPDATE rankers SET definition = ?, asked = ? WHERE id = ?", [changed])]
    if isinstance(write, Reserve):  # what is set aside stays so
        return [("UPDATE rankers SET next = max(next, ?) WHERE id = ?", [(write.next, ranker)])]
    if isinstance(write, Settle):
        return [("UPDATE rankers SET next = ? WHERE id = ?", [(write.next, ranker)])]
    if isinstance(write, RemoveRanker):
        span = base, base + CAPACITY
        return [
            ("UPDATE rankers SET deleted = 1, next = ? WHERE id = ?", [(write.next, ranker)]),
            ("DELETE FROM entries WHERE key >= ? AND key < ?", [span]),
            ("DELETE FROM rounds WHERE key >= ? AND key < ?", [span]),
        ]
    if isinstance(write, DropRounds):
        return [("DELETE FROM rounds WHERE key = ?", [(base + number,) for number in write.numbers])]
    answered = "SELECT round FROM entries WHERE key > ? AND key <= ?"
    return [
        (f"DELETE FROM rounds WHERE key IN ({answered})", [(base, base + write.settled)]),
        ("DELETE FROM entries WHERE key > ? AND key <= ?", [(base, base + min(write.remembered, write.settled))]),
    ]


def _row(key: int, body: bytes) -> tuple[int, bytes, int]:
    return key, body, crc32(body, key & 0xFFFFFFFF)


def _insert(connection: sqlite3.Connection, table: str, rows: list[Any]) -> None:
    """Inserts many rows with each statement: between statements the event loop's thread would have its turn."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            some, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * size)
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES {values}", [v for row in some for v in row])


def _finish(told: list[tuple[Done, Any]]) -> None:
    for done, result in told:
        try:
            done(result)
        except Exception:  # those who come after it are told all the same
            _logger.exception("what was written could not be told")


def _locked(folder: Path) -> IO[bytes]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open(folder / "lock", "wb")  # noqa: SIM115 (held for as long as the journal is)
    except OSError as error:
        raise DataError(f"{folder}: the state cannot be kept there: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise DataError(f"{folder} is in use by another server: stop it first, or choose another folder") from None
    return lock


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
            if "asked" not in {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}:
                connection.execute(
                    "ALTER TABLE rankers ADD COLUMN asked BLOB"
                )  # a journal of 0.1.0, which still opens it
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE rankers SET next = next WHERE id = 0")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection
