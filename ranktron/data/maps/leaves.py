"""The leaves of small trees as features: a linear learner becomes a sum of a linear function and of trees.

The trees are grown by gradient boosting on squared errors, on half of the queries: each fits the residuals of the trees
before it. A linear learner then learns a weight for each leaf, and updates it online, unlike trees alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.maps.bins import Bins, column_list
from ranktron.data.maps.protocols import check_input, sample_documents
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix
from ranktron.types.validation import check_count

CANDIDATES = 32
"""The number of bins of a feature, between which trees split."""

MIN_DOCUMENTS = 20
"""The minimum number of documents on each side of a split."""

SHRINKAGE, RIDGE = 0.1, 1.0
SAMPLE = 200_000
MAX_TREES, MAX_DEPTH = 4096, 8

Codes = npt.NDArray[np.uint8]


@jit
def _sums(codes: Codes, residuals: Floats, nodes: Integers, first: int, sums: Floats, counts: Floats) -> None:
    """The sum of residuals and the number of documents for each node of a level, feature and bin."""
    sums[:], counts[:] = 0.0, 0.0
    for i in range(codes.shape[0]):
        a, value = nodes[i] - first, residuals[i]
        for j in range(codes.shape[1]):
            sums[a, j, codes[i, j]] += value
            counts[a, j, codes[i, j]] += 1.0


@jit
def _split(sums: Floats, counts: Floats) -> tuple[int, int]:
    """The feature and the first bin of the right side of the split with the least squared errors; bin 0: no split.

    Squared errors decrease by G²/(n + λ) of both sides minus that of the whole (Friedman, Greedy Function
    Approximation, 2001).
    """
    best, feature, cut = 1e-9, 0, 0
    for j in range(sums.shape[0]):
        total, n = sums[j].sum(), counts[j].sum()
        left, lefts = 0.0, 0.0
        for c in range(1, sums.shape[1]):
            left += sums[j, c - 1]
            lefts += counts[j, c - 1]
            if lefts < MIN_DOCUMENTS or n - lefts < MIN_DOCUMENTS:
                continue
            right = total - left
            gain = left * left / (lefts + RIDGE) + right * right / (n - lefts + RIDGE) - total * total / (n + RIDGE)
            if gain > best:
                best, feature, cut = gain, j, c
    return feature, cut


@jit
def _grow(codes: Codes, residuals: Floats, trees: int, depth: int, features: Integers, cuts: Integers) -> None:
    """Grows trees level by level and updates the residuals. Nodes are numbered as in a heap."""
    n, bins = codes.shape[0], int(codes.max()) + 1
    sums = np.empty((1 << (depth - 1), codes.shape[1], bins))
    counts = np.empty_like(sums)
    nodes = np.empty(n, np.int64)
    for t in range(trees):
        nodes[:] = 0
        for level in range(depth):
            first = (1 << level) - 1
            _sums(codes, residuals, nodes, first, sums, counts)
            for a in range(first + 1):
                features[t, first + a], cuts[t, first + a] = _split(sums[a], counts[a])
            for i in range(n):
                node = nodes[i]
                cut = cuts[t, node]
                nodes[i] = 2 * node + 1 + (cut > 0 and codes[i, features[t, node]] >= cut)
        first = (1 << depth) - 1
        means, sizes = np.zeros(first + 1), np.zeros(first + 1)
        for i in range(n):
            means[nodes[i] - first] += residuals[i]
            sizes[nodes[i] - first] += 1.0
        means /= sizes + RIDGE
        for i in range(n):
            residuals[i] -= SHRINKAGE * means[nodes[i] - first]


@jit
def _rows(X: Matrix, features: Integers, thresholds: Matrix, columns: Columns, values: Values) -> None:
    """The features, then a 1 for the leaf of each tree."""
    d, trees, inner = X.shape[1], features.shape[0], features.shape[1]
    for i in range(X.shape[0]):
        at = i * (d + trees)
        for j in range(d):
            columns[at + j], values[at + j] = j, X[i, j]
        for t in range(trees):
            node = 0
            while node < inner:
                node = 2 * node + 1 + (X[i, features[t, node]] >= thresholds[t, node])
            columns[at + d + t], values[at + d + t] = d + t * (inner + 1) + node - inner, 1.0


@dataclass(frozen=True)
class Leaves:
    """Adds the leaves of small trees, grown on a share of the queries: a 1 for each leaf that a document falls into.

    A row of d features becomes a sparse row of d + `trees` entries. The linear ranker stays a special case. Try this
    beside `LinearBins` where features interact, on hundreds of queries or more.

    Parameters
    ----------
    trees : int >= 1
        The number of trees.
    depth : int >= 1
        The number of splits on the way to a leaf: 2^depth leaves a tree.
    share : float, above 0 and at most 1
        The share of the queries on which trees are grown, drawn with `seed`. The trees overfit these, so that leaf
        weights learnt from them alone would be too large.
    seed : int
        Seed of the draw.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> rounds = Rounds.from_arrays(X, X[:, 0] * X[:, 1] > 0.0, group=[10] * 40)
    >>> fitted = Leaves(1, depth=2).fit(rounds)
    >>> fitted.n_outputs, fitted(rounds.X)[:1].dense().shape
    (6, (1, 6))

    References
    ----------
    He et al., Practical Lessons from Predicting Clicks on Ads at Facebook, 2014.
    """

    trees: int = 60
    depth: int = 3
    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.trees, "the number of trees", 1)
        check_count(self.depth, "the depth of the trees", 1)
        if self.trees > MAX_TREES or self.depth > MAX_DEPTH:
            raise DataError(f"at most {MAX_TREES} trees of depth {MAX_DEPTH}, not {self.trees} of {self.depth}")
        if not 0.0 < self.share <= 1.0:
            raise DataError(f"the share of queries to grow trees on must be above 0 and at most 1, not {self.share}")

    def fit(self, rounds: Rounds) -> FittedLeaves:
        sample_documents(rounds, SAMPLE)  # checks the features
        part = self._drawn(rounds)
        bins = Bins(CANDIDATES).fit(part)
        codes = bins(part.X).columns.reshape(part.X.shape).astype(np.int64) - bins.firsts[:-1]
        lengths = np.diff(part.offsets)
        residuals = part.labels - np.repeat(np.add.reduceat(part.labels, part.offsets[:-1]) / lengths, lengths)
        features, cuts = (np.zeros((self.trees, (1 << self.depth) - 1), np.int64) for _ in range(2))
        _grow(codes.astype(np.uint8), residuals, self.trees, self.depth, features, cuts)
        thresholds = np.where(cuts > 0, bins.edges[features, cuts - 1], np.float32(np.inf))
        return FittedLeaves(rounds.n_features, features, thresholds.astype(np.float32))

    def _drawn(self, rounds: Rounds) -> Rounds:
        """The queries to grow trees on, with some `SAMPLE` documents at most."""
        most = max(1, int(len(rounds) * min(1.0, SAMPLE / len(rounds.labels))))
        count = min(most, max(1, round(self.share * len(rounds))))
        return rounds[np.sort(np.random.default_rng(self.seed).permutation(len(rounds))[:count])]


@dataclass(frozen=True, eq=False)
class FittedLeaves:
    """Grown trees. The children of node a are 2a + 1, for values below its threshold, and 2a + 2."""

    n_inputs: int
    features: Integers
    thresholds: Matrix

    @property
    def name(self) -> str:
        return f"leaves:{len(self.features)}"

    @property
    def n_outputs(self) -> int:
        return self.n_inputs + self.features.size + len(self.features)

    def __call__(self, X: Matrix) -> Sparse:
        X = check_input(X, self.n_inputs)
        entries = self.n_inputs + len(self.features)
        columns, values = column_list(len(X) * entries, self.n_outputs), np.empty(len(X) * entries, np.float32)
        _rows(X, self.features, self.thresholds, columns, values)
        return Sparse(np.arange(0, len(columns) + 1, entries, dtype=np.int64), columns, values, self.n_outputs)

    def contributions(self, X: Matrix, w: Floats) -> Floats:
        """The contribution of each feature to each score: its weight times its value, and its share of the leaves."""
        leaves = self(X).columns.reshape(len(X), -1)[:, self.n_inputs :].astype(np.int64) - self.n_inputs
        shares = self._shares(w).reshape(-1, self.n_inputs)
        found: Floats = check_input(X, self.n_inputs) * w[: self.n_inputs]
        for tree in range(len(self.features)):
            found += shares[leaves[:, tree]]
        return found

    def spans(self, w: Floats) -> Floats:
        """The largest difference that each feature can make to a score by its trees, plus its weight."""
        found: Floats = np.abs(w[: self.n_inputs])
        for shares in self._shares(w):
            found = found + np.ptp(shares, axis=0)
        return found

    def _shares(self, w: Floats) -> Floats:
        """For each tree, leaf and feature: the contribution to a score of its splits on the leaf's path.

        The value of a node is the mean of the leaves below it, and a split contributes the difference between the
        child's and the node's (Saabas 2014). All features share the value of the root.
        """
        trees, inner = self.features.shape
        values = np.empty((trees, 2 * inner + 1))
        values[:, inner:] = w[self.n_inputs :].reshape(trees, inner + 1)
        for node in range(inner - 1, -1, -1):
            values[:, node] = (values[:, 2 * node + 1] + values[:, 2 * node + 2]) / 2.0
        shares = np.repeat(values[:, :1, None] / self.n_inputs, inner + 1, axis=1)
        shares = np.repeat(shares, self.n_inputs, axis=2)
        each = np.arange(trees)
        for leaf in range(inner + 1):
            node = leaf + inner
            while node:
                above = (node - 1) // 2
                shares[each, leaf, self.features[:, above]] += values[:, node] - values[:, above]
                node = above
        return shares

    def state(self) -> dict[str, Any]:
        return {"n_inputs": self.n_inputs, "features": self.features, "thresholds": self.thresholds}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedLeaves:
        features, thresholds = np.array(state["features"], np.int64), np.array(state["thresholds"], np.float32)
        n_inputs = int(state["n_inputs"])
        fits = features.ndim == 2 and features.shape == thresholds.shape and features.size > 0
        if not fits or (features.shape[1] + 1) & features.shape[1] or np.isnan(thresholds).any():
            raise DataError("the model holds trees whose nodes do not fit together")
        if not ((features >= 0) & (features < n_inputs)).all():  # otherwise a kernel would read beyond the row
            raise DataError("the model holds trees and features that do not fit together")
        return cls(n_inputs, features, thresholds)
