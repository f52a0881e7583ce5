"""Batch solvers on parts: each part is prepared once and stays on its worker; only small sums travel.

**RankSVM.** Values, gradients and Hessian products of all parts are added up, and one machine descends:

    f(w) = ½ |w|² + Σ_p c_p (f_p(w) − ½ |w|²)

f_p is the objective of part p alone, and c_p its share of all queries (or pairs, if every pair counts the same). It is
the objective of one machine; only the order of the sums differs.

**Pairwise perceptrons and committees.** Each shard has a perceptron of its own, which sees the pairs of its queries,
one part after the other. After each pass the longest survivors of all shards form a committee. One machine learns
something else.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from ranktron.dask.rank_boost_parts import BinnedQueries, PartsBoosting, bin_queries, describe_part
from ranktron.dask.rank_mm_parts import run_on_parts
from ranktron.dask.tasks import Part, on_prepared, prepare_part, take_prepared
from ranktron.data.io.parts import FeatureNumbers
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.grades import pair_weights
from ranktron.learners.batch.cut_points import merge_bins
from ranktron.learners.batch.rank_boost import Stumps, boost
from ranktron.learners.batch.rank_mm import run_passes
from ranktron.learners.batch.rank_svm import UNFINISHED, Objective, RankSVMSolution, minimise_objective
from ranktron.learners.pairwise.hypothesis_history import HypothesisHistory, merge_histories
from ranktron.learners.pairwise.learner import Pairwise
from ranktron.learners.pairwise.passes import Passes, solve_pairs
from ranktron.learners.schedule import Fit, History, Schedule
from ranktron.metrics import Metric
from ranktron.training.model import Model
from ranktron.training.workers import keep
from ranktron.types import Floats, State

if TYPE_CHECKING:
    from ranktron.dask.training import PartData


def solve_on_parts(data: PartData, model: Model, fit: Fit, shards: Sequence[range], metrics: Sequence[Metric]) -> State:
    """The state of a batch learner that is solved for all parts together.

    Parameters
    ----------
    data : PartData
        The parts and the workers.
    model : Model
        The untrained model.
    fit : Fit
        The run: its validation set, and the state to start from.
    shards : sequence of range
        The parts of each shard: shards run in parallel, the parts of a shard in order.
    metrics : sequence of Metric
        Computed on the validation set, in addition to the one that selects.
    """
    if model.kind == "ranksvm":
        return _solve_rank_svm(data, model, fit, metrics)
    if model.kind == "rankboost":
        return _solve_rank_boost(data, model, fit)
    if model.kind == "rankmm":
        return run_passes(fit, model.parameters, run_on_parts(data, model, shards))
    if model.kind in ("pairwise", "committee"):
        return _solve_pairs(data, model, fit, shards)
    raise DataError(f"{model.kind} solves for all queries at once, and not in passes over parts")


def _solve_pairs(data: PartData, model: Model, fit: Fit, shards: Sequence[range]) -> State:
    if fit.start and len(shards) > 1:
        raise DataError(
            f"{model.kind} cannot be continued in several shards, because the model does not store their states: "
            "train it from scratch, or continue it in one shard"
        )
    learner = cast(Pairwise, model.blank_learner())
    return solve_pairs(learner, fit, model.parameters, ShardPasses(data, model, shards, fit.schedule))


def _solve_rank_svm(data: PartData, model: Model, fit: Fit, metrics: Sequence[Metric]) -> State:
    token = secrets.token_hex(8)

    def each(function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return data.map(on_prepared, token, data.features, model, function, *arguments)

    with fit.running():
        solution = solve_parts(each, model.n_filled, dict(model.parameters), lambda: fit.interrupted)
    history = fit.history
    if not solution.converged:
        history.remarks[UNFINISHED] = solution.iterations
    history.epoch, history.rounds = 1, fit.queries
    state = {"coef": solution.w, "constant": 0.0}
    fit.evaluate(lambda valid: linear_scores(valid.X, solution.w), lambda: state, metrics)
    return state


def _solve_rank_boost(data: PartData, model: Model, fit: Fit) -> State:
    balance = model.parameters["balance"]
    described = data.map(_describe, data.features, model, balance)
    cuts = merge_bins([bins for bins, _ in described])
    start = {**Stumps(model.n_filled).state(), **fit.start}
    sent = data.workers.submit(keep, cuts, home=data.homes[0])  # once, and not with the task of each part
    binned = data.hold(_bin, data.features, model, balance, sent, start)
    boosting = PartsBoosting(binned.map_homes, cuts, [weights for _, weights in described])
    return boost(fit, model.parameters["n_rounds"], boosting)


def _describe(part: Any, features: Any, model: Model, balance: str) -> Any:
    return describe_part(prepare_part(part, features, model), balance)


def _bin(part: Any, features: Any, model: Model, balance: str, cuts: Floats, start: State) -> BinnedQueries:
    return bin_queries(prepare_part(part, features, model), balance, cuts, start)


Each = Callable[..., list[Any]]
"""Applies a function to the prepared queries of each part and returns the results in order."""


def count_pairs(rounds: Rounds) -> tuple[float, float]:
    """How many queries have pairs, and how many pairs there are."""
    counts = pair_weights(rounds.labels, rounds.offsets, np.ones(len(rounds.labels)))
    return float(np.count_nonzero(counts)), float(counts.sum())


def value_and_gradient(rounds: Rounds, C: float, balance: str, w: Floats) -> tuple[float, Floats]:
    """The loss of a part without the regulariser, and its gradient."""
    objective = Objective(rounds, C, balance)
    return objective.value(w) - 0.5 * float(w @ w), objective.gradient(w) - w


def hessian_product(rounds: Rounds, C: float, balance: str, w: Floats, v: Floats) -> Floats:
    """The Hessian of the loss of a part, applied to v."""
    product: Floats = Objective(rounds, C, balance).curvature(w, v) - v
    return product


@dataclass(frozen=True, eq=False)
class PartsObjective:
    """The objective of RankSVM with the squared hinge on all parts.

    Parameters
    ----------
    each : callable
        Applies a function to each part, on its worker.
    shares : array
        The share of each part in all queries, or pairs.
    C : float
        The weight of the mean loss.
    balance : {"query", "pair"}
        Whether every query counts the same, or every pair.
    """

    each: Each
    shares: Floats
    C: float
    balance: str
    _last: list[Any] = field(default_factory=lambda: [None, None, None], repr=False)

    def _at(self, w: Floats) -> None:
        if self._last[0] is not None and np.array_equal(self._last[0], w):
            return
        value, gradient = 0.5 * float(w @ w), w.copy()
        for share, (loss, slope) in zip(
            self.shares, self.each(value_and_gradient, self.C, self.balance, w), strict=True
        ):
            value, gradient = value + float(share) * loss, gradient + share * slope
        self._last[:] = [w.copy(), value, gradient]

    def value(self, w: Floats) -> float:
        """The objective."""
        self._at(w)
        return float(self._last[1])

    def gradient(self, w: Floats) -> Floats:
        """Its gradient."""
        self._at(w)
        gradient: Floats = self._last[2]
        return gradient

    def curvature(self, w: Floats, v: Floats) -> Floats:
        """The Hessian at w applied to v."""
        total = v.copy()
        for share, product in zip(self.shares, self.each(hessian_product, self.C, self.balance, w, v), strict=True):
            total = total + share * product
        return total


def solve_parts(
    each: Each, n_features: int, parameters: dict[str, Any], stop: Callable[[], bool] = lambda: False
) -> RankSVMSolution:
    """Minimises the objective of all parts.

    >>> from ranktron.data.synthetic import WebSearch
    >>> lists = WebSearch(features=5, documents=8).rounds(40)
    >>> halves = [lists[:15], lists[15:]]
    >>> each = lambda function, *arguments: [function(half, *arguments) for half in halves]
    >>> parameters = {"C": 1.0, "loss": "squared", "balance": "query", "tol": 1e-8, "max_iter": 100}
    >>> from ranktron.learners.batch.rank_svm import minimise
    >>> bool(np.abs(solve_parts(each, 5, parameters).w - minimise(lists, tol=1e-8).w).max() < 1e-8)
    True
    """
    if parameters["loss"] != "squared":
        raise DataError("on parts RankSVM is solved with loss=squared: the corner of the plain hinge needs one machine")
    counts = np.array(each(count_pairs))
    own = counts[:, 1 if parameters["balance"] == "pair" else 0]
    shares = own / (own.sum() or 1.0)
    objective = PartsObjective(each, shares, parameters["C"], parameters["balance"])
    return minimise_objective(objective, np.zeros(n_features), parameters["tol"], parameters["max_iter"], stop)


class VisitedParts(NamedTuple):
    """The hypotheses of a shard after a pass, its misranked pairs, and its queries without a pair."""

    hypotheses: HypothesisHistory
    mistakes: int
    idle: int


def visit_parts(
    token: str,
    parts: Sequence[Part],
    features: FeatureNumbers,
    model: Model,
    hypotheses: HypothesisHistory,
    schedule: Schedule,
    epoch: int,
    size: int,
    floor: int,
) -> VisitedParts:
    """One pass over the pairs of parts, from one history to the next: a pure function.

    The pairs of a part are shuffled, with `shuffle` the parts as well, by seed and pass.
    """
    hypotheses, mistakes, idle = hypotheses.copy(), 0, 0
    for p in schedule.queries(len(parts), epoch).tolist():
        rounds, history = take_prepared(token, parts[p], features, model), History(epoch=epoch)
        passes = Passes(rounds, schedule, pairs_per_query=model.parameters["pairs_per_query"])
        hypotheses = passes.go(hypotheses, size, floor, history)
        mistakes, idle = mistakes + history.mistakes, idle + passes.idle
    return VisitedParts(hypotheses.copy(), mistakes, idle)


@dataclass(eq=False)
class ShardPasses:
    """Passes of several perceptrons, one for each shard, whose histories `go` merges.

    Parameters
    ----------
    data : PartData
        The parts and the workers.
    model : Model
        The untrained model.
    shards : sequence of range
        The parts of each shard.
    schedule : Schedule
        The passes.
    """

    data: PartData
    model: Model
    shards: Sequence[range]
    schedule: Schedule
    alpha_bound: float = field(default=1.0, init=False)
    removed: int = field(default=0, init=False)
    idle: int = field(default=0, init=False)
    _histories: list[HypothesisHistory] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        parameters = self.model.parameters
        if parameters["alpha_bound"] < 1.0:
            raise DataError(
                "alpha_bound counts how often each pair is misranked, which parts do not remember: leave it at 1, or "
                "train on one machine"
            )
        if parameters.get("output") == "last" and len(self.shards) > 1:
            raise DataError(
                "the last hypotheses of several shards are several: choose the output average, pocket or voted, or one "
                "shard"
            )
        self._token, self._parts = secrets.token_hex(8), self.data.prepare(self.model)

    @property
    def queries(self) -> int:
        """The number of queries of a pass."""
        return sum(self.data.sizes)

    def go(
        self,
        hypotheses: HypothesisHistory,
        size: int,
        floor: int,
        history: History,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> HypothesisHistory:
        """Plays a pass in all shards.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            The start of the first pass.
        size, floor : int
            The size of a pool, and the smallest counter in it.
        history : History
            Counts passes, queries and mistakes.
        interrupted : callable
            Ignored: a pass is played to its end.
        """
        before = self._histories or [hypotheses] * len(self.shards)
        futures = [
            self.data.workers.submit(
                visit_parts, self._token, [self._parts[p] for p in own], self.data.features, self.model, start,
                self.schedule, history.epoch, size, floor, home=self.data.homes[own.start],
            )
            for own, start in zip(self.shards, before, strict=True)
        ]  # fmt: skip
        played: list[Any] = [future.result() for future in futures]
        self._histories, self.idle = [each.hypotheses for each in played], sum(each.idle for each in played)
        history.mistakes += sum(each.mistakes for each in played)
        history.epoch, history.rounds = history.epoch + 1, history.rounds + self.queries
        return merge_histories(self._histories, size, floor)
