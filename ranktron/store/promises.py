"""Futures of what must reach the disk, and procedures that wait for them, with threads or on an event loop.

A procedure (`Steps`) is a generator that yields the promises it waits for. `run_steps` drives it: the caller's thread
decides what a promise is (a future of asyncio or of concurrent.futures), so store and service share every procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeVar

_T = TypeVar("_T")


class Promise(Protocol[_T]):
    """The future of a write: one of asyncio or of concurrent.futures."""

    def done(self) -> bool: ...

    def result(self) -> _T: ...

    def exception(self) -> BaseException | None: ...

    def set_result(self, result: _T, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


class CallerThread(Protocol):
    """The thread that puts jobs and runs their callbacks: an event loop of asyncio, or anything with these methods."""

    def create_future(self) -> Promise[Any]:
        """A promise whose callbacks run on this thread."""
        ...

    def run_in_executor(self, executor: None, function: Callable[[], _T], /) -> Promise[_T]:
        """Runs a function on another thread."""
        ...

    def call_soon(self, callback: Callable[..., object], *args: Any) -> object:
        """Schedules a callback on this thread; called from it."""
        ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> object:
        """Schedules a callback on this thread in `delay` seconds; called from it."""
        ...

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> object:
        """Schedules a callback on this thread; called from another one."""
        ...


Steps = Generator[Promise[Any], None, _T]
"""A procedure that yields the promises it waits for, and returns a result."""


def wait(promise: Promise[_T]) -> Steps[_T]:
    """Waits for a promise within a procedure, which gets the result by `yield from`."""
    if not promise.done():
        yield promise
    return promise.result()


def run_steps(steps: Steps[_T], answer: Promise[_T]) -> Promise[_T]:
    """Drives a procedure on the caller's thread up to its end; `answer`, which it returns, gets the result.

    >>> from concurrent.futures import Future
    >>> first = Future()
    >>> def procedure():
    ...     return 2 * (yield from wait(first))
    >>> answer = run_steps(procedure(), Future())
    >>> first.set_result(21)
    >>> answer.result()
    42
    """

    def proceed(_done: object = None) -> None:
        try:
            promise = next(steps)
            while promise.done():
                promise = next(steps)
        except StopIteration as stop:
            if not answer.done():
                answer.set_result(stop.value)
        except BaseException as error:
            if not answer.done():
                answer.set_exception(error)
        else:
            promise.add_done_callback(proceed)

    proceed()
    return answer


def mark_retrieved(promise: Promise[Any]) -> None:
    """Says that nobody asks for the error of a promise: asyncio then does not complain."""
    promise.add_done_callback(lambda done: done.exception())
