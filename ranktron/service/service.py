"""All rankers and the journal behind them. Python code in the same process talks to it without HTTP.

Everything here runs on one thread, that of the event loop: there is one writer of each ranker, and whoever reads never
sees it half written. What changes weights goes to the journal first, and is applied when it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from ranktron.service import feedback as feedbacks
from ranktron.service import views
from ranktron.service.carried_round import CarriedRounds, row_of
from ranktron.service.config import Config
from ranktron.service.experiments.experiments import Experiments
from ranktron.service.ingestion import Ingestion
from ranktron.service.journal import Call, Job, Journal, NoteTime, Reserve, Settle, StoreRound
from ranktron.service.journal_entries import JournalEntry
from ranktron.service.journal_feed import JournalFeed
from ranktron.service.journal_writer import RESERVE, JournalWriter
from ranktron.service.large_requests import answer_batch
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.model_versions import ModelVersions
from ranktron.service.open_journal import open_journal
from ranktron.service.ranker_list import RankerList
from ranktron.service.stats import observed_quality
from ranktron.service.types import (
    BatchAnswer,
    DashboardAnswer,
    Definition,
    ExplainAnswer,
    FeedbackAnswer,
    FeedbackRequest,
    FullAnswer,
    FullRequest,
    Health,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    RankRequest,
    SetAsideAnswer,
)

if TYPE_CHECKING:
    from ranktron.service.carry_keys import CarryKeys
    from ranktron.service.tracing import Tracing

_logger = logging.getLogger("ranktron.service")
_SWEEP = 64  # rounds, at most, between two looks at whether there are too many
_CLOSING = 1.0  # seconds between two looks at whether the time of rounds is over
_NOTING = 60.0  # seconds between two notes of how late it is
_CLOSED = 500  # rounds that are closed at one time: others have their turn


class RankingService(ModelVersions):
    """Named rankers over one folder, which it reads when it is made; `start` begins to write.

    The journal is a file in that folder, or in a database of PostgreSQL whose address is `journal`.

    >>> import asyncio, tempfile
    >>> from ranktron.service.types import Document
    >>> async def session(folder):
    ...     async with RankingService(folder) as service:
    ...         await service.create("shop", Definition(["price"]))
    ...         documents = [Document("a", [1.0]), Document("b", [3.0])]
    ...         shown = service.rank("shop", RankRequest(documents))
    ...         return await service.feedback("shop", FeedbackRequest(shown.round, {"a": 0.0, "b": 1.0}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(session(folder))
    FeedbackAnswer(learned=True, version=1)
    """

    def __init__(
        self,
        folder: str | Path,
        config: Config | None = None,
        journal: str | None = None,
        *,
        carry_keys: CarryKeys | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.folder, self.config = Path(folder), config or Config()
        self.journal: Journal = open_journal(self.folder, journal)
        try:
            self._rankers = RankerList(self.folder, self.config, self.journal)
        except BaseException:
            self.journal.close()
            raise
        self.live_rankers, self.set_aside = self._rankers.live_rankers, self._rankers.set_aside
        self.cut = sum(live.cut for live in self.live_rankers.values())
        self.tracing = tracing
        self._carried = CarriedRounds(self.journal, carry_keys, self.config)
        self._writer = JournalWriter(self.journal, self.config, self.live_rankers)
        self.ingestion = Ingestion(self, self.journal, self._writer, self._carried)
        super().__init__()
        self.experiments = Experiments(self, self._writer, self._rankers.experiments)
        self._sweep = max(1, min(_SWEEP, self.config.max_open // 100))
        self._closer: asyncio.Task[None] | None = None
        self.feed = JournalFeed(self, self._writer)
        self._writer.followed = self.feed.add
        self.superseded = asyncio.Event()  # another server has taken over

    async def __aenter__(self) -> RankingService:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Begins to write, from within the event loop."""
        observed_quality((1.0,))  # loads its kernel
        for live in self.live_rankers.values():
            live.reserved = live.next + RESERVE
            self.journal.write_now(Reserve(live.id, live.reserved))
        self.experiments.start()
        self.journal.start(asyncio.get_running_loop(), self._step_down)
        self._closer = asyncio.create_task(self._close_in_time())

    def _step_down(self, why: BaseException) -> None:
        """Discards what this server knows, since another one has taken over; every request is refused from then on."""
        if self._closer is not None:
            self._closer.cancel()
        self._rankers.step_down(str(why))
        self.experiments.discard()
        self.superseded.set()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        self._rankers.check_leading()

    async def stop(self) -> None:
        """Waits for all that is under way, takes a snapshot of every ranker, and lets go of the folder."""
        if self._closer is not None:
            self._closer.cancel()
        await self._writer.written(Call(lambda: None), patient=True)
        for live in self.live_rankers.values():
            if live.version != live.kept_version:
                self._writer.snapshot(live)
            self.journal.put(Job(Settle(live.id, live.next), failed=lambda _error: None))
        self._note_time()
        self.experiments.stop()
        await asyncio.to_thread(self.journal.close)

    # Rankers

    def live(self, name: str) -> LiveRanker:
        """The ranker of a name, at work."""
        return self._rankers.live(name)

    async def create(self, name: str, definition: Definition) -> RankerAnswer:
        """Makes a ranker; to make the same one again changes nothing."""
        return views.ranker(await self._rankers.create(name, definition, self._writer))

    async def create_from_model(self, name: str, data: bytes) -> RankerAnswer:
        """Makes a ranker from a model file; from the same file again, whatever it has learnt since, changes nothing."""
        live = await self._rankers.create_from_model(name, await self._read(data, None), self._writer)
        if live.version == 0:  # an earlier version of this service may have ended before it had its model
            await self.set_model(name, data)
        return views.ranker(live)

    async def delete(self, name: str) -> None:
        """Deletes a ranker with all that it has learnt."""
        self.experiments.check_not_needed(name)
        await self._rankers.delete(name, self._writer)

    def rankers(self) -> RankersAnswer:
        self.check_leading()
        aside = [SetAsideAnswer(each.name, each.version, each.message) for each in self.set_aside.values()]
        return RankersAnswer([views.ranker(live) for live in self.live_rankers.values()], aside)

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.live(name))

    # Rounds

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Shows a ranking and keeps its round open, written just after the answer; or lets the answer carry it."""
        live = self.live(name)
        if request.carry:
            self._carried.check(live)
        self._writer.spare_number(live)
        answer, number, kept = live.rank(request)
        if self.tracing is not None:
            self.tracing.showed(name, answer.round, answer.version)
        if not request.carry:
            return self._keep_open(live, answer, number, kept)
        answer.carry = self._carried.seal(live, answer.round, kept)
        return answer

    def watch(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Keeps a round open that another system has ordered, as if this ranker had shown it."""
        live = self.live(name)
        self._writer.spare_number(live)
        return self._keep_open(live, *live.watch(request, shown))

    def _keep_open(self, live: LiveRanker, answer: RankAnswer, number: int, kept: bytes) -> RankAnswer:
        self.journal.put_later(StoreRound(live.id, number, kept))
        if number % self._sweep == 0:
            self.drop_rounds(live)
        return answer

    def drop_rounds(self, live: LiveRanker) -> None:
        """Drops open rounds of a ranker, and of the one that has most where all of them together are too large."""
        live.drop()
        self._writer.forget(live)
        over = sum(each.open.size for each in self.live_rankers.values()) - self.config.open_bytes
        if over > 0:
            largest = max(self.live_rankers.values(), key=lambda each: each.open.size)
            largest.drop(over)
            self._writer.forget(largest)

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from what came back about a round, once it is on disk."""
        live = self.live(name)
        number = live.epochs.number_of(request.round)
        carried = None if request.carry is None else self._carried.open(live, request, request.carry)
        while (waiting := live.unwritten.get(number)) is not None:  # there is some already, on its way to the disk
            entry, future = waiting
            if feedbacks.is_repeated(entry, request):
                result = await asyncio.shield(future)
                return FeedbackAnswer(result.learned, result.version)
            await asyncio.wait([future])
        found = feedbacks.check_feedback(live, request, None if carried is None else carried.shown)
        row = None
        if carried is not None and isinstance(found, JournalEntry) and found.kind == "feedback":
            row = row_of(carried, found)
            found = self._carried.first_result(live, found) or found
        if isinstance(found, JournalEntry):
            found = await asyncio.shield(self._writer.logged(live, found, found.round, carried=row))
        if self.tracing is not None:
            self.tracing.answered(name, request.round, found.version)
        return FeedbackAnswer(found.learned, found.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a list of which all labels are known, once it is on disk."""
        live = self.live(name)
        self._writer.spare_number(live)
        entry = feedbacks.check_full(live, request)
        result = await asyncio.shield(self._writer.logged(live, entry))
        return FullAnswer(live.epochs.public(entry.round), result.loss, result.learned, result.version)

    async def _close_in_time(self) -> None:
        more, noted = False, monotonic()
        while True:
            await asyncio.sleep(_CLOSING / 50 if more else _CLOSING)
            try:
                more = self.close_rounds()
                if monotonic() - noted >= _NOTING:
                    noted = monotonic()
                    self._note_time()
            except Exception:  # the next time may go better
                _logger.exception("rounds could not be closed")

    def _note_time(self) -> None:
        """Notes how late it is: rounds grow old while servers run, though nobody sends anything."""
        times = [(live.id, live.now()) for live in self.live_rankers.values()]
        times += [(experiment.id, experiment.now()) for experiment in self.experiments.live.values()]
        for ranker, at in times:
            self.journal.put(Job(NoteTime(ranker, at), failed=lambda _error: None))

    def close_rounds(self) -> bool:
        """Closes some of the rounds whose time is over, and says whether there are more; what fails stays open."""
        closed = self.experiments.close_rounds(_CLOSED)
        for live in list(self.live_rankers.values()):
            for entry in feedbacks.close_overdue(live):
                if closed >= _CLOSED or len(self.journal) >= max(1, self.config.max_waiting // 2):
                    return True
                closed += 1
                self._writer.logged(live, entry, entry.round).add_done_callback(asyncio.Future.exception)
        return False

    async def batch(self, requests: Sequence[Any], one: Callable[[str, Any], Any], name: str) -> BatchAnswer:
        """The answers to many requests, each its own or why it was refused; those that wait are written together."""
        return await answer_batch(self, one, name, requests)

    # Looking

    def explain(self, name: str, number: int) -> ExplainAnswer:
        return views.explain(self.live(name), number)

    def dashboard(self, name: str) -> DashboardAnswer:
        live = self.live(name)
        age = None if live.kept_at is None else monotonic() - live.kept_at
        disk = shutil.disk_usage(self.folder).free
        return views.dashboard(live, Health(self.journal.ready, disk, age, self.journal.size, live.stats.dropped))
