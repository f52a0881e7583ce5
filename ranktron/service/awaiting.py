"""The store's promises, awaited on an event loop, where they are futures of asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, TypeVar

from ranktron.store.promises import Promise, run_steps

_T = TypeVar("_T")


def awaitable(promise: Promise[_T]) -> asyncio.Future[_T]:
    """A promise made on an event loop, typed as the future that it is."""
    assert isinstance(promise, asyncio.Future)
    return promise


async def finished(steps: Generator[Promise[Any], None, _T]) -> _T:
    """Runs a procedure of the store, to its end even if the waiting request is cancelled."""
    return await asyncio.shield(awaitable(run_steps(steps, asyncio.get_running_loop().create_future())))
