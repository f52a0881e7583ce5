"""Warnings about suspicious data: uninformative queries, reused ids, labels among the features, labels too high."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import lgamma, log

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import warn
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Integers, Round

HIGHEST_USUAL = 31.0
"""The highest label of the default gains of LightGBM, and of XGBoost's exponential gain."""
_ROWS = 32  # with fewer rows a feature may equal the labels by chance
_GRADES = 32  # more labels than these are no grades
_CHANCE = 1e-9  # a feature that tells the labels by chance, among all features, is as rare as this


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


def columns_that_tell(X: Features, y: Floats) -> list[int]:
    """The columns of a matrix whose values tell the label of every row: no two labels share a range of values.

    Such are 2 * label + 0.1 and any other one-to-one function of the label, with or without noise. Columns that may do
    so by chance are left out, and sparse rows are not searched.

    >>> y = np.arange(40.0) % 4
    >>> columns_that_tell(np.column_stack([2 * y + 0.1, 7 - y, np.arange(40.0)]), y)
    [0, 1]
    """
    if not isinstance(X, np.ndarray) or X.ndim != 2 or len(y) < _ROWS or X.shape[1] == 0:
        return []
    grades, counts = np.unique(y, return_counts=True)
    if len(grades) > _GRADES or _log_chance(counts) + log(X.shape[1]) > log(_CHANCE):
        return []
    likely = np.arange(X.shape[1])
    for rows in (min(len(y), 8 * _ROWS), len(y)):  # a few rows refute most columns
        start = X[:rows, likely]
        parts = [start[y[:rows] == grade] for grade in grades]
        ranges = [(part.min(axis=0), part.max(axis=0)) for part in parts if len(part)]
        low, high = (np.array(side) for side in zip(*ranges, strict=True))
        order = np.argsort(low, axis=0)
        above, below = (np.take_along_axis(side, order, axis=0) for side in (low, high))
        likely = likely[(above[1:] > below[:-1]).all(axis=0)]
        if not len(likely):
            break
    found: list[int] = likely.tolist()
    return found


def _log_chance(counts: Integers) -> float:
    """The logarithm of the probability that the labels of rows in random order form one block for each grade."""
    arrangements = lgamma(counts.sum() + 1.0) - sum(lgamma(count + 1.0) for count in counts.tolist())
    return lgamma(len(counts) + 1.0) - arrangements


def warn_label_features(X: Features, y: Floats, names: Sequence[str | int]) -> None:
    """Warns of features that equal the labels, or tell them."""
    equal = columns_equal_to(X, y) if len(y) >= _ROWS else []
    for j in equal:
        warn(
            f"the feature {names[j]!r} equals the labels in all {len(y):,} rows: drop it, the model would learn "
            "nothing else"
        )
    for j in columns_that_tell(X, y):
        if j not in equal:
            warn(
                f"the feature {names[j]!r} tells the label of each of the {len(y):,} rows: if it is made of the "
                "labels, drop it, the model would learn nothing else"
            )


def warn_repeated_documents(rounds: Rounds) -> None:
    """Warns of documents that are more than once in a query."""
    if rounds.docids is None:
        return
    ids, offsets = rounds.docids.tolist(), rounds.offsets.tolist()
    count, first = 0, ""
    for q, (a, b) in enumerate(pairwise(offsets)):
        named = [docid for docid in ids[a:b] if docid != ""]
        extra = len(named) - len(set(named))
        if extra and not count:
            twice = Counter(named).most_common(1)[0][0]
            first = f"{twice!r} in query {rounds.qids[q : q + 1].tolist()[0]!r}"
        count += extra
    if count:
        warn(
            f"{count:,} document{'s are' if count > 1 else ' is'} repeated in a query, first {first}: "
            "leave one row of each, or give each its own id"
        )


def warn_high_labels(labels: Floats) -> None:
    """Warns of labels with which one document counts for all others where the gain is 2^label - 1."""
    highest = float(labels.max(initial=0.0))
    if highest > HIGHEST_USUAL:
        warn(
            f"labels go up to {highest:g}, and the gain of NDCG is 2^label - 1: one document counts for all others; "
            "use grades such as 0 to 4, or a convention whose gain is the label, such as ndcg@10:trec"
        )


def warn_shared_queries(rounds: Rounds, valid: Rounds) -> None:
    """Warns if queries of the validation set are those of the training set."""
    known = {_content(round) for round in rounds}
    shared = sum(_content(round) in known for round in valid)
    if shared * 10 > len(valid):
        which = "all" if shared == len(valid) else f"{shared:,} of {len(valid):,}"
        warn(
            f"{which} queries of the validation set are in the training set, too: it measures what was learnt by "
            "heart; give it other queries"
        )


def _content(round: Round) -> int:
    X = round.X.trimmed() if isinstance(round.X, Sparse) else round.X
    parts = (X.columns, X.written_values()) if isinstance(X, Sparse) else (X,)
    return hash((round.labels.tobytes(), *(part.tobytes() for part in parts)))


def _count_runs(rows: Integers, offsets: Integers) -> Integers:
    """The number of blocks of adjacent rows of each query."""
    breaks = np.concatenate(([0], np.cumsum(np.diff(rows) != 1), [0]))
    last, first = np.maximum(offsets[1:] - 1, offsets[:-1]), offsets[:-1]
    return 1 + breaks[last] - breaks[first]
