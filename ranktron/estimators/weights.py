"""Sample weights: one number per row, which say how much each query counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Floats

UNEVEN = (
    "sample_weight must be the same for all rows of a query, or 0 for rows to leave out: rankers weigh queries, not "
    "single documents"
)


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
    grouped = _weight_per_query(rounds, sample_weight)
    means: Floats = np.add.reduceat(grouped, rounds.offsets[:-1]) / np.diff(rounds.offsets)
    return means


def weigh(rounds: Rounds, sample_weight: Any) -> tuple[Rounds, Floats | None]:
    """The rounds without the rows of weight 0, and what each query weighs; None where all weigh 1.

    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> left, weights = weigh(rounds, [2.0, 0.0, 2.0])
    >>> left.qids.tolist(), weights
    (['a'], array([2.]))
    """
    if sample_weight is None:
        return rounds, None
    weights = _weight_per_query(rounds, sample_weight)
    if not weights.all():
        rounds, weights = _without_weightless(rounds, weights)
    own = weights[rounds.offsets[:-1]]
    uneven = np.flatnonzero(np.repeat(own, np.diff(rounds.offsets)) != weights)
    if len(uneven):
        query = rounds.qids[int(np.searchsorted(rounds.offsets, uneven[0], side="right")) - 1]
        raise DataError(f"{UNEVEN}; query {query} has several")
    return rounds, None if (own == 1.0).all() else own


def _weight_per_query(rounds: Rounds, sample_weight: Any) -> Floats:
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
