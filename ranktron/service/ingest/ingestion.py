"""Feedback from a source that can be read again: each message is learnt from once, whoever is killed in between.

A batch says from where to where in its source it goes. What it teaches, the new place and the messages that cannot be
used (dead letters) are written in one transaction, which checks the old place: it is written once, or not at all. A
reader that starts again asks where to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, field

from ranktron.service.awaiting import AwaitedWriter, awaitable
from ranktron.service.sealed_rounds import SealedRoundBook, row_of
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import JournalEntry
from ranktron.store.journal.journal import AdvanceSource, Append, Job, Journal
from ranktron.store.rankers import feedback as feedbacks
from ranktron.store.rankers.journal_writer import refusal
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.types import FeedbackRequest, Name, Number, RequestBody, ResponseBody

if TYPE_CHECKING:
    from ranktron.service.service import RankingService


class DeadLetter(RequestBody):
    """A message of a source that cannot be used: where it stands, why, and what it was."""

    place: Number
    reason: Annotated[str, Meta(max_length=3000)]
    body: Annotated[str, Meta(max_length=10_000)] = ""


class IngestRequest(RequestBody):
    """What a source has between two places: feedback, one message a round, with the place of each; and dead letters.

    `start` must be where the source goes on (`GET /v1/sources/{source}`).
    """

    source: Name
    start: Number
    end: Number
    feedback: list[FeedbackRequest]
    places: list[Number]
    dead: Annotated[list[DeadLetter], Meta(max_length=1000)] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.places) != len(self.feedback):
            raise ValueError("each feedback has a place")


class IngestAnswer(ResponseBody):
    """Where the source goes on; how many messages were learnt from, added nothing, and are dead letters."""

    next: int
    learned: int
    repeated: int
    dead: int


class SourceAnswer(ResponseBody):
    """Where a source goes on, 0 if it is not known; and its last dead letters."""

    source: str
    next: int
    dead: list[DeadLetter]


_SHOWN = 100  # dead letters of a source that are shown
_NEXT = "SELECT next FROM sources WHERE name = ?"
_DEAD = "SELECT place, reason, body FROM dead_letters WHERE source = ? ORDER BY place DESC LIMIT ?"


class Ingestion:
    """Takes batches of sources for the rankers of a service."""

    def __init__(
        self, service: RankingService, journal: Journal, writer: AwaitedWriter, carried: SealedRoundBook
    ) -> None:
        self._service, self._journal, self._writer, self._carried = service, journal, writer, carried
        self._locks: dict[str, asyncio.Lock] = {}

    def source(self, source: str) -> SourceAnswer:
        """How far a source has been read, and its last dead letters."""
        found = self._journal.look_up(_DEAD, (source, _SHOWN))
        dead = [DeadLetter(int(place), reason, bytes(body).decode()) for place, reason, body in reversed(found)]
        return SourceAnswer(source, self._next(source), dead)

    def _next(self, source: str) -> int:
        found = self._journal.look_up(_NEXT, (source,))
        return int(found[0][0]) if found else 0

    async def take(self, name: str, request: IngestRequest) -> IngestAnswer:
        """Learns from a batch, and advances its source, once both are on disk."""
        live = self._service.live(name)
        if len(request.feedback) > self._service.config.max_batch:
            most = self._service.config.max_batch
            raise RequestError(413, "too_many_requests_in_batch", f"a batch has at most {most} requests")
        if len({each.round for each in request.feedback}) < len(request.feedback):
            raise RequestError(422, "round_twice", "a batch may have one message for each round: join them")
        async with self._locks.setdefault(request.source, asyncio.Lock()):
            return await asyncio.shield(asyncio.ensure_future(self._take(live, name, request)))

    async def _take(self, live: LiveRanker, name: str, request: IngestRequest) -> IngestAnswer:
        following = self._next(request.source)
        if request.start != following or request.end < request.start:
            complaint = f"source {request.source!r} goes on at {following}, not at {request.start}"
            raise RequestError(409, "wrong_place", f"{complaint}: go on from there; this request changed nothing")
        while waiting := [
            live.rounds.unwritten[each][1] for each in self._numbers(live, request) if each in live.rounds.unwritten
        ]:
            await asyncio.wait([awaitable(each) for each in waiting])
        dead = [(each.place, each.reason, each.body.encode()) for each in request.dead]
        found: list[tuple[JournalEntry, Any]] = []
        repeated = 0
        for place, told in zip(request.places, request.feedback, strict=True):
            try:
                entry, row = self._entry(live, told)
            except RequestError as refused:
                if refused.status >= 500:
                    raise
                dead.append((place, f"{refused.code}: {refused}", msgspec.json.encode(told)))
                continue
            repeated += entry is None
            found += [] if entry is None else [(entry, row)]
        self._writer.check_not_busy()
        if self._service.live(name) is not live:
            raise RequestError(409, "replaced", f"ranker {name!r} was deleted and made again meanwhile: send it again")
        futures = self._write(live, AdvanceSource(request.source, request.start, request.end, tuple(dead)), found)
        for each in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(each, BaseException):
                raise each
        learned = sum(done.result().learned for done in futures[1:])
        return IngestAnswer(request.end, learned, repeated, len(dead))

    def _numbers(self, live: LiveRanker, request: IngestRequest) -> list[int]:
        numbers = []
        for each in request.feedback:
            try:
                numbers.append(live.rounds.ids.number_of(each.round))
            except RequestError:  # it will be a dead letter
                continue
        return numbers

    def _entry(self, live: LiveRanker, each: FeedbackRequest) -> tuple[JournalEntry | None, Any]:
        """The entry to write for one message, with the round that it brought; None if it adds nothing."""
        carried = None if each.carry is None else self._carried.open(live, each, each.carry)
        entry = feedbacks.check_feedback(live, each, None if carried is None else carried.shown)
        row = None
        if carried is not None and isinstance(entry, JournalEntry) and entry.kind == "feedback":
            row = row_of(carried, entry)
            entry = self._carried.first_result(live, entry) or entry
        return (entry, row) if isinstance(entry, JournalEntry) else (None, None)

    def _write(
        self, live: LiveRanker, advance: AdvanceSource, entries: list[tuple[JournalEntry, Any]]
    ) -> list[asyncio.Future[Any]]:
        """Puts all into the journal at once: it is written together, or not at all."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        jobs: list[Job | Append] = [Job(advance, _set_result(future), _set_error(future))]
        futures = [future]
        for entry, row in entries:
            job, result = self._writer.prepared(live, entry, entry.round, sealed=row)
            jobs.append(job)
            futures.append(result)
        self._journal.put(*jobs)
        return futures


def _set_result(future: asyncio.Future[Any]) -> Callable[[Any], None]:
    return lambda result: None if future.done() else future.set_result(result)


def _set_error(future: asyncio.Future[Any]) -> Callable[[BaseException], None]:
    return lambda error: None if future.done() else future.set_exception(refusal(error))
