"""The store's promises as asyncio futures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from ranktron.store.journal.journal import Promise
from ranktron.store.rankers.journal_writer import JournalWriter

if TYPE_CHECKING:
    from ranktron.store.journal.entries import JournalEntry, Result
    from ranktron.store.journal.journal import Append, SealedRow, Write
    from ranktron.store.rankers.live_ranker import LiveRanker
    from ranktron.training.model import Model

_T = TypeVar("_T")


class AwaitedWriter(JournalWriter):
    """A journal writer whose promises are asyncio futures."""

    def start(self) -> None:
        """Promises futures of the running event loop from now on."""
        self.promise = asyncio.get_running_loop().create_future

    if TYPE_CHECKING:  # narrower types: these methods return what `promise` creates

        def written(self, write: Write, *, patient: bool = False) -> asyncio.Future[Any]: ...

        def logged(
            self,
            live: LiveRanker,
            entry: JournalEntry,
            answers: int | None = None,
            model: Model | None = None,
            sealed: SealedRow | None = None,
        ) -> asyncio.Future[Result]: ...

        def prepared(
            self,
            live: LiveRanker,
            entry: JournalEntry,
            answers: int | None = None,
            model: Model | None = None,
            sealed: SealedRow | None = None,
        ) -> tuple[Append, asyncio.Future[Result]]: ...

        def snapshot(self, live: LiveRanker, *, pinned: bool = False) -> asyncio.Future[Any]: ...


def awaitable(promise: Promise[_T]) -> asyncio.Future[_T]:
    """A promise of an `AwaitedWriter`, typed as the future that it is."""
    assert isinstance(promise, asyncio.Future)
    return promise
