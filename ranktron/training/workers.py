"""Where independent tasks run: in this process, by an executor, or on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, Protocol


class Workers(Protocol):
    """Runs functions as `concurrent.futures` does; `home` is the same number for the same data."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, home: int) -> Future[Any]: ...


@dataclass(frozen=True)
class LocalWorkers:
    """The workers of an executor, which ignore `home`; futures among the arguments are waited for.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as executor:
    ...     LocalWorkers(executor).submit(max, 1, 2, home=0).result()
    2
    """

    executor: Executor

    def submit(self, function: Callable[..., Any], /, *arguments: Any, home: int) -> Future[Any]:
        return self.executor.submit(function, *map(_resolve, arguments))


def keep(value: Any) -> Any:
    """The value itself: a task that sends it to a worker, where other tasks find it.

    >>> keep(3)
    3
    """
    return value


def _resolve(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_resolve(each) for each in argument]
    return argument.result() if isinstance(argument, Future) else argument
