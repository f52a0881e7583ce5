"""The experiments of a service. Every outcome and every decision is in the journal before it takes effect."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

import msgspec

from ranktron.errors import DataError, RanktronError
from ranktron.service.awaiting import awaitable
from ranktron.store.errors import RequestError, not_written
from ranktron.store.experiments import views
from ranktron.store.experiments.arms import kept_model
from ranktron.store.experiments.definitions import check_definition, complete_experiment, same_experiment
from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.messages import (
    ExperimentAnswer,
    ExperimentDefinition,
    ExperimentFeedbackAnswer,
    ExperimentRankAnswer,
    ExperimentRankRequest,
    ExperimentsAnswer,
)
from ranktron.store.experiments.recovery import recover_experiment
from ranktron.store.experiments.rounds import ShownPage, feedback_gains, part_for_arm
from ranktron.store.journal.entries import JournalEntry, Result, encode
from ranktron.store.journal.journal import (
    PREFIX,
    AddRanker,
    Append,
    Call,
    Job,
    Prune,
    RecordClock,
    RemovedError,
    RemoveRanker,
    Reserve,
    Settle,
    StoredRanker,
    StoreRound,
)
from ranktron.store.messages import FeedbackRequest
from ranktron.store.promises import Promise, mark_retrieved
from ranktron.store.rankers import feedback as feedbacks
from ranktron.store.rankers.journal_writer import RESERVE, JournalWriter, refusal
from ranktron.store.rankers.live_ranker import LiveRanker

if TYPE_CHECKING:
    from ranktron.service.service import RankingService

_logger = logging.getLogger("ranktron.service")


class FollowUps:
    """Journal entries that follow from outcomes: a guard's rollback, and checkpoints. Runs on the event loop."""

    def __init__(self, writer: JournalWriter) -> None:
        self._writer, self._journal = writer, writer.journal

    def follow(self, experiment: LiveExperiment) -> None:
        """Starts a guard's rollback or a checkpoint where one is due and none is being written."""
        if experiment.busy:
            return
        if experiment.tally.alarm is not None and not experiment.noted:
            self._roll_back(experiment)
        elif experiment.needs_state():
            self._write_checkpoint(experiment)

    def _roll_back(self, experiment: LiveExperiment) -> None:
        """Restores the incumbent's weights and notes the reason, in one transaction; the next outcome retries it."""
        version = experiment.definition.arms[0].version
        assert version is not None
        try:
            live = experiment.arms[1].live
            append, replaced = self._writer.prepared(live, live.replacement(kept_model(live, version)))
        except RequestError as error:
            _logger.warning("experiment %s cannot roll back yet: %s", experiment.name, error)
            return
        mark_retrieved(replaced)
        _logger.warning("experiment %s: %s", experiment.name, experiment.why)
        self.append(experiment, JournalEntry("note", 0, experiment.rounds.now(), experiment.why.encode()), append)

    def _write_checkpoint(self, experiment: LiveExperiment) -> None:
        """Writes the whole state, then prunes the entries before the previous checkpoint."""
        written = self.append(experiment, experiment.state_entry())

        def prune(done: asyncio.Future[None]) -> None:
            if done.exception() is None and len(experiment.stated) > 1:
                oldest = experiment.stated[0]
                self._journal.put(Job(Prune(experiment.id, oldest, oldest, oldest, oldest)))

        written.add_done_callback(prune)

    def append(self, experiment: LiveExperiment, entry: JournalEntry, *before: Append) -> asyncio.Future[None]:
        """Appends an entry without a round; the future is done once it is on disk and applied."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mark_retrieved(future)
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
_SWEEP_INTERVAL = 64  # rounds of an experiment between checks of the limits on open rounds


class Experiments:
    """The experiments of a service, recovered from the journal."""

    def __init__(self, service: RankingService, writer: JournalWriter, stored: list[StoredRanker]) -> None:
        self._service, self._writer, self._journal = service, writer, service.journal  # fixed
        self._follow_ups = FollowUps(writer)  # fixed
        self.config = service.config  # fixed
        self.live: dict[str, LiveExperiment] = {}  # by name; `create` adds, `delete` removes, `discard` clears
        self.quarantined: dict[str, StoredRanker] = {}  # by name: could not be recovered; `delete` removes
        self.why_quarantined: dict[str, str] = {}  # the reasons, by the same names
        self._changing = asyncio.Lock()  # held by `create` and `delete`: one at a time
        for row in stored:
            name = row.name.removeprefix(PREFIX)
            try:
                experiment = recover_experiment(self._journal, row, self.config)
            except RanktronError as error:
                remedy = f"restore the folder from a copy, or delete it with DELETE /v1/experiments/{name}"
                self.quarantined[name] = row
                self.why_quarantined[name] = f"experiment {name!r} is quarantined: {error}. To continue, {remedy}"
                _logger.error("%s", self.why_quarantined[name])
            else:
                experiment.attach(service)
                self.live[name] = experiment

    def start(self) -> None:
        """Reserves round numbers, before the journal's writer starts."""
        for experiment in self.live.values():
            experiment.rounds.reserved = experiment.rounds.next + RESERVE
            self._journal.write_now(Reserve(experiment.id, experiment.rounds.reserved))

    def stop(self) -> None:
        """Frees unused round numbers, and records the clocks."""
        self.record_clocks()
        for experiment in self.live.values():
            self._journal.put(Job(Settle(experiment.id, experiment.rounds.next), failed=lambda _error: None))

    def record_clocks(self) -> None:
        """Records the clocks of experiments, so that open rounds expire even without traffic."""
        for experiment in self.live.values():
            self._journal.put(Job(RecordClock(experiment.id, experiment.rounds.now()), failed=lambda _error: None))

    def discard(self) -> None:
        """Forgets all experiments: another server leads now."""
        self.live.clear()
        self.quarantined.clear()
        self.why_quarantined.clear()

    def find(self, name: str) -> LiveExperiment:
        """The experiment of a name; a RequestError if it is unknown or quarantined."""
        if name in self.why_quarantined:
            raise RequestError(409, "set_aside", self.why_quarantined[name])
        experiment = self.live.get(name)
        if experiment is None:
            self._service.check_leading()
            raise _unknown(name)
        return experiment

    # Creating and deleting

    async def create(self, name: str, definition: ExperimentDefinition) -> ExperimentAnswer:
        """Creates an experiment; idempotent."""
        return views.experiment(await asyncio.shield(asyncio.ensure_future(self._create(name, definition))))

    async def _create(self, name: str, definition: ExperimentDefinition) -> LiveExperiment:
        if not _NAME.fullmatch(name):
            message = "an experiment's name has 1 to 63 letters, digits, dots, hyphens and underscores"
            raise RequestError(422, "bad_name", f"{message}, and starts with a letter or digit")
        async with self._changing:
            if name in self.live or name in self.quarantined:
                existing = self.find(name)
                if not same_experiment(definition, existing.original):
                    message = f"another experiment {name!r} exists, and a running experiment cannot be changed"
                    raise RequestError(409, "exists", f"{message}: delete it first, or choose another name")
                return existing
            if len(self.live) + len(self.quarantined) >= self.config.max_rankers:
                count = len(self.live) + len(self.quarantined)
                raise RequestError(409, "too_many_experiments", f"there are {count} experiments: delete one first")
            check_definition(definition, self._service)
            complete = complete_experiment(definition)
            await self._keep_versions(complete)
            body = msgspec.json.encode(complete)
            stored = await awaitable(self._writer.written(AddRanker(PREFIX + name, body, RESERVE)))
            experiment = LiveExperiment(stored, name, complete, self.config)
            experiment.rounds.reserved = stored.next + RESERVE
            experiment.attach(self._service)
            self.live[name] = experiment
            return experiment

    async def _keep_versions(self, definition: ExperimentDefinition) -> None:
        """Exempts the snapshots of the arms' versions from the limit on snapshots."""
        for arm in definition.arms:
            live = self._service.live(arm.ranker)
            if arm.version is not None and arm.version not in live.snapshots.pinned():
                await self._keep_version(live, arm.version)

    async def _keep_version(self, live: LiveRanker, version: int) -> None:
        errors: list[DataError] = []

        def keep() -> None:
            try:
                live.snapshots.pin(version)
            except DataError as error:
                errors.append(error)

        await awaitable(self._writer.written(Call(keep)))
        for error in errors:
            raise not_written(str(error))

    async def delete(self, name: str) -> None:
        """Deletes an experiment and its counts; its rankers stay as they are."""
        await asyncio.shield(asyncio.ensure_future(self._delete(name)))

    async def _delete(self, name: str) -> None:
        async with self._changing:
            removed = self.quarantined.get(name) or self.find(name)
            live, why = self.live.pop(name, None), self.why_quarantined.pop(name, "")
            try:
                next_round = removed.rounds.next if isinstance(removed, LiveExperiment) else removed.next
                await awaitable(self._writer.written(RemoveRanker(removed.id, next_round)))
            except RequestError:
                if live is not None:
                    self.live[name] = live
                else:
                    self.why_quarantined[name] = why
                raise
            self.quarantined.pop(name, None)

    def check_not_needed(self, ranker: str, version: int | None = None) -> None:
        """Refuses to delete a ranker, or a version of it, that is an arm of an experiment."""
        for experiment in self.live.values():
            for arm in experiment.definition.arms:
                if arm.ranker == ranker and version in (None, arm.version):
                    subject = f"ranker {ranker!r}" if version is None else f"version {version} of {ranker!r}"
                    message = f"{subject} is an arm of experiment {experiment.name!r}"
                    raise RequestError(409, "in_experiment", f"{message}: delete the experiment first")

    def all(self) -> ExperimentsAnswer:
        self._service.check_leading()
        return ExperimentsAnswer([views.experiment(each) for each in self.live.values()], dict(self.why_quarantined))

    def answer(self, name: str) -> ExperimentAnswer:
        return views.experiment(self.find(name))

    # Ranking and feedback

    def rank(self, name: str, request: ExperimentRankRequest) -> ExperimentRankAnswer:
        """Ranks for a user and opens a round, which is written to disk just after the answer."""
        experiment = self.find(name)
        _check_not_sealed(request.carry)
        self._writer.spare_number(experiment)
        answer, number, body = experiment.rank(request)
        self._journal.put_later(StoreRound(experiment.id, number, body))
        if number % _SWEEP_INTERVAL == 0:
            excess = sum(each.rounds.open.size for each in self.live.values()) - self.config.open_bytes
            experiment.rounds.forget(experiment.rounds.excess(excess))
            self._writer.forget(experiment)
        return answer

    async def feedback(self, name: str, request: FeedbackRequest) -> ExperimentFeedbackAnswer:
        """Counts the outcome of a page, and lets the arm that was shown learn; answers once both are on disk."""
        experiment = self.find(name)
        _check_not_sealed(request.carry is not None)
        number = experiment.rounds.ids.number_of(request.round)
        while (write := experiment.rounds.unwritten.get(number)) is not None:
            await asyncio.wait([awaitable(write)])
        page, counted = experiment.page(number, request.round)
        gains = feedback_gains(request, page, request.round)
        live, feedback = await self._arm_feedback(experiment, page, request)
        if number in experiment.rounds.unwritten or experiment.page(number, request.round)[1] != counted:
            return await self.feedback(name, request)  # other feedback came while this one waited for the arm's round
        if counted is None:
            return await asyncio.shield(self._count(experiment, page, gains, live, feedback))
        if isinstance(feedback, JournalEntry):
            assert live is not None
            feedback = await asyncio.shield(awaitable(self._writer.logged(live, feedback, feedback.round)))
        return ExperimentFeedbackAnswer(counted, feedback is not None and feedback.learned)

    async def _arm_feedback(
        self, experiment: LiveExperiment, page: ShownPage, request: FeedbackRequest
    ) -> tuple[LiveRanker | None, JournalEntry | Result | None]:
        """The arm's ranker, and its entry to write or, for repeated feedback, its result; None if it does not learn."""
        if page.round is None:
            return None, None
        live = experiment.arms[page.arm].live
        if live.learns == "nothing":
            return None, None
        arm_request = part_for_arm(request, page, live.k, live.learns == "top")
        if arm_request is None:
            return None, None
        number = live.rounds.ids.number_of(page.round)
        while (write := live.rounds.unwritten.get(number)) is not None:
            await asyncio.wait([awaitable(write[1])])
        return live, feedbacks.check_feedback(live, arm_request)

    def _count(
        self,
        experiment: LiveExperiment,
        page: ShownPage,
        gains: dict[str, float],
        live: LiveRanker | None,
        feedback: JournalEntry | Result | None,
    ) -> asyncio.Future[ExperimentFeedbackAnswer]:
        """Writes the outcome of a page and the feedback for its arm in one transaction."""
        entry = experiment.outcome(page, gains)
        self._writer.check_not_busy()
        future: asyncio.Future[ExperimentFeedbackAnswer] = asyncio.get_running_loop().create_future()
        appends: list[Append] = []
        learning: Promise[Result] | None = None
        if isinstance(feedback, JournalEntry):
            assert live is not None
            append, learning = self._writer.prepared(live, feedback, feedback.round)
            mark_retrieved(learning)  # both fail together, and `future` reports it
            appends.append(append)

        def done(version: int) -> None:
            counted = experiment.apply(entry, version)
            experiment.rounds.unwritten.pop(page.number, None)
            result = learning.result() if learning is not None and learning.done() else feedback
            learned = isinstance(result, Result) and result.learned
            if not future.done():
                future.set_result(ExperimentFeedbackAnswer(counted, learned))
            self._follow_up(experiment)

        def failed(error: BaseException) -> None:
            experiment.rounds.unwritten.pop(page.number, None)
            if not future.done():
                removed = isinstance(error, RemovedError)
                future.set_exception(_unknown(experiment.name) if removed else refusal(error))

        experiment.rounds.unwritten[page.number] = future
        self._journal.put(*appends, Append(experiment.id, page.number, encode(entry), done, failed))
        return future

    # Verdicts

    def _follow_up(self, experiment: LiveExperiment) -> None:
        if self.live.get(experiment.name) is experiment:
            self._follow_ups.follow(experiment)

    async def promote(self, name: str) -> ExperimentAnswer:
        """Shows the winner to all users; with a guard, makes the ranker's current version the incumbent."""
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
                message = f"the ranker may be worse than the incumbent by more than the tolerance: {experiment.why}"
                raise RequestError(409, "undecided", message)
            ranker = experiment.definition.arms[1].ranker
            version = self._service.live(ranker).version
            await self._service.keep(ranker)
            change = {"version": version}
        entry = JournalEntry("promotion", 0, experiment.rounds.now(), encode(change))
        await asyncio.shield(self._follow_ups.append(experiment, entry))
        return views.experiment(experiment)

    def catch_up(self) -> None:
        """Retries rollbacks and checkpoints that are due, as after a crash or a full disk."""
        for experiment in self.live.values():
            self._follow_up(experiment)

    def close_rounds(self, limit: int) -> int:
        """Closes up to `limit` overdue rounds, as feedback without any gain; returns their number."""
        self.catch_up()
        closed = 0
        for experiment in list(self.live.values()):
            for number in experiment.overdue()[: limit - closed]:
                request = FeedbackRequest(experiment.rounds.ids.public(number), clicks=[])
                task = asyncio.ensure_future(self.feedback(experiment.name, request))
                task.add_done_callback(lambda done: done.cancelled() or done.exception())
                closed += 1
        return closed


def _check_not_sealed(carry: bool) -> None:
    if carry:
        raise RequestError(422, "no_carry", "rounds of experiments cannot be sealed: leave `carry` out")


def _unknown(name: str) -> RequestError:
    how = f"PUT /v1/experiments/{name} makes one"
    return RequestError(404, "unknown_experiment", f"there is no experiment {name!r}: {how}")
