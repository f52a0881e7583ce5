"""Piecewise linear functions of single features: a value is interpolated between the two nearest knots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.maps.bins import (
    MAX_BINS,
    SAMPLE,
    check_edges,
    column_list,
    find_cuts,
    find_places,
    heights,
    pad_cuts,
)
from ranktron.data.maps.protocols import Shape, check_input, sample_documents
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix
from ranktron.types.validation import check_count


@jit
def _shares(
    X: Matrix, edges: Matrix, low: Matrix, high: Matrix, firsts: Integers, columns: Columns, values: Values
) -> None:
    d = X.shape[1]
    places = np.empty(d, np.uint32)
    for i in range(X.shape[0]):
        find_places(X[i], edges, places)
        for j in range(d):
            value = min(max(X[i, j], low[j]), high[j])
            cell, last = np.int64(places[j]), firsts[j + 1] - firsts[j] - 2
            left = low[j] if cell == 0 else edges[j, cell - 1]
            right = high[j] if cell == last else edges[j, cell]
            share = (value - left) / (right - left) if right > left else np.float32(0.0)
            at = 2 * (i * d + j)
            columns[at], columns[at + 1] = firsts[j] + cell, firsts[j] + cell + 1
            values[at], values[at + 1] = np.float32(1.0) - share, share


@dataclass(frozen=True)
class LinearBins:
    """Places knots at the quantiles of each feature: a linear ranker becomes a sum of piecewise linear functions.

    A row of d features becomes 2d entries: a value a third of the way between two knots has the entry 2/3 for the first
    and 1/3 for the second. Values outside the range of the training data are clipped to it.

    Parameters
    ----------
    count : int >= 1
        The maximum number of pieces of a feature's curve.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0], [2.0], [4.0]], [0, 0, 1, 0])
    >>> fitted = LinearBins(2).fit(rounds)
    >>> fitted.n_outputs, fitted(np.array([[1.5], [3.0], [9.0]], np.float32)).dense().tolist()
    (3, [[0.25, 0.75, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
    """

    count: int = 32

    def __post_init__(self) -> None:
        check_count(self.count, "the number of pieces", 1)
        if self.count > MAX_BINS:
            raise DataError(f"at most {MAX_BINS} pieces a feature, not {self.count}")

    def fit(self, rounds: Rounds) -> FittedLinearBins:
        sample = sample_documents(rounds, SAMPLE)
        low, high = sample.min(axis=0), sample.max(axis=0)
        cuts = [find_cuts(sample[:, j], self.count) for j in range(sample.shape[1])]
        inner = [c[c < top] for c, top in zip(cuts, high, strict=True)]
        return FittedLinearBins(self.count, pad_cuts(inner), low, high)


@dataclass(frozen=True, eq=False)
class FittedLinearBins:
    """Knots: the lowest and highest value of each feature, and the edges in between."""

    count: int
    edges: Matrix
    low: Matrix
    high: Matrix

    @property
    def name(self) -> str:
        return f"bins-linear:{self.count}"

    @property
    def n_inputs(self) -> int:
        return len(self.edges)

    @property
    def firsts(self) -> Integers:
        """The first column of each feature, and the end of the last one."""
        knots = np.isfinite(self.edges).sum(axis=1) + 2
        return np.concatenate(([0], np.cumsum(knots))).astype(np.int64)

    @property
    def n_outputs(self) -> int:
        return int(self.firsts[-1])

    def __call__(self, X: Matrix) -> Sparse:
        X = check_input(X, self.n_inputs)
        columns, values = column_list(2 * X.size, self.n_outputs), np.empty(2 * X.size, np.float32)
        _shares(X, self.edges, self.low, self.high, self.firsts, columns, values)
        starts = np.arange(0, 2 * X.size + 1, 2 * X.shape[1], dtype=np.int64)
        return Sparse(starts, columns, values, self.n_outputs)

    def contributions(self, X: Matrix, w: Floats) -> Floats:
        """The contribution of each feature to each score (documents × features)."""
        mapped = self(X)
        found: Floats = (w[mapped.columns] * mapped.values).reshape(*X.shape, 2).sum(axis=2)
        return found

    def shape(self, feature: int, w: Floats) -> Shape:
        inner = self.edges[feature][np.isfinite(self.edges[feature])]
        knots = np.concatenate(([self.low[feature]], inner, [self.high[feature]])).astype(np.float64)
        first = self.firsts[feature]
        return Shape(knots, w[first : first + len(knots)], steps=False)

    def spans(self, w: Floats) -> Floats:
        """The largest difference that each feature can make to a score: the height of its curve."""
        return heights(w, self.firsts)

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "edges": self.edges, "low": self.low, "high": self.high}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedLinearBins:
        edges, low, high = (np.array(state[key], np.float32) for key in ("edges", "low", "high"))
        check_edges(edges)
        if not low.shape == high.shape == edges.shape[:1] or not np.isfinite([low, high]).all():
            raise DataError("the model holds knots that do not fit together")
        return cls(int(state["count"]), edges, low, high)
