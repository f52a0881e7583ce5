"""Operations on features, dense or sparse, so that one kernel serves both kinds.

A kernel takes a matrix, or the three arrays (starts, columns, values) of `Sparse` rows, as `as_arrays` returns them.
The operations are ordinary functions in Python; in a kernel, numba chooses the dense or the sparse code at compile
time, so that the choice costs nothing at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ranktron.kernels.csr import add_sparse_row, descend_rows, pull_back_rows, score_rows
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import add_row, descend, pull_back, rank_list, score
from ranktron.kernels.memory import copy_into
from ranktron.kernels.sorting import argsort_descending
from ranktron.types import Features, Floats, Integers, Matrix

Code = Callable[..., Any]
FeatureArrays = Any
"""A `Matrix`, or the arrays (starts, columns, values) of sparse rows."""


def as_arrays(X: Features) -> FeatureArrays:
    """The features as kernels take them.

    >>> as_arrays(Sparse.from_matrix(np.array([[0.0, 2.0]], np.float32)))
    (array([0, 1]), array([1], dtype=int32), array([2.], dtype=float32))
    """
    return (X.starts, X.columns, X.values) if isinstance(X, Sparse) else X


def as_features(X: FeatureArrays, width: int) -> Features:
    """The inverse of `as_arrays`: a matrix, or `Sparse` rows with `width` columns."""
    return Sparse(X[0], X[1], X[2], width) if isinstance(X, tuple) else X


def with_layout(X: Features, sparse: bool | None) -> Features:
    """The same features as sparse rows (True), as a matrix (False), or unchanged (None).

    >>> with_layout(np.array([[0.0, 2.0]], np.float32), True).columns
    array([1], dtype=int32)
    """
    if sparse is None or sparse == isinstance(X, Sparse):
        return X
    return Sparse.from_matrix(X) if sparse else X.dense()


def rank_by_weights(X: Features, w: Floats) -> tuple[Integers, Floats]:
    """The order in which w ranks a list, and its scores.

    >>> rank_by_weights(Sparse.from_matrix(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)), np.array([3.0, 1.0]))
    (array([1, 0]), array([2., 3.]))
    """
    if not isinstance(X, Sparse):
        return rank_list(X, w)
    scores = X.score(w)
    return argsort_descending(scores), scores


def linear_direction(X: Features, gradient: Floats) -> Floats:
    """Xᵀ gradient for either kind of features.

    >>> linear_direction(Sparse.from_matrix(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)), np.array([0.5, 3.0]))
    array([3., 1.])
    """
    direction, items = np.empty(X.shape[1]), np.arange(X.shape[0])
    if isinstance(X, Sparse):
        pull_back_rows(X.starts, X.columns, X.values, items, gradient, direction)
    else:
        pull_back(X, items, gradient, direction, 0)
    return direction


def dot_rows(X: FeatureArrays, w: Floats) -> Floats:
    """X w.

    >>> dot_rows((np.array([0, 1]), np.array([1], np.int32), np.array([2.0], np.float32)), np.array([1.0, 3.0]))
    array([6.])
    """
    return _rows_scores(X, w) if isinstance(X, tuple) else _matrix_scores(X, w)


def slice_rows(X: FeatureArrays, start: int, stop: int) -> FeatureArrays:
    """The rows from start to stop, without a copy."""
    return _rows_between(X, start, stop) if isinstance(X, tuple) else _matrix_between(X, start, stop)


def take_rows(X: FeatureArrays, items: Integers) -> FeatureArrays:
    """A copy of some rows, in the order given."""
    return _rows_taken(X, items) if isinstance(X, tuple) else _matrix_taken(X, items)


def add_one_row(X: FeatureArrays, i: int, g: float, direction: Floats) -> None:
    """Adds g times row i to the direction, with results that are equal to the bit for dense and sparse rows."""
    (_rows_add if isinstance(X, tuple) else _matrix_add)(X, i, g, direction)


def sgd_step(
    X: FeatureArrays, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, ahead: int,
) -> bool:  # fmt: skip
    """Takes the step of round t, or returns False: `dense.descend` or `csr.descend_rows`.

    The list of the next round is as many rows `ahead` in memory, 0 if that is not known.
    """
    step = _rows_descend if isinstance(X, tuple) else _matrix_descend
    return step(X, items, gradient, loss, eta, t, w, lagged_sum, sums, direction, ahead)


def is_matrix(X: FeatureArrays) -> bool:
    """Whether the features are a dense matrix."""
    return not isinstance(X, tuple)


def _matrix_scores(X: Matrix, w: Floats) -> Floats:
    return score(X, w)


def _rows_scores(X: FeatureArrays, w: Floats) -> Floats:
    return score_rows(X[0], X[1], X[2], w)


def _matrix_between(X: Matrix, start: int, stop: int) -> Matrix:
    return X[start:stop]


def _rows_between(X: FeatureArrays, start: int, stop: int) -> FeatureArrays:
    return X[0][start : stop + 1], X[1], X[2]


def _matrix_taken(X: Matrix, items: Integers) -> Matrix:
    chosen = np.empty((items.shape[0], X.shape[1]), np.float32)
    for i in range(items.shape[0]):
        copy_into(chosen[i], X[items[i]])
    return chosen


def _rows_taken(X: FeatureArrays, items: Integers) -> FeatureArrays:
    starts, columns, values = X
    own = np.zeros(items.shape[0] + 1, np.int64)
    for i in range(items.shape[0]):
        own[i + 1] = own[i] + starts[items[i] + 1] - starts[items[i]]
    own_columns = np.empty(own[-1], np.int32)
    own_values = np.empty(own[-1] if values.shape[0] else 0, np.float32)
    for i in range(items.shape[0]):
        start, stop = starts[items[i]], starts[items[i] + 1]
        copy_into(own_columns[own[i] : own[i + 1]], columns[start:stop])
        if values.shape[0]:
            copy_into(own_values[own[i] : own[i + 1]], values[start:stop])
    return own, own_columns, own_values


def _matrix_add(X: Matrix, i: int, g: float, direction: Floats) -> None:
    add_row(X, i, g, direction)


def _rows_add(X: FeatureArrays, i: int, g: float, direction: Floats) -> None:
    add_sparse_row(X[0], X[1], X[2], i, g, direction)


def _matrix_descend(
    X: Matrix, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, ahead: int,
) -> bool:  # fmt: skip
    return descend(X, items, gradient, loss, eta, t, w, lagged_sum, sums, direction, ahead)


def _rows_descend(
    X: FeatureArrays, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, ahead: int,
) -> bool:  # fmt: skip
    return descend_rows(X[0], X[1], X[2], items, gradient, loss, eta, t, w, lagged_sum, sums, direction)


def in_kernels(operation: Code, of_matrix: Code, of_rows: Code) -> None:
    """Registers the code of an operation in kernels: for a matrix, and for the tuple of sparse rows."""
    choose = overload(operation, strict=False, inline="always")
    choose(lambda X, *_: of_matrix if isinstance(X, types.Array) else of_rows)


in_kernels(dot_rows, _matrix_scores, _rows_scores)
in_kernels(slice_rows, _matrix_between, _rows_between)
in_kernels(take_rows, _matrix_taken, _rows_taken)
in_kernels(add_one_row, _matrix_add, _rows_add)
in_kernels(sgd_step, _matrix_descend, _rows_descend)
in_kernels(is_matrix, lambda X: True, lambda X: False)
