"""The log: where nothing gets lost. SQLite in WAL mode, flushed to disk at every commit, written by one thread.

Whatever waits while a commit is under way goes into the next one together (group commit), so that many clients share
the price of a flush. A failed commit changes nothing: those who waited for it are told, and open rounds, which nobody
waits for, are tried again.
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
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from time import sleep
from typing import IO, Any, NamedTuple
from zlib import crc32

from ranktron.errors import DataError
from ranktron.service.journal_writes import SHIFT, Do, insert, row

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

Done = Callable[[Any], None]
Failed = Callable[[BaseException], None]


@dataclass(frozen=True)
class Job:
    """Something to write, and who is told of it, on the event loop. Without `failed` it is tried until it succeeds."""

    do: Do
    done: Done | None = None
    failed: Failed | None = None


class KeepRound(NamedTuple):
    """An open round to keep."""

    ranker: int
    number: int
    body: bytes
    failed: None = None


class Append(NamedTuple):
    """An entry to write, and who is told of its version; `round` is the round that it answers, if any."""

    ranker: int
    round: int | None
    body: bytes
    done: Done
    failed: Failed


class StoredRanker(NamedTuple):
    """A ranker as the log knows it: `asked` is the definition as its client sent it, `definition` the complete one."""

    id: int
    name: str
    definition: bytes
    next: int
    asked: bytes


class Log:
    """The log of one folder, which it locks: a second server on the same folder is refused."""

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
        self._jobs: deque[Job | KeepRound | Append] = deque()
        self._again: list[Job | KeepRound | Append] = []
        self._bell: SimpleQueue[bool] = SimpleQueue()  # true: there are jobs; false: there will be no more
        self._rung = self._alarm = False
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        # 0.1.0 kept definitions as they were sent, and nothing beside them
        columns = "id, name, definition, next, coalesce(asked, definition)"
        rows = self._connection.execute(f"SELECT {columns} FROM rankers WHERE NOT deleted ORDER BY id")
        return [StoredRanker(*row) for row in rows]

    def entries(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        """Versions and bodies in order; None for a body that is damaged."""
        yield from self._checked("entries", ranker)

    def rounds(self, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        """Numbers and bodies of the rounds that were kept; None for a body that is damaged."""
        yield from self._checked("rounds", ranker)

    def _checked(self, table: str, ranker: int) -> Iterator[tuple[int, bytes | None]]:
        query = f"SELECT key, CAST(body AS BLOB), checksum FROM {table} WHERE key >= ? AND key < ? ORDER BY key"
        with _explained(self.folder / "log.sqlite"):
            rows = self._connection.execute(query, (ranker * SHIFT, (ranker + 1) * SHIFT)).fetchall()
        for key, body, checksum in rows:
            whole = isinstance(body, bytes) and crc32(body, key & 0xFFFFFFFF) == checksum
            yield key - ranker * SHIFT, body if whole else None

    def cut(self, ranker: int, version: int, *, learnt: bool) -> None:
        """Takes the last entry away, which is damaged; if a snapshot has learnt it, the round that it answered, too."""
        key = (ranker * SHIFT + version,)

        def do(connection: sqlite3.Connection) -> None:
            if learnt:
                connection.execute("DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)", key)
            connection.execute("DELETE FROM entries WHERE key = ?", key)

        self.write_now(do)

    def write_now(self, do: Do) -> None:
        """Writes at once, which is possible only before the writer has started."""
        with _explained(self.folder / "log.sqlite"):
            do(self._connection)

    def follow(self, ranker: int, version: int) -> None:
        """Says which version a ranker has reached: the next entry is numbered after it."""
        self._versions[ranker] = version

    @property
    def size(self) -> int:
        """How much the log takes on disk."""
        files = (self.folder / f"log.sqlite{ending}" for ending in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    # Writing

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, loop: AbstractEventLoop) -> None:
        """Starts the writer, which tells the event loop what has been written."""
        self._loop = loop
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def put(self, job: Job | Append) -> None:
        """Takes a job, on the event loop's thread; jobs are done in the order in which they are put."""
        self._jobs.append(job)
        if not self._rung:  # one bell for all that this turn of the loop brings
            self._rung = True
            assert self._loop is not None
            self._loop.call_soon(self._ring)

    def put_later(self, job: KeepRound) -> None:
        """Takes a job that nobody waits for: it may wait a few milliseconds for company."""
        self._jobs.append(job)
        if not self._rung and not self._alarm:
            self._alarm = True
            assert self._loop is not None
            self._loop.call_later(_COMPANY, self._ring)

    def _ring(self) -> None:
        self._rung = self._alarm = False
        self._bell.put(True)

    def close(self) -> None:
        """Writes all that waits, then lets go of the folder."""
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

    def _try(self, jobs: list[Job | KeepRound | Append], going: bool) -> None:
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

    def _commit(self, jobs: list[Job | KeepRound | Append]) -> list[tuple[Done, Any]]:
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
        self, connection: sqlite3.Connection, jobs: list[Job | KeepRound | Append]
    ) -> list[tuple[Done | None, Any]]:
        told: list[tuple[Done | None, Any]] = []
        kept = [job for job in jobs if isinstance(job, KeepRound)]
        insert(connection, "rounds", [row(job.ranker * SHIFT + job.number, job.body) for job in kept])
        entries = []
        for job in jobs:
            if isinstance(job, Append):
                version = self._versions[job.ranker] = self._versions[job.ranker] + 1
                answers = None if job.round is None else job.ranker * SHIFT + job.round
                entries.append((*row(job.ranker * SHIFT + version, job.body), answers))
                told.append((job.done, version))
            elif isinstance(job, Job):
                told.append((job.done, job.do(connection)))
        insert(connection, "entries", entries)
        return told

    def _fail(self, jobs: list[Job | KeepRound | Append], error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False
        self._again = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._tell(job.failed, error)

    # What can be written

    def add_ranker(self, name: str, definition: bytes, asked: bytes, reserve: int) -> Do:
        """A ranker; gives its number and that of its first round. Rounds of a deleted one of that name count on."""

        def do(connection: sqlite3.Connection) -> StoredRanker:
            (first,) = connection.execute(
                "SELECT coalesce(max(next), 0) FROM rankers WHERE name = ?", (name,)
            ).fetchone()
            added = connection.execute(
                "INSERT INTO rankers (name, definition, next, asked) VALUES (?, ?, ?, ?)",
                (name, definition, first + reserve, asked),
            )
            assert added.lastrowid is not None
            self._versions[added.lastrowid] = 0
            return StoredRanker(added.lastrowid, name, definition, first, asked)

        return do


def _finish(told: list[tuple[Done, Any]]) -> None:
    for done, result in told:
        try:
            done(result)
        except Exception:  # those who come after it are told all the same
            _logger.exception("what was written could not be told")


def _locked(folder: Path) -> IO[bytes]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "wb")  # noqa: SIM115 (held for as long as the log is)
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
        raise DataError(f"{path}: the log cannot be opened for writing: {error}") from None
    except sqlite3.DatabaseError as error:
        raise DataError(f"{path} is damaged ({error}): restore it from a copy, or start in another folder") from None


def _connected(path: Path) -> sqlite3.Connection:
    with _explained(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
            if "asked" not in {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}:
                connection.execute("ALTER TABLE rankers ADD COLUMN asked BLOB")  # a log of 0.1.0, which still opens it
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE rankers SET next = next WHERE id = 0")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection
