"""All experiments of a service: made, asked, answered, ended and deleted. Whatever decides is in the journal first."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

import msgspec

from ranktron.errors import DataError, RanktronError
from ranktron.service.awaiting import AwaitedWriter, awaitable
from ranktron.store.errors import RequestError, not_written
from ranktron.store.experiments import views
from ranktron.store.experiments.arms import kept_model
from ranktron.store.experiments.definitions import check_definition, complete_experiment, same_experiment
from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.recovery import recover_experiment
from ranktron.store.experiments.rounds import ShownPage, feedback_gains, part_for_arm
from ranktron.store.experiments.types import (
    ExperimentAnswer,
    ExperimentDefinition,
    ExperimentFeedbackAnswer,
    ExperimentRankAnswer,
    ExperimentRankRequest,
    ExperimentsAnswer,
)
from ranktron.store.journal.entries import JournalEntry, Result, encode
from ranktron.store.journal.journal import (
    PREFIX,
    AddRanker,
    Append,
    Call,
    Job,
    Prune,
    RemovedError,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
)
from ranktron.store.rankers import feedback as feedbacks
from ranktron.store.rankers.journal_writer import RESERVE, refusal
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.types import FeedbackRequest

if TYPE_CHECKING:
    from ranktron.service.service import RankingService

_logger = logging.getLogger("ranktron.service")


class Consequences:
    """Writes what follows from the outcomes of experiments, on the event loop's thread."""

    def __init__(self, writer: AwaitedWriter) -> None:
        self._writer, self._journal = writer, writer.journal

    def follow(self, experiment: LiveExperiment) -> None:
        """Does what is due: the guard goes back; and now and then the whole state is written."""
        if experiment.busy:
            return
        if experiment.tally.alarm is not None and not experiment.noted:
            self._go_back(experiment)
        elif experiment.needs_state():
            self._write_state(experiment)

    def _go_back(self, experiment: LiveExperiment) -> None:
        """Gives the ranker the weights of its incumbent, and writes why, in one commit; what fails is tried again."""
        version = experiment.definition.arms[0].version
        assert version is not None
        try:
            live = experiment.arms[1].live
            job, replaced = self._writer.prepared(live, live.replacement(kept_model(live, version)))
        except RequestError as error:
            _logger.warning("experiment %s cannot roll back yet: %s", experiment.name, error)
            return
        replaced.add_done_callback(asyncio.Future.exception)
        _logger.warning("experiment %s: %s", experiment.name, experiment.why)
        self.append(experiment, JournalEntry("note", 0, experiment.rounds.now(), experiment.why.encode()), job)

    def _write_state(self, experiment: LiveExperiment) -> None:
        """Writes the whole state, and then drops what is before the one before it."""
        written = self.append(experiment, experiment.state_entry())

        def prune(done: asyncio.Future[None]) -> None:
            if done.exception() is None and len(experiment.stated) > 1:
                before = experiment.stated[0]
                self._journal.put(Job(Prune(experiment.id, before, before, before, before)))

        written.add_done_callback(prune)

    def append(self, experiment: LiveExperiment, entry: JournalEntry, *before: Append) -> asyncio.Future[None]:
        """A future of an entry that answers no round: it is done when that is on disk and applied."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(asyncio.Future.exception)
        experiment.busy = True

        def done(version: int) -> None:
            experiment.busy = False
            experiment.apply(entry, version)
            if not future.done():
                future.set_result(None)

        def failed(error: BaseException) -> None:
            experiment.busy = False
            if not future.done():
                future.set_exception(refusal(error))

        self._journal.put(*before, Append(experiment.id, None, encode(entry), done, failed))
        return future


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_SWEEP = 64  # rounds between two looks at whether there are too many


class Experiments:
    """The experiments over the rankers of a service; made, it has read them all."""

    def __init__(self, service: RankingService, writer: AwaitedWriter, stored: list[StoredRanker]) -> None:
        self._service, self._writer, self._journal = service, writer, service.journal
        self._consequences = Consequences(writer)
        self.config = service.config
        self.live: dict[str, LiveExperiment] = {}
        self.quarantined: dict[str, StoredRanker] = {}
        self.why_quarantined: dict[str, str] = {}
        self._changing = asyncio.Lock()
        for each in stored:
            name = each.name.removeprefix(PREFIX)
            try:
                found = recover_experiment(self._journal, each, self.config)
            except RanktronError as error:
                remedy = f"restore the folder from a copy, or delete it with DELETE /v1/experiments/{name}"
                self.quarantined[name] = each
                self.why_quarantined[name] = f"experiment {name!r} is set aside: {error}. To go on, {remedy}"
                _logger.error("%s", self.why_quarantined[name])
            else:
                found.attach(service)
                self.live[name] = found

    def start(self) -> None:
        """Sets numbers of rounds aside, before the journal's writer starts."""
        for experiment in self.live.values():
            experiment.rounds.reserved = experiment.rounds.next + RESERVE
            self._journal.write_now(Reserve(experiment.id, experiment.rounds.reserved))

    def stop(self) -> None:
        for experiment in self.live.values():
            self._journal.put(Job(Settle(experiment.id, experiment.rounds.next), failed=lambda _error: None))

    def discard(self) -> None:
        """Discards all experiments: another server has taken over."""
        self.live.clear()
        self.quarantined.clear()
        self.why_quarantined.clear()

    def find(self, name: str) -> LiveExperiment:
        """The experiment of a name; a RequestError if there is none at work."""
        if name in self.why_quarantined:
            raise RequestError(409, "set_aside", self.why_quarantined[name])
        found = self.live.get(name)
        if found is None:
            self._service.check_leading()
            raise _unknown(name)
        return found

    # Making and deleting

    async def create(self, name: str, definition: ExperimentDefinition) -> ExperimentAnswer:
        """Makes an experiment; to make the same one again changes nothing."""
        return views.experiment(await asyncio.shield(asyncio.ensure_future(self._made(name, definition))))

    async def _made(self, name: str, definition: ExperimentDefinition) -> LiveExperiment:
        if not _NAME.fullmatch(name):
            complaint = "an experiment's name has 1 to 63 letters, digits, dots, hyphens and underscores"
            raise RequestError(422, "bad_name", f"{complaint}, a letter or digit first")
        async with self._changing:
            if name in self.live or name in self.quarantined:
                known = self.find(name)
                if not same_experiment(definition, known.original):
                    complaint = f"there is another experiment {name!r} already, and it cannot be changed under way"
                    raise RequestError(409, "exists", f"{complaint}: delete it first, or choose another name")
                return known
            if len(self.live) + len(self.quarantined) >= self.config.max_rankers:
                count = len(self.live) + len(self.quarantined)
                raise RequestError(409, "too_many_experiments", f"there are {count} experiments: delete one first")
            check_definition(definition, self._service)
            made = complete_experiment(definition)
            await self._keep_versions(made)
            body = msgspec.json.encode(made)
            stored = await self._writer.written(AddRanker(PREFIX + name, body, RESERVE))
            experiment = LiveExperiment(stored, name, made, self.config)
            experiment.rounds.reserved = stored.next + RESERVE
            experiment.attach(self._service)
            self.live[name] = experiment
            return experiment

    async def _keep_versions(self, definition: ExperimentDefinition) -> None:
        """Keeps the versions that are arms for good: a snapshot that comes later does not take their place."""
        for arm in definition.arms:
            live = self._service.live(arm.ranker)
            if arm.version is not None and arm.version not in live.snapshots.pinned():
                await self._keep_version(live, arm.version)

    async def _keep_version(self, live: LiveRanker, version: int) -> None:
        wrong: list[DataError] = []

        def keep() -> None:
            try:
                live.snapshots.pin(version)
            except DataError as error:
                wrong.append(error)

        await self._writer.written(Call(keep))
        for error in wrong:
            raise not_written(str(error))

    async def delete(self, name: str) -> None:
        """Ends an experiment and deletes what it has counted; its rankers stay as they are."""
        await asyncio.shield(asyncio.ensure_future(self._removed(name)))

    async def _removed(self, name: str) -> None:
        async with self._changing:
            gone = self.quarantined.get(name) or self.find(name)
            live, why = self.live.pop(name, None), self.why_quarantined.pop(name, "")
            try:
                await self._writer.written(
                    RemoveRanker(gone.id, gone.rounds.next if isinstance(gone, LiveExperiment) else gone.next)
                )
            except RequestError:
                if live is not None:
                    self.live[name] = live
                else:
                    self.why_quarantined[name] = why
                raise
            self.quarantined.pop(name, None)

    def check_not_needed(self, ranker: str, version: int | None = None) -> None:
        """Refuses to let a ranker go, or one of its versions, that is an arm of an experiment."""
        for experiment in self.live.values():
            for arm in experiment.definition.arms:
                if arm.ranker == ranker and version in (None, arm.version):
                    what = f"ranker {ranker!r}" if version is None else f"version {version} of {ranker!r}"
                    complaint = f"{what} is an arm of experiment {experiment.name!r}"
                    raise RequestError(409, "in_experiment", f"{complaint}: delete the experiment first")

    def all(self) -> ExperimentsAnswer:
        self._service.check_leading()
        return ExperimentsAnswer([views.experiment(each) for each in self.live.values()], dict(self.why_quarantined))

    def answer(self, name: str) -> ExperimentAnswer:
        return views.experiment(self.find(name))

    # The two verbs

    def rank(self, name: str, request: ExperimentRankRequest) -> ExperimentRankAnswer:
        """Shows a page and keeps its round open; the round is written to disk just after the answer."""
        experiment = self.find(name)
        _check_kept(request.carry)
        self._writer.spare_number(experiment)
        answer, number, kept = experiment.rank(request)
        self._journal.put_later(StoreRound(experiment.id, number, kept))
        if number % _SWEEP == 0:
            over = sum(each.rounds.open.size for each in self.live.values()) - self.config.open_bytes
            experiment.rounds.forget(experiment.rounds.excess(over))
            self._writer.forget(experiment)
        return answer

    async def feedback(self, name: str, request: FeedbackRequest) -> ExperimentFeedbackAnswer:
        """Counts what came back about a page, and lets the arm that was shown learn from it, once both are on disk."""
        experiment = self.find(name)
        _check_kept(request.carry is not None)
        number = experiment.rounds.ids.number_of(request.round)
        while (waiting := experiment.rounds.unwritten.get(number)) is not None:
            await asyncio.wait([awaitable(waiting)])
        page, counted = experiment.page(number, request.round)
        gains = feedback_gains(request, page, request.round)
        live, found = await self._lesson(experiment, page, request)
        if number in experiment.rounds.unwritten or experiment.page(number, request.round)[1] != counted:
            return await self.feedback(name, request)  # another one came while the arm's own round waited
        if counted is None:
            return await asyncio.shield(self._count(experiment, page, gains, live, found))
        if isinstance(found, JournalEntry):
            assert live is not None
            found = await asyncio.shield(self._writer.logged(live, found, found.round))
        return ExperimentFeedbackAnswer(counted, found is not None and found.learned)

    async def _lesson(
        self, experiment: LiveExperiment, page: ShownPage, request: FeedbackRequest
    ) -> tuple[LiveRanker | None, JournalEntry | Result | None]:
        """What the arm learns from this: an entry to write, or what came of it before; None if it does not learn."""
        if page.round is None:
            return None, None
        live = experiment.arms[page.arm].live
        if live.learns == "nothing":
            return None, None
        part = part_for_arm(request, page, live.k, live.learns == "top")
        if part is None:
            return None, None
        number = live.rounds.ids.number_of(page.round)
        while (waiting := live.rounds.unwritten.get(number)) is not None:
            await asyncio.wait([awaitable(waiting[1])])
        return live, feedbacks.check_feedback(live, part)

    def _count(
        self,
        experiment: LiveExperiment,
        page: ShownPage,
        gains: dict[str, float],
        live: LiveRanker | None,
        found: JournalEntry | Result | None,
    ) -> asyncio.Future[ExperimentFeedbackAnswer]:
        """Writes the outcome of a page, in one commit with what its arm learns from it."""
        entry = experiment.outcome(page, gains)
        self._writer.check_not_busy()
        future: asyncio.Future[ExperimentFeedbackAnswer] = asyncio.get_running_loop().create_future()
        jobs: list[Append] = []
        lesson: asyncio.Future[Result] | None = None
        if isinstance(found, JournalEntry):
            assert live is not None
            job, lesson = self._writer.prepared(live, found, found.round)
            lesson.add_done_callback(asyncio.Future.exception)  # who waits is told by the other one
            jobs.append(job)

        def done(version: int) -> None:
            counted = experiment.apply(entry, version)
            experiment.rounds.unwritten.pop(page.number, None)
            result = lesson.result() if lesson is not None and lesson.done() else found
            learned = isinstance(result, Result) and result.learned
            if not future.done():
                future.set_result(ExperimentFeedbackAnswer(counted, learned))
            self._follow_up(experiment)

        def failed(error: BaseException) -> None:
            experiment.rounds.unwritten.pop(page.number, None)
            if not future.done():
                gone = isinstance(error, RemovedError)
                future.set_exception(_unknown(experiment.name) if gone else refusal(error))

        experiment.rounds.unwritten[page.number] = future
        self._journal.put(*jobs, Append(experiment.id, page.number, encode(entry), done, failed))
        return future

    # What follows

    def _follow_up(self, experiment: LiveExperiment) -> None:
        if self.live.get(experiment.name) is experiment:
            self._consequences.follow(experiment)

    async def promote(self, name: str) -> ExperimentAnswer:
        """Shows the winner to everyone; or makes the ranker as it is now the incumbent of its guard."""
        experiment = self.find(name)
        if experiment.busy:
            raise RequestError(503, "busy", "the experiment is being written to disk: try again in a moment")
        if experiment.definition.guard is None:
            winner = experiment.tally.winner
            if winner is None:
                raise RequestError(409, "undecided", f"there is no winner to promote: {experiment.why}")
            change = {"arm": winner}
        else:
            if not experiment.promotable:
                raise RequestError(409, "undecided", f"it may be worse by more than the tolerance: {experiment.why}")
            ranker = experiment.definition.arms[1].ranker
            version = self._service.live(ranker).version
            await self._service.keep(ranker)
            change = {"version": version}
        entry = JournalEntry("promotion", 0, experiment.rounds.now(), encode(change))
        await asyncio.shield(self._consequences.append(experiment, entry))
        return views.experiment(experiment)

    def catch_up(self) -> None:
        """Does what could not be done before, as after a crash or while the disk took nothing."""
        for experiment in self.live.values():
            self._follow_up(experiment)

    def close_rounds(self, most: int) -> int:
        """Takes rounds whose time is over for ones that gained nothing; how many."""
        self.catch_up()
        closed = 0
        for experiment in list(self.live.values()):
            for number in experiment.overdue()[: most - closed]:
                request = FeedbackRequest(experiment.rounds.ids.public(number), clicks=[])
                task = asyncio.ensure_future(self.feedback(experiment.name, request))
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
                closed += 1
        return closed


def _check_kept(carry: bool) -> None:
    """Refuses pages that would carry themselves."""
    if carry:
        raise RequestError(422, "no_carry", "the service keeps the pages of experiments: leave `carry` out")


def _unknown(name: str) -> RequestError:
    how = f"PUT /v1/experiments/{name} makes one"
    return RequestError(404, "unknown_experiment", f"there is no experiment {name!r}: {how}")
