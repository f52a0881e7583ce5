"""Baselines: a random order, and the best single feature."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import Sparse
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds

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
    draws = [evaluate_rounds(rounds, rng.random(len(rounds.labels)), metrics).means for _ in range(DRAWS)]
    return {str(m): float(np.mean([draw[str(m)] for draw in draws])) for m in metrics}


def best_feature(rounds: Rounds, metrics: Sequence[Metric], watch: Callable[[int], None] | None = None) -> BestFeature:
    """The best single feature, ascending or descending, by the first metric *on these data*: an optimistic baseline.

    Of sparse features only the most frequent ones are tried.
    """
    better = 1.0 if metrics[0].higher_is_better else -1.0

    def measure(column: int) -> tuple[float, float] | None:
        """The first metric of a feature upwards and downwards; None if the feature is constant."""
        feature = rounds.X[:, column].astype(np.float64)
        if feature.min() == feature.max():
            return None
        up, down = (evaluate_rounds(rounds, sign * feature, metrics[0]).means[str(metrics[0])] for sign in (1.0, -1.0))
        return up, down

    best, column, sign = -np.inf, None, 1.0
    candidates = _candidates(rounds)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for candidate, values in zip(candidates, pool.map(measure, candidates), strict=True):
            for direction, value in zip((1.0, -1.0), values or (), strict=False):
                if better * value > best:
                    best, column, sign = better * value, candidate, direction
            if watch is not None:
                watch(candidate)
    if column is None:  # every feature is constant: all orders are ties
        return BestFeature(0, 1.0, evaluate_rounds(rounds, np.zeros(len(rounds.labels)), metrics).means)
    return BestFeature(
        column, sign, evaluate_rounds(rounds, sign * rounds.X[:, column].astype(np.float64), metrics).means
    )


def _candidates(rounds: Rounds) -> Sequence[int]:
    if not isinstance(rounds.X, Sparse):
        return range(rounds.n_features)
    uses = np.bincount(rounds.X.copy().columns, minlength=rounds.n_features)
    frequent: list[int] = np.argsort(-uses, kind="stable")[:FREQUENT].tolist()
    return frequent
