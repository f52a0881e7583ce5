"""RankBoost on parts: each part sums the weights of its documents between global cut points, and the sums are added.

A part stores one byte for each feature of each document, the bin between two cut points. In a round each worker adds
the sums of its neighbouring parts, and sends features × cut points sums for each shard. Both are added in the order of
the parts, so that the result depends on parts and shards, and not on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch.cut_points import ColumnBins, bin_by_cuts, find_column_bins
from ranktron.learners.batch.histograms import BINS, Codes, sum_bins
from ranktron.learners.batch.rank_boost import add_up, fill_potentials, pair_shares, weigh_threshold
from ranktron.learners.batch.thresholds import step_scores
from ranktron.types import Floats, Integers, State

_TIES = 1e-11
"""Sums that differ by less, in units of the weight of all pairs, differ by rounding: the first threshold is taken."""


class BinStep(NamedTuple):
    """A threshold: the number of a cut point of a feature, and the weight of the documents above it."""

    feature: int
    cut: int
    alpha: float


@dataclass(eq=False)
class BinnedQueries:
    """The queries of a part, with the bin of each document in each feature."""

    codes: Codes  # features × documents
    labels: Floats
    offsets: Integers
    shares: Floats  # the weight of a pair of each query
    start: Floats  # scores before the first step
    last: tuple[tuple[BinStep, ...], Floats] = field(repr=False)  # the latest steps and their scores, to continue from

    def scores(self, steps: tuple[BinStep, ...]) -> Floats:
        """The scores after these steps."""
        done, scores = self.last
        if steps[: len(done)] != done:
            done, scores = (), self.start
        scores = scores.copy()
        for feature, cut, alpha in steps[len(done) :]:
            scores[self.codes[feature] <= cut] += alpha
        self.last = steps, scores
        return scores


class PartWeights(NamedTuple):
    """The weight of the pairs of a part, and its number of queries of one grade."""

    pairs: float
    idle: int


def describe_part(rounds: Rounds, balance: str) -> tuple[ColumnBins, PartWeights]:
    """The bins of a part's columns, and the weights of its pairs."""
    if isinstance(rounds.X, Sparse):
        raise DataError(
            "on parts RankBoost keeps a byte for each feature of each document, and takes no sparse features: train it "
            "on one machine, or on dense files"
        )
    shares, counts = pair_shares(rounds, balance)
    return find_column_bins(rounds.X), PartWeights(float(shares @ counts), int(np.count_nonzero(counts == 0.0)))


def bin_queries(rounds: Rounds, balance: str, cuts: Floats, start: State) -> BinnedQueries:
    """The queries of a part in bins, with the scores of the thresholds to continue from."""
    codes = np.empty((rounds.n_features, len(rounds.labels)), np.uint8)
    bin_by_cuts(rounds.X, cuts, codes)
    scores = step_scores(rounds.X, *(np.asarray(start[name]) for name in ("features", "thresholds", "alphas")))
    return BinnedQueries(codes, rounds.labels, rounds.offsets, pair_shares(rounds, balance)[0], scores, ((), scores))


def sum_weights(parts: Sequence[BinnedQueries], scale: float, steps: tuple[BinStep, ...]) -> tuple[float, Floats]:
    """The weight of all pairs of parts after the steps, and the sum of the document weights in each bin."""
    return add_sums([_sum_part(queries, scale, steps) for queries in parts])


def add_sums(parts: Sequence[tuple[float, Floats]]) -> tuple[float, Floats]:
    """Adds up weights and sums, in order."""
    potential, total = parts[0]
    for more, sums in parts[1:]:
        potential, total = potential + more, total + sums
    return potential, total


def _sum_part(queries: BinnedQueries, scale: float, steps: tuple[BinStep, ...]) -> tuple[float, Floats]:
    n = len(queries.labels)
    weights, upper, sums = np.empty(n), np.empty(n), np.empty((len(queries.codes), BINS))
    shares, scores = queries.shares * scale, queries.scores(steps)
    lists = len(queries.offsets) - 1
    fill_potentials(scores, queries.labels, queries.offsets, shares, np.ones(n), weights, upper, 0, lists)
    sum_bins(queries.codes, weights, sums, 0, len(sums))
    return add_up(upper), sums


@dataclass(eq=False)
class PartsBoosting:
    """Boosting on parts: as `Boosting`, with thresholds at the cut points.

    Parameters
    ----------
    each : callable
        Calls a function of the parts of each shard, a list of queries in bins, and returns the results in order.
    cuts : array
        The cut points of each feature, the highest first.
    described : sequence of PartWeights
        The weights of the pairs of each part.

    Examples
    --------
    >>> from ranktron.learners.batch.cut_points import merge_bins
    >>> lists = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> bins, weights = describe_part(lists, "pair")
    >>> cuts, nothing = merge_bins([bins]), dict.fromkeys(("features", "thresholds", "alphas"), np.zeros(0, np.int64))
    >>> binned = bin_queries(lists, "pair", cuts, nothing)
    >>> boosting = PartsBoosting(lambda function, *arguments: [function([binned], *arguments)], cuts, [weights])
    >>> boosting.step()
    True
    >>> boosting.features, boosting.thresholds
    ([0], [1.5])
    """

    each: Callable[..., list[Any]]
    cuts: Floats
    described: Sequence[PartWeights]
    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    potential: float = 1.0
    steps: tuple[BinStep, ...] = ()

    def __post_init__(self) -> None:
        self._scale = 1.0 / max(sum(part.pairs for part in self.described), 1e-300)
        self.idle = sum(part.idle for part in self.described)

    def step(self) -> bool:
        """Adds one more threshold; False if none would help."""
        self.potential, total = add_sums(self.each(sum_weights, self._scale, self.steps))
        gathered = np.where(np.isfinite(self.cuts), np.cumsum(total, axis=1)[:, :-1], 0.0)
        sizes = np.abs(gathered)
        best = int(np.flatnonzero(sizes >= sizes.max() - _TIES * self.potential)[0])
        feature, cut = divmod(best, self.cuts.shape[1])
        alpha = weigh_threshold(float(gathered[feature, cut]), self.potential)
        if alpha is None:
            return False
        self.add(feature, float(self.cuts[feature, cut]), alpha)
        self.steps = (*self.steps, BinStep(feature, cut, alpha))
        return True

    def add(self, feature: int, threshold: float, alpha: float) -> None:
        """Notes a thresholded feature; those of `step` are sent to the parts with the next one."""
        self.features.append(int(feature))
        self.thresholds.append(float(threshold))
        self.alphas.append(float(alpha))
