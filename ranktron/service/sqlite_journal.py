"""The journal in SQLite: WAL mode, flushed to disk at every commit, written by one thread.

Whatever waits while a commit is under way goes into the next one together (group commit), so that many clients share
the price of a flush. A failed commit changes nothing: those who waited for it are told, and rounds, which nobody waits
for, are tried again.

Each commit is made in the name of one term, which a start increments: a server that another one has followed can write
no more, and steps down. Each commit is counted, and after it the mark moves (see `high_water_mark`), by which a start
finds that the log has lost its end. A folder that was copied, or restored from a copy, or whose log has lost something,
begins a new epoch: no round that is shown from then on is taken for one that another copy has shown.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom
from time import sleep
from typing import Any

from ranktron.errors import DataError
from ranktron.service.folder_lock import FolderLock, OpenFiles
from ranktron.service.high_water_mark import Mark
from ranktron.service.journal import (
    CAPACITY,
    AddRanker,
    Append,
    Call,
    Define,
    Done,
    DropRounds,
    Failed,
    Job,
    JournalError,
    Logged,
    NoteTime,
    Prune,
    RemovedError,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
    TermError,
    Write,
)
from ranktron.service.journal_startup import Known, begin_term, find_end
from ranktron.service.ranker_rows import RankerRow, alone, chain_checksum, follows, own_half, whole
from ranktron.service.sqlite_tables import (
    ACCEPTED,
    ANSWERS,
    ENTRIES,
    LAST_ROUNDS,
    OPEN_ROUNDS,
    connect,
    deletions,
    explain_sqlite_errors,
    insert,
)

_COMPANY = 0.005  # seconds that an open round waits for others to be written with
_PAGE = 2_000  # entries that are read at once
_PAUSE = 0.1  # seconds until a disk that refused is tried again
_logger = logging.getLogger("ranktron.service")


class SQLiteJournal:
    """The journal of one folder, which it locks: a second server on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "log.sqlite"
        self.ready = True
        self._lock = FolderLock(folder)
        try:
            self._connection = connect(self.path)
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
        self._superseded: Failed | None = None  # who is told that the term is over
        self._over: TermError | None = None
        self._thread: threading.Thread | None = None
        self._reader: sqlite3.Connection | None = None
        try:
            with explain_sqlite_errors(self.path):
                self._term = begin_term(self._connection, self._mark, self._lock.facts(self.path))
        except BaseException:
            self.close()
            raise
        self._known, self._commits = self._term.known, self._term.commits
        self.cluster: str = self._connection.execute("SELECT cluster FROM identity").fetchone()[0]
        self._files = OpenFiles([folder / f"log.sqlite{ending}" for ending in ("", "-wal")])

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        lost, marks = {stored.id for stored in self._term.lost}, self._mark.rankers
        found = []
        for row, _, _, at in self._known.values():
            if not row.deleted and row.id not in lost:
                told = marks[row.id].version if row.id in marks else -1
                stored = row.id, row.name, row.definition, row.next, row.asked, row.incarnation, row.epochs, told
                found.append(StoredRanker(*stored, at=at))
        return [*found, *self._term.lost]

    def last_version(self, ranker: int) -> int:
        with explain_sqlite_errors(self.path):
            return find_end(self._connection, self._known[ranker].row)[0]

    def entries(self, ranker: int) -> Iterator[Logged]:
        incarnation = self._known[ranker].row.incarnation
        base, before = ranker * CAPACITY, None
        at = last = base
        while rows := self._page(at, base + CAPACITY):
            for key, body, answers, checksum, shown, shown_checksum in rows:
                if key == base + 1:
                    before = incarnation << 32 | incarnation
                elif key != last + 1:  # a snapshot has what is missing in between, or its version is found to be
                    before = None
                fits = whole(key, body, answers, checksum) and (before is None or follows(checksum, before))
                before, last = checksum if fits else None, key
                if shown is not None and not (fits and whole(answers, shown, None, shown_checksum)):
                    shown = None
                yield Logged(key - base, body if fits else None, shown)
            at = rows[-1][0] + 1

    def before_answers(self, ranker: int, count: int) -> int:
        base, rounds = ranker * CAPACITY, set()
        with explain_sqlite_errors(self.path):
            for key, answered in self._connection.execute(ANSWERS, (base, base + CAPACITY)):
                rounds.add(answered)
                if len(rounds) > count:
                    return int(key) - base
        return 0

    def _page(self, first: int, end: int) -> list[Any]:
        with explain_sqlite_errors(self.path):
            return self._connection.execute(ENTRIES, (first, end, _PAGE)).fetchall()

    def open_rounds(self, ranker: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, OPEN_ROUNDS, ranker * CAPACITY, (ranker + 1) * CAPACITY)

    def last_rounds(self, ranker: int, count: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, LAST_ROUNDS, ranker * CAPACITY, (ranker + 1) * CAPACITY, count)[::-1]

    def _rounds(self, ranker: int, query: str, *arguments: int) -> list[tuple[int, bytes | None]]:
        with explain_sqlite_errors(self.path):
            rows = self._connection.execute(query, arguments).fetchall()
        base = ranker * CAPACITY
        return [(key - base, body if whole(key, body, None, checksum) else None) for key, body, checksum in rows]

    def checksum(self, ranker: int, version: int) -> int | None:
        with explain_sqlite_errors(self.path):
            key = ranker * CAPACITY + version
            query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
            found = self._connection.execute(query, (key,)).fetchone()
        return own_half(found[2]) if found and whole(key, *found) else None

    def cut(self, ranker: int, version: int, entry: bytes, *, learnt: bool) -> None:
        key = ranker * CAPACITY + version
        with explain_sqlite_errors(self.path):
            connection = self._connection
            before = connection.execute("SELECT checksum FROM entries WHERE key = ?", (key - 1,)).fetchone()
            seed = self._known[ranker].row.incarnation if before is None else own_half(before[0])
            connection.execute("BEGIN IMMEDIATE")
            if learnt:
                connection.execute("DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)", (key,))
            change = "UPDATE entries SET body = ?, checksum = ?, round = NULL WHERE key = ?"
            connection.execute(change, (entry, chain_checksum(key, entry, None, seed), key))
            connection.execute("COMMIT")

    def write_now(self, write: Write) -> None:
        with explain_sqlite_errors(self.path):
            self._commit(lambda: self._write_one(write))

    def follow(self, ranker: int, version: int) -> None:
        known = self._known[ranker]
        with explain_sqlite_errors(self.path):
            last, checksum = find_end(self._connection, known.row)
        self._known[ranker] = known._replace(version=max(version, last), checksum=checksum)
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

    def accepted(self, ranker: int, number: int) -> tuple[int, bytes] | None:
        with explain_sqlite_errors(self.path):
            if self._reader is None:  # of the event loop's thread: the other connection is the writer's
                self._reader = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            row: tuple[int, bytes] | None = self._reader.execute(ACCEPTED, (ranker * CAPACITY + number,)).fetchone()
        return row

    def start(self, loop: AbstractEventLoop, superseded: Failed) -> None:
        self._loop, self._superseded = loop, superseded
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def put(self, *jobs: Job | Append) -> None:
        self._jobs.extend(jobs)  # at once: the writer takes all that there is into one commit
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
        if self._reader is not None:
            self._reader.close()
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
            written = self._commit(lambda: self._do(self._connection, jobs))
            told = [(done, result) for done, result in written if done is not None]
        except TermError as error:
            self._step_down(jobs, error)
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

    def _commit(self, work: Callable[[], Any]) -> Any:
        """Does some work in one transaction, in the name of this term, and then moves the mark."""
        before = dict(self._known)
        connection = self._connection
        if self._over is not None:
            raise self._over
        if connection.in_transaction:  # the disk did not even take that it was to be forgotten
            connection.execute("ROLLBACK")
        connection.execute("BEGIN IMMEDIATE")
        try:
            counted = "UPDATE owner SET commits = ? WHERE id = 1 AND term = ? AND commits = ?"
            if connection.execute(counted, (self._commits + 1, self._term.number, self._commits)).rowcount != 1:
                raise TermError(f"another server has taken {self.folder} over: send requests there, and stop this one")
            result = work()
            if self._files.are_gone():  # what is written to a file that nobody can open again is lost
                raise JournalError(f"{self.path} was removed or replaced while the server ran: stop it")
            connection.execute("COMMIT")
        except BaseException:
            self._known = before
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._commits += 1
        self._move_mark([known for ranker, known in self._known.items() if before.get(ranker) is not known])
        return result

    def _do(
        self, connection: sqlite3.Connection, jobs: list[Job | StoreRound | Append]
    ) -> list[tuple[Done | None, Any]]:
        told: list[tuple[Done | None, Any]] = []
        keys = [(job.ranker * CAPACITY + job.number, job.body) for job in jobs if isinstance(job, StoreRound)]
        insert(connection, "rounds", [(key, body, alone(key, body)) for key, body in keys])
        entries = []
        for job in jobs:
            if isinstance(job, Append):
                if self._known[job.ranker].row.deleted:
                    told.append((job.failed, RemovedError("the ranker has been deleted")))
                    continue
                entries.append(self._next_entry(job.ranker, job.body, job.round))
                if job.carried is not None:
                    key, (body, *known) = job.ranker * CAPACITY + (job.round or 0), job.carried
                    insert(connection, "rounds", [(key, body, alone(key, body))])
                    insert(connection, "accepted", [(key, self._known[job.ranker].version, *known)])
                told.append((job.done, self._known[job.ranker].version))
            elif isinstance(job, Job):
                if isinstance(job.write, RemoveRanker):  # with what came before it
                    insert(connection, "entries", entries)
                    entries = []
                told.append((job.done, self._write_one(job.write)))
        insert(connection, "entries", entries)
        return told

    def _next_entry(self, ranker: int, body: bytes, round: int | None) -> tuple[int, bytes, int, int | None]:
        """The row of a ranker's next entry, which is its last one from now on."""
        row, version, checksum, at = self._known[ranker]
        key = ranker * CAPACITY + version + 1
        answers = None if round is None else ranker * CAPACITY + round
        checksum = chain_checksum(key, body, answers, own_half(checksum))
        self._known[ranker] = Known(row, version + 1, checksum, at)
        return key, body, checksum, answers

    def _fail(self, jobs: list[Job | StoreRound | Append], error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False
        self._again = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._tell(job.failed, error)

    def _step_down(self, jobs: list[Job | StoreRound | Append], error: TermError) -> None:
        """Writes nothing more, and drops what waits: whoever has taken over has not seen it."""
        if self._over is None and self._superseded is not None:
            self._tell(self._superseded, error)
        self._over = error
        self._fail(jobs, error)
        self._again = []

    # What can be written

    def _write_one(self, write: Write) -> Any:
        if isinstance(write, AddRanker):
            return self._add_ranker(write)
        if isinstance(write, Call):
            further = write.function()
            return None if further is None else self._write_one(further)
        if isinstance(write, NoteTime):
            self._known[write.ranker] = self._known[write.ranker]._replace(at=write.at)
        if isinstance(write, Define | Reserve | Settle | RemoveRanker):
            self._change_row(write)
        if isinstance(write, RemoveRanker | DropRounds | Prune):
            for statement, rows in deletions(write):
                self._connection.executemany(statement, rows)
        return None

    def _add_ranker(self, write: AddRanker) -> StoredRanker:
        marks = self._mark.rankers
        numbers = [(known.row.name, known.row.next) for known in self._known.values()]
        numbers += [(mark.name, mark.next) for mark in marks.values()]
        first = max((following for name, following in numbers if name == write.name), default=0)
        following = max(first, write.rounds)
        ranker, incarnation = max((*marks, *self._known), default=0) + 1, SystemRandom().randrange(1, 1 << 32)
        row = RankerRow(
            ranker,
            write.name,
            write.definition,
            following + write.reserve,
            0,
            write.asked,
            incarnation,
            ((first, self._term.epoch),),
        )
        row.write(self._connection)
        self._known[ranker] = Known(row, 0, incarnation)
        if write.entry:
            insert(self._connection, "entries", [self._next_entry(ranker, write.entry, None)])
        return StoredRanker(ranker, row.name, row.definition, following, row.asked, incarnation, row.epochs)

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


def _finish(told: list[tuple[Done, Any]]) -> None:
    for done, result in told:
        try:
            done(result)
        except Exception:  # those who come after it are told all the same
            _logger.exception("what was written could not be told")
