"""The writer of a journal: one thread, which writes all that waits in one commit (group commit).

Whatever waits while a commit is under way goes into the next one together, so that many clients share the price of a
flush. A failed commit changes nothing: those who waited for it are told, and rounds, which nobody waits for, are tried
again.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from time import sleep
from typing import Any

from ranktron.store.journal.journal import Append, CallerThread, Done, Failed, Job, StoreRound, TermError

_BATCH_WINDOW = 0.005  # seconds that an open round waits for others to be written with
PAUSE = 0.1  # seconds until a disk that refused is tried again
_logger = logging.getLogger("ranktron.service")

Task = Job | StoreRound | Append


class GroupCommit(ABC):
    """Takes jobs on the caller's thread, writes them on its own, and tells the caller."""

    def __init__(self) -> None:
        self.ready = True
        self._jobs: deque[Task] = deque()
        self._retry: list[Task] = []
        self._wakeup: SimpleQueue[bool] = SimpleQueue()  # true: there are jobs; false: there will be no more
        self._flush_scheduled = self._delayed_flush = self._closing = False
        self._caller: CallerThread | None = None
        self._superseded: Failed | None = None  # who is told that the term is over
        self._over: TermError | None = None
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _write_jobs(self, jobs: list[Task]) -> list[tuple[Done | None, Any]]:
        """Writes jobs in one commit, all of them or none: whom to tell what."""

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        self._caller, self._superseded = caller, superseded
        self._thread = threading.Thread(target=self._write, name="ranktron-log", daemon=True)
        self._thread.start()

    def put(self, *jobs: Job | Append) -> None:
        self._jobs.extend(jobs)  # at once: the writer takes all that there is into one commit
        if not self._flush_scheduled:  # one bell for all that this turn of the loop brings
            self._flush_scheduled = True
            assert self._caller is not None
            self._caller.call_soon(self._ring)

    def put_later(self, job: StoreRound) -> None:
        self._jobs.append(job)
        if not self._flush_scheduled and not self._delayed_flush:
            self._delayed_flush = True
            assert self._caller is not None
            self._caller.call_later(_BATCH_WINDOW, self._ring)

    def _ring(self) -> None:
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
        with suppress(RuntimeError):  # the loop has been closed: there is nobody left to tell
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
        """Writes nothing more, and drops what waits: whoever has taken over has not seen it."""
        if self._over is None and self._superseded is not None:
            self._tell(self._superseded, error)
        self._over = error
        self._fail(jobs, error)
        self._retry = []


def _finish(outcomes: list[tuple[Done, Any]]) -> None:
    for done, result in outcomes:
        try:
            done(result)
        except Exception:  # those who come after it are told all the same
            _logger.exception("what was written could not be told")
