"""Warnings about suspicious data: uninformative queries, reused query ids, labels among the features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import warn
from ranktron.types import Features, Floats, Integers

_ROWS = 32  # with fewer rows a feature may equal the labels by chance


def count_uninformative(rounds: Rounds) -> tuple[int, int]:
    """The number of queries with fewer than two documents, and of longer ones whose labels are all equal.

    >>> count_uninformative(Rounds.from_arrays([[1.0]] * 6, [1, 0, 0, 2, 2, 1], group=[1, 2, 1, 2]))
    (2, 1)
    """
    sizes = np.diff(rounds.offsets)
    several = sizes > 1
    differs = np.append(rounds.labels[1:] != rounds.labels[:-1], False)  # from the label of the next row
    last, first = rounds.offsets[1:][several] - 1, rounds.offsets[:-1][several]
    between = np.logical_or.reduceat(differs, np.column_stack((first, last)).ravel())[::2]  # first to last, without it
    return int(np.count_nonzero(~several)), int(np.count_nonzero(~between))


def all_uninformative(rounds: Rounds) -> bool:
    """Whether no query has two documents with different labels.

    >>> all_uninformative(Rounds.from_arrays([[1.0]] * 3, [1, 0, 0], group=[1, 2]))
    True
    """
    return sum(count_uninformative(rounds)) == len(rounds)


def warn_uninformative_queries(rounds: Rounds, consequence: str) -> None:
    """Warns if more than half of the queries are uninformative; `consequence` begins the message."""
    single, equal = count_uninformative(rounds)
    if 2 * (single + equal) <= len(rounds):
        return
    reasons = [f"{single:,} {'has' if single == 1 else 'have'} a single document"] if single else []
    reasons += [f"{equal:,} {'has' if equal == 1 else 'have'} the same label everywhere"] if equal else []
    warn(f"{consequence} {single + equal:,} of {len(rounds):,} queries: {', '.join(reasons)}")


def warn_reused_query_ids(rounds: Rounds) -> None:
    """Warns if the rows of a query come in several blocks: different queries may share an id.

    Shuffled rows, where a query has nearly as many blocks as documents, give no warning.
    """
    if rounds.rows is None:
        return
    runs = _count_runs(rounds.rows, rounds.offsets)
    reused = runs > 1
    sizes = np.diff(rounds.offsets)
    if not reused.any() or not 2 * runs[reused].sum() <= min(6 * np.count_nonzero(reused), sizes[reused].sum()):
        return
    count, first = np.count_nonzero(reused), rounds.qids[reused].tolist()[0]
    warn(
        f"{count:,} of {len(rounds):,} query ids come back after other queries, first {first!r}: all rows of an id are "
        "taken as one list; if they are several, give each its own id"
    )


def columns_equal_to(X: Features, y: Floats) -> list[int]:
    """The columns of a matrix that equal y, unless y is constant; sparse rows are not searched.

    >>> columns_equal_to(np.array([[3.0, 1.0], [2.0, 0.0]]), np.array([1.0, 0.0]))
    [1]
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or len(y) < 2:
        return []
    start = slice(0, _ROWS)
    likely = np.flatnonzero((X[start] == y[start, None].astype(X.dtype)).all(axis=0))
    if len(likely) == 0 or (y == y[0]).all():
        return []
    y = y.astype(X.dtype, copy=False)
    return [j for j in likely.tolist() if (X[:, j] == y).all()]


def warn_label_features(X: Features, y: Floats, names: Sequence[str | int]) -> None:
    """Warns of features that equal the labels."""
    for j in columns_equal_to(X, y) if len(y) >= _ROWS else ():
        warn(f"the feature {names[j]!r} equals the labels in all {len(y):,} rows: drop it, or it is all that is learnt")


def _count_runs(rows: Integers, offsets: Integers) -> Integers:
    """The number of blocks of adjacent rows of each query."""
    breaks = np.concatenate(([0], np.cumsum(np.diff(rows) != 1), [0]))
    last, first = np.maximum(offsets[1:] - 1, offsets[:-1]), offsets[:-1]
    return 1 + breaks[last] - breaks[first]
