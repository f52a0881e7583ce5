"""Passes over all pairs of a data set: how the pairwise family is trained when nobody waits for an answer.

Here the pairs of all lists are mixed, which the stream of `learn` cannot do. One walk serves any number of outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.dispatch import held
from ranktron.learners.pairwise.committee import committee_perceptron
from ranktron.learners.pairwise.learner import UNBOUNDED, Pairwise, check_bound, pairwise_perceptron
from ranktron.learners.pairwise.pairs import Documents, Pairs
from ranktron.learners.pairwise.readouts import Readout
from ranktron.learners.pairwise.trail import CHUNK, Counts, Trail, visit
from ranktron.learners.schedule import Course, Schedule, check_held_out
from ranktron.learners.signals import Interrupts
from ranktron.metrics import Metric, evaluate, metric
from ranktron.types import Floats, Integers, State

ONE_GRADE, REMOVED = "queries of one grade", "pairs removed by the alpha-bound"


@dataclass(eq=False)
class Passes:
    """Passes over the pairs of a data set, in an order that is a function of seed and pass.

    With `alpha_bound` below 1, a pair that was misranked in more than that share of the schedule's passes is passed
    over from then on. With `pairs_per_query`, each pass draws that many pairs of each list anew.
    """

    rounds: Rounds
    schedule: Schedule
    alpha_bound: float = 1.0
    pairs_per_query: int = 0
    pairs: Pairs = field(init=False)
    misranked: Counts = field(init=False)

    def __post_init__(self) -> None:
        check_bound(self.alpha_bound, self.pairs_per_query)
        self.pairs = Pairs.of(self.rounds.labels, self.rounds.offsets)
        self.misranked = np.zeros(len(self.pairs), np.int32) if self.alpha_bound < 1.0 else UNBOUNDED
        self._steps = np.repeat(self.pairs.steps(self.pairs_per_query), np.diff(self.rounds.offsets))
        self._documents: tuple[Documents, Documents] | None = None

    @property
    def limit(self) -> float:
        """How often a pair may be misranked before it is passed over."""
        return self.alpha_bound * self.schedule.epochs

    @property
    def removed(self) -> int:
        """How many pairs are passed over by now."""
        return int(np.count_nonzero(self.misranked > self.limit))

    def go(self, trail: Trail, size: int, floor: int, course: Course, interrupts: Interrupts | None = None) -> Trail:
        """Takes a trail through what is left of the course's pass, or as much of it as comes before an interruption."""
        upper, lower, order = self._order(course.epoch)
        for start in range(course.position, len(order), CHUNK):
            part = order[start : start + CHUNK]
            trail = trail.with_room(size, len(part))
            course.mistakes += visit(
                held(self.rounds.X), upper, lower, part, self._steps, self.misranked, self.limit, floor, trail
            )
            course.position = start + len(part)
            if interrupts is not None and interrupts.asked:
                break
        if course.position == len(order):
            course.epoch, course.position = course.epoch + 1, 0
            course.rounds += len(self.rounds)
        if len(self.pairs) and self.removed == len(self.pairs):
            raise DataError(f"after pass {course.epoch} the alpha-bound has removed every pair: raise alpha_bound")
        return trail

    def _order(self, epoch: int) -> tuple[Documents, Documents, Integers]:
        rng = np.random.default_rng((self.schedule.seed, epoch))
        if self.pairs_per_query:
            upper, lower = self.pairs.decode(self.pairs.sample(self.pairs_per_query, rng))
        else:
            if self._documents is None:
                self._documents = self.pairs.decode(self.pairs.all())
            upper, lower = self._documents
        order = rng.permutation(len(upper)) if self.schedule.shuffle else np.arange(len(upper))
        return upper, lower, order


@dataclass(eq=False)
class Output:
    """One reading of a walk: the learner that serves it, the pass that was kept, and what held-out lists said."""

    learner: Pairwise
    epoch: int = 0
    valid: list[dict[str, float]] = field(default_factory=list)
    best: tuple[float, int, State] | None = None

    def reach(self, trail: Trail, epoch: int, rounds: int) -> None:
        """Follows the walk to where it stands."""
        self.learner.follow(trail)
        self.learner.rounds += rounds
        self.epoch = epoch

    def judge(self, epoch: int, held_out: HeldOut) -> None:
        """Measures what the learner serves now, and remembers the best."""
        select = held_out.select
        means = evaluate(self.learner.ballot.of_rounds(held_out.rounds), held_out.rounds, [select]).means
        self.valid.append(dict(means))
        value = means[str(select)] * (1.0 if select.higher_is_better else -1.0)
        if self.best is None or value > self.best[0]:
            self.best = value, epoch, self.learner.state()

    def conclude(self) -> None:
        """Puts the learner back to where it was best, on a trail of its own."""
        if self.best is None:
            self.learner.follow(self.learner.trail.copy())
        else:
            _, self.epoch, state = self.best
            self.learner.restore(state)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out lists: `select` chooses the best pass on them, `weigh` gives the members of a committee their values."""

    rounds: Rounds
    select: Metric
    weigh: Metric

    def __post_init__(self) -> None:
        check_held_out(self.rounds)
        if not self.weigh.higher_is_better:
            raise DataError(f"{self.weigh} cannot weigh a committee: choose a metric of which more is better")

    def weigh_members(self, trail: Trail) -> None:
        """Measures the members of the pool that nobody has measured yet, and the current hypothesis."""
        for slot in np.flatnonzero(np.isnan(trail.values[: trail.kept])):
            trail.values[slot] = self._value(trail.members[slot])
        if np.isnan(trail.value[0]):
            trail.value[0] = self._value(trail.w)

    def _value(self, w: Floats) -> float:
        return evaluate(linear_scores(self.rounds.X, w), self.rounds, [self.weigh]).means[str(self.weigh)]


def walk(passes: Passes, outputs: Sequence[Output], course: Course, held_out: HeldOut | None) -> None:
    """Takes all outputs along the same walk; each ends at its best pass, or where Ctrl-C stopped it."""
    size, floor = max(o.learner.readout.size for o in outputs), min(o.learner.floor for o in outputs)
    measured = held_out is not None and any(o.learner.readout.measured for o in outputs)
    last = course.epoch + passes.schedule.epochs + (course.position > 0)
    course.remarks[ONE_GRADE] = int(np.count_nonzero(passes.pairs.counts == 0))
    trail = outputs[0].learner.trail
    started = perf_counter()
    with Interrupts() as interrupts:
        while course.epoch < last and not course.interrupted:
            trail = passes.go(trail, size, floor, course, interrupts)
            course.interrupted = interrupts.asked
            if held_out is not None and measured and course.position == 0:
                held_out.weigh_members(trail)
            for output in outputs:
                output.reach(trail, course.epoch, len(passes.rounds) if course.position == 0 else 0)
                if held_out is not None and course.position == 0:
                    output.judge(course.epoch, held_out)
    course.seconds += perf_counter() - started
    if len(passes.misranked):
        course.remarks[REMOVED] = passes.removed
    if not course.interrupted:
        for output in outputs:
            output.conclude()


def train_outputs(
    rounds: Rounds,
    readouts: Mapping[str, Readout],
    schedule: Schedule,
    *,
    alpha_bound: float = 1.0,
    selective: int = 0,
    pairs_per_query: int = 0,
    valid: Rounds | None = None,
    select: str | Metric = "ndcg@10",
    weigh: str | Metric = "ndcg@10",
) -> dict[str, Output]:
    """Trains several outputs at the price of one: they share the walk, and each keeps its own best pass.

    Held-out lists choose the pass by `select` and weigh the members of committees by `weigh`. Features must be scaled
    already.

    >>> from ranktron.learners.pairwise.readouts import Average, Committee
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=8, features=6).rounds(20)
    >>> outputs = train_outputs(lists, {"average": Average(), "pocket": Committee(1)}, Schedule(3))
    >>> sorted(outputs), outputs["pocket"].learner.rounds
    (['average', 'pocket'], 60)
    """
    outputs = {name: Output(Pairwise(rounds.n_features, r, selective, pairs_per_query)) for name, r in readouts.items()}
    held_out = None if valid is None else HeldOut(valid, metric(select), metric(weigh))
    walk(Passes(rounds, schedule, alpha_bound, pairs_per_query), list(outputs.values()), Course(), held_out)
    return outputs


def solve_pairwise(
    rounds: Rounds,
    parameters: Mapping[str, Any],
    schedule: Schedule,
    course: Course,
    *,
    valid: Rounds | None,
    select: Metric,
    start: State,
) -> State:
    """Trains a pairwise perceptron in passes over all pairs."""
    learner = pairwise_perceptron(rounds.n_features, **parameters)
    return _solve(learner, rounds, parameters, schedule, course, valid, select, start)


def solve_committee(
    rounds: Rounds,
    parameters: Mapping[str, Any],
    schedule: Schedule,
    course: Course,
    *,
    valid: Rounds | None,
    select: Metric,
    start: State,
) -> State:
    """Trains a committee perceptron in passes over all pairs."""
    learner = committee_perceptron(rounds.n_features, **parameters)
    return _solve(learner, rounds, parameters, schedule, course, valid, select, start)


def _solve(
    learner: Pairwise,
    rounds: Rounds,
    parameters: Mapping[str, Any],
    schedule: Schedule,
    course: Course,
    valid: Rounds | None,
    select: Metric,
    start: State,
) -> State:
    if start:
        learner.restore(start)
    output = Output(learner)
    weigh = metric(parameters["metric"]) if "metric" in parameters else select
    held_out = None if valid is None else HeldOut(valid, select, weigh)
    passes = Passes(rounds, schedule, parameters["alpha_bound"], parameters["pairs_per_query"])
    walk(passes, [output], course, held_out)
    course.epoch, course.valid = output.epoch, output.valid
    return learner.state()
