"""RankSVM in the primal: loss, gradient and Hessian products of all pairs in O(m log m), minimised by a trust region.

    f(w) = ½ |w|² + C Σ_q c_q Σ_{(i, j) ∈ S_q} u_i u_j ℓ(⟨w, x_i − x_j⟩),    ℓ(t) = max(0, 1 − t)²  or  max(0, 1 − t)

c_q = v_q/(Q |S_q|) if every query counts the same (Q = Σ v_q of the queries with pairs), v_q/Σ v_q |S_q| if every pair
does. v_q is the weight of a query and u_i that of a document, by default 1, and |S_q| = Σ u_i u_j: a query of weight 2
counts like two queries, a document of weight 2 like two documents. (Chapelle and Keerthi, Efficient Algorithms for
Ranking with SVMs, 2010; Lee and Lin, Large-Scale Linear RankSVM, 2014.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.dispatch import linear_direction
from ranktron.kernels.grades import add_to_tree, grades, pair_weights, sum_below
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.learners.parameters import ALGORITHMS
from ranktron.learners.schedule import Fit
from ranktron.types import Floats, Integers, State

SMOOTHINGS = (1.0, 0.1, 1e-2, 1e-3, 1e-4)
"""How wide the rounded corner of the plain hinge is, from one solution to the next."""

UNFINISHED = "solver stopped at max_iter before the gradient vanished"

_PRINTED = ALGORITHMS["ranksvm"].preset("paper")


@jit
def _windows(
    scores: Floats, order: Integers, codes: Integers, count: int, margin: float, values: Floats, parts: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """For each document the number and sum of values of those with which it has loss: lower ones, then higher ones.

    In descending order of scores, a document has loss with each lower-graded one less than the margin below it; a
    second pass in ascending order finds the higher-graded ones. A Fenwick tree sums by grade. A document of part 2
    counts like two documents.
    """
    m = scores.shape[0]
    for mirrored in range(2):
        sign = -1.0 if mirrored else 1.0
        tree = np.zeros((count + 1, 2))
        seen = 0
        for position in range(m):
            i = order[m - 1 - position] if mirrored else order[position]
            while seen < m:
                j = order[m - 1 - seen] if mirrored else order[seen]
                if not margin + sign * (scores[j] - scores[i]) > 0.0:
                    break
                add_to_tree(tree, count - 1 - codes[j] if mirrored else codes[j], values[j], parts[j])
                seen += 1
            number, total = sum_below(tree, count - 1 - codes[i] if mirrored else codes[i])
            out[i, 2 * mirrored] = parts[i] * number
            out[i, 2 * mirrored + 1] = parts[i] * total


@jit
def _squared_hinge(
    scores: Floats, labels: Floats, offsets: Integers, weights: Floats, parts: Floats, margin: float, gradient: Floats
) -> float:
    """Sums the weighted squared hinge of all queries and fills its gradient in the scores."""
    loss = 0.0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        s = scores[start:stop]
        codes, count = grades(labels[start:stop])
        found = np.zeros((stop - start, 4))
        if weights[q] > 0.0:
            _windows(s, argsort_ascending(s)[::-1], codes, count, margin, s, parts[start:stop], found)
        for i in range(stop - start):
            low, low_sum, high, high_sum = found[i]
            owed = low * (margin - s[i]) + low_sum
            g = 2.0 * weights[q] * (high * (margin + s[i]) - high_sum - owed)
            gradient[start + i] = g
            loss += weights[q] * margin * owed + 0.5 * s[i] * g
    return max(loss, 0.0)


@jit
def _curvature(
    scores: Floats, labels: Floats, offsets: Integers, weights: Floats, parts: Floats, margin: float, u: Floats,
    product: Floats,
) -> None:  # fmt: skip
    """Fills the product of the (generalised) Hessian of the squared hinge in the scores with u."""
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        s = scores[start:stop]
        codes, count = grades(labels[start:stop])
        found = np.zeros((stop - start, 4))
        if weights[q] > 0.0:
            order = argsort_ascending(s)[::-1]
            _windows(s, order, codes, count, margin, u[start:stop], parts[start:stop], found)
        for i in range(stop - start):
            low, low_sum, high, high_sum = found[i]
            product[start + i] = 2.0 * weights[q] * ((low + high) * u[start + i] - low_sum - high_sum)


class RankSVMSolution(NamedTuple):
    """The weights, their objective, the norm of its gradient, and a bound on its distance from the minimum."""

    w: Floats
    value: float
    gradient: float
    gap: float
    iterations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of RankSVM on some queries, with gradient and Hessian products.

    With `rounded` > 0 the kink of the plain hinge is replaced by a parabola of that width δ, which is a difference of
    two squared hinges and never more than δ/2 below the hinge:

        ℓ_δ(t) = (max(0, 1 − t)² − max(0, 1 − δ − t)²) / 2δ

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0], [3.0]], [0, 1])
    >>> objective = Objective(lists, C=1.0)
    >>> objective.value(np.array([0.25])), objective.gradient(np.array([0.25]))
    (0.28125, array([-1.75]))
    """

    rounds: Rounds
    C: float = 1.0
    balance: str = "query"
    rounded: float = 0.0
    list_weights: Floats | None = None
    document_weights: Floats | None = None
    _last: list[Any] = field(default_factory=lambda: [None, None, None], repr=False)

    @cached_property
    def weights(self) -> Floats:
        """The weight of a pair of each query: C c_q; 0 for queries without pairs."""
        counts = pair_weights(self.rounds.labels, self.rounds.offsets, self.document_parts)
        v = np.ones(len(counts)) if self.list_weights is None else self.list_weights
        if self.balance == "pair":
            return np.where(counts > 0, self.C * v / (float(v @ counts) or 1.0), 0.0)
        lists = float(v[counts > 0].sum()) or 1.0
        weights: Floats = np.where(counts > 0, self.C * v / (lists * np.where(counts > 0, counts, 1.0)), 0.0)
        return weights

    @cached_property
    def document_parts(self) -> Floats:
        """What each document weighs: u."""
        return np.ones(len(self.rounds.labels)) if self.document_weights is None else self.document_weights

    @property
    def parts(self) -> tuple[tuple[float, float], ...]:
        """The loss as a sum of squared hinges: (margin, factor) of each."""
        if self.rounded == 0.0:
            return ((1.0, 1.0),)
        factor = 0.5 / self.rounded
        return (1.0, factor), (1.0 - self.rounded, -factor)

    def value(self, w: Floats) -> float:
        self._at(w)
        return float(self._last[1])

    def gradient(self, w: Floats) -> Floats:
        self._at(w)
        gradient: Floats = self._last[2]
        return gradient

    def curvature(self, w: Floats, v: Floats) -> Floats:
        """The Hessian at w applied to v."""
        scores, u = linear_scores(self.rounds.X, w), linear_scores(self.rounds.X, np.ascontiguousarray(v))
        total, product = np.zeros(len(u)), np.empty(len(u))
        for margin, factor in self.parts:
            _curvature(
                scores, self.rounds.labels, self.rounds.offsets, self.weights, self.document_parts, margin, u, product
            )
            total += factor * product
        return v + linear_direction(self.rounds.X, total)

    def _at(self, w: Floats) -> None:
        if self._last[0] is not None and np.array_equal(self._last[0], w):
            return
        scores = linear_scores(self.rounds.X, w)
        value, total, gradient = 0.5 * float(w @ w), np.zeros(len(scores)), np.empty(len(scores))
        for margin, factor in self.parts:
            loss = _squared_hinge(
                scores, self.rounds.labels, self.rounds.offsets, self.weights, self.document_parts, margin, gradient
            )
            value += factor * loss
            total += factor * gradient
        self._last[:] = [w.copy(), value, w + linear_direction(self.rounds.X, total)]


def minimise(
    rounds: Rounds,
    C: float = _PRINTED["C"],
    loss: str = _PRINTED["loss"],
    balance: str = _PRINTED["balance"],
    tol: float = _PRINTED["tol"],
    max_iter: int = _PRINTED["max_iter"],
    start: Floats | None = None,
    stop: Callable[[], bool] = lambda: False,
    weights: Floats | None = None,
    document_weights: Floats | None = None,
) -> RankSVMSolution:
    """Minimises the objective of RankSVM until the norm of its gradient is `tol` times that at w = 0.

    f is strongly convex, so that f(w) − min f ≤ ½ |∇f(w)|²; for the plain hinge, whose corner is rounded ever less,
    C δ/2 is added to that. `stop` is asked after each iteration whether to end early. `weights` has one number for each
    list, `document_weights` one for each document.

    >>> lists = Rounds.from_arrays([[1.0], [3.0]], [0, 1])
    >>> minimise(lists, C=1.0).w.round(6)
    array([0.444444])
    """
    if loss not in ("squared", "hinge"):
        raise DataError(f"loss must be squared or hinge, not {loss!r}")
    w = np.zeros(rounds.n_features) if start is None else start
    if loss == "squared":
        return minimise_objective(Objective(rounds, C, balance, 0.0, weights, document_weights), w, tol, max_iter, stop)
    iterations = 0
    for width in SMOOTHINGS:
        found = minimise_objective(
            Objective(rounds, C, balance, width, weights, document_weights), w, tol, max_iter, stop
        )
        w, iterations = found.w, iterations + found.iterations
    return found._replace(gap=found.gap + 0.5 * C * SMOOTHINGS[-1], iterations=iterations)


class SmoothObjective(Protocol):
    """What is minimised: a value with gradient and Hessian products, of one data set or of many parts."""

    @property
    def C(self) -> float: ...

    def value(self, w: Floats, /) -> float: ...

    def gradient(self, w: Floats, /) -> Floats: ...

    def curvature(self, w: Floats, v: Floats, /) -> Floats: ...


def minimise_objective(
    objective: SmoothObjective, w: Floats, tol: float, max_iter: int, stop: Callable[[], bool]
) -> RankSVMSolution:
    """Descends from w until the norm of the gradient is `tol` times that at 0."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            return _minimise(objective, w, tol, max_iter, stop)
    except FloatingPointError:
        raise DataError(
            f"the objective overflows with C = {objective.C:g}: choose a smaller C, or scale the features"
        ) from None


def _minimise(
    objective: SmoothObjective, w: Floats, tol: float, max_iter: int, stop: Callable[[], bool]
) -> RankSVMSolution:
    from scipy.optimize import minimize

    def callback(intermediate_result: object) -> None:
        if stop():
            raise StopIteration

    goal = tol * float(np.linalg.norm(objective.gradient(np.zeros_like(w))))
    if goal == 0.0:  # no pair has a gradient
        return RankSVMSolution(np.zeros_like(w), objective.value(np.zeros_like(w)), 0.0, 0.0, 0, True)
    found = minimize(
        objective.value,
        w,
        jac=objective.gradient,
        hessp=objective.curvature,
        method="trust-ncg",
        callback=callback,
        options={"gtol": goal, "maxiter": max_iter, "max_trust_radius": 1e8},
    )
    length = float(np.linalg.norm(objective.gradient(found.x)))
    gap = 0.5 * length**2
    # with little rounding of the kink, rounding errors may end the descent before the gradient is that small
    converged = length <= goal or gap <= 1e-6 * found.fun
    return RankSVMSolution(found.x, float(found.fun), length, gap, int(found.nit), bool(converged))


def fit_rank_svm(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Solves, and evaluates the solution on the validation set. The schedule is ignored."""
    rounds, history = fit.rounds, fit.history
    before = np.array(fit.start["coef"]) if fit.start else None
    with fit.running():
        found = minimise(
            rounds,
            **parameters,
            start=before,
            stop=lambda: fit.interrupted,
            weights=fit.weights,
            document_weights=fit.document_weights,
        )
    if not found.converged:
        history.remarks[UNFINISHED] = found.iterations
    history.epoch, history.rounds = history.epoch + 1, len(rounds)
    history.remarks["queries of one grade"] = int(np.count_nonzero(Objective(rounds).weights == 0.0))
    state = {"coef": found.w, "constant": 0.0}
    fit.evaluate(lambda valid: linear_scores(valid.X, found.w), lambda: state)
    return state
