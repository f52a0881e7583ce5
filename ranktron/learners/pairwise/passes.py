"""Passes over all pairs of a data set: how the pairwise family is trained offline.

The pairs of all queries are mixed, which `learn` on a stream cannot do. One run trains any number of outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.dispatch import as_arrays
from ranktron.learners.algorithms import committee_perceptron, pairwise_perceptron
from ranktron.learners.pairwise.hypothesis_history import CHUNK, Counts, HypothesisHistory, visit
from ranktron.learners.pairwise.learner import UNBOUNDED, Pairwise, check_bound
from ranktron.learners.pairwise.outputs import Output
from ranktron.learners.pairwise.pairs import Documents, Pairs
from ranktron.learners.schedule import Fit, History, Schedule, Validation
from ranktron.metrics import Metric, metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.types import Floats, Integers, State

ONE_GRADE, REMOVED = "queries of one grade", "pairs removed by the alpha-bound"


class PairPasses(Protocol):
    """Passes over pairs, whoever has them: `go` plays one, from the history so far to the next one."""

    @property
    def queries(self) -> int:
        """How many queries a pass has."""

    @property
    def idle(self) -> int:
        """How many of them have no pair."""

    @property
    def alpha_bound(self) -> float:
        """In which share of the passes a pair may be misranked before it is skipped."""

    @property
    def removed(self) -> int:
        """How many pairs are skipped by now."""

    def go(
        self,
        hypotheses: HypothesisHistory,
        size: int,
        floor: int,
        history: History,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> HypothesisHistory:
        """Plays the rest of the pass, or as much of it as comes before Ctrl-C."""


@dataclass(eq=False)
class Passes:
    """Passes over the pairs of a data set, in an order that is a function of seed and pass.

    With `alpha_bound` below 1, a pair that was misranked in more than that share of the schedule's passes is skipped
    from then on. With `pairs_per_query`, each pass draws that many pairs of each query.
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
        """How often a pair may be misranked before it is skipped."""
        return self.alpha_bound * self.schedule.epochs

    @property
    def queries(self) -> int:
        return len(self.rounds)

    @property
    def idle(self) -> int:
        return int(np.count_nonzero(self.pairs.counts == 0))

    @property
    def removed(self) -> int:
        return int(np.count_nonzero(self.misranked > self.limit))

    def go(
        self,
        hypotheses: HypothesisHistory,
        size: int,
        floor: int,
        history: History,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> HypothesisHistory:
        """Plays the rest of the pass, or as much of it as comes before Ctrl-C."""
        upper, lower, order = self._order(history.epoch)
        for start in range(history.position, len(order), CHUNK):
            part = order[start : start + CHUNK]
            hypotheses = hypotheses.with_room(size, len(part))
            history.mistakes += visit(
                as_arrays(self.rounds.X), upper, lower, part, self._steps, self.misranked, self.limit, floor, hypotheses
            )
            history.position = start + len(part)
            if interrupted():
                break
        if history.position == len(order):
            history.epoch, history.position = history.epoch + 1, 0
            history.rounds += len(self.rounds)
        if len(self.pairs) and self.removed == len(self.pairs):
            raise DataError(f"after pass {history.epoch} the alpha-bound has removed every pair: raise alpha_bound")
        return hypotheses

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
class TrainedOutput:
    """One output of a training run: its learner, the best pass, and the metrics on the validation set."""

    learner: Pairwise
    validation: Validation | None = None
    epoch: int = 0
    valid: list[dict[str, float]] = field(default_factory=list)

    def reach(self, hypotheses: HypothesisHistory, epoch: int, rounds: int) -> None:
        """Updates the learner to the current history."""
        self.learner.follow(hypotheses)
        self.learner.rounds += rounds
        self.epoch = epoch

    def evaluate(self) -> None:
        """Evaluates the learner on the validation set."""
        if self.validation is not None:
            scores = self.learner.ensemble.of_rounds(self.validation.rounds)
            self.valid.append(self.validation.evaluate(self.epoch, scores, self.learner.state))

    def conclude(self) -> None:
        """Resets the learner to its best pass, with a copy of the history."""
        if self.validation is None or self.validation.best_state is None:
            self.learner.follow(self.learner.hypotheses.copy())
        else:
            self.epoch = self.validation.epoch
            self.learner.restore(self.validation.best_state)


@dataclass(frozen=True, eq=False)
class MemberWeights:
    """The validation set and the metric that weight the members of a committee."""

    rounds: Rounds
    metric: Metric

    def __post_init__(self) -> None:
        if not self.metric.higher_is_better:
            raise DataError(f"{self.metric} cannot weight a committee: choose a metric whose higher values are better")

    def measure(self, hypotheses: HypothesisHistory) -> None:
        """Evaluates the new members of the pool, and the current hypothesis."""
        for slot in np.flatnonzero(np.isnan(hypotheses.values[: hypotheses.kept])):
            hypotheses.values[slot] = self._value(hypotheses.members[slot])
        if np.isnan(hypotheses.value[0]):
            hypotheses.value[0] = self._value(hypotheses.w)

    def _value(self, w: Floats) -> float:
        return evaluate_rounds(self.rounds, linear_scores(self.rounds.X, w), [self.metric]).means[str(self.metric)]


def train_together(
    passes: PairPasses, outputs: Sequence[TrainedOutput], fit: Fit, weights: MemberWeights | None
) -> None:
    """Trains all outputs in one run; each ends at its best pass, or where Ctrl-C stopped it."""
    history = fit.history
    size, floor = max(o.learner.output.size for o in outputs), min(o.learner.floor for o in outputs)
    measured = weights if any(o.learner.output.measured for o in outputs) else None
    last = history.epoch + fit.schedule.epochs + (history.position > 0)
    hypotheses = outputs[0].learner.hypotheses
    with fit.running():
        while history.epoch < last and not fit.finished:
            hypotheses = passes.go(hypotheses, size, floor, history, lambda: fit.interrupted)
            ended = history.position == 0
            if ended and measured is not None:
                measured.measure(hypotheses)
            for output in outputs:
                output.reach(hypotheses, history.epoch, passes.queries if ended else 0)
                if ended:
                    output.evaluate()
            fit.advance(passes.queries if ended else 0)
    history.remarks[ONE_GRADE] = passes.idle
    if passes.alpha_bound < 1.0:
        history.remarks[REMOVED] = passes.removed
    if not history.interrupted:
        for output in outputs:
            output.conclude()


def train_outputs(
    rounds: Rounds,
    readouts: Mapping[str, Output],
    schedule: Schedule,
    *,
    alpha_bound: float = 1.0,
    selective: int = 0,
    pairs_per_query: int = 0,
    valid: Rounds | None = None,
    select: str | Metric = "ndcg@10",
    weigh: str | Metric = "ndcg@10",
) -> dict[str, TrainedOutput]:
    """Trains several outputs at the cost of one: they share the run, and each keeps its own best pass.

    The validation set selects the pass by `select` and weights the members of committees by `weigh`. Features must be
    scaled already.

    >>> from ranktron.learners.pairwise.outputs import Average, Committee
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=8, features=6).rounds(20)
    >>> outputs = train_outputs(lists, {"average": Average(), "pocket": Committee(1)}, Schedule(3))
    >>> sorted(outputs), outputs["pocket"].learner.rounds
    (['average', 'pocket'], 60)
    """
    by = metric(select)
    outputs = {
        name: TrainedOutput(
            Pairwise(rounds.n_features, each, selective, pairs_per_query),
            None if valid is None else Validation(valid, by),
        )
        for name, each in readouts.items()
    }
    weights = None if valid is None else MemberWeights(valid, metric(weigh))
    train_together(
        Passes(rounds, schedule, alpha_bound, pairs_per_query), list(outputs.values()), Fit(rounds, schedule), weights
    )
    return outputs


def fit_pairwise(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Trains a pairwise perceptron in passes over all pairs."""
    return solve_pairs(pairwise_perceptron(fit.rounds.n_features, **parameters), fit, parameters)


def fit_committee(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Trains a committee perceptron in passes over all pairs."""
    return solve_pairs(committee_perceptron(fit.rounds.n_features, **parameters), fit, parameters)


def solve_pairs(learner: Pairwise, fit: Fit, parameters: Mapping[str, Any], passes: PairPasses | None = None) -> State:
    """The state of a pairwise learner after the passes of a fit, by default over the pairs of its rounds."""
    if fit.start:
        learner.restore(fit.start)
    output, weights = TrainedOutput(learner, fit.validation), None
    if fit.validation is not None:
        weigh = metric(parameters["metric"]) if "metric" in parameters else fit.validation.select
        weights = MemberWeights(fit.validation.rounds, weigh)
    if passes is None:
        passes = Passes(fit.expand_weights(), fit.schedule, parameters["alpha_bound"], parameters["pairs_per_query"])
    train_together(passes, [output], fit, weights)
    fit.history.epoch, fit.history.valid = output.epoch, output.valid
    return learner.state()
