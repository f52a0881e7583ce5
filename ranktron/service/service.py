"""All rankers and the journal behind them. Python code in the same process talks to it without HTTP.

Everything here runs on one thread, that of the event loop: there is one writer of each ranker, and whoever reads never
sees it half written. What changes weights goes to the journal first, and is applied when it is on disk.
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
    NoteTime,
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
from ranktron.store.rankers.models import Upload, blank_model, complete, encode_definition, note_other_kind, read_upload
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
    """The rankers of a journal by name, those that serve and those that are set aside; made, it has read them all."""

    def __init__(self, folder: Path, config: Config, journal: Journal) -> None:
        self.folder, self.config, self._journal = folder, config, journal
        self.live_rankers: dict[str, LiveRanker] = {}
        self.quarantined: dict[str, Quarantined] = {}
        self.stepped_down: RequestError | None = None
        self._changing = asyncio.Lock()  # a name stands for one ranker, whoever is in a hurry
        self.experiments: list[StoredRanker] = []  # which are in the same journal, by names that no ranker has
        for stored in journal.rankers():
            if stored.name.startswith(PREFIX):
                self.experiments.append(stored)
                continue
            crash = crash_file(folder, stored.id)
            found = recover_ranker(journal, stored, self._snapshots(stored.id), config, crash)
            if isinstance(found, Quarantined):
                self.quarantined[found.name] = found
            else:
                self.live_rankers[found.name] = found

    def live(self, name: str) -> LiveRanker:
        """The ranker of a name; a RequestError if there is none that serves."""
        found = self.live_rankers.get(name)
        if found is None:
            self.check_leading()
            self._check_not_quarantined(name)
            raise unknown_ranker(name)
        return found

    def step_down(self, why: str) -> None:
        """Discards all rankers: another server has taken over, and what is known here is out of date."""
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
        """The ranker of a definition, made if it is not there yet."""
        if definition.model:
            raise RequestError(422, "invalid", "`model` is noted by the service: PUT the model file itself instead")
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, definition, writer)))
        if complete(definition) != live.definition:
            raise RequestError(
                409, "exists", f"there is another ranker {name!r} already: delete it first, or choose another name"
            )
        return live

    async def create_from_model(self, name: str, upload: Upload, writer: AwaitedWriter) -> LiveRanker:
        """The ranker of a model file, made if it is not there yet."""
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, upload.definition, writer, upload)))
        if live.definition.model != upload.definition.model:
            raise RequestError(
                409,
                "exists",
                f"there is a ranker {name!r} already, which was not made from this model: POST .../model gives it this "
                "one; or delete it first, or choose a new name",
            )
        return live

    async def _made(
        self, name: str, definition: Definition, writer: AwaitedWriter, upload: Upload | None = None
    ) -> LiveRanker:
        if not _NAME.fullmatch(name):
            raise RequestError(
                422,
                "bad_name",
                "a ranker's name has 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
            )
        async with self._changing:
            self.check_leading()
            if name in self.live_rankers:
                return self.live_rankers[name]
            self._check_not_quarantined(name)
            count = len(self.live_rankers) + len(self.quarantined)
            if count >= self.config.max_rankers:
                raise RequestError(409, "too_many_rankers", f"there are {count} rankers already: delete one first")
            made = complete(definition)
            model = blank_model(made, self.config)
            add = AddRanker(name, encode_definition(made), RESERVE)
            if upload is not None:  # with its model at once: a ranker without it would be another one
                first = JournalEntry("model", 0, time(), upload.body)
                add = add._replace(rounds=upload.rounds, entry=encode(first))
            stored = await writer.written(add)
            snapshots = self._snapshots(stored.id)
            snapshots.clear()  # what a ranker of another copy of this folder may have left there
            live = LiveRanker(stored.id, name, made, model, self.config, snapshots, stored.next)
            live.incarnation, live.rounds.ids = stored.incarnation, RoundIds(stored.epochs)
            live.rounds.reserved = stored.next + RESERVE
            if upload is not None:
                apply_entry.apply(live, first, 1, upload.model)
            self.live_rankers[name] = live
            return live

    async def delete(self, name: str, writer: AwaitedWriter) -> None:
        """Deletes a ranker with all that it has learnt."""
        await asyncio.shield(asyncio.ensure_future(self._removed(name, writer)))

    async def _removed(self, name: str, writer: AwaitedWriter) -> None:
        async with self._changing:
            rankers: dict[str, Any] = self.quarantined if name in self.quarantined else self.live_rankers
            removed = self.quarantined.get(name) or self.live(name)
            del rankers[name]
            try:
                following = removed.rounds.next if isinstance(removed, LiveRanker) else removed.next
                await writer.written(RemoveRanker(removed.id, following))
            except RequestError:
                rankers[name] = removed
                raise
        removed.snapshots.clear()
        crash_file(self.folder, removed.id).unlink(missing_ok=True)

    def _snapshots(self, ranker: int) -> Snapshots:
        return self._journal.snapshots(ranker, self.config.versions)


_UPLOADS = 10  # model files that are in memory at one time
MOST_PINNED = 100  # pinned versions of a ranker
_SWEEP = 64  # rounds, at most, between two looks at whether there are too many
_CLOSING = 1.0  # seconds between two looks at whether the time of rounds is over
_NOTING = 60.0  # seconds between two notes of how late it is
_CLOSED = 500  # rounds that are closed at one time: others have their turn


class RankingService:
    """Named rankers over one folder, which it reads when it is made; `start` begins to write.

    The journal is a file in that folder, or in a database of PostgreSQL whose address is `journal`.

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
        self.folder, self.config = Path(folder), config or Config()
        self.journal: Journal = open_journal(self.folder, journal)
        try:
            self._rankers = RankerList(self.folder, self.config, self.journal)
        except BaseException:
            self.journal.close()
            raise
        self.live_rankers, self.quarantined = self._rankers.live_rankers, self._rankers.quarantined
        self.cut = sum(live.cut for live in self.live_rankers.values())
        self.tracing = tracing
        self._carried = SealedRoundBook(self.journal, carry_keys, self.config)
        self._writer = AwaitedWriter(self.journal, self.config, self.live_rankers)
        self.ingestion = Ingestion(self, self.journal, self._writer, self._carried)
        self._reading, self._uploads = asyncio.Lock(), 0  # model files are read one at a time
        self.experiments = Experiments(self, self._writer, self._rankers.experiments)
        self._sweep = max(1, min(_SWEEP, self.config.max_open // 100))
        self._closer: asyncio.Task[None] | None = None
        self.feed = JournalFeed(self, self._writer)
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
            live.rounds.reserved = live.rounds.next + RESERVE
            self.journal.write_now(Reserve(live.id, live.rounds.reserved))
        self.experiments.start()
        self._writer.start()
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
            if live.version != live.last_snapshot.version:
                self._writer.snapshot(live)
            self.journal.put(Job(Settle(live.id, live.rounds.next), failed=lambda _error: None))
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
        return views.ranker(live)

    async def delete(self, name: str) -> None:
        """Deletes a ranker with all that it has learnt."""
        self.experiments.check_not_needed(name)
        await self._rankers.delete(name, self._writer)

    def rankers(self) -> RankersAnswer:
        self.check_leading()
        aside = [SetAsideAnswer(each.name, each.version, each.message) for each in self.quarantined.values()]
        return RankersAnswer([views.ranker(live) for live in self.live_rankers.values()], aside)

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.live(name))

    # Models and versions

    async def _read(self, data: bytes, definition: Definition | None) -> Upload:
        """Reads a model file while others are served; one at a time, since it may be large."""
        if self._uploads >= _UPLOADS:
            raise RequestError(503, "busy", "too many models are waiting to be read: try again")
        self._uploads += 1
        try:
            async with self._reading:
                return await asyncio.to_thread(read_upload, data, definition, self.config)
        finally:
            self._uploads -= 1

    async def set_model(self, name: str, data: bytes) -> RankerAnswer:
        """Starts a ranker from a trained model; rounds that another kind of model has shown are dropped."""
        live = self.live(name)
        upload = await self._read(data, live.definition)
        before, version, kind = live.template.kind, live.version, upload.model.kind
        if kind != before and version and self.live(name) is live:
            await self.keep(name)  # it may have been the wrong file
        if self.live(name) is not live:
            raise RequestError(409, "replaced", f"ranker {name!r} was deleted and made again meanwhile: send it again")
        entry = live.replacement(upload.body)
        self._writer.reserve(live, upload.rounds)  # its rounds go on counting
        await asyncio.shield(self._writer.logged(live, entry, model=upload.model))
        note = "" if kind == before else note_other_kind(name, before, kind, version)
        return structs.replace(views.ranker(live), note=note)

    def versions(self, name: str) -> VersionsAnswer:
        live = self.live(name)
        return VersionsAnswer(live.version, live.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Keeps the present version, to roll back to."""
        live = self.live(name)
        version, pinned = live.version, live.snapshots.pinned()
        if len(pinned) >= MOST_PINNED and version not in pinned:
            remedy = f"let one go with DELETE /v1/rankers/{name}/versions/N"
            raise RequestError(409, "too_many_versions", f"{MOST_PINNED} versions are kept already: {remedy}")
        await self._writer.snapshot(live, pinned=True)
        if version not in live.snapshots.pinned():
            raise not_written("no snapshot could be written")
        return self.versions(name)

    async def release(self, name: str, version: int) -> VersionsAnswer:
        """Lets a version go; the two newest stay, since a start goes on from them."""
        live = self.live(name)
        if version not in live.snapshots.versions():
            raise unknown_version(version)
        self.experiments.check_not_needed(name, version)
        wrong: list[Exception] = []

        def remove() -> None:
            try:
                live.snapshots.remove(version)
            except (DataError, OSError) as error:
                wrong.append(error)

        await self._writer.written(Call(remove))
        for error in wrong:
            if isinstance(error, DataError):
                raise RequestError(409, "needed_version", str(error))
            raise not_written(str(error))
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Makes the weights those of a version that was kept; this is a new version, and rounds go on counting."""
        live = self.live(name)
        model = kept_model(live, request.version)
        await asyncio.shield(self._writer.logged(live, live.replacement(model)))
        return views.ranker(live)

    def model(self, name: str) -> Model:
        return self.live(name).model

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

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Keeps a round open that another system has ordered, as if this ranker had shown it."""
        live = self.live(name)
        self._writer.spare_number(live)
        return self._keep_open(live, *live.shadow(request, shown))

    def _keep_open(self, live: LiveRanker, answer: RankAnswer, number: int, kept: bytes) -> RankAnswer:
        self.journal.put_later(StoreRound(live.id, number, kept))
        if number % self._sweep == 0:
            self.drop_rounds(live)
        return answer

    def drop_rounds(self, live: LiveRanker) -> None:
        """Drops open rounds of a ranker, and of the one that has most where all of them together are too large."""
        live.drop()
        self._writer.forget(live)
        over = sum(each.rounds.open.size for each in self.live_rankers.values()) - self.config.open_bytes
        if over > 0:
            largest = max(self.live_rankers.values(), key=lambda each: each.rounds.open.size)
            largest.drop(over)
            self._writer.forget(largest)

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from what came back about a round, once it is on disk."""
        live = self.live(name)
        number = live.rounds.ids.number_of(request.round)
        carried = None if request.carry is None else self._carried.open(live, request, request.carry)
        while (waiting := live.rounds.unwritten.get(number)) is not None:  # an answer is on its way to the disk
            entry, future = waiting[0], awaitable(waiting[1])
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
            found = await asyncio.shield(self._writer.logged(live, found, found.round, sealed=row))
        if self.tracing is not None:
            self.tracing.answered(name, request.round, found.version)
        return FeedbackAnswer(found.learned, found.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a list of which all labels are known, once it is on disk."""
        live = self.live(name)
        self._writer.spare_number(live)
        entry = feedbacks.check_full(live, request)
        result = await asyncio.shield(self._writer.logged(live, entry))
        return FullAnswer(live.rounds.ids.public(entry.round), result.loss, result.learned, result.version)

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
        times = [(live.id, live.rounds.now()) for live in self.live_rankers.values()]
        times += [(experiment.id, experiment.rounds.now()) for experiment in self.experiments.live.values()]
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
        age = None if live.last_snapshot.at is None else monotonic() - live.last_snapshot.at
        disk = shutil.disk_usage(self.folder).free
        return views.dashboard(live, Health(self.journal.ready, disk, age, self.journal.size, live.stats.dropped))
