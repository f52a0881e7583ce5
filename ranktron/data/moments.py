"""Mean, standard deviation, minimum and maximum of features, of a whole table or part by part.

Sums either continue from part to part in the order of the rows, which gives the same bits as all rows at once, or are
computed for each part and added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Features, Floats, Matrix


class Moments(NamedTuple):
    """The moments and the range of each feature."""

    mean: Floats
    deviation: Floats
    low: Floats
    high: Floats


class FeatureSums(NamedTuple):
    """Sums over rows: of values, and of squares, about the mean for dense rows and about 0 for sparse ones.

    >>> first = sum_features(np.array([[1.0], [2.0]], np.float32))
    >>> sum_features(np.array([[6.0]], np.float32), first).total
    array([9.])
    """

    rows: int
    total: Floats
    low: Floats
    high: Floats
    squares: Floats

    @property
    def mean(self) -> Floats:
        return self.total / self.rows

    def __add__(self, other: FeatureSums) -> FeatureSums:  # type: ignore[override]
        """Adds the sums of two parts."""
        return FeatureSums(
            self.rows + other.rows,
            self.total + other.total,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.squares + other.squares,
        )

    def moments(self, sparse: bool = False) -> Moments:
        """The moments, from the sums of both passes."""
        if sparse:
            variance = np.maximum(self.squares / self.rows - self.mean**2, 0.0)
            return Moments(self.mean, np.sqrt(variance), self.low, self.high)
        return Moments(self.mean, np.sqrt(self.squares / self.rows), self.low, self.high)


@jit
def _add_rows(X: Matrix, total: Floats, low: Floats, high: Floats) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            total[j] += x
            low[j] = x if x < low[j] else low[j]  # `min` takes longer to compile
            high[j] = x if x > high[j] else high[j]


@jit
def _add_squares(X: Matrix, mean: Floats, squares: Floats) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            distance = X[i, j] - mean[j]
            squares[j] += distance * distance


def sum_features(X: Features, before: FeatureSums | None = None) -> FeatureSums:
    """The first pass: sums and ranges of these rows, added to those of previous rows."""
    width = X.shape[1]
    none = FeatureSums(0, np.zeros(width), np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width))
    count, *arrays = none if before is None else before
    total, low, high, squares = (array.copy() for array in arrays)
    if not isinstance(X, Sparse):
        _add_rows(X, total, low, high)
        return FeatureSums(count + len(X), total, low, high, squares)
    own = X.trimmed()
    values = own.written_values().astype(np.float64)
    np.add.at(total, own.columns, values)
    np.add.at(squares, own.columns, values**2)
    full = np.bincount(own.columns, minlength=width) == len(X)  # any other feature is 0 somewhere
    low, high = (np.where(full, bound, limit(bound, 0.0)) for bound, limit in ((low, np.minimum), (high, np.maximum)))
    np.minimum.at(low, own.columns, values)
    np.maximum.at(high, own.columns, values)
    return FeatureSums(count + len(X), total, low, high, squares)


def sum_squares(X: Features, mean: Floats, before: Floats | None = None) -> Floats:
    """The second pass over dense rows: squared distances from the mean, added to those of previous rows."""
    squares = np.zeros(X.shape[1]) if before is None else before.copy()
    if not isinstance(X, Sparse):
        _add_squares(X, mean, squares)
    return squares


def moments(X: Features) -> Moments:
    """The moments of all rows.

    >>> moments(np.array([[1.0], [3.0]], np.float32))
    Moments(mean=array([2.]), deviation=array([1.]), low=array([1.]), high=array([3.]))
    """
    sums = sum_features(X)
    if isinstance(X, Sparse):
        return sums.moments(sparse=True)
    return sums._replace(squares=sum_squares(X, sums.mean)).moments()
