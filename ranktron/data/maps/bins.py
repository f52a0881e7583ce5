"""Quantile bins: each feature becomes a one-hot encoding of the bin that its value falls into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.maps.protocols import Shape, check_input, sample_documents
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr import ONES, Columns
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix
from ranktron.types.validation import check_count

SAMPLE = 50_000
"""The number of documents from which quantiles are estimated."""

MAX_BINS = 1 << 12

Places = npt.NDArray[np.uint32]


@jit
def find_places(values: Matrix, edges: Matrix, places: Places) -> None:
    """For each feature of one row: the number of its 2^p − 1 edges (padded with infinity) at or below the value.

    A branch-free binary search in all features at the same time, p steps (Khuong and Morin, Array Layouts for
    Comparison-Based Searching, 2017). Searching the features one after the other would
    mispredict every other branch and take twenty times as long.
    """
    flat, length = edges.reshape(-1), np.uint64(edges.shape[1])
    for j in range(values.shape[0]):
        places[j] = 0
    half = np.uint32((edges.shape[1] + 1) >> 1)
    while half > 0:
        for j in range(values.shape[0]):
            edge = flat[np.uint64(j) * length + np.uint64(places[j] + half - np.uint32(1))]
            places[j] += half if values[j] >= edge else np.uint32(0)
        half >>= np.uint32(1)


@jit
def _columns(X: Matrix, edges: Matrix, firsts: Integers, columns: Columns) -> None:
    d = X.shape[1]
    places = np.empty(d, np.uint32)
    for i in range(X.shape[0]):
        find_places(X[i], edges, places)
        row = columns[i * d : (i + 1) * d]
        for j in range(d):
            row[j] = np.int32(firsts[j]) + np.int32(places[j])


def column_list(size: int, width: int) -> Columns:
    """An array for `size` column indices, of two bytes each if possible, because memory bandwidth limits a pass."""
    return np.empty(size, np.uint16) if width <= 1 << 16 else np.empty(size, np.int32)


def find_cuts(values: Matrix, count: int) -> Matrix:
    """The edges that divide a feature into at most `count` bins of equal frequency; frequent values have their own bin.

    Each edge is the smallest value of the bin above it.

    >>> find_cuts(np.array([0, 0, 0, 0, 0, 0, 1, 2, 3, 4], np.float32), 4).tolist()
    [1.0, 2.0]
    >>> find_cuts(np.array([5, 7, 5, 6], np.float32), 4).tolist()
    [6.0, 7.0]
    """
    ordered = np.sort(values)
    distinct = ordered[np.flatnonzero(np.append(True, ordered[1:] > ordered[:-1]))]
    if len(distinct) <= count:
        return distinct[1:].astype(np.float32)
    quantiles = ordered[(np.arange(1, count) * len(ordered)) // count]
    frequent = quantiles[1:][quantiles[1:] == quantiles[:-1]]
    after = np.searchsorted(distinct, frequent) + 1
    cuts = np.concatenate([quantiles, distinct[after[after < len(distinct)]]])
    return np.unique(cuts[cuts > distinct[0]]).astype(np.float32)


def heights(w: Floats, firsts: Integers) -> Floats:
    """The range of the weights of each feature's columns.

    >>> heights(np.array([1.0, 4.0, 2.0, 7.0, 5.0]), np.array([0, 3, 5]))
    array([3., 2.])
    """
    found: Floats = np.maximum.reduceat(w, firsts[:-1]) - np.minimum.reduceat(w, firsts[:-1])
    return found


def pad_cuts(cuts: list[Matrix]) -> Matrix:
    """The edges of all features as one table, padded with infinity."""
    longest = max(len(c) for c in cuts)
    edges = np.full((len(cuts), (1 << max(longest.bit_length(), 1)) - 1), np.inf, np.float32)
    for j, c in enumerate(cuts):
        edges[j, : len(c)] = c
    return edges


@dataclass(frozen=True)
class Bins:
    """Divides each feature into bins at its quantiles: a linear ranker becomes a sum of step functions.

    A row of d features becomes a sparse row with d entries of 1. Frequent values, such as 0, have a bin of their own.
    The resulting additive model can be drawn, one curve per feature.

    Weights of neighbouring bins are independent and take thousands of queries to learn. Use `LinearBins` for fewer.

    Parameters
    ----------
    count : int >= 2
        The maximum number of bins of a feature.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 0])
    >>> fitted = Bins(2).fit(rounds)
    >>> fitted.n_outputs, fitted(rounds.X).columns.tolist()
    (2, [0, 0, 1, 1])
    """

    count: int = 32

    def __post_init__(self) -> None:
        check_count(self.count, "the number of bins", 2)
        if self.count > MAX_BINS:
            raise DataError(f"at most {MAX_BINS} bins a feature, not {self.count}")

    def fit(self, rounds: Rounds) -> FittedBins:
        sample = sample_documents(rounds, SAMPLE)
        return FittedBins(self.count, pad_cuts([find_cuts(sample[:, j], self.count) for j in range(sample.shape[1])]))


@dataclass(frozen=True, eq=False)
class FittedBins:
    """Bins with their edges."""

    count: int
    edges: Matrix

    @property
    def name(self) -> str:
        return f"bins:{self.count}"

    @property
    def n_inputs(self) -> int:
        return len(self.edges)

    @property
    def firsts(self) -> Integers:
        """The first column of each feature, and the end of the last one."""
        parts = np.isfinite(self.edges).sum(axis=1) + 1
        return np.concatenate(([0], np.cumsum(parts))).astype(np.int64)

    @property
    def n_outputs(self) -> int:
        return int(self.firsts[-1])

    def __call__(self, X: Matrix) -> Sparse:
        X = check_input(X, self.n_inputs)
        columns = column_list(X.size, self.n_outputs)
        _columns(X, self.edges, self.firsts, columns)
        starts = np.arange(0, X.size + 1, X.shape[1], dtype=np.int64)
        return Sparse(starts, columns, ONES, self.n_outputs)

    def contributions(self, X: Matrix, w: Floats) -> Floats:
        """The contribution of each feature to each score (documents × features)."""
        found: Floats = w[self(X).columns].reshape(X.shape)
        return found

    def shape(self, feature: int, w: Floats) -> Shape:
        edges = self.edges[feature][np.isfinite(self.edges[feature])].astype(np.float64)
        first = self.firsts[feature]
        return Shape(edges, w[first : first + len(edges) + 1], steps=True)

    def spans(self, w: Floats) -> Floats:
        """The largest difference that each feature can make to a score: the height of its curve."""
        return heights(w, self.firsts)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "edges": self.edges}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedBins:
        edges = np.array(state["edges"], np.float32)
        check_edges(edges)
        return cls(int(state["count"]), edges)


def check_edges(edges: Matrix) -> None:
    """Raises an error for edges that no map has written."""
    fits = edges.ndim == 2 and not (edges.shape[1] + 1) & edges.shape[1]
    # a search among unsorted edges could end outside the columns
    if not fits or not (edges[:, 1:] >= edges[:, :-1]).all() or not (edges > -np.inf).all():
        raise DataError("the model holds bins whose edges do not fit together")
