"""The maximum-margin problem on some queries, prepared for all solvers.

    min_w  ½ |w|² + C/m Σ_i v_i L(w, S^i)     m = Σ v_i of the queries with pairs; others are ignored

v_i is the weight of a query, by default 1: a query of weight 2 counts like two queries. In the average over the pairs
of a query a document of weight 2 counts like two documents.

A dual point has a number g for every document, of which only two images matter: w = Σ g x and the margin Σ g y. Its
value is Σ g y − ½ |w|², never more than the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import FeatureArrays, add_one_row, as_arrays, dot_rows, slice_rows
from ranktron.kernels.grades import grades
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import copy_into
from ranktron.learners.batch.rank_mm_losses import loss_code, vertex
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.types import Floats, Integers


@jit
def _grade_lists(labels: Floats, offsets: Integers, codes: Integers, counts: Integers) -> None:
    for q in range(offsets.shape[0] - 1):
        found, counts[q] = grades(labels[offsets[q] : offsets[q + 1]])
        copy_into(codes[offsets[q] : offsets[q + 1]], found)


@jit
def scores_minus_labels(X: FeatureArrays, w: Floats, labels: Floats) -> Floats:
    """The a = s − y of a query, as its loss takes it."""
    a = dot_rows(X, w)
    for i in range(a.shape[0]):
        a[i] -= labels[i]
    return a


class GradedLists(NamedTuple):
    """The queries for kernels: features, labels, offsets, grades, and the number of grades of each query."""

    X: FeatureArrays
    labels: Floats
    offsets: Integers
    codes: Integers
    counts: Integers


@jit
def _sum_of_losses(loss: int, lists: GradedLists, weights: Floats, parts: Floats, w: Floats) -> float:
    X, labels, offsets, codes, counts = lists
    total = 0.0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        if counts[q] > 1:
            a = scores_minus_labels(slice_rows(X, start, stop), w, labels[start:stop])
            g = np.empty(stop - start)
            total += weights[q] * vertex(loss, a, codes[start:stop], counts[q], parts[start:stop], g)
    return total


@jit
def carry(X: FeatureArrays, labels: Floats, g: Floats, factor: float, direction: Floats) -> float:
    """Adds factor · Σ g x to a direction and returns factor · Σ g y."""
    margin = 0.0
    for i in range(g.shape[0]):
        share = factor * g[i]
        if share != 0.0:
            margin += share * labels[i]
            add_one_row(X, i, share, direction)
    return margin


@dataclass(frozen=True, eq=False)
class RankMMProblem:
    """The queries, a loss and C, with what all solvers need: grades, bounds, pairs and the primal value.

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0], [3.0]], [0, 1])
    >>> RankMMProblem(lists, "average", C=2.0).primal(np.array([0.25]))
    1.03125
    """

    rounds: Rounds
    loss: str = "average"
    C: float = 1.0
    weights: Floats | None = None
    document_weights: Floats | None = None
    shares: Floats = field(init=False, repr=False)
    parts: Floats = field(init=False, repr=False)
    codes: Integers = field(init=False, repr=False)
    counts: Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.C < float("inf"):
            raise DataError(f"C must be a number above 0, not {self.C}")
        loss_code(self.loss)  # refuses what is none
        codes, counts = np.empty(len(self.rounds.labels), np.int64), np.empty(len(self.rounds), np.int64)
        _grade_lists(self.rounds.labels, self.rounds.offsets, codes, counts)
        shares = np.ones(len(self.rounds)) if self.weights is None else self.weights
        parts = np.ones(len(codes)) if self.document_weights is None else self.document_weights
        found = {"codes": codes, "counts": counts, "shares": shares, "parts": parts}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def kernel(self) -> int:
        """The code of the loss."""
        return loss_code(self.loss)

    @property
    def m(self) -> int:
        """The number of queries with pairs."""
        return int(np.count_nonzero(self.counts > 1))

    @property
    def bound(self) -> float:
        """The largest sum of the dual variables of a query of weight 1: C/m."""
        return self.C / (float(self.shares[self.counts > 1].sum()) or 1.0)

    @property
    def bounds(self) -> Floats:
        """The largest sum of the dual variables of each query: C v_i/m."""
        bounds: Floats = self.bound * self.shares
        return bounds

    @property
    def arrays(self) -> GradedLists:
        """The queries for kernels."""
        return GradedLists(as_arrays(self.rounds.X), self.rounds.labels, self.rounds.offsets, self.codes, self.counts)

    def columns(self) -> Pairs:
        """The pairs by their lower document: those preferred to it, one after the other."""
        return Pairs.of(-self.rounds.labels, self.rounds.offsets)

    def primal(self, w: Floats) -> float:
        """½ |w|² + C/m Σ_i v_i L(w, S^i)."""
        return 0.5 * float(w @ w) + self.bound * _sum_of_losses(self.kernel, self.arrays, self.shares, self.parts, w)

    def fingerprint(self) -> int:
        """A checksum that identifies the queries."""
        X, found = self.rounds.X, 0
        features = as_arrays(X.trimmed()) if isinstance(X, Sparse) else (X,)
        weights = [each for each in (self.weights, self.document_weights) if each is not None]
        for array in (self.rounds.offsets, self.rounds.labels, *features, *weights):
            found = crc32(np.ascontiguousarray(array).data, found)
        return found


def bytes_held(rounds: Rounds, loss: str, step: str, corners: int) -> int:
    """The memory that the dual variables of these queries need, in bytes.

    The exact step stores vectors of features per query; the paper's steps one 32-bit number per pair, or for the
    maximum one number per document.

    >>> lists = Rounds.from_arrays([[1.0], [3.0], [2.0]], [0, 1, 2])
    >>> [bytes_held(lists, loss, "paper", 20) for loss in ("average", "max", "max-average")]
    [12, 24, 12]
    """
    if step == "exact":
        return 8 * len(rounds) * (corners + 1) * (rounds.n_features + 2)
    if loss == "max":
        return 8 * len(rounds.labels)
    return 4 * len(Pairs.of(rounds.labels, rounds.offsets))
