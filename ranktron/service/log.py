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

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rankers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, definition BLOB NOT NULL, next INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, round INTEGER, body BLOB NOT NULL, checksum INTEGER);
CREATE TABLE IF NOT EXISTS rounds (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER);
"""
_SHIFT = 1 << 40  # a key is a ranker's number times this, plus the version of an entry or the number of a round
_COMPANY = 0.005  # seconds that an open round waits for others to be written with
_PAUSE = 0.1  # seconds until a disk that refused is tried again
_logger = logging.getLogger("ranktron.service")

Do = Callable[[sqlite3.Connection], Any]
Done = Callable[[Any], None]
Failed = Callable[[BaseException], None]


@dataclass(frozen=True)
class Job:
    """Something to write, and who is told of it, on the event loop. Without `failed` it is tried until it succeeds."""

    do: Do
    done: Done | None = None
    failed: Failed | None = None


class StoredRanker(NamedTuple):
    """A ranker as the log knows it."""

    id: int
    name: str
    definition: bytes
    next: int


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
        self._jobs: deque[Job] = deque()
        self._again: list[Job] = []
        self._bell: SimpleQueue[bool] = SimpleQueue()  # true: there are jobs; false: there will be no more
        self._rung = self._alarm = False
        self._loop: AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        rows = self._connection.execute("SELECT id, name, definition, next FROM rankers WHERE NOT deleted ORDER BY id")
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
            rows = self._connection.execute(query, (ranker * _SHIFT, (ranker + 1) * _SHIFT)).fetchall()
        for key, body, checksum in rows:
            whole = isinstance(body, bytes) and crc32(body, key & 0xFFFFFFFF) == checksum
            yield key - ranker * _SHIFT, body if whole else None

    def cut(self, ranker: int, version: int) -> None:
        """Takes the last entry away, which is damaged."""
        key = ranker * _SHIFT + version
        self.write_now(lambda connection: connection.execute("DELETE FROM entries WHERE key = ?", (key,)))

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

    def put(self, job: Job) -> None:
        """Takes a job, on the event loop's thread; jobs are done in the order in which they are put."""
        self._jobs.append(job)
        if not self._rung:  # one bell for all that this turn of the loop brings
            self._rung = True
            assert self._loop is not None
            self._loop.call_soon(self._ring)

    def put_later(self, job: Job) -> None:
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

    def _try(self, jobs: list[Job], going: bool) -> None:
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

    def _commit(self, jobs: list[Job]) -> list[tuple[Done, Any]]:
        before = dict(self._versions)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            told = [(job.done, job.do(connection)) for job in jobs]
            connection.execute("COMMIT")
        except BaseException:
            self._versions = before
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return [(done, result) for done, result in told if done is not None]

    def _fail(self, jobs: list[Job], error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False
        self._again = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._tell(job.failed, error)

    # What can be written

    def append(self, ranker: int, round: int | None, body: bytes) -> Do:
        """An entry; its version is what the job gives. `round` is the round that it answers, if any."""

        def do(connection: sqlite3.Connection) -> int:
            version = self._versions[ranker] + 1
            key = ranker * _SHIFT + version
            row = (key, None if round is None else ranker * _SHIFT + round, body, crc32(body, key & 0xFFFFFFFF))
            connection.execute("INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?)", row)
            self._versions[ranker] = version
            return version

        return do

    def add_ranker(self, name: str, definition: bytes, reserve: int) -> Do:
        """A ranker; gives its number and that of its first round. Rounds of a deleted one of that name count on."""

        def do(connection: sqlite3.Connection) -> StoredRanker:
            (first,) = connection.execute(
                "SELECT coalesce(max(next), 0) FROM rankers WHERE name = ?", (name,)
            ).fetchone()
            added = connection.execute(
                "INSERT INTO rankers (name, definition, next) VALUES (?, ?, ?)", (name, definition, first + reserve)
            )
            assert added.lastrowid is not None
            self._versions[added.lastrowid] = 0
            return StoredRanker(added.lastrowid, name, definition, first)

        return do


def keep_round(ranker: int, number: int, body: bytes) -> Do:
    """An open round."""
    key = ranker * _SHIFT + number
    row = (key, body, crc32(body, key & 0xFFFFFFFF))
    return lambda connection: connection.execute("INSERT OR REPLACE INTO rounds VALUES (?, ?, ?)", row) and None


def drop_rounds(ranker: int, numbers: list[int]) -> Do:
    """Rounds that nobody may answer any more."""
    keys = [(ranker * _SHIFT + number,) for number in numbers]
    return lambda connection: connection.executemany("DELETE FROM rounds WHERE key = ?", keys) and None


def reserve(ranker: int, next: int) -> Do:
    """The number that the next round may have after a crash."""
    return lambda connection: connection.execute("UPDATE rankers SET next = ? WHERE id = ?", (next, ranker)) and None


def remove_ranker(ranker: int, next: int) -> Do:
    """A ranker with all that it has; its name remembers how far its rounds have counted."""

    def do(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE rankers SET deleted = 1, next = ? WHERE id = ?", (next, ranker))
        for table in ("entries", "rounds"):
            span = (ranker * _SHIFT, (ranker + 1) * _SHIFT)
            connection.execute(f"DELETE FROM {table} WHERE key >= ? AND key < ?", span)

    return do


def prune(ranker: int, settled: int, remembered: int) -> Do:
    """Rounds that entries up to version `settled` answered, and entries up to version `remembered`."""

    def do(connection: sqlite3.Connection) -> None:
        base = ranker * _SHIFT
        connection.execute(
            "DELETE FROM rounds WHERE key IN (SELECT round FROM entries WHERE key > ? AND key <= ?)",
            (base, base + settled),
        )
        connection.execute("DELETE FROM entries WHERE key > ? AND key <= ?", (base, base + min(remembered, settled)))

    return do


def _finish(told: list[tuple[Done, Any]]) -> None:
    for done, result in told:
        done(result)


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
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("UPDATE rankers SET next = next WHERE id = 0")
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection
