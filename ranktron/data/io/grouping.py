"""From rows in the order of the input to `Rounds`: grouping by query, NULL values, the expected number of features."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.rounds import Rounds, group_by
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Features, Floats, Integers, Matrix


@jit
def rearrange(X: Matrix, rows: Integers) -> None:
    """Moves row `rows[i]` to row i for every i, in place, with one row of extra memory."""
    # Follows the cycles of the permutation: Knuth, The Art of Computer Programming, volume 1, section 1.3.3.
    done = np.zeros(rows.shape[0], np.bool_)
    for start in range(rows.shape[0]):
        if done[start]:
            continue
        saved = X[start].copy()
        i = start
        while rows[i] != start:
            X[i] = X[rows[i]]
            done[i] = True
            i = rows[i]
        X[i] = saved
        done[i] = True


CHOICES = {"error": -1.0, "zero": 0.0, "min": np.nan, "mean": np.nan, "nan": np.nan}


def placeholder(null: str) -> float:
    """The parser's value for NULL: a number, NaN to be replaced later (for "nan" by a model), or -1 to refuse it."""
    if null not in CHOICES:
        raise DataError(f"null must be one of {', '.join(map(repr, CHOICES))}, not {null!r}")
    return CHOICES[null]


@jit
def fill_nulls(X: Matrix, offsets: Integers, mean: bool) -> None:
    """Replaces NaN by the smallest (or mean) value of the feature within the query, or by 0 if all are missing."""
    for q in range(offsets.shape[0] - 1):
        for j in range(X.shape[1]):
            total, low, n = 0.0, np.inf, 0
            for i in range(offsets[q], offsets[q + 1]):
                if not np.isnan(X[i, j]):
                    total += X[i, j]
                    low = min(low, np.float64(X[i, j]))
                    n += 1
            if n == offsets[q + 1] - offsets[q]:
                continue
            value = 0.0 if n == 0 else (total / n if mean else low)
            for i in range(offsets[q], offsets[q + 1]):
                if np.isnan(X[i, j]):
                    X[i, j] = value


def room_for(n: int, width: int) -> Matrix:
    """Allocates the features of n documents; more than the machine's memory is an error before it runs out."""
    if n * width * 4 > _memory():
        raise DataError(
            f"{n} documents with {width} features need {n * width * 4 / 1e9:.0f} GB, more than this machine has; "
            "is the number of features right?"
        )
    return np.empty((n, width), np.float32)


def _memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def assemble(X: Features, labels: Floats, ids: npt.NDArray[Any], docids: npt.NDArray[Any] | None, null: str) -> Rounds:
    """Groups rows by query and replaces NULL values; X is changed in place and not copied."""
    qids, offsets, rows = group_by(ids)
    if rows is not None:
        if isinstance(X, Sparse):
            X = X[rows]
        else:
            rearrange(X, rows)
        labels = labels[rows]
        docids = None if docids is None else docids[rows]
    if null in ("min", "mean"):
        fill_nulls(X, offsets, null == "mean")
    missing = null == "nan" and bool(np.isnan(X.values if isinstance(X, Sparse) else X).any())
    return Rounds(X, labels, offsets, qids, docids, rows, missing=missing)


def scattered_queries(rounds: Rounds) -> int:
    """The number of queries whose rows were not adjacent in the input.

    >>> scattered_queries(Rounds.from_arrays([[1.0]] * 4, [0] * 4, qid=["a", "b", "b", "a"]))
    1
    """
    if rounds.rows is None:
        return 0
    breaks = np.diff(rounds.rows) != 1
    breaks[rounds.offsets[1:-1] - 1] = False
    return len(np.unique(np.searchsorted(rounds.offsets, np.flatnonzero(breaks), side="right")))


def repeated_documents(rounds: Rounds) -> int:
    """The number of documents that occur more than once in their query.

    >>> repeated_documents(Rounds.from_arrays([[1.0]] * 3, [0] * 3, qid=[1, 1, 2], docids=["x", "x", "x"]))
    1
    """
    if rounds.docids is None:
        return 0
    named = rounds.docids != ""
    queries = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets))[named]
    words, numbers = np.unique(rounds.docids[named], return_inverse=True)
    return len(queries) - len(np.unique(queries * len(words) + numbers))


@contextmanager
def in_file(path: Path | str) -> Iterator[None]:
    """Prefixes errors with the name of the file."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def fit_width(rounds: Rounds, n_features: int | None, first_index: int | None) -> Rounds:
    """Pads rounds to the expected number of features and first index: missing features are 0."""
    X = fitted_features(rounds.X, rounds.feature_names, rounds.first_index, n_features, first_index)
    if X is rounds.X:
        return rounds
    return replace(rounds, X=X, first_index=rounds.first_index if first_index is None else first_index)


def fitted_features(
    X: Features, names: tuple[str, ...] | None, first: int, n_features: int | None, first_index: int | None
) -> Features:
    """Pads features with columns of zeros; named features are neither shifted nor padded."""
    front = 0 if first_index is None or names else first - first_index
    if front < 0:
        raise DataError("expected features that are numbered from 1, found a feature 0")
    found = X.shape[1] + front
    back = 0 if n_features is None else n_features - found
    if back < 0 or (back > 0 and names):
        raise DataError(f"expected {n_features} features, found {found}{_join_names(names)}")
    if front == back == 0:
        return X
    return X.padded(front, back) if isinstance(X, Sparse) else np.pad(X, ((0, 0), (front, back)))


def _join_names(names: tuple[str, ...] | None, most: int = 10) -> str:
    shown = "" if names is None else f": {', '.join(names[:most])}"
    return f"{shown}, ..." if names is not None and len(names) > most else shown
