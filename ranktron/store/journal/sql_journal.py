"""The journal in SQL: one thread that writes, what a start reads, in whichever database the tables are.

`GroupCommit` writes everything that waits in one commit. `SQLJournal` makes each commit in the name of its term and
counts it, then moves the high-water mark (see `integrity`). README.md defines these words and says what a start does.
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
from typing import Any

from ranktron.errors import DataError
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.integrity import Known, Mark, begin_term, find_end
from ranktron.store.journal.journal import (
    CAPACITY,
    AddRanker,
    AdvanceSource,
    Append,
    Call,
    CallerThread,
    Done,
    DropRounds,
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
    is_whole,
    is_whole_round,
    own_half,
    round_checksum,
)

_logger = logging.getLogger("ranktron.service")
_BATCH_WINDOW = 0.005  # seconds that an open round waits for others to be written with
PAUSE = 0.1  # seconds until a disk that refused is tried again

Task = Job | StoreRound | Append


class GroupCommit(ABC):
    """One thread that writes all jobs that wait in one commit, and calls back on the thread that put them.

    Jobs that arrive during a commit go into the next one together, so that many clients share one flush of the disk. A
    failed commit changes nothing: those who wait for it are told, and jobs that nobody waits for are tried again.
    """

    def __init__(self) -> None:
        self.ready = True  # whether the last commit succeeded; the writer sets it, anyone reads it
        self._jobs: deque[Task] = deque()  # waiting, oldest first; the caller appends, the writer takes
        self._retry: list[Task] = []  # of a failed commit, to be tried again; the writer alone
        self._wakeup: SimpleQueue[bool] = SimpleQueue()  # true: jobs wait; false: no more will come
        self._flush_scheduled = False  # a wakeup is sent at the end of this turn of the caller; the caller alone
        self._delayed_flush = False  # a wakeup is sent after the batch window; the caller alone
        self._closing = False  # set once, by close
        self._caller: CallerThread | None = None  # where callbacks run; set once, by start
        self._superseded: Failed | None = None  # is told that the term is over; set once, by start
        self._over: TermError | None = None  # why nothing more may be written; set once, by the writer
        self._thread: threading.Thread | None = None  # the writer; start and close

    @abstractmethod
    def _write_jobs(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        """Writes jobs in one commit, all of them or none; callbacks with their results."""

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        self._caller, self._superseded = caller, superseded
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def put(self, *jobs: Job | Append) -> None:
        self._jobs.extend(jobs)  # at once: the writer takes all that there is into one commit
        if not self._flush_scheduled:  # one wakeup for all jobs of this turn of the caller
            self._flush_scheduled = True
            assert self._caller is not None
            self._caller.call_soon(self._wake)

    def put_later(self, job: StoreRound) -> None:
        self._jobs.append(job)
        if not self._flush_scheduled and not self._delayed_flush:
            self._delayed_flush = True
            assert self._caller is not None
            self._caller.call_later(_BATCH_WINDOW, self._wake)

    def _wake(self) -> None:
        self._flush_scheduled = self._delayed_flush = False
        self._wakeup.put(True)

    def close(self) -> None:
        """Ends the thread, when it has written all that waits."""
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
                sleep(PAUSE)
                self._wakeup.put(True)
        else:
            if not self.ready:
                _logger.warning("the disk takes writes again")
            self.ready = True
            self._tell(_finish, outcomes)

    def _tell(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._caller is not None
        with suppress(RuntimeError):  # the event loop is closed: no one waits any more
            self._caller.call_soon_threadsafe(function, *arguments)

    def _fail(self, jobs: list[Task], error: Exception) -> None:
        self._note_trouble(error)
        self._retry = [job for job in jobs if job.failed is None]
        for job in jobs:
            if job.failed is not None:
                self._tell(job.failed, error)

    def _note_trouble(self, error: Exception) -> None:
        if self.ready:
            _logger.error("the log cannot be written: %s", error)
        self.ready = False

    def _step_down(self, jobs: list[Task], error: TermError) -> None:
        """Writes nothing more, and drops the jobs that wait: the new leader has not seen them."""
        if self._over is None and self._superseded is not None:
            self._tell(self._superseded, error)
        self._over = error
        self._fail(jobs, error)
        self._retry = []


def _finish(outcomes: list[tuple[Done, Any]]) -> None:
    for done, result in outcomes:
        try:
            done(result)
        except Exception:  # the callbacks after it run all the same
            _logger.exception("what was written could not be told")


_PAGE = 2_000  # entries that are read at once


class SQLJournal(GroupCommit):
    """A journal in the tables of a database; its high-water mark is in a folder, which it locks."""

    def __init__(self, folder: Path, lock: FolderLock, connect: Callable[[FolderLock], Database]) -> None:
        super().__init__()
        self.folder, self._lock = folder, lock  # the folder of the mark; fixed
        try:
            self._database = connect(lock)  # after start the writer alone uses it, but for look_up
            try:
                self._mark = Mark(folder / "mark")  # moved after each commit
            except OSError as error:
                self._database.close()
                raise DataError(f"{folder}: the state cannot be kept there: {error.strerror}") from None
        except BaseException:
            self._lock.close()
            raise
        try:
            with self._database.explained():
                self._term = begin_term(self._database, self._mark)  # fixed: a new term is a new journal
                self.cluster: str = self._database.execute("SELECT cluster FROM identity").fetchone()[0]
        except BaseException:
            self.close()
            raise
        self._known = self._term.known  # by ranker: row, last version and its checksum; each commit, undone if it fails
        self._commits = self._term.commits  # of this log so far; each commit

    @property
    def term(self) -> int:
        return self._term.number

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        lost, marks = {stored.id for stored in self._term.lost}, self._mark.rankers
        found = []
        for row, _, _, at in self._known.values():
            if not row.deleted and row.id not in lost:
                stored = row.id, row.name, row.definition, row.next, row.incarnation, row.epochs
                last_acknowledged = marks[row.id].version if row.id in marks else -1
                found.append(StoredRanker(*stored, last_acknowledged, at=at))
        return [*found, *self._term.lost]

    def last_version(self, ranker: int) -> int:
        with self._database.explained():
            return find_end(self._database, self._known[ranker].row)[0]

    def entries(self, ranker: int) -> Iterator[Logged]:
        incarnation = self._known[ranker].row.incarnation
        base, before = ranker * CAPACITY, None
        at = last = base
        while rows := self._page(at, base + CAPACITY):
            for key, body, answers, checksum, shown, shown_checksum in rows:
                if key == base + 1:
                    before = incarnation << 32 | incarnation
                elif key != last + 1:  # the gap is covered by a snapshot; if not, recovery reports it
                    before = None
                fits = is_whole(key, body, answers, checksum) and (before is None or follows(checksum, before))
                before, last = checksum if fits else None, key
                if shown is not None and not (fits and is_whole_round(answers, shown, shown_checksum)):
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
        with self._database.explained():
            rows: list[Any] = self._database.execute(ENTRIES, (first, end, _PAGE)).fetchall()
        return rows

    def open_rounds(self, ranker: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, OPEN_ROUNDS, *2 * (ranker * CAPACITY, (ranker + 1) * CAPACITY))

    def last_rounds(self, ranker: int, count: int) -> list[tuple[int, bytes | None]]:
        return self._rounds(ranker, LAST_ROUNDS, ranker * CAPACITY, (ranker + 1) * CAPACITY, count)[::-1]

    def _rounds(self, ranker: int, query: str, *arguments: int) -> list[tuple[int, bytes | None]]:
        with self._database.explained():
            rows = self._database.execute(query, arguments).fetchall()
        base = ranker * CAPACITY
        return [(key - base, body if is_whole_round(key, body, checksum) else None) for key, body, checksum in rows]

    def checksum(self, ranker: int, version: int) -> int | None:
        with self._database.explained():
            key = ranker * CAPACITY + version
            query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
            found = self._database.execute(query, (key,)).fetchone()
        return own_half(found[2]) if found and is_whole(key, *found) else None

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._database.look_up(statement, values)

    def accepted(self, ranker: int, number: int) -> tuple[int, bytes] | None:
        found = self._database.look_up(ACCEPTED, (ranker * CAPACITY + number,))
        return (found[0][0], bytes(found[0][1])) if found else None

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
        except OSError as error:  # the commit stands; only its loss might go unnoticed
            _logger.error("%s cannot be written: %s", self._mark.path, error)

    @property
    def size(self) -> int:
        return self._database.size

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return self._database.snapshots(ranker, keep)

    # Writing

    def close(self) -> None:
        super().close()
        self._database.close()
        self._mark.close()
        self._lock.close()

    def _write_jobs(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        outcomes: list[tuple[Done | None, Any]] = self._commit(lambda: self._do(jobs))
        return outcomes

    def _commit(self, work: Callable[[], Any]) -> Any:
        """Does some work in one transaction of this term, then moves the mark."""
        if self._over is not None:
            raise self._over
        before, database = dict(self._known), self._database
        database.begin()
        try:
            counted = "UPDATE owner SET commits = ? WHERE id = 1 AND term = ? AND commits = ?"
            values = self._commits + 1, self._term.number, self._commits
            if database.execute(counted, values).rowcount != 1:
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

    def _was_committed(self, trouble: UnknownOutcomeError) -> bool:
        """Looks up whether the last commit was made, once the database answers again; no client is answered before."""
        while True:
            self._note_trouble(trouble)
            try:
                self._database.begin()
                self._database.lock()  # waits for the transaction, if it is still under way
                term, commits = self._database.execute("SELECT term, commits FROM owner WHERE id = 1").fetchone()
                self._database.rollback()
            except JournalError:
                if self._closing:
                    raise trouble from None
                sleep(PAUSE)
                continue
            if term != self._term.number:
                raise self._term_error()
            return bool(commits == self._commits + 1)

    def _term_error(self) -> TermError:
        return TermError(f"another server has taken {self._database} over: send requests there, and stop this one")

    def _do(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
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
                if isinstance(job.write, RemoveRanker):  # which deletes the entries put before it, too
                    insert(self._database, "entries", entries)
                    entries = []
                outcomes.append((job.done, self._write_one(job.write)))
        insert(self._database, "entries", entries)
        return outcomes

    def _next_entry(self, ranker: int, body: bytes, round: int | None) -> tuple[int, bytes, int, int | None]:
        """The row of a ranker's next entry, which is its last one from now on."""
        row, version, checksum, at = self._known[ranker]
        key = ranker * CAPACITY + version + 1
        answers = None if round is None else ranker * CAPACITY + round
        checksum = chain_checksum(key, body, answers, own_half(checksum))
        self._known[ranker] = Known(row, version + 1, checksum, at)
        return key, body, checksum, answers

    # What can be written

    def _write_one(self, write: Write) -> Any:
        if isinstance(write, AddRanker):
            return self._add_ranker(write)
        if isinstance(write, Call):
            further = write.function()
            return None if further is None else self._write_one(further)
        if isinstance(write, AdvanceSource):
            advance_source(self._database, write)
        if isinstance(write, RecordClock):
            self._known[write.ranker] = self._known[write.ranker]._replace(at=write.at)
        if isinstance(write, Reserve | Settle | RemoveRanker):
            self._change_row(write)
        if isinstance(write, RemoveRanker | DropRounds | Prune):
            for statement, rows in deletions(write):
                self._database.executemany(statement, rows)
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
            incarnation,
            ((first, self._term.epoch),),
        )
        row.write(self._database)
        self._known[ranker] = Known(row, 0, incarnation)
        if write.entry:
            insert(self._database, "entries", [self._next_entry(ranker, write.entry, None)])
        return StoredRanker(ranker, row.name, row.definition, following, incarnation, row.epochs)

    def _change_row(self, write: Reserve | Settle | RemoveRanker) -> None:
        known = self._known.get(write.ranker)
        if known is None:  # the log has lost the ranker; its mark is left
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
