"""The exact step: block-coordinate Frank-Wolfe with remembered vertices ("corners"), for the duals of all three losses.

For each query the best vertex of its dual variables is given by its violated pairs, its worst pair or its
worst document, and the step length has a closed form. There is no step size and no projection, the dual value never
decreases, and the sum over queries of the Frank-Wolfe gaps is the duality gap.

A query remembers the last few corners it moved to and shifts weight from the worst to the best of them. With one corner
(all of them merged) this is Frank-Wolfe as in Lacoste-Julien et al., Block-Coordinate Frank-Wolfe Optimization for
Structural SVMs (2013): O(1/ε). With more corners (pairwise Frank-Wolfe steps) convergence is linear, in practice far
faster for large C.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import largest_row_norm
from ranktron.errors import DataError
from ranktron.kernels.dispatch import slice_rows
from ranktron.kernels.jit import jit
from ranktron.learners.batch.rank_mm_losses import vertex
from ranktron.learners.batch.rank_mm_problem import GradedLists, RankMMProblem, carry, scores_minus_labels
from ranktron.learners.batch.simplex_qp import best_weights
from ranktron.types import Floats, Integers, State

WIDEST = 2000
"""The number of features up to which the weights of all corners are corrected together."""
MATRIX_SPEED = 2
"""How many times faster products of matrices are than loops over rows."""
EXCHANGES = 10
"""How often weight is shifted among the corners of a list before the next list is visited."""


@jit
def _free_place(corners: Floats, margins: Floats, weights: Floats) -> int:
    """The index of a corner with weight 0; if there is none, the two with the smallest weights are merged."""
    light, lighter = -1, -1
    for k in range(weights.shape[0]):
        if weights[k] == 0.0:
            return k
        if lighter < 0 or weights[k] < weights[lighter]:
            light, lighter = lighter, k
        elif light < 0 or weights[k] < weights[light]:
            light = k
    both = weights[light] + weights[lighter]
    part = weights[lighter] / both
    for j in range(corners.shape[1]):
        corners[light, j] += part * (corners[lighter, j] - corners[light, j])
    margins[light] += part * (margins[lighter] - margins[light])
    weights[light], weights[lighter] = both, 0.0
    return lighter


@jit
def _promise(corner: Floats, margin: float, w: Floats) -> float:
    """The value of a corner: ⟨its pairs, violations⟩ = margin − ⟨w, corner⟩."""
    for j in range(w.shape[0]):
        margin -= w[j] * corner[j]
    return margin


@jit
def _shift(
    corners: Floats, margins: Floats, weights: Floats, newest: int, w: Floats, others: float
) -> tuple[float, float]:
    """Shifts weight from the worst corner to the best: (the step along their difference, the change of the margin).

    The quadratic objective is maximal where their values are equal. With `others` above 1, w is moved by that many
    times the step, as if so many shards made the same one (CoCoA+: Ma et al., Adding vs. Averaging in Distributed
    Primal-Dual Optimization, 2015).
    """
    best, worst = -1, -1
    most, least = 0.0, 0.0
    for k in range(weights.shape[0]):
        if weights[k] > 0.0 or k == newest:
            promise = _promise(corners[k], margins[k], w)
            if best < 0 or promise > most:
                best, most = k, promise
            if weights[k] > 0.0 and (worst < 0 or promise < least):
                worst, least = k, promise
    squared = 0.0
    for j in range(w.shape[0]):
        squared += (corners[best, j] - corners[worst, j]) ** 2
    amount = weights[worst]
    if squared > 0.0:
        amount = min(amount, (most - least) / (others * squared))
    if amount <= 0.0:
        return 0.0, 0.0
    for j in range(w.shape[0]):
        w[j] += others * amount * (corners[best, j] - corners[worst, j])
    weights[worst] = 0.0 if amount >= weights[worst] else weights[worst] - amount
    weights[best] += amount
    return most - least, amount * (margins[best] - margins[worst])


@jit
def average_in(w: Floats, margin: float, averaged: Floats, t: float) -> None:
    """Updates the mean of w and margin over steps, the t-th with weight t; the margin is the last entry."""
    rho = 2.0 / (t + 1.0)
    for j in range(w.shape[0]):
        averaged[j] += rho * (w[j] - averaged[j])
    averaged[w.shape[0]] += rho * (margin - averaged[w.shape[0]])


class _Corners(NamedTuple):
    """The corners of each query for kernels, their margins and their weights."""

    corners: Floats
    margins: Floats
    weights: Floats


@jit
def _visit(
    loss: int, lists: GradedLists, bounds: Floats, parts: Floats, dual: _Corners, order: Integers, w: Floats,
    margin: float, averaged: Floats, t: int, others: float,
) -> tuple[float, float]:  # fmt: skip
    """One step for each query of `order`: (the margin of all queries, the sum of the queries' gaps when visited)."""
    X, labels, offsets, codes, counts = lists
    corners, margins, weights = dual
    gaps = 0.0
    for q in order:
        start, stop, bound = offsets[q], offsets[q + 1], bounds[q]
        if counts[q] > 1:
            rows = slice_rows(X, start, stop)
            a = scores_minus_labels(rows, w, labels[start:stop])
            g = np.empty(stop - start)
            promise = bound * vertex(loss, a, codes[start:stop], counts[q], parts[start:stop], g)
            for k in range(weights.shape[1]):
                if weights[q, k] > 0.0:
                    promise -= weights[q, k] * _promise(corners[q, k], margins[q, k], w)
            gaps += promise
            new = _free_place(corners[q], margins[q], weights[q])
            corners[q, new] = 0.0
            margins[q, new] = carry(rows, labels[start:stop], g, bound, corners[q, new])
            for _ in range(EXCHANGES):
                apart, more = _shift(corners[q], margins[q], weights[q], new, w, others)
                margin += more
                if apart <= 1e-12 * bound:
                    break
        t += 1
        average_in(w, margin, averaged, t)
    return margin, gaps


@dataclass(eq=False)
class ExactDual:
    """Dual variables of all queries as weighted corners, each stored as its image: d features and a margin.

    Examples
    --------
    >>> from ranktron.data.rounds import Rounds
    >>> dual = ExactDual(RankMMProblem(Rounds.from_arrays([[1.0], [3.0]], [0, 1]), "max", C=1.0))
    >>> dual.visit(np.array([0])), dual.w, dual.value
    (1.0, array([0.5]), 0.125)
    """

    problem: RankMMProblem
    kept: int = 20
    steps: int = 0
    w: Floats = field(init=False, repr=False)
    margin: float = field(init=False, default=0.0)
    averaged: Floats = field(init=False, repr=False)
    corners: Floats = field(init=False, repr=False)
    margins: Floats = field(init=False, repr=False)
    weights: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kept < 1:
            raise DataError(f"corners must be at least 1, not {self.kept}")
        # Squares of corners would overflow.
        if not self.problem.bounds.max() * largest_row_norm(self.problem.rounds) < 1e150:
            raise DataError(
                f"the dual variables overflow with C = {self.problem.C:g}: choose a smaller C, or scale the features"
            )
        lists, d = len(self.problem.rounds), self.problem.rounds.n_features
        self.w, self.averaged = np.zeros(d), np.zeros(d + 1)
        self.corners = np.zeros((lists, self.kept + 1, d))
        self.margins, self.weights = np.zeros((lists, self.kept + 1)), np.zeros((lists, self.kept + 1))
        self.weights[:, 0] = 1.0  # no pair has loss: w = 0

    @property
    def value(self) -> float:
        """The dual value: Σ g y − ½ |w|²."""
        return self.margin - 0.5 * float(self.w @ self.w)

    def visit(self, order: Integers, others: float = 1.0) -> float:
        """Makes one step for each query of `order`; returns the sum of their gaps, each when it was visited.

        With `others`, the number of shards that do so at the same time, w moves as if all of them made the same steps.
        """
        problem = self.problem
        dual = _Corners(self.corners, self.margins, self.weights)
        self.margin, gaps = _visit(
            problem.kernel, problem.arrays, problem.bounds, problem.parts, dual, order, self.w, self.margin,
            self.averaged, self.steps, others,
        )  # fmt: skip
        self.steps += len(order)
        return gaps

    def correct(self) -> bool:
        """Gives all corners their best weights together; returns whether that was an improvement.

        Shifts between two corners of a query are slow where queries pull w in nearly the same directions: with features
        of length 100 and C = 1,000, one solution replaces thousands of passes.
        """
        queries, places = np.nonzero(self.weights)
        held = queries, places
        groups = np.unique(queries, return_inverse=True)[1]
        corners, margins = self.corners[held], self.margins[held]
        weights = best_weights(corners, margins, groups, self.weights[held])
        w = corners.T @ weights
        if not float(margins @ weights) - 0.5 * float(w @ w) > self.value:
            return False
        self.weights[held] = weights
        self.w, self.margin = self.recovered()
        return True

    @property
    def passes_between_corrections(self) -> int:
        """How many passes take about as long as a correction; 0 if there are too many features for one."""
        lists, kept, d = self.corners.shape
        if d > WIDEST:
            return 0
        in_pass = lists * kept * d * EXCHANGES + 3 * len(self.problem.rounds.labels) * d
        return 1 + int(20 * (np.count_nonzero(self.weights) * d**2 + d**3 / 3) / MATRIX_SPEED / in_pass)

    def recovered(self) -> tuple[Floats, float]:
        """The weights and the margin, from the dual variables alone."""
        w: Floats = np.einsum("qk,qkj->j", self.weights, self.corners)
        return w, float((self.weights * self.margins).sum())

    def state(self) -> State:
        """One corner per query: all of its own, merged."""
        merged = np.einsum("qk,qkj->qj", self.weights, self.corners)
        return {"corners": merged, "margins": (self.weights * self.margins).sum(axis=1), "averaged": self.averaged}

    def restore(self, state: State, steps: int, factor: float = 1.0) -> None:
        """Restores dual variables, times a factor: those for C become those for C · factor."""
        self.corners[:, 0], self.margins[:, 0] = factor * np.asarray(state["corners"]), factor * state["margins"]
        self.averaged = factor * np.asarray(state["averaged"])
        self.w, self.margin = self.recovered()
        self.steps = steps
