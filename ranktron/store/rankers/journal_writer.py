"""Write-ahead logging: a change of a ranker is appended to the journal, and applied once it is on disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Protocol

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError, not_leader, not_written, unknown_ranker
from ranktron.store.journal.entries import REPLACING, FeedEntry, JournalEntry, Result, encode
from ranktron.store.journal.journal import (
    Append,
    Call,
    DropRounds,
    Job,
    Journal,
    Prune,
    RemovedError,
    Reserve,
    SealedRow,
    TermError,
    UnknownOutcomeError,
    Write,
)
from ranktron.store.promises import Promise
from ranktron.store.rankers import apply_entry
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.open_rounds import OpenRoundBook
from ranktron.store.rankers.recovery import take_snapshot
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
RESERVE = 20_000  # round numbers reserved on disk at a time: after a crash none of them is reused


class RoundKeeper(Protocol):
    """A ranker or an experiment, with its open rounds."""

    id: int
    rounds: OpenRoundBook[Any, Any]


class JournalWriter:
    """Puts jobs into a journal, on the caller's thread; rankers in `live_rankers` get automatic snapshots."""

    def __init__(self, journal: Journal, config: StoreConfig, live_rankers: Mapping[str, LiveRanker]) -> None:
        self.journal, self.config, self._live_rankers = journal, config, live_rankers
        self.followed: Callable[[LiveRanker, FeedEntry | None], None] | None = None  # gets entries while followed

    def promise(self) -> Promise[Any]:
        """A new promise, of the kind that the caller's thread hands out."""
        return self.journal.create_future()

    def written(self, write: Write, *, patient: bool = False) -> Promise[Any]:
        """A future of the result of a write. If the write fails, so does the future; if `patient`, it gets None."""
        future: Promise[Any] = self.promise()

        def failed(error: BaseException) -> None:
            if not future.done():
                if patient:
                    future.set_result(None)
                else:
                    future.set_exception(refusal(error))

        def done(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        self.journal.put(Job(write, done, failed))
        return future

    def logged(
        self,
        live: LiveRanker,
        entry: JournalEntry,
        answers: int | None = None,
        model: Model | None = None,
        sealed: SealedRow | None = None,
        *,
        later: bool = False,
    ) -> Promise[Result]:
        """Appends an entry and applies it once it is on disk; a future of the result.

        With `later` it may wait some milliseconds to share a commit.
        """
        job, future = self.prepared(live, entry, answers, model, sealed)
        if later:
            self.journal.put_later(job)
        else:
            self.journal.put(job)
        return future

    def check_not_busy(self) -> None:
        """Refuses while the journal's queue is full."""
        if len(self.journal) >= self.config.max_waiting:
            raise RequestError(503, "busy", "too many requests are waiting for the disk: try again")

    def prepared(
        self,
        live: LiveRanker,
        entry: JournalEntry,
        answers: int | None = None,
        model: Model | None = None,
        sealed: SealedRow | None = None,
    ) -> tuple[Append, Promise[Result]]:
        """The job that appends an entry, and the future of its result. Put it before any other job of this ranker.

        `model` is the entry's model, if already parsed; `sealed` is the sealed round that it answers, if any.
        """
        self.check_not_busy()
        body = encode(entry)
        future: Promise[Result] = self.promise()

        def done(version: int) -> None:
            if sealed is not None:
                live.rounds.open[entry.round] = sealed.body
            shown = live.rounds.open.get(entry.round) if entry.kind == "feedback" else None
            if self.followed is not None:
                self.followed(live, None if entry.kind == "forget" else FeedEntry(version, body, shown))
            result = apply_entry.apply(live, entry, version, model)
            self.forget(live)
            if not future.done():
                future.set_result(result)
            if (
                version - live.last_snapshot.version >= self.config.snapshot_every
                and self._live_rankers.get(live.name) is live
            ):
                self.snapshot(live)

        def failed(error: BaseException) -> None:
            live.rounds.unwritten.pop(answers, None)
            live.closed = live.closed and entry.kind not in REPLACING
            if not future.done():
                removed = isinstance(error, RemovedError)
                future.set_exception(unknown_ranker(live.name) if removed else refusal(error))

        live.closed = live.closed or entry.kind in REPLACING  # refuses rankings and feedback until it is applied
        if answers is not None:
            live.rounds.unwritten[answers] = (entry, future)
        return Append(live.id, answers, body, done, failed, sealed), future

    # Numbers of rounds

    def spare_number(self, live: RoundKeeper) -> None:
        """Checks that a round number is available, and reserves more before they run out."""
        if live.rounds.reserved - live.rounds.next < RESERVE * 3 // 4 and not live.rounds.reserving:
            self.reserve(live, live.rounds.next)
        if live.rounds.next >= live.rounds.reserved:
            raise not_written("no round numbers are reserved")

    def reserve(self, live: RoundKeeper, first: int) -> None:
        """Reserves round numbers on disk before they are used."""
        end, live.rounds.reserving = max(first, live.rounds.next) + RESERVE, True

        def done(_result: object) -> None:
            live.rounds.reserved, live.rounds.reserving = max(live.rounds.reserved, end), False

        self.journal.put(Job(Reserve(live.id, end), done))

    # Rounds and entries that are no longer needed

    def forget(self, live: RoundKeeper) -> None:
        """Deletes dropped rounds from the disk."""
        if live.rounds.forgotten:
            self.journal.put(Job(DropRounds(live.id, live.rounds.forgotten)))
            live.rounds.forgotten = []

    def snapshot(self, live: LiveRanker, *, pinned: bool = False) -> Promise[Any]:
        """Writes a snapshot of the present version, then prunes the journal up to the previous snapshot."""
        version, content = live.version, take_snapshot(live)
        explained = _version_before(live, live.rounds.past)
        remembered = _version_before(live, live.rounds.answered)
        live.note_snapshot(monotonic())
        now = live.rounds.now()

        def write() -> Prune | None:
            try:
                checksum = self.journal.checksum(live.id, version)
                live.snapshots.write(version, serialization.serialize({**content, "checksum": checksum}), pinned=pinned)
            except (DataError, OSError) as error:  # harmless: the journal is only not pruned
                _logger.warning("no snapshot of %s: %s", live.name, error)
                return None
            if live.definition.history == "keep":
                return None
            settled = live.snapshots.versions()[-2:-1]
            if not settled:
                return None
            old = version - self.config.max_remembered
            return Prune(live.id, settled[0], explained, remembered, old, now)

        return self.written(Call(write), patient=True)


def refusal(error: BaseException) -> RequestError:
    """The error for a client whose write failed."""
    if isinstance(error, UnknownOutcomeError):
        return RequestError(
            503, "slow_disk", f"{error}; the request may have been accepted: feedback may be sent again"
        )
    return not_leader(str(error)) if isinstance(error, TermError) else not_written(str(error))


def _version_before(live: LiveRanker, rounds: Mapping[int, object]) -> int:
    """The version before the answer to the oldest of these rounds; the present version if there are none."""
    first = live.rounds.answered.get(next(iter(rounds), -1))
    return live.version if first is None else first.result.version - 1
