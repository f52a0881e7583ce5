"""Thresholds on single features: finding the best one for given document weights, and scoring with sums of them.

A threshold of a feature divides the documents into those above it and the others. For sparse rows only the entries are
visited: all documents without an entry in a column have the value 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Features, Floats, Integers, Matrix


class Threshold(NamedTuple):
    """A feature, a threshold between two of its values, and the sum of the weights of all documents above it."""

    feature: int
    value: float
    gathered: float


class Thresholds(Protocol):
    """All thresholds of some documents' features."""

    def best(self, weights: Floats, /) -> Threshold: ...


@jit
def _best(X: Matrix, orders: Integers, pi: Floats) -> tuple[int, float, float]:
    feature, threshold, best = 0, np.inf, 0.0
    for f in range(X.shape[1]):
        gathered = 0.0
        for at in range(X.shape[0] - 1):
            i, below = orders[f, at], orders[f, at + 1]
            gathered += pi[i]
            if abs(gathered) > abs(best) and X[i, f] > X[below, f]:
                feature, best = f, gathered
                threshold = 0.5 * (np.float64(X[i, f]) + np.float64(X[below, f]))
    return feature, threshold, best


@jit
def _best_of_entries(bounds: Integers, rows: Integers, values: Values, pi: Floats) -> tuple[int, float, float]:
    """The same for sparse columns: column f has the entries bounds[f] to bounds[f + 1], largest first."""
    feature, threshold, best = 0, np.inf, 0.0
    total = pi.sum()
    for f in range(bounds.shape[0] - 1):
        start, stop = bounds[f], bounds[f + 1]
        zero, below = start, stop  # entries above 0 end here, and those below 0 begin
        while zero < stop and values[zero] > 0.0:
            zero += 1
        rest = total  # values at 0 or above
        while below > zero and values[below - 1] < 0.0:
            below -= 1
            rest -= pi[rows[below]]
        zeros = pi.shape[0] - (zero - start) - (stop - below)
        gathered = 0.0
        for at in range(start, stop):
            if zero <= at < below:
                continue  # an explicit 0
            if at == below and zeros:
                gathered = rest
                if abs(gathered) > abs(best):
                    feature, threshold, best = f, 0.5 * np.float64(values[at]), gathered
            gathered += pi[rows[at]]
            if at == zero - 1 and zeros:
                lower = np.float32(0.0)
            elif at + 1 < stop:
                lower = values[at + 1]
            else:
                break
            if abs(gathered) > abs(best) and values[at] > lower:
                feature, best = f, gathered
                threshold = 0.5 * (np.float64(values[at]) + np.float64(lower))
    return feature, threshold, best


@dataclass(frozen=True, eq=False)
class MatrixThresholds:
    """The thresholds of a dense matrix; each column is sorted once.

    >>> found = MatrixThresholds(np.array([[1.0], [3.0]], np.float32)).best(np.array([-0.5, 0.5]))
    >>> found.feature, found.value, found.gathered
    (0, 2.0, 0.5)
    """

    X: Matrix
    orders: Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "orders", np.argsort(-self.X.T, axis=1, kind="stable"))

    def best(self, weights: Floats) -> Threshold:
        """The threshold with the largest absolute sum of weights above it."""
        return Threshold(*_best(self.X, self.orders, weights))


@dataclass(frozen=True, eq=False)
class SparseThresholds:
    """The thresholds of sparse rows; the entries of each column are sorted once.

    >>> X = Sparse.from_matrix(np.array([[0.0, 0.0], [0.0, 3.0]], np.float32))
    >>> found = SparseThresholds(X).best(np.array([-0.5, 0.5]))
    >>> found.feature, found.value, found.gathered
    (1, 1.5, 0.5)
    """

    X: Sparse
    bounds: Integers = field(init=False, repr=False)
    rows: Integers = field(init=False, repr=False)
    values: Values = field(init=False, repr=False)

    def __post_init__(self) -> None:
        own = self.X.trimmed()
        values = own.written_values()
        order = np.lexsort((-values, own.columns))
        rows = np.repeat(np.arange(len(own)), np.diff(own.starts))[order]
        bounds = np.concatenate(([0], np.cumsum(np.bincount(own.columns, minlength=own.width))))
        for name, array in {"bounds": bounds, "rows": rows, "values": values[order]}.items():
            object.__setattr__(self, name, array)

    def best(self, weights: Floats) -> Threshold:
        """The threshold with the largest absolute sum of weights above it."""
        return Threshold(*_best_of_entries(self.bounds, self.rows, self.values, weights))


def find_thresholds(X: Features) -> Thresholds:
    """The thresholds of dense or sparse features."""
    return SparseThresholds(X) if isinstance(X, Sparse) else MatrixThresholds(X)


@jit
def _add_step(column: Values, threshold: float, alpha: float, scores: Floats) -> None:
    for i in range(column.shape[0]):
        if column[i] > threshold:
            scores[i] += alpha


def add_step(X: Features, feature: int, threshold: float, alpha: float, scores: Floats) -> None:
    """Adds alpha to the scores of all documents above a threshold, in place."""
    _add_step(X[:, feature], threshold, alpha, scores)


@jit
def _score_matrix(X: Matrix, features: Integers, thresholds: Floats, alphas: Floats) -> Floats:
    scores = np.zeros(X.shape[0])
    for t in range(features.shape[0]):
        _add_step(X[:, features[t]], thresholds[t], alphas[t], scores)
    return scores


@jit
def _score_rows(
    starts: Integers, columns: Columns, values: Values, width: int, features: Integers, thresholds: Floats,
    alphas: Floats,
) -> Floats:  # fmt: skip
    """Each row is made dense in turn, so that steps are added in the same order as for a matrix: equal to the bit."""
    scores, row = np.zeros(starts.shape[0] - 1), np.zeros(width, np.float32)
    for i in range(starts.shape[0] - 1):
        for at in range(starts[i], starts[i + 1]):
            row[columns[at]] = values[at] if values.shape[0] else np.float32(1.0)
        for t in range(features.shape[0]):
            if row[features[t]] > thresholds[t]:
                scores[i] += alphas[t]
        for at in range(starts[i], starts[i + 1]):
            row[columns[at]] = np.float32(0.0)
    return scores


def step_scores(X: Features, features: Integers, thresholds: Floats, alphas: Floats) -> Floats:
    """Sums of steps: Σ_t α_t [x_{f_t} > θ_t] for each row.

    >>> X = Sparse.from_matrix(np.array([[0.0, 2.0], [0.0, 0.0]], np.float32))
    >>> step_scores(X, np.array([1, 0]), np.array([1.0, -0.5]), np.array([4.0, 1.0]))
    array([5., 1.])
    """
    if isinstance(X, Sparse):
        return _score_rows(X.starts, X.columns, X.values, X.width, features, thresholds, alphas)
    return _score_matrix(X, features, thresholds, alphas)
