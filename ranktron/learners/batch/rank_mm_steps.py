"""The paper's updates: gradient steps on the dual variables of one random query at a time, followed by a projection.

RankMM-1 clips every pair to its interval, RankMM-3 projects the pairs of a query onto a ball of the ℓ1,∞ norm, both
with η_t = η_0/√t and one 32-bit number per pair. RankMM-2 multiplies its pairs by exponentials of the gradient, with a
constant η_0 (exponentiated gradient): α_jk ∝ exp(θ_k − θ_j), so that one number per document represents all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.kernels.dispatch import dot_rows, slice_rows
from ranktron.kernels.jit import jit
from ranktron.learners.batch.projections import cap_groups
from ranktron.learners.batch.rank_mm_exact import average_in
from ranktron.learners.batch.rank_mm_problem import GradedLists, RankMMProblem, carry
from ranktron.types import Floats, Integers, State

Singles = npt.NDArray[np.float32]

_A_LITTLE_LESS = 1.0 - 1e-7
"""Rounding to 32 bits must not leave the constraints."""


@jit
def _single(value: float) -> np.float32:
    """The largest 32-bit number that is at most a value."""
    single = np.float32(value)
    return np.nextafter(single, np.float32(0.0)) if np.float64(single) > value else single


@jit
def clip_pairs(alpha: Singles, a: Floats, columns: Integers, bound: float, eta: float, change: Floats) -> None:
    """A gradient step and the projection onto the box 0 ≤ α_jk ≤ bound, in O(|R_i|); `change` has sums per document.

    `a` is in the order of decreasing labels; the pairs of document k are those with the first documents.
    """
    cap = _single(bound)
    for k in range(a.shape[0]):
        own = alpha[columns[k] - columns[0] : columns[k + 1] - columns[0]]
        ours, total = a[k], 0.0
        for j in range(own.shape[0]):
            old = np.float64(own[j])
            own[j] = min(np.float32(max(old - eta * (a[j] - ours), 0.0)), cap)  # section 3.1
            difference = np.float64(own[j]) - old
            change[j] += difference
            total += difference
        change[k] -= total


@jit
def project_pairs(alpha: Singles, a: Floats, columns: Integers, bound: float, eta: float, change: Floats) -> None:
    """A gradient step and the projection onto 0 ≤ α_jk ≤ γ_k, Σ_k γ_k = bound, in a few passes over the pairs.

    Negative values are set to 0 first: only then the projection onto the ball is the one onto the whole set.
    """
    moved = np.empty(alpha.shape[0])
    groups = columns - columns[0]
    for k in range(a.shape[0]):
        preferred = groups[k + 1] - groups[k]
        for j in range(preferred):
            pair = groups[k] + j
            moved[pair] = max(alpha[pair] - eta * (a[j] - a[k]) / preferred, 0.0)  # section 3.3
    cap_groups(moved, groups, bound * _A_LITTLE_LESS)
    for k in range(a.shape[0]):
        preferred = groups[k + 1] - groups[k]
        for j in range(preferred):
            pair = groups[k] + j
            old = np.float64(alpha[pair])
            alpha[pair] = np.float32(moved[pair])
            difference = (np.float64(alpha[pair]) - old) / preferred
            change[j] += difference
            change[k] -= difference


@jit
def _log_sums(theta: Floats, sign: float, codes: Integers, count: int) -> Floats:
    """For each grade the logarithm of Σ exp(± θ) over its documents, −∞ if it has none."""
    top = np.full(count, -np.inf)
    for i in range(theta.shape[0]):
        top[codes[i]] = max(top[codes[i]], sign * theta[i])
    sums = np.zeros(count)
    for i in range(theta.shape[0]):
        sums[codes[i]] += np.exp(sign * theta[i] - top[codes[i]])
    found: Floats = np.log(sums) + top
    return found


@jit
def _log_add(x: float, y: float) -> float:
    if x < y:
        x, y = y, x
    return x if y == -np.inf else x + np.log1p(np.exp(y - x))


@jit
def marginals(theta: Floats, codes: Integers, count: int, g: Floats) -> float:
    """The sum of α_jk = exp(θ_k − θ_j)/Z for each document, as the upper of its pairs minus as the lower; and α_0.

    Sums over grades give all of them in O(n). Everything is computed in logarithms, to avoid overflow.

    >>> g = np.empty(3)
    >>> round(marginals(np.zeros(3), np.array([1, 0, 0]), 2, g), 6), g
    (0.333333, array([ 0.66666667, -0.33333333, -0.33333333]))
    """
    raised, lowered = _log_sums(theta, -1.0, codes, count), _log_sums(theta, 1.0, codes, count)
    lower, higher = np.full(count, -np.inf), np.full(count, -np.inf)
    total = 0.0  # log Z, with log 1 for α_0
    for grade in range(1, count):
        lower[grade] = _log_add(lower[grade - 1], lowered[grade - 1])
        total = _log_add(total, lower[grade] + raised[grade])
        higher[count - 1 - grade] = _log_add(higher[count - grade], raised[count - grade])
    for i in range(theta.shape[0]):
        g[i] = np.exp(lower[codes[i]] - theta[i] - total) - np.exp(higher[codes[i]] + theta[i] - total)
    return float(np.exp(-total))


class PairLayout(NamedTuple):
    """The documents of each query by decreasing label, and how many pairs come before each of them."""

    ranked: Integers
    before: Integers


@jit
def _visit_pairs(
    box: bool, lists: GradedLists, layout: PairLayout, order: Integers, bounds: Floats, eta: float, alpha: Singles,
    w: Floats, margin: float, averaged: Floats, t: int,
) -> float:  # fmt: skip
    X, labels, offsets, _, counts = lists
    ranked, before = layout
    for q in order:
        t += 1
        start, stop = offsets[q], offsets[q + 1]
        if counts[q] > 1:
            items = ranked[start:stop] - start
            rows = slice_rows(X, start, stop)
            a = (dot_rows(rows, w) - labels[start:stop])[items]
            own = alpha[before[start] : before[stop]]
            columns = before[start : stop + 1]
            change = np.zeros(stop - start)
            if box:
                clip_pairs(own, a, columns, bounds[q] / own.shape[0], eta / np.sqrt(t), change)
            else:
                project_pairs(own, a, columns, bounds[q], eta / np.sqrt(t), change)
            g = np.empty(stop - start)
            g[items] = change
            margin += carry(rows, labels[start:stop], g, 1.0, w)
        average_in(w, margin, averaged, t)
    return margin


@jit
def _visit_documents(
    lists: GradedLists, order: Integers, bounds: Floats, eta: float, theta: Floats, w: Floats, margin: float,
    averaged: Floats, t: int,
) -> float:  # fmt: skip
    X, labels, offsets, codes, counts = lists
    for q in order:
        t += 1
        start, stop = offsets[q], offsets[q + 1]
        if counts[q] > 1:
            rows = slice_rows(X, start, stop)
            a = dot_rows(rows, w) - labels[start:stop]
            old, new = np.empty(stop - start), np.empty(stop - start)
            marginals(theta[start:stop], codes[start:stop], counts[q], old)
            theta[start:stop] += eta * a  # section 3.2: the gradient of pair (j, k) is a_j − a_k
            marginals(theta[start:stop], codes[start:stop], counts[q], new)
            margin += carry(rows, labels[start:stop], new - old, bounds[q], w)
        average_in(w, margin, averaged, t)
    return margin


@jit
def _carry_pairs(averages: bool, lists: GradedLists, layout: PairLayout, alpha: Singles, w: Floats) -> float:
    """Sums w and margin over the pairs, one by one."""
    X, labels, offsets, _, _ = lists
    ranked, before = layout
    margin = 0.0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        g = np.zeros(stop - start)
        for at in range(start, stop):
            preferred = before[at + 1] - before[at]
            for j in range(preferred):
                share = np.float64(alpha[before[at] + j]) / (preferred if averages else 1)
                g[ranked[start + j] - start] += share
                g[ranked[at] - start] -= share
        margin += carry(slice_rows(X, start, stop), labels[start:stop], g, 1.0, w)
    return margin


@jit
def _carry_documents(lists: GradedLists, bounds: Floats, theta: Floats, w: Floats) -> float:
    X, labels, offsets, codes, counts = lists
    margin = 0.0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        if counts[q] > 1:
            g = np.empty(stop - start)
            marginals(theta[start:stop], codes[start:stop], counts[q], g)
            margin += carry(slice_rows(X, start, stop), labels[start:stop], g, bounds[q], w)
    return margin


@dataclass(eq=False)
class PairDual:
    """RankMM-1 and RankMM-3: one number per pair, updated by gradient step and projection.

    Examples
    --------
    >>> from ranktron.data.rounds import Rounds
    >>> dual = PairDual(RankMMProblem(Rounds.from_arrays([[1.0], [3.0]], [0, 1]), "average", C=1.0), eta=0.25)
    >>> dual.visit(np.array([0]))
    >>> dual.alpha, dual.w, dual.value
    (array([0.25], dtype=float32), array([0.5]), 0.125)
    """

    problem: RankMMProblem
    eta: float = 0.01
    steps: int = 0
    w: Floats = field(init=False, repr=False)
    margin: float = field(init=False, default=0.0)
    averaged: Floats = field(init=False, repr=False)
    alpha: Singles = field(init=False, repr=False)

    def __post_init__(self) -> None:
        d = self.problem.rounds.n_features
        self.w, self.averaged = np.zeros(d), np.zeros(d + 1)
        columns = self.problem.columns()
        self._layout = PairLayout(columns.ranked, columns.before)
        self.alpha = np.zeros(len(columns), np.float32)

    @property
    def value(self) -> float:
        """The dual value: Σ α (y_j − y_k) − ½ |w|²."""
        return self.margin - 0.5 * float(self.w @ self.w)

    def visit(self, order: Integers) -> None:
        """Makes one step for each query of `order`."""
        problem, box = self.problem, self.problem.loss == "average"
        self.margin = _visit_pairs(
            box, problem.arrays, self._layout, order, problem.bounds, self.eta, self.alpha, self.w, self.margin,
            self.averaged, self.steps,
        )  # fmt: skip
        self.steps += len(order)

    def recovered(self) -> tuple[Floats, float]:
        """The weights and the margin, from the dual variables alone."""
        w = np.zeros_like(self.w)
        return w, _carry_pairs(self.problem.loss != "average", self.problem.arrays, self._layout, self.alpha, w)

    def state(self) -> State:
        return {"alpha": self.alpha, "averaged": self.averaged}

    def restore(self, state: State, steps: int, factor: float = 1.0) -> None:
        """Restores dual variables, times a factor: those for C become those for C · factor."""
        self.alpha = (np.asarray(state["alpha"]) * np.float32(factor)).astype(np.float32)
        self.averaged = factor * np.asarray(state["averaged"])
        self.w, self.margin = self.recovered()
        self.steps = steps


@dataclass(eq=False)
class DocumentDual:
    """RankMM-2: a distribution over the pairs of each query, stored as one number per document.

    Examples
    --------
    >>> from ranktron.data.rounds import Rounds
    >>> dual = DocumentDual(RankMMProblem(Rounds.from_arrays([[1.0], [3.0]], [0, 1]), "max", C=1.0))
    >>> dual.w, dual.value
    (array([1.]), 0.0)
    """

    problem: RankMMProblem
    eta: float = 0.01
    steps: int = 0
    w: Floats = field(init=False, repr=False)
    margin: float = field(init=False)
    averaged: Floats = field(init=False, repr=False)
    theta: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.theta = np.zeros(len(self.problem.rounds.labels))
        self.w, self.margin = self.recovered()
        self.averaged = np.append(self.w, self.margin)

    value = PairDual.value

    def visit(self, order: Integers) -> None:
        """Makes one step for each query of `order`."""
        self.margin = _visit_documents(
            self.problem.arrays, order, self.problem.bounds, self.eta, self.theta, self.w, self.margin, self.averaged,
            self.steps,
        )  # fmt: skip
        self.steps += len(order)

    def recovered(self) -> tuple[Floats, float]:
        """The weights and the margin, from the dual variables alone."""
        w = np.zeros(self.problem.rounds.n_features)
        return w, _carry_documents(self.problem.arrays, self.problem.bounds, self.theta, w)

    def state(self) -> State:
        return {"theta": self.theta, "averaged": self.averaged}

    def restore(self, state: State, steps: int, factor: float = 1.0) -> None:
        """Restores dual variables; distributions are the same for every C."""
        self.theta = np.array(state["theta"])
        self.averaged = factor * np.asarray(state["averaged"])
        self.w, self.margin = self.recovered()
        self.steps = steps


def paper_dual(problem: RankMMProblem, eta: float) -> PairDual | DocumentDual:
    """The dual variables of the paper's updates for the problem's loss."""
    return DocumentDual(problem, eta) if problem.loss == "max" else PairDual(problem, eta)
