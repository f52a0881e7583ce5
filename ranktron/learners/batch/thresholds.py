"""Thresholds on single features: finding the best one for given document weights, and scoring with sums of them.

A threshold of a feature divides the documents into those above it and the others. For sparse rows only the entries are
visited: all documents without an entry in a column have the value 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.kernels.blocks import Blocks
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.learners.batch.histograms import BINS, Places, bin_columns, sum_bins
from ranktron.types import Features, Floats, Integers, Matrix

_GROWTH = 1.5
"""Sums of absolute weights are summed again when a weight has grown by more than that."""


class Threshold(NamedTuple):
    """A feature, a threshold between two of its values, and the sum of the weights of all documents above it."""

    feature: int
    value: float
    gathered: float


class Thresholds(Protocol):
    """All thresholds of some documents' features."""

    def best(self, weights: Floats, /) -> Threshold: ...


@jit
def _best(X: Matrix, orders: Places, pi: Floats, features: Integers) -> tuple[int, float, float]:
    """The best threshold of some features; of equal ones the first feature's, and of these the highest."""
    feature, threshold, best = 0, np.inf, 0.0
    for f in features:
        gathered = 0.0
        for at in range(X.shape[0] - 1):
            i, below = orders[f, at], orders[f, at + 1]
            gathered += pi[i]
            if abs(gathered) > abs(best) and X[i, f] > X[below, f]:
                feature, best = f, gathered
                threshold = 0.5 * (np.float64(X[i, f]) + np.float64(X[below, f]))
    return feature, threshold, best


@jit
def _best_of_borders(ends: Places, sums: Floats, found: Floats) -> float:
    """Fills for each feature the largest absolute sum above the end of a bin; returns the largest of all."""
    best, n = 0.0, ends[0, -1]
    for f in range(sums.shape[0]):
        gathered, found[f] = 0.0, 0.0
        for b in range(BINS):
            if ends[f, b] == n:
                break
            gathered += sums[f, b]
            found[f] = max(found[f], abs(gathered))
        best = max(best, found[f])
    return best


@jit
def _search_bins(
    X: Matrix, orders: Places, ends: Places, pi: Floats, sums: Floats, loads: Floats, least: float, found: Floats,
    first: int, last: int,
) -> None:  # fmt: skip
    """Raises what was found at borders of bins to what is within them, for bins in which a sum may be `least` or more.

    A sum g within a bin is c + x = c′ − y, where c and c′ are the sums at its ends, and |x| + |y| is at most the sum of
    absolute weights in it, its load: |g| ≤ (|c| + |c′| + load)/2.
    """
    n = X.shape[0]
    for f in range(first, last):
        start, before = 0, 0.0
        for b in range(BINS):
            end, after = ends[f, b], before + sums[f, b]
            if 0.5 * (abs(before) + abs(after) + loads[f, b]) >= least and end > start + 1:
                gathered = before
                for at in range(start, end - 1):
                    i, below = orders[f, at], orders[f, at + 1]
                    gathered += pi[i]
                    if abs(gathered) > found[f] and X[i, f] > X[below, f]:
                        found[f] = abs(gathered)
            if end == n:
                break
            start, before = end, after


@jit
def _growth(pi: Floats, reference: Floats) -> float:
    """The largest absolute weight in units of its reference."""
    largest = 0.0
    for i in range(pi.shape[0]):
        largest = max(largest, abs(pi[i]) / reference[i])
    return largest


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


@dataclass(eq=False)
class MatrixThresholds:
    """The thresholds of a dense matrix; each column is sorted and divided into bins once.

    Sums over bins tell which features can have the best threshold, and where. These are gathered document by document,
    so that the result is that of gathering all of them, to the bit.

    >>> found = MatrixThresholds(np.array([[1.0], [3.0]], np.float32)).best(np.array([-0.5, 0.5]))
    >>> found.feature, found.value, found.gathered
    (0, 2.0, 0.5)
    """

    X: Matrix

    def __post_init__(self) -> None:
        n, width = self.X.shape
        self.orders, self._codes = np.empty((width, n), np.int32), np.empty((width, n), np.uint8)
        self._ends = np.empty((width, BINS), np.int32)
        self._sums, self._loads = np.zeros((2, width, BINS))
        self._blocks = Blocks(n * width)
        self._blocks(bin_columns, width, self.X, self.orders, self._codes, self._ends)
        self._reference = np.full(n, 1e-300)

    def best(self, weights: Floats) -> Threshold:
        """The threshold with the largest absolute sum of weights above it."""
        width, found = self.X.shape[1], np.empty(self.X.shape[1])
        self._blocks(sum_bins, width, self._codes, weights, self._sums)
        best = _best_of_borders(self._ends, self._sums, found)
        loads, total = self._bound_loads(weights)
        slack = 8.0 * len(weights) * 2.0**-53 * total  # more than two sums of the same numbers can differ by rounding
        asked = self.X, self.orders, self._ends, weights, self._sums, loads, best - slack, found
        self._blocks(_search_bins, width, *asked)
        return Threshold(*_best(self.X, self.orders, weights, np.flatnonzero(found >= found.max() - slack)))

    def _bound_loads(self, weights: Floats) -> tuple[Floats, float]:
        """What absolute weights sum to at most, in each bin and in all: earlier sums, while weights grow little."""
        growth = _growth(weights, self._reference)
        if not growth < _GROWTH:
            sizes = np.abs(weights)
            self._reference = np.maximum(sizes, sizes.mean() or 1.0)
            self._blocks(sum_bins, self.X.shape[1], self._codes, self._reference, self._loads)
            growth = 1.0
        return growth * self._loads, growth * float(self._reference.sum())


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
