"""Threads as the caller of a journal: whoever holds the lock may put jobs and change rankers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from time import monotonic
from typing import Any, TypeVar

_logger = logging.getLogger("ranktron.store")
_T = TypeVar("_T")

_Call = tuple[float, int, Callable[..., object], tuple[Any, ...]]


class LockingCaller:
    """Runs callbacks under a lock, on the thread that schedules them; delayed ones on a thread of their own."""

    def __init__(self) -> None:
        self.lock = RLock()  # held by whoever puts jobs or changes a ranker
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()  # delayed calls; None ends the thread
        self._numbers = count()  # orders calls of the same time
        self._thread = Thread(target=self._run, name="ranktron-store", daemon=True)
        self._thread.start()

    def create_future(self) -> Future[Any]:
        """A promise that threads may wait for."""
        return Future()

    def run_in_executor(self, executor: None, function: Callable[[], _T], /) -> Future[_T]:
        """Runs a function on a thread of its own, without the lock."""
        answer: Future[_T] = Future()

        def work() -> None:
            try:
                result = function()
            except BaseException as error:
                self.call_soon_threadsafe(answer.set_exception, error)
            else:
                self.call_soon_threadsafe(answer.set_result, result)

        Thread(target=work, name="ranktron-forget", daemon=True).start()
        return answer

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        """Calls at once; the lock is held."""
        callback(*args)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> None:
        """Calls in `delay` seconds, under the lock."""
        self._calls.put((monotonic() + delay, next(self._numbers), callback, args))

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        """Calls at once, under the lock."""
        with self.lock:
            callback(*args)

    def close(self) -> None:
        """Ends the thread; calls that are still to come are dropped."""
        self._calls.put(None)
        self._thread.join()

    def _run(self) -> None:
        calls: list[_Call] = []
        while True:
            try:
                call = self._calls.get(timeout=max(calls[0][0] - monotonic(), 0.0) if calls else None)
            except Empty:
                _, _, callback, args = heappop(calls)
                try:
                    self.call_soon_threadsafe(callback, *args)
                except Exception:  # the other calls still run
                    _logger.exception("a delayed call of the store failed")
                continue
            if call is None:
                return
            heappush(calls, call)
