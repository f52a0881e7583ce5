"""The journal in SQL, for SQLite and PostgreSQL: group commits on a writer's thread, and the reads of a start.

`GroupCommit` writes all queued jobs in one commit. `SQLJournal` checks the term and counts the commit in the same
transaction, then moves the high-water mark (see `integrity`). README.md defines these terms and says what a start does.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from random import SystemRandom
from time import sleep
from typing import Any, TypeVar

from ranktron.errors import DataError
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.integrity import Known, Mark, begin_term, find_end
from ranktron.store.journal.journal import (
    CAPACITY,
    AddRanker,
    AdvanceSource,
    Append,
    Call,
    Done,
    DropRounds,
    Erase,
    Failed,
    Job,
    JournalError,
    Logged,
    Prune,
    RecordClock,
    RemovedError,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
    TermError,
    UnknownOutcomeError,
    Write,
)
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.journal.tables import (
    ACCEPTED,
    ANSWERS,
    ENTRIES,
    LAST_ROUNDS,
    OPEN_ROUNDS,
    Database,
    RankerRow,
    advance_source,
    chain_checksum,
    deletions,
    follows,
    insert,
    is_intact,
    is_intact_round,
    own_half,
    round_checksum,
)
from ranktron.store.promises import CallerThread, Promise

_logger = logging.getLogger("ranktron.service")
_BATCH_WINDOW = 0.005  # seconds that an open round waits for others to share a commit
RETRY_INTERVAL = 0.1  # seconds between attempts after a failed commit

Task = Job | StoreRound | Append
_T = TypeVar("_T")


class GroupCommit(ABC):
    """Writes all queued jobs in one commit on a writer's thread, and calls back on the caller's thread.

    Jobs that arrive during a commit share the next one, so that many clients share one flush of the disk. A failed
    commit changes nothing: jobs with a `failed` callback fail, and jobs without one are retried.
    """

    def __init__(self) -> None:
        self.ready = True  # whether the last commit succeeded; set by the writer, read by any thread
        self._jobs: deque[Task] = deque()  # queued, oldest first; the caller appends, the writer takes
        self._retry: list[Task] = []  # jobs of a failed commit without a `failed` callback; the writer alone
        self._wakeup: SimpleQueue[bool] = SimpleQueue()  # true: jobs are queued; false: the last message, from close
        self._flush_scheduled = False  # a wakeup is sent at the end of this turn of the caller; the caller alone
        self._delayed_flush = False  # a wakeup is sent after the batch window; the caller alone
        self._closing = False  # stops retries while the database is away; set once, by close
        self._caller: CallerThread | None = None  # where callbacks run; set once, by start
        self._superseded: Failed | None = None  # callback for the end of the term; set once, by start
        self._term_ended: TermError | None = None  # refuses all later writes; set by the writer
        self._thread: threading.Thread | None = None  # the writer; start and close

    @abstractmethod
    def _write_jobs(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        """Writes jobs in one commit, all or none; returns callbacks with their results."""

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        self._caller, self._superseded = caller, superseded
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def create_future(self) -> Promise[Any]:
        assert self._caller is not None
        return self._caller.create_future()

    def offload(self, function: Callable[[], _T]) -> Promise[_T]:
        assert self._caller is not None
        return self._caller.run_in_executor(None, function)

    def put(self, *jobs: Job | Append) -> None:
        self._jobs.extend(jobs)  # one call, so that the writer takes all of them into one commit
        if not self._flush_scheduled:  # one wakeup for all jobs of this turn of the caller
            self._flush_scheduled = True
            assert self._caller is not None
            self._caller.call_soon(self._wake)

    def put_later(self, job: StoreRound | Append) -> None:
        self._jobs.append(job)
        if not self._flush_scheduled and not self._delayed_flush:
            self._delayed_flush = True
            assert self._caller is not None
            self._caller.call_later(_BATCH_WINDOW, self._wake)

    def _wake(self) -> None:
        self._flush_scheduled = self._delayed_flush = False
        self._wakeup.put(True)

    def close(self) -> None:
        """Writes the queued jobs, then ends the thread."""
        self._closing = True
        if self._thread is not None:
            self._wakeup.put(False)
            self._thread.join()
            self._thread = None

    def _write(self) -> None:
        going = True
        while going:
            going = self._wakeup.get()
            jobs = self._retry
            self._retry = []
            while self._jobs:
                jobs.append(self._jobs.popleft())
            if jobs:
                self._try(jobs, going)

    def _try(self, jobs: list[Task], going: bool) -> None:
        try:
            outcomes = [(done, result) for done, result in self._write_jobs(jobs) if done is not None]
        except TermError as error:
            self._step_down(jobs, error)
        except Exception as error:
            self._fail(jobs, error)
            if going:
                sleep(RETRY_INTERVAL)
                self._wakeup.put(True)
        else:
            if not self.ready:
                _logger.warning("the log can be written again")
            self.ready = True
            self._call_back(_run_callbacks, outcomes)

    def _call_back(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._caller is not None
        with suppress(RuntimeError):  # the event loop is closed
            self._caller.call_soon_threadsafe(function, *arguments)

    def _fail(self, jobs: list[Task], error: Exception) -> None:
        self._set_not_ready(error)
        self._retry = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._call_back(job.failed, error)

    def _set_not_ready(self, error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False

    def _step_down(self, jobs: list[Task], error: TermError) -> None:
        """Ends the term: refuses all later writes, and drops the queued jobs, unknown to the new leader."""
        if self._term_ended is None and self._superseded is not None:
            self._call_back(self._superseded, error)
        self._term_ended = error
        self._fail(jobs, error)
        self._retry = []


def _run_callbacks(outcomes: list[tuple[Done, Any]]) -> None:
    for done, result in outcomes:
        try:
            done(result)
        except Exception:  # the other callbacks still run
            _logger.exception("a callback of the journal failed")


_PAGE_SIZE = 2_000  # entries read at one time


class SQLJournal(GroupCommit):
    """A journal in a database; its high-water mark is in a folder, which it locks."""

    def __init__(self, folder: Path, lock: FolderLock, connect: Callable[[FolderLock], Database]) -> None:
        super().__init__()
        self.folder, self._lock = folder, lock  # the folder of the high-water mark, and its lock; fixed
        try:
            self._database = connect(lock)  # after start used by the writer alone, except `look_up`
            try:
                self._mark = Mark(folder / "mark")  # high-water mark, moved after each commit
            except OSError as error:
                self._database.close()
                raise DataError(f"{folder}: the state cannot be stored there: {error.strerror}") from None
        except BaseException:
            self._lock.close()
            raise
        try:
            with self._database.explained():
                self._term = begin_term(self._database, self._mark)  # fixed: a new term needs a new journal
                self.cluster: str = self._database.execute("SELECT cluster FROM identity").fetchone()[0]
        except BaseException:
            self.close()
            raise
        self._known = self._term.known  # rows and ends by ranker; a failed commit is undone
        self._commits = self._term.commits  # number of commits of this log; `_commit` increments it

    @property
    def term(self) -> int:
        return self._term.number

    # Reading, before the writer starts

    def rankers(self) -> list[StoredRanker]:
        lost, marks = {stored.id for stored in self._term.lost}, self._mark.rankers
        rankers = []
        for row, _, _, at in self._known.values():
            if not row.deleted and row.id not in lost:
                stored = row.id, row.name, row.definition, row.next, row.incarnation, row.epochs
                last_acknowledged = marks[row.id].version if row.id in marks else -1
                rankers.append(StoredRanker(*stored, last_acknowledged, at=at))
        return [*rankers, *self._term.lost]

    def last_version(self, ranker: int) -> int:
        with self._database.explained():
            return find_end(self._database, self._known[ranker].row)[0]

    def entries(self, ranker: int, after: int = 0) -> Iterator[Logged]:
        incarnation = self._known[ranker].row.incarnation
        base, before = ranker * CAPACITY, None
        at = last = base + after
        at += after > 0
        while rows := self._page(at, base + CAPACITY):
            for key, body, answers, checksum, shown, shown_checksum in rows:
                if key == base + 1:
                    before = incarnation << 32 | incarnation
                elif key != last + 1:  # pruned entries: a snapshot covers the gap, or recovery reports it
                    before = None
                fits = is_intact(key, body, answers, checksum) and (before is None or follows(checksum, before))
                before, last = checksum if fits else None, key
                if shown is not None and not (fits and is_intact_round(answers, shown, shown_checksum)):
                    shown = None
                yield Logged(key - base, body if fits else None, shown)
            at = rows[-1][0] + 1

    def before_answers(self, ranker: int, count: int) -> int:
        base, rounds = ranker * CAPACITY, set()
        with self._database.explained():
            for key, answered in self._database.execute(ANSWERS, (base, base + CAPACITY)):
                rounds.add(answered)
                if len(rounds) > count:
                    return int(key) - base
        return 0

    def _page(self, first: int, end: int) -> list[Any]:
        values = first, end, _PAGE_SIZE
        if self._thread is not None:  # the writer alone uses the connection
            return self._database.look_up(ENTRIES, values)
        with self._database.explained():
            rows: list[Any] = self._database.execute(ENTRIES, values).fetchall()
        return rows

    def open_rounds(self, ranker: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, OPEN_ROUNDS, *2 * (ranker * CAPACITY, (ranker + 1) * CAPACITY))

    def last_rounds(self, ranker: int, count: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, LAST_ROUNDS, ranker * CAPACITY, (ranker + 1) * CAPACITY, count)[::-1]

    def _rounds(self, ranker: int, query: str, *arguments: int) -> list[tuple[int, bytes | None]]:
        with self._database.explained():
            rows = self._database.execute(query, arguments).fetchall()
        base = ranker * CAPACITY
        return [(key - base, body if is_intact_round(key, body, checksum) else None) for key, body, checksum in rows]

    def checksum(self, ranker: int, version: int) -> int | None:
        with self._database.explained():
            key = ranker * CAPACITY + version
            query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
            row = self._database.execute(query, (key,)).fetchone()
        return own_half(row[2]) if row and is_intact(key, *row) else None

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.look_up(statement, values)

    def accepted(self, ranker: int, number: int) -> tuple[int, bytes] | None:
        rows = self._database.look_up(ACCEPTED, (ranker * CAPACITY + number,))
        return (rows[0][0], bytes(rows[0][1])) if rows else None

    def cut(self, ranker: int, version: int, entry: bytes, *, learnt: bool) -> None:
        key = ranker * CAPACITY + version
        with self._database.explained():
            self._commit(lambda: self._replace_entry(ranker, key, entry, learnt))

    def _replace_entry(self, ranker: int, key: int, entry: bytes, learnt: bool) -> None:
        database = self._database
        before = database.execute("SELECT checksum FROM entries WHERE key = ?", (key - 1,)).fetchone()
        seed = self._known[ranker].row.incarnation if before is None else own_half(before[0])
        if learnt:
            database.execute("DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)", (key,))
        change = "UPDATE entries SET body = ?, checksum = ?, round = NULL WHERE key = ?"
        database.execute(change, (entry, chain_checksum(key, entry, None, seed), key))

    def write_now(self, write: Write) -> None:
        with self._database.explained():
            self._commit(lambda: self._write_one(write))

    def follow(self, ranker: int, version: int) -> None:
        known = self._known[ranker]
        with self._database.explained():
            last, checksum = find_end(self._database, known.row)
        self._known[ranker] = known._replace(version=max(version, last), checksum=checksum)
        self._move_mark([self._known[ranker]])

    def _move_mark(self, moved: list[Known]) -> None:
        try:
            self._mark.write(self._commits, [known.mark for known in moved])
        except OSError as error:  # the commit stands; a later loss of it could go unnoticed
            _logger.error("%s cannot be written: %s", self._mark.path, error)

    @property
    def size(self) -> int:
        return self._database.size

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return self._database.snapshots(ranker, keep)

    # Writing

    def release_lock(self) -> None:
        self._lock.release()

    def close(self) -> None:
        super().close()
        self._database.close()
        self._mark.close()
        self._lock.close()

    def _write_jobs(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        outcomes: list[tuple[Done | None, Any]] = self._commit(lambda: self._write_batch(jobs))
        if any(isinstance(job, Job) and isinstance(job.write, Erase) for job in jobs):
            self._database.scrub()
        return outcomes

    def _commit(self, work: Callable[[], Any]) -> Any:
        """Executes `work` in one transaction of this term, then moves the high-water mark."""
        if self._term_ended is not None:
            raise self._term_ended
        before, database = dict(self._known), self._database
        database.begin()
        try:
            fence = "UPDATE owner SET commits = ? WHERE id = 1 AND term = ? AND commits = ?"
            values = self._commits + 1, self._term.number, self._commits
            if database.execute(fence, values).rowcount != 1:
                raise self._term_error()
            result = work()
            database.check()
            try:
                database.commit()
            except UnknownOutcomeError as error:
                if not self._was_committed(error):
                    raise JournalError(str(error)) from None
        except BaseException:
            self._known = before
            database.rollback()
            raise
        self._commits += 1
        self._move_mark([known for ranker, known in self._known.items() if before.get(ranker) is not known])
        return result

    def _was_committed(self, failure: UnknownOutcomeError) -> bool:
        """Looks up the outcome of the last commit; retries until the database answers. No client is answered before."""
        while True:
            self._set_not_ready(failure)
            try:
                self._database.begin()
                self._database.lock()  # waits for the transaction, if it is still open
                term, commits = self._database.execute("SELECT term, commits FROM owner WHERE id = 1").fetchone()
                self._database.rollback()
            except JournalError:
                if self._closing:
                    raise failure from None
                sleep(RETRY_INTERVAL)
                continue
            if term != self._term.number:
                raise self._term_error()
            return bool(commits == self._commits + 1)

    def _term_error(self) -> TermError:
        return TermError(f"another server has taken over {self._database}: send requests there, and stop this one")

    def _write_batch(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        outcomes: list[tuple[Done | None, Any]] = []
        keys = [(job.ranker * CAPACITY + job.number, job.body) for job in jobs if isinstance(job, StoreRound)]
        insert(self._database, "rounds", [(key, body, round_checksum(key, body)) for key, body in keys])
        entries = []
        for job in jobs:
            if isinstance(job, Append):
                if self._known[job.ranker].row.deleted:
                    outcomes.append((job.failed, RemovedError("the ranker has been deleted")))
                    continue
                entries.append(self._next_entry(job.ranker, job.body, job.round))
                if job.sealed is not None:
                    key, (body, *known) = job.ranker * CAPACITY + (job.round or 0), job.sealed
                    insert(self._database, "rounds", [(key, body, round_checksum(key, body))])
                    insert(self._database, "accepted", [(key, self._known[job.ranker].version, *known)])
                outcomes.append((job.done, self._known[job.ranker].version))
            elif isinstance(job, Job):
                if isinstance(job.write, RemoveRanker):  # must also delete the entries before it in this batch
                    insert(self._database, "entries", entries)
                    entries = []
                outcomes.append((job.done, self._write_one(job.write)))
        insert(self._database, "entries", entries)
        return outcomes

    def _next_entry(self, ranker: int, body: bytes, round: int | None) -> tuple[int, bytes, int, int | None]:
        """The row of a ranker's next entry; updates the known end of its log."""
        row, version, checksum, at = self._known[ranker]
        key = ranker * CAPACITY + version + 1
        answers = None if round is None else ranker * CAPACITY + round
        checksum = chain_checksum(key, body, answers, own_half(checksum))
        self._known[ranker] = Known(row, version + 1, checksum, at)
        return key, body, checksum, answers

    # Writes

    def _write_one(self, write: Write) -> Any:
        if isinstance(write, AddRanker):
            return self._add_ranker(write)
        if isinstance(write, Call):
            next_write = write.function()
            return None if next_write is None else self._write_one(next_write)
        if isinstance(write, AdvanceSource):
            advance_source(self._database, write)
        if isinstance(write, RecordClock):
            self._known[write.ranker] = self._known[write.ranker]._replace(at=write.at)
        if isinstance(write, Reserve | Settle | RemoveRanker):
            self._change_row(write)
        if isinstance(write, Erase):
            self._database.overwrite_deleted()
        if isinstance(write, RemoveRanker | DropRounds | Prune | Erase):
            for statement, rows in deletions(write):
                self._database.executemany(statement, rows)
        return None

    def _add_ranker(self, write: AddRanker) -> StoredRanker:
        marks = self._mark.rankers
        numbers = [(known.row.name, known.row.next) for known in self._known.values()]
        numbers += [(mark.name, mark.next) for mark in marks.values()]
        first = max((number for name, number in numbers if name == write.name), default=0)
        next_round = max(first, write.rounds)
        ranker, incarnation = max((*marks, *self._known), default=0) + 1, SystemRandom().randrange(1, 1 << 32)
        row = RankerRow(
            ranker,
            write.name,
            write.definition,
            next_round + write.reserve,
            0,
            incarnation,
            ((first, self._term.epoch),),
        )
        row.write(self._database)
        self._known[ranker] = Known(row, 0, incarnation)
        if write.entry:
            insert(self._database, "entries", [self._next_entry(ranker, write.entry, None)])
        return StoredRanker(ranker, row.name, row.definition, next_round, incarnation, row.epochs)

    def _change_row(self, write: Reserve | Settle | RemoveRanker) -> None:
        known = self._known.get(write.ranker)
        if known is None:  # the log has lost the ranker, but its mark remains
            row = RankerRow(write.ranker, self._mark.rankers[write.ranker].name, b"", 0, 0, 0, ((0, 0),))
            known = Known(row, 0, 0)
        row = known.row
        if isinstance(write, Reserve):  # a reservation never shrinks
            row = row._replace(next=max(row.next, write.next))
        elif isinstance(write, Settle):
            row = row._replace(next=write.next)
        else:
            row = row._replace(next=max(write.next, 0), deleted=1)
        row.write(self._database)
        self._known[write.ranker] = known._replace(row=row)
