"""Exactly-once feedback from a replayable source, such as a log file or a partition of a Kafka topic.

A batch names the range of offsets that it covers. Its feedback, the source's next offset and the messages that cannot
be used (dead letters) are written in one transaction, which fails unless the batch starts at the stored offset. After a
restart, a reader asks the service for the next offset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, field

from ranktron.service.awaiting import awaitable
from ranktron.service.sealed_rounds import SealedRoundBook
from ranktron.store.engine import sealable_entry
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import JournalEntry
from ranktron.store.journal.journal import AdvanceSource, Append, Job, Journal
from ranktron.store.messages import FeedbackRequest, Name, Number, RequestBody, ResponseBody
from ranktron.store.rankers.journal_writer import JournalWriter, refusal
from ranktron.store.rankers.live_ranker import LiveRanker

if TYPE_CHECKING:
    from ranktron.service.service import RankingService


class DeadLetter(RequestBody):
    """A message that cannot be used: its offset (`place`), the reason, and its content."""

    place: Number
    reason: Annotated[str, Meta(max_length=3000)]
    body: Annotated[str, Meta(max_length=10_000)] = ""


class IngestRequest(RequestBody):
    """The messages of a source from offset `start` to before `end`.

    `feedback` has one item a round, `places` the offset of each, and `dead` the dead letters. `start` must be the
    source's `next` (`GET /v1/sources/{source}`).
    """

    source: Name
    start: Number
    end: Number
    feedback: list[FeedbackRequest]
    places: list[Number]
    dead: Annotated[list[DeadLetter], Meta(max_length=1000)] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.places) != len(self.feedback):
            raise ValueError("feedback and places must have the same length")


class IngestAnswer(ResponseBody):
    """The source's next offset, and how many items were learnt, repeated known feedback, and are dead letters."""

    next: int
    learned: int
    repeated: int
    dead: int


class SourceAnswer(ResponseBody):
    """A source's next offset, 0 for an unknown source, and its latest dead letters."""

    source: str
    next: int
    dead: list[DeadLetter]


_MAX_LISTED = 100  # dead letters in an answer
_SELECT_NEXT = "SELECT next FROM sources WHERE name = ?"
_SELECT_DEAD = "SELECT place, reason, body FROM dead_letters WHERE source = ? ORDER BY place DESC LIMIT ?"


class Ingestion:
    """Applies batches of feedback from sources to the rankers of a service."""

    def __init__(
        self, service: RankingService, journal: Journal, writer: JournalWriter, sealed: SealedRoundBook
    ) -> None:
        self._service, self._journal, self._writer, self._sealed = service, journal, writer, sealed  # fixed
        self._locks: dict[str, asyncio.Lock] = {}  # by source, held during a batch: one at a time; only grows

    def source(self, source: str) -> SourceAnswer:
        """The next offset of a source, and its latest dead letters."""
        rows = self._journal.look_up(_SELECT_DEAD, (source, _MAX_LISTED))
        dead = [DeadLetter(int(offset), reason, bytes(body).decode()) for offset, reason, body in reversed(rows)]
        return SourceAnswer(source, self._next_offset(source), dead)

    def _next_offset(self, source: str) -> int:
        rows = self._journal.look_up(_SELECT_NEXT, (source,))
        return int(rows[0][0]) if rows else 0

    async def take(self, name: str, request: IngestRequest) -> IngestAnswer:
        """Applies a batch; answers once its feedback and the source's next offset are on disk."""
        live = self._service.live(name)
        if len(request.feedback) > self._service.config.max_batch:
            limit = self._service.config.max_batch
            raise RequestError(413, "too_many_requests_in_batch", f"a batch has at most {limit} requests")
        if len({item.round for item in request.feedback}) < len(request.feedback):
            raise RequestError(422, "round_twice", "a batch may have one item for each round: join them")
        async with self._locks.setdefault(request.source, asyncio.Lock()):
            return await asyncio.shield(asyncio.ensure_future(self._apply(live, name, request)))

    async def _apply(self, live: LiveRanker, name: str, request: IngestRequest) -> IngestAnswer:
        next_offset = self._next_offset(request.source)
        if request.start != next_offset or request.end < request.start:
            message = f"source {request.source!r} continues at {next_offset}, not at {request.start}"
            raise RequestError(409, "wrong_place", f"{message}: continue from there; this request changed nothing")
        # Feedback on the same rounds may be on its way to disk: its result decides what this batch adds.
        unwritten = live.rounds.unwritten
        while writes := [unwritten[each][1] for each in self._numbers(live, request) if each in unwritten]:
            await asyncio.wait([awaitable(each) for each in writes])
        dead = [(letter.place, letter.reason, letter.body.encode()) for letter in request.dead]
        entries: list[tuple[JournalEntry, Any]] = []
        repeated = 0
        for offset, item in zip(request.places, request.feedback, strict=True):
            try:
                entry, row = self._entry(live, item)
            except RequestError as error:
                if error.status >= 500:
                    raise
                dead.append((offset, f"{error.code}: {error}", msgspec.json.encode(item)))
                continue
            repeated += entry is None
            entries += [] if entry is None else [(entry, row)]
        self._writer.check_not_busy()
        if self._service.live(name) is not live:
            message = f"ranker {name!r} was deleted and created again meanwhile: send it again"
            raise RequestError(409, "replaced", message)
        futures = self._write(live, AdvanceSource(request.source, request.start, request.end, tuple(dead)), entries)
        for result in await asyncio.gather(*futures, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        learned = sum(future.result().learned for future in futures[1:])
        return IngestAnswer(request.end, learned, repeated, len(dead))

    def _numbers(self, live: LiveRanker, request: IngestRequest) -> list[int]:
        numbers = []
        for item in request.feedback:
            try:
                numbers.append(live.rounds.ids.number_of(item.round))
            except RequestError:  # becomes a dead letter
                continue
        return numbers

    def _entry(self, live: LiveRanker, item: FeedbackRequest) -> tuple[JournalEntry | None, Any]:
        """The entry to append for one item, and the row of its sealed round; None if it repeats known feedback."""
        seal = None if item.carry is None else self._sealed.open(live, item, item.carry)
        entry, row = sealable_entry(live, item, seal)
        return (entry, row) if isinstance(entry, JournalEntry) else (None, None)

    def _write(
        self, live: LiveRanker, advance: AdvanceSource, entries: list[tuple[JournalEntry, Any]]
    ) -> list[asyncio.Future[Any]]:
        """Queues the new offset and all entries for one transaction."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        jobs: list[Job | Append] = [Job(advance, _set_result(future), _set_error(future))]
        futures = [future]
        for entry, row in entries:
            append, result = self._writer.prepared(live, entry, entry.round, sealed=row)
            jobs.append(append)
            futures.append(awaitable(result))
        self._journal.put(*jobs)
        return futures


def _set_result(future: asyncio.Future[Any]) -> Callable[[Any], None]:
    return lambda result: None if future.done() else future.set_result(result)


def _set_error(future: asyncio.Future[Any]) -> Callable[[BaseException], None]:
    return lambda error: None if future.done() else future.set_exception(refusal(error))
