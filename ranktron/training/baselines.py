"""Baselines: a random order, and the best single feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import Sparse
from ranktron.metrics import Metric, evaluate

FREQUENT = 100
DRAWS = 10


class BestFeature(NamedTuple):
    """A single feature used as the score, ascending (+1) or descending (-1)."""

    column: int
    sign: float
    means: Mapping[str, float]


def random_means(rounds: Rounds, metrics: Sequence[Metric], seed: int = 0) -> dict[str, float]:
    """The mean metrics of random orders, over several draws.

    >>> from ranktron.metrics import metric
    >>> lists = Rounds.from_arrays([[0.0]] * 4, [1, 0, 1, 0], group=[2, 2])
    >>> 0.63 < random_means(lists, [metric("ndcg@10")])["ndcg@10"] < 1.0
    True
    """
    rng = np.random.default_rng(seed)
    draws = [evaluate(rng.random(len(rounds.labels)), rounds, metrics).means for _ in range(DRAWS)]
    return {str(m): float(np.mean([draw[str(m)] for draw in draws])) for m in metrics}


def best_feature(rounds: Rounds, metrics: Sequence[Metric], watch: Callable[[int], None] | None = None) -> BestFeature:
    """The single feature, up or down, that is best by the first metric *on these data*: an optimistic baseline.

    Of sparse features only the most frequent ones are tried.
    """
    first = metrics[0]
    better = 1.0 if first.higher_is_better else -1.0
    best: BestFeature | None = None
    for column in _candidates(rounds):
        feature = rounds.X[:, column].astype(np.float64)
        if feature.min() < feature.max():
            for sign in (1.0, -1.0):
                means = evaluate(sign * feature, rounds, metrics).means
                if best is None or better * (means[str(first)] - best.means[str(first)]) > 0.0:
                    best = BestFeature(column, sign, means)
        if watch is not None:
            watch(column)
    if best is None:  # every feature is constant: all orders are ties
        best = BestFeature(0, 1.0, evaluate(np.zeros(len(rounds.labels)), rounds, metrics).means)
    return best


def _candidates(rounds: Rounds) -> Sequence[int]:
    if not isinstance(rounds.X, Sparse):
        return range(rounds.n_features)
    uses = np.bincount(rounds.X.copy().columns, minlength=rounds.n_features)
    frequent: list[int] = np.argsort(-uses, kind="stable")[:FREQUENT].tolist()
    return frequent
