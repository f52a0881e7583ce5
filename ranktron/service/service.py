"""All rankers and the journal behind them. Python code in the same process talks to it without HTTP.

Everything here runs on the event loop's thread, so a ranker has a single writer and no reader sees a partial update.
Every change of weights is write-ahead: it is appended to the journal, and applied once it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ranktron.service.awaiting import awaitable, finished
from ranktron.service.config import Config
from ranktron.service.experiments import Experiments
from ranktron.service.http.endpoint import answer_batch
from ranktron.service.ingest.ingestion import Ingestion
from ranktron.service.replication.journal_feed import JournalFeed
from ranktron.service.sealed_rounds import SealedRoundBook
from ranktron.store.engine import CLOCK_INTERVAL, CLOSE_INTERVAL, MAX_CLOSED, RankerEngine, check_kept
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import Journal
from ranktron.store.messages import (
    BatchAnswer,
    DashboardAnswer,
    Definition,
    ExplainAnswer,
    FeedbackAnswer,
    FeedbackRequest,
    ForgetAnswer,
    FullAnswer,
    FullRequest,
    Health,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    RankRequest,
    RollbackRequest,
    SetAsideAnswer,
    VersionsAnswer,
)
from ranktron.store.rankers import views
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import NewStart, Upload, read_upload
from ranktron.training.model import Model

if TYPE_CHECKING:
    from ranktron.service.sealing_keys import SealingKeys
    from ranktron.service.tracing import Tracing

_logger = logging.getLogger("ranktron.service")

_MAX_UPLOADS = 10  # model files in memory at one time


class RankingService:
    """Named rankers over one state folder; the constructor recovers them, and `start` starts the journal's writer.

    The journal is a file in that folder, or a PostgreSQL database at the address `journal`.

    >>> import asyncio, tempfile
    >>> from ranktron.store.messages import Document
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
        carry_keys: SealingKeys | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.folder, self.config = Path(folder), config or Config()  # fixed
        self.engine = RankerEngine(self.folder, self.config, journal)  # rankers and journal; fixed
        self.journal: Journal = self.engine.journal  # fixed
        self.live_rankers = self.engine.live_rankers  # the dict of the engine, which alone changes it
        self.tracing = tracing  # spans of rankings and feedback, if configured; fixed
        self._sealed_rounds = SealedRoundBook(self.journal, carry_keys, self.config)  # seals and opens tokens
        self._writer = self.engine.writer  # puts jobs into the journal
        self.ingestion = Ingestion(self, self.journal, self._writer, self._sealed_rounds)  # feedback from sources
        self._upload_lock = asyncio.Lock()  # model files are parsed one at a time; _read
        self._uploads = 0  # model files parsed or waiting to be; _read
        self.experiments = Experiments(self, self._writer, self.engine.experiments)  # in the same journal
        self._close_task: asyncio.Task[None] | None = None  # closes overdue rounds; start, stop and _step_down
        self.feed = JournalFeed(self, self._writer)  # the entries that followers replicate
        self.superseded = asyncio.Event()  # set once, by _step_down: another server leads

    async def __aenter__(self) -> RankingService:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    @property
    def cut(self) -> int:
        """The damaged last entries that recovery has cut off."""
        return self.engine.cut

    def start(self) -> None:
        """Starts the journal's writer; needs a running event loop."""
        self.engine.reserve_rounds()
        self.experiments.start()
        self.engine.start(asyncio.get_running_loop(), self._step_down)
        self._close_task = asyncio.create_task(self._close_periodically())

    def _step_down(self, why: BaseException) -> None:
        """Discards all state, since another server has taken over; every later request is refused."""
        if self._close_task is not None:
            self._close_task.cancel()
        self.engine.step_down(str(why))
        self.experiments.discard()
        self.superseded.set()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        self.engine.check_leading()

    async def stop(self) -> None:
        """Waits for pending writes, takes a snapshot of every ranker, and releases the folder."""
        if self._close_task is not None:
            self._close_task.cancel()
        await awaitable(self.engine.flushed())
        self.engine.settle()
        self.experiments.stop()
        await asyncio.to_thread(self.journal.close)

    # Rankers

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name."""
        return self.engine.live(name)

    async def create(self, name: str, definition: Definition) -> RankerAnswer:
        """Creates a ranker; idempotent for the same definition."""
        return views.ranker(await finished(self.engine.create(name, definition)))

    async def create_from_model(self, name: str, data: bytes, new: NewStart | None = None) -> RankerAnswer:
        """Creates a ranker from a model file; idempotent for the same file, even if the ranker has learnt since."""
        upload = await self._read(data, None, new)
        return views.ranker(await finished(self.engine.create_from_model(name, upload)))

    async def delete(self, name: str) -> None:
        """Deletes a ranker and its state."""
        self.experiments.check_not_needed(name)
        await finished(self.engine.delete(name))

    def rankers(self) -> RankersAnswer:
        self.check_leading()
        set_aside = [
            SetAsideAnswer(ranker.name, ranker.version, ranker.message) for ranker in self.engine.quarantined.values()
        ]
        return RankersAnswer([views.ranker(live) for live in self.live_rankers.values()], set_aside)

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.live(name))

    # Models and versions

    async def _read(self, data: bytes, definition: Definition | None, new: NewStart | None) -> Upload:
        """Parses a model file on another thread; one at a time, since files may be large."""
        if self._uploads >= _MAX_UPLOADS:
            raise RequestError(503, "busy", "too many models are waiting to be read: try again")
        self._uploads += 1
        try:
            async with self._upload_lock:
                return await asyncio.to_thread(read_upload, data, definition, self.config, new)
        finally:
            self._uploads -= 1

    async def set_model(self, name: str, data: bytes, new: NewStart | None = None) -> RankerAnswer:
        """Replaces a ranker's model by a trained one; if its kind changes, open rounds are dropped.

        With `new` the model is that of a learner which starts from the weights of the file.
        """
        live = self.live(name)
        upload = await self._read(data, live.definition, new)
        note = await finished(self.engine.set_model(name, live, upload))
        return structs.replace(views.ranker(live), note=note)

    def versions(self, name: str) -> VersionsAnswer:
        live = self.live(name)
        return VersionsAnswer(live.version, live.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Pins the present version, to roll back to."""
        await finished(self.engine.keep(self.live(name)))
        return self.versions(name)

    async def release(self, name: str, version: int) -> VersionsAnswer:
        """Deletes a kept version; the two newest are refused, since recovery starts from them."""
        live = self.live(name)
        check_kept(live, version)
        self.experiments.check_not_needed(name, version)
        await finished(self.engine.release(live, version))
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Restores the model of a kept version, as a new version; round numbers continue."""
        live = self.live(name)
        await finished(self.engine.rollback(live, request.version))
        return views.ranker(live)

    async def forget(self, name: str, user: str) -> ForgetAnswer:
        """Forgets a user: the weights are those of a replay without this person's entries, which are erased."""
        live = self.live(name)
        self.experiments.check_not_needed(name)
        return await finished(self.engine.forget(live, user))

    def model(self, name: str) -> Model:
        return self.live(name).model

    # Rounds

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Ranks a list. Its round stays open and is written just after the answer, or is sealed (`carry`)."""
        live = self.live(name)
        if not request.carry:
            answer = self.engine.rank(live, request)
        else:
            self._sealed_rounds.check(live)
            self._writer.spare_number(live)
            answer, _, body = live.rank(request)
            answer.carry = self._sealed_rounds.seal(live, answer.round, body)
        if self.tracing is not None:
            self.tracing.showed(name, answer.round, answer.version)
        return answer

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round for a list that another system has ordered, as if this ranker had shown it."""
        return self.engine.shadow(self.live(name), request, shown)

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from the feedback on a round, once it is on disk."""
        live = self.live(name)
        seal = None
        if request.carry is not None:
            live.rounds.ids.number_of(request.round)  # refuses ids of other copies first
            seal = self._sealed_rounds.open(live, request, request.carry)
        result = await finished(self.engine.feedback(live, request, seal))
        if self.tracing is not None:
            self.tracing.answered(name, request.round, result.version)
        return FeedbackAnswer(result.learned, result.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a fully labelled list, once it is on disk."""
        return await finished(self.engine.full(self.live(name), request))

    async def _close_periodically(self) -> None:
        more, recorded_at = False, monotonic()
        while True:
            await asyncio.sleep(CLOSE_INTERVAL / 50 if more else CLOSE_INTERVAL)
            try:
                more = self.close_rounds()
                if monotonic() - recorded_at >= CLOCK_INTERVAL:
                    recorded_at = monotonic()
                    self.engine.record_clocks()
                    self.experiments.record_clocks()
            except Exception:  # retried at the next interval
                _logger.exception("rounds could not be closed")

    def close_rounds(self) -> bool:
        """Closes overdue rounds, a limited number at a time; true if more are left. Failed ones stay open."""
        return self.engine.close_rounds(self.experiments.close_rounds(MAX_CLOSED))

    async def batch(self, requests: Sequence[Any], one: Callable[[str, Any], Any], name: str) -> BatchAnswer:
        """Answers a batch: an answer or an error for each request; their entries share commits."""
        return await answer_batch(self, one, name, requests)

    # Views

    def explain(self, name: str, number: int) -> ExplainAnswer:
        return views.explain(self.live(name), number)

    def dashboard(self, name: str) -> DashboardAnswer:
        live = self.live(name)
        age = None if live.last_snapshot.at is None else monotonic() - live.last_snapshot.at
        disk = shutil.disk_usage(self.folder).free
        return views.dashboard(live, Health(self.journal.ready, disk, age, self.journal.size, live.stats.dropped))
