"""Sample weights: one number per row, which say how much each query counts, and within it each document."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Floats


class Weighed(NamedTuple):
    """The rows that weigh anything, what each query weighs, and what each document does beside those of its query.

    None where all weigh 1.
    """

    rounds: Rounds
    queries: Floats | None = None
    documents: Floats | None = None


def as_sample_weights(sample_weight: Any, n: int) -> Floats:
    """One weight for each of n rows."""
    try:
        weights = np.asarray(sample_weight, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must hold numbers: {error}") from None
    if weights.shape != (n,):
        raise DataError(f"sample_weight must hold one number per row: {n} rows, not {weights.shape}")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() > 0.0):
        raise DataError("sample_weight must hold finite numbers of at least 0, not all of them zero")
    return weights


def mean_weights(rounds: Rounds, sample_weight: Any) -> Floats | None:
    """What each query weighs: the mean of its rows."""
    if sample_weight is None:
        return None
    grouped = _weight_per_row(rounds, sample_weight)
    means: Floats = np.add.reduceat(grouped, rounds.offsets[:-1]) / np.diff(rounds.offsets)
    return means


def weigh(rounds: Rounds, sample_weight: Any) -> Weighed:
    """Leaves out the rows of weight 0, and divides the weights of the others among queries and documents.

    A query weighs as much as its documents do on average, each counted as often as it weighs: v = Σ w²/Σ w. A document
    weighs u = w/v. So v is what all documents of a query weigh if they weigh the same, and no row that weighs next to
    nothing has a say in it.

    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> weighed = weigh(rounds, [2.0, 0.0, 2.0])
    >>> weighed.rounds.qids.tolist(), weighed.queries, weighed.documents
    (['a'], array([2.]), None)
    >>> weighed = weigh(rounds, [1.0, 4.0, 3.0])
    >>> weighed.queries, weighed.documents
    (array([2.5, 4. ]), array([0.4, 1.2, 1. ]))
    """
    if sample_weight is None:
        return Weighed(rounds)
    weights = _weight_per_row(rounds, sample_weight)
    if not weights.all():
        rounds, weights = _without_weightless(rounds, weights)
    starts, sizes = rounds.offsets[:-1], np.diff(rounds.offsets)
    queries = weights[starts]
    if (np.repeat(queries, sizes) == weights).all():
        return Weighed(rounds, None if (queries == 1.0).all() else queries)
    most = np.maximum.reduceat(weights, starts)
    shares = weights / np.repeat(most, sizes)  # whose squares neither overflow nor vanish
    mean = np.add.reduceat(shares**2, starts) / np.add.reduceat(shares, starts)
    return Weighed(rounds, most * mean, shares / np.repeat(mean, sizes))


def _weight_per_row(rounds: Rounds, sample_weight: Any) -> Floats:
    weights = as_sample_weights(sample_weight, len(rounds.labels))
    return weights if rounds.rows is None else weights[rounds.rows]


def _without_weightless(rounds: Rounds, weights: Floats) -> tuple[Rounds, Floats]:
    kept = np.flatnonzero(weights)
    sizes = np.add.reduceat((weights > 0.0).astype(np.int64), rounds.offsets[:-1])
    left = replace(
        rounds,
        X=rounds.X[kept],
        labels=rounds.labels[kept],
        offsets=np.concatenate(([0], np.cumsum(sizes[sizes > 0]))).astype(np.int64),
        qids=rounds.qids[sizes > 0],
        docids=None if rounds.docids is None else rounds.docids[kept],
        rows=None,
    )
    return left, weights[kept]
