"""All rankers and the journal behind them. Python code in the same process talks to it without HTTP.

Everything here runs on the event loop's thread, so a ranker has a single writer and no reader sees a partial update.
Every change of weights is write-ahead: it is appended to the journal, and applied once it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ranktron.errors import DataError
from ranktron.service.awaiting import AwaitedWriter, awaitable
from ranktron.service.config import Config
from ranktron.service.experiments import Experiments
from ranktron.service.http.endpoint import answer_batch
from ranktron.service.ingest.ingestion import Ingestion
from ranktron.service.replication.journal_feed import JournalFeed
from ranktron.service.sealed_rounds import SealedRoundBook, row_of
from ranktron.store.errors import RequestError, not_leader, not_written, unknown_ranker, unknown_version
from ranktron.store.experiments.arms import kept_model
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import (
    PREFIX,
    AddRanker,
    Call,
    Job,
    Journal,
    RecordClock,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
    open_journal,
)
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.messages import (
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
    RollbackRequest,
    SetAsideAnswer,
    VersionsAnswer,
)
from ranktron.store.rankers import apply_entry, views
from ranktron.store.rankers import feedback as feedbacks
from ranktron.store.rankers.journal_writer import RESERVE
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import (
    NewStart,
    Upload,
    blank_model,
    complete,
    encode_definition,
    note_other_kind,
    read_upload,
)
from ranktron.store.rankers.open_rounds import RoundIds
from ranktron.store.rankers.recovery import Quarantined, crash_file, recover_ranker
from ranktron.store.rankers.stats import observed_quality
from ranktron.training.model import Model

if TYPE_CHECKING:
    from ranktron.service.sealing_keys import SealingKeys
    from ranktron.service.tracing import Tracing

_logger = logging.getLogger("ranktron.service")


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class RankerList:
    """The rankers of a journal by name, live and quarantined; the constructor recovers all of them."""

    def __init__(self, folder: Path, config: Config, journal: Journal) -> None:
        self.folder, self.config, self._journal = folder, config, journal
        self.live_rankers: dict[str, LiveRanker] = {}  # serving, by name; creation, deletion and step_down
        self.quarantined: dict[str, Quarantined] = {}  # could not be recovered, by name; deletion and step_down
        self.stepped_down: RequestError | None = None  # refuses requests once another server leads; step_down
        self._creation_lock = asyncio.Lock()  # serializes creation and deletion, so that names stay unique
        self.experiments: list[StoredRanker] = []  # experiments in the same journal, their names prefixed; fixed
        for stored in journal.rankers():
            if stored.name.startswith(PREFIX):
                self.experiments.append(stored)
                continue
            crash = crash_file(folder, stored.id)
            ranker = recover_ranker(journal, stored, self._snapshots(stored.id), config, crash)
            if isinstance(ranker, Quarantined):
                self.quarantined[ranker.name] = ranker
            else:
                self.live_rankers[ranker.name] = ranker

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name; a RequestError if it is quarantined or unknown."""
        live = self.live_rankers.get(name)
        if live is None:
            self.check_leading()
            self._check_not_quarantined(name)
            raise unknown_ranker(name)
        return live

    def step_down(self, why: str) -> None:
        """Discards all rankers: another server has taken over, and their state is stale."""
        self.stepped_down = not_leader(why)
        self.live_rankers.clear()
        self.quarantined.clear()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        if self.stepped_down is not None:
            raise self.stepped_down

    def _check_not_quarantined(self, name: str) -> None:
        if name in self.quarantined:
            raise RequestError(409, "set_aside", self.quarantined[name].message)

    async def create(self, name: str, definition: Definition, writer: AwaitedWriter) -> LiveRanker:
        """Gets or creates the ranker of a definition."""
        if definition.model:
            raise RequestError(422, "invalid", "`model` is set by the service: PUT the model file itself instead")
        live = await asyncio.shield(asyncio.ensure_future(self._get_or_create(name, definition, writer)))
        if complete(definition) != live.definition:
            raise RequestError(
                409, "exists", f"a different ranker {name!r} exists already: delete it first, or choose another name"
            )
        return live

    async def create_from_model(self, name: str, upload: Upload, writer: AwaitedWriter) -> LiveRanker:
        """Gets or creates the ranker of a model file."""
        live = await asyncio.shield(asyncio.ensure_future(self._get_or_create(name, upload.definition, writer, upload)))
        if live.definition.model != upload.definition.model:
            raise RequestError(
                409,
                "exists",
                f"ranker {name!r} exists already, and was not made from this model: POST .../model replaces its model; "
                "or delete it first, or choose another name",
            )
        return live

    async def _get_or_create(
        self, name: str, definition: Definition, writer: AwaitedWriter, upload: Upload | None = None
    ) -> LiveRanker:
        if not _NAME.fullmatch(name):
            raise RequestError(
                422,
                "bad_name",
                "a ranker's name has 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
            )
        async with self._creation_lock:
            self.check_leading()
            if name in self.live_rankers:
                return self.live_rankers[name]
            self._check_not_quarantined(name)
            count = len(self.live_rankers) + len(self.quarantined)
            if count >= self.config.max_rankers:
                raise RequestError(409, "too_many_rankers", f"there are {count} rankers already: delete one first")
            completed = complete(definition)
            model = blank_model(completed, self.config)
            add = AddRanker(name, encode_definition(completed), RESERVE)
            if upload is not None:  # in one transaction, so that no crash leaves the ranker without its model
                first = JournalEntry("model", 0, time(), upload.body)
                add = add._replace(rounds=upload.rounds, entry=encode(first))
            stored = await writer.written(add)
            snapshots = self._snapshots(stored.id)
            snapshots.clear()  # leftovers of a ranker with the same id, of another copy of this folder
            live = LiveRanker(stored.id, name, completed, model, self.config, snapshots, stored.next)
            live.incarnation, live.rounds.ids = stored.incarnation, RoundIds(stored.epochs)
            live.rounds.reserved = stored.next + RESERVE
            if upload is not None:
                apply_entry.apply(live, first, 1, upload.model)
            self.live_rankers[name] = live
            return live

    async def delete(self, name: str, writer: AwaitedWriter) -> None:
        """Deletes a ranker and its state."""
        await asyncio.shield(asyncio.ensure_future(self._remove(name, writer)))

    async def _remove(self, name: str, writer: AwaitedWriter) -> None:
        async with self._creation_lock:
            rankers: dict[str, Any] = self.quarantined if name in self.quarantined else self.live_rankers
            removed = self.quarantined.get(name) or self.live(name)
            del rankers[name]
            try:
                next_round = removed.rounds.next if isinstance(removed, LiveRanker) else removed.next
                await writer.written(RemoveRanker(removed.id, next_round))
            except RequestError:
                rankers[name] = removed
                raise
        removed.snapshots.clear()
        crash_file(self.folder, removed.id).unlink(missing_ok=True)

    def _snapshots(self, ranker: int) -> Snapshots:
        return self._journal.snapshots(ranker, self.config.versions)


_MAX_UPLOADS = 10  # model files in memory at one time
MAX_PINNED = 100  # pinned versions of a ranker
_SWEEP_INTERVAL = 64  # rounds, at most, between checks of the limits on open rounds
_CLOSE_INTERVAL = 1.0  # seconds between checks for overdue rounds
_CLOCK_INTERVAL = 60.0  # seconds between records of the clocks
_MAX_CLOSED = 500  # overdue rounds closed at one time, so that other requests get their turn


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
        self.journal: Journal = open_journal(self.folder, journal)
        try:
            self._rankers = RankerList(self.folder, self.config, self.journal)
        except BaseException:
            self.journal.close()
            raise
        # The dicts of the ranker list, which alone changes them.
        self.live_rankers, self.quarantined = self._rankers.live_rankers, self._rankers.quarantined
        self.cut = sum(
            live.cut for live in self.live_rankers.values()
        )  # damaged last entries cut off by recovery; fixed
        self.tracing = tracing  # spans of rankings and feedback, if configured; fixed
        self._sealed_rounds = SealedRoundBook(self.journal, carry_keys, self.config)  # seals and opens tokens
        self._writer = AwaitedWriter(self.journal, self.config, self.live_rankers)  # puts jobs into the journal
        self.ingestion = Ingestion(self, self.journal, self._writer, self._sealed_rounds)  # feedback from sources
        self._upload_lock = asyncio.Lock()  # model files are parsed one at a time; _read
        self._uploads = 0  # model files parsed or waiting to be; _read
        self.experiments = Experiments(self, self._writer, self._rankers.experiments)  # in the same journal
        self._sweep_interval = max(1, min(_SWEEP_INTERVAL, self.config.max_open // 100))  # fixed
        self._close_task: asyncio.Task[None] | None = None  # closes overdue rounds; start, stop and _step_down
        self.feed = JournalFeed(self, self._writer)  # the entries that followers replicate
        self.superseded = asyncio.Event()  # set once, by _step_down: another server leads

    async def __aenter__(self) -> RankingService:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Starts the journal's writer; needs a running event loop."""
        observed_quality((1.0,))  # loads its kernel
        for live in self.live_rankers.values():
            live.rounds.reserved = live.rounds.next + RESERVE
            self.journal.write_now(Reserve(live.id, live.rounds.reserved))
        self.experiments.start()
        self._writer.start()
        self.journal.start(asyncio.get_running_loop(), self._step_down)
        self._close_task = asyncio.create_task(self._close_periodically())

    def _step_down(self, why: BaseException) -> None:
        """Discards all state, since another server has taken over; every later request is refused."""
        if self._close_task is not None:
            self._close_task.cancel()
        self._rankers.step_down(str(why))
        self.experiments.discard()
        self.superseded.set()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        self._rankers.check_leading()

    async def stop(self) -> None:
        """Waits for pending writes, takes a snapshot of every ranker, and releases the folder."""
        if self._close_task is not None:
            self._close_task.cancel()
        await self._writer.written(Call(lambda: None), patient=True)
        for live in self.live_rankers.values():
            if live.version != live.last_snapshot.version:
                self._writer.snapshot(live)
            self.journal.put(Job(Settle(live.id, live.rounds.next), failed=lambda _error: None))
        self._record_clocks()
        self.experiments.stop()
        await asyncio.to_thread(self.journal.close)

    # Rankers

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name."""
        return self._rankers.live(name)

    async def create(self, name: str, definition: Definition) -> RankerAnswer:
        """Creates a ranker; idempotent for the same definition."""
        return views.ranker(await self._rankers.create(name, definition, self._writer))

    async def create_from_model(self, name: str, data: bytes, new: NewStart | None = None) -> RankerAnswer:
        """Creates a ranker from a model file; idempotent for the same file, even if the ranker has learnt since."""
        live = await self._rankers.create_from_model(name, await self._read(data, None, new), self._writer)
        return views.ranker(live)

    async def delete(self, name: str) -> None:
        """Deletes a ranker and its state."""
        self.experiments.check_not_needed(name)
        await self._rankers.delete(name, self._writer)

    def rankers(self) -> RankersAnswer:
        self.check_leading()
        set_aside = [
            SetAsideAnswer(ranker.name, ranker.version, ranker.message) for ranker in self.quarantined.values()
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
        before, version, kind = live.template.kind, live.version, upload.model.kind
        if kind != before and version and self.live(name) is live:
            await self.keep(name)  # to roll back to, if this was the wrong file
        if self.live(name) is not live:
            raise RequestError(409, "replaced", f"ranker {name!r} was deleted and made again meanwhile: send it again")
        entry = live.replacement(upload.body)
        self._writer.reserve(live, upload.rounds)  # round numbers continue those of the model
        await asyncio.shield(self._writer.logged(live, entry, model=upload.model))
        note = "" if kind == before else note_other_kind(name, before, kind, version)
        return structs.replace(views.ranker(live), note=note)

    def versions(self, name: str) -> VersionsAnswer:
        live = self.live(name)
        return VersionsAnswer(live.version, live.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Pins the present version, to roll back to."""
        live = self.live(name)
        version, pinned = live.version, live.snapshots.pinned()
        if len(pinned) >= MAX_PINNED and version not in pinned:
            remedy = f"delete one with DELETE /v1/rankers/{name}/versions/N"
            raise RequestError(409, "too_many_versions", f"{MAX_PINNED} versions are kept already: {remedy}")
        await self._writer.snapshot(live, pinned=True)
        if version not in live.snapshots.pinned():
            raise not_written("no snapshot could be written")
        return self.versions(name)

    async def release(self, name: str, version: int) -> VersionsAnswer:
        """Deletes a kept version; the two newest are refused, since recovery starts from them."""
        live = self.live(name)
        if version not in live.snapshots.versions():
            raise unknown_version(version)
        self.experiments.check_not_needed(name, version)
        errors: list[Exception] = []

        def remove() -> None:
            try:
                live.snapshots.remove(version)
            except (DataError, OSError) as error:
                errors.append(error)

        await self._writer.written(Call(remove))
        for error in errors:
            if isinstance(error, DataError):
                raise RequestError(409, "needed_version", str(error))
            raise not_written(str(error))
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Restores the model of a kept version, as a new version; round numbers continue."""
        live = self.live(name)
        model = kept_model(live, request.version)
        await asyncio.shield(self._writer.logged(live, live.replacement(model)))
        return views.ranker(live)

    def model(self, name: str) -> Model:
        return self.live(name).model

    # Rounds

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Ranks a list. Its round stays open and is written just after the answer, or is sealed (`carry`)."""
        live = self.live(name)
        if request.carry:
            self._sealed_rounds.check(live)
        self._writer.spare_number(live)
        answer, number, body = live.rank(request)
        if self.tracing is not None:
            self.tracing.showed(name, answer.round, answer.version)
        if not request.carry:
            return self._store_round(live, answer, number, body)
        answer.carry = self._sealed_rounds.seal(live, answer.round, body)
        return answer

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round for a list that another system has ordered, as if this ranker had shown it."""
        live = self.live(name)
        self._writer.spare_number(live)
        return self._store_round(live, *live.shadow(request, shown))

    def _store_round(self, live: LiveRanker, answer: RankAnswer, number: int, body: bytes) -> RankAnswer:
        self.journal.put_later(StoreRound(live.id, number, body))
        if number % self._sweep_interval == 0:
            self.drop_rounds(live)
        return answer

    def drop_rounds(self, live: LiveRanker) -> None:
        """Drops a ranker's open rounds beyond its limits; beyond `open_bytes` in all, the largest ranker's oldest."""
        live.drop()
        self._writer.forget(live)
        bytes_over = sum(ranker.rounds.open.size for ranker in self.live_rankers.values()) - self.config.open_bytes
        if bytes_over > 0:
            largest = max(self.live_rankers.values(), key=lambda ranker: ranker.rounds.open.size)
            largest.drop(bytes_over)
            self._writer.forget(largest)

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from the feedback on a round, once it is on disk."""
        live = self.live(name)
        number = live.rounds.ids.number_of(request.round)
        sealed = None if request.carry is None else self._sealed_rounds.open(live, request, request.carry)
        while (waiting := live.rounds.unwritten.get(number)) is not None:  # earlier feedback is not on disk yet
            entry, future = waiting[0], awaitable(waiting[1])
            if feedbacks.is_repeated(entry, request):
                result = await asyncio.shield(future)
                return FeedbackAnswer(result.learned, result.version)
            await asyncio.wait([future])
        outcome = feedbacks.check_feedback(live, request, None if sealed is None else sealed.shown)
        row = None
        if sealed is not None and isinstance(outcome, JournalEntry) and outcome.kind == "feedback":
            row = row_of(sealed, outcome)
            outcome = self._sealed_rounds.first_result(live, outcome) or outcome
        if isinstance(outcome, JournalEntry):
            outcome = await asyncio.shield(self._writer.logged(live, outcome, outcome.round, sealed=row))
        if self.tracing is not None:
            self.tracing.answered(name, request.round, outcome.version)
        return FeedbackAnswer(outcome.learned, outcome.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a fully labelled list, once it is on disk."""
        live = self.live(name)
        self._writer.spare_number(live)
        entry = feedbacks.check_full(live, request)
        result = await asyncio.shield(self._writer.logged(live, entry))
        return FullAnswer(live.rounds.ids.public(entry.round), result.loss, result.learned, result.version)

    async def _close_periodically(self) -> None:
        more, recorded_at = False, monotonic()
        while True:
            await asyncio.sleep(_CLOSE_INTERVAL / 50 if more else _CLOSE_INTERVAL)
            try:
                more = self.close_rounds()
                if monotonic() - recorded_at >= _CLOCK_INTERVAL:
                    recorded_at = monotonic()
                    self._record_clocks()
            except Exception:  # retried at the next interval
                _logger.exception("rounds could not be closed")

    def _record_clocks(self) -> None:
        """Records the clocks of rankers and experiments, so that open rounds expire even without traffic."""
        clocks = [(live.id, live.rounds.now()) for live in self.live_rankers.values()]
        clocks += [(experiment.id, experiment.rounds.now()) for experiment in self.experiments.live.values()]
        for ranker, at in clocks:
            self.journal.put(Job(RecordClock(ranker, at), failed=lambda _error: None))

    def close_rounds(self) -> bool:
        """Closes overdue rounds, a limited number at a time; true if more are left. Failed ones stay open."""
        closed = self.experiments.close_rounds(_MAX_CLOSED)
        for live in list(self.live_rankers.values()):
            for entry in feedbacks.close_overdue(live):
                if closed >= _MAX_CLOSED or len(self.journal) >= max(1, self.config.max_waiting // 2):
                    return True
                closed += 1
                self._writer.logged(live, entry, entry.round).add_done_callback(asyncio.Future.exception)
        return False

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
