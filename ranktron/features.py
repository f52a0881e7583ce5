"""What kernels take as features, and the few verbs that they use on it: one kernel then serves both kinds.

A kernel takes a matrix, or of `Sparse` rows the three arrays (starts, columns, values): that is what `held` gives. The
verbs are ordinary functions in Python; in a kernel numba chooses the code of the one kind or of the other while it
compiles, so that the choice costs nothing, and a matrix is treated as if there were nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from ranktron.kernels import kernel, pull_back, score
from ranktron.sparse import Columns, Sparse, Values, add_row, pull_back_rows, score_rows
from ranktron.types import Features, Floats, Integers, Matrix

Held = Any
"""A `Matrix`, or the arrays (starts, columns, values) of sparse rows."""


def held(X: Features) -> Held:
    """The features as kernels take them.

    >>> held(Sparse.from_matrix(np.array([[0.0, 2.0]], np.float32)))
    (array([0, 1]), array([1], dtype=int32), array([2.], dtype=float32))
    """
    return (X.starts, X.columns, X.values) if isinstance(X, Sparse) else X


def features_of(X: Held, width: int) -> Features:
    """What `held` was made of: a matrix, or sparse rows of so many columns."""
    return Sparse(X[0], X[1], X[2], width) if isinstance(X, tuple) else X


def linear_direction(X: Features, gradient: Floats) -> Floats:
    """Xᵀ gradient for either kind of features.

    >>> linear_direction(Sparse.from_matrix(np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)), np.array([0.5, 3.0]))
    array([3., 1.])
    """
    direction, items = np.empty(X.shape[1]), np.arange(X.shape[0])
    if isinstance(X, Sparse):
        pull_back_rows(X.starts, X.columns, X.values, items, gradient, direction)
    else:
        pull_back(X, items, gradient, direction)
    return direction


@kernel
def _add_matrix_row(X: Matrix, i: int, g: float, direction: Floats) -> None:
    for j in range(X.shape[1]):
        direction[j] += g * X[i, j]


@kernel
def _taken_matrix(X: Matrix, items: Integers) -> Matrix:
    taken = np.empty((items.shape[0], X.shape[1]), np.float32)
    for i in range(items.shape[0]):
        taken[i] = X[items[i]]
    return taken


@kernel
def _taken_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers
) -> tuple[Integers, Columns, Values]:
    own = np.zeros(items.shape[0] + 1, np.int64)
    for i in range(items.shape[0]):
        own[i + 1] = own[i] + starts[items[i] + 1] - starts[items[i]]
    their_columns = np.empty(own[-1], np.int32)
    their_values = np.empty(own[-1] if values.shape[0] else 0, np.float32)
    for i in range(items.shape[0]):
        start, stop = starts[items[i]], starts[items[i] + 1]
        their_columns[own[i] : own[i + 1]] = columns[start:stop]
        if values.shape[0]:
            their_values[own[i] : own[i + 1]] = values[start:stop]
    return own, their_columns, their_values


def scores_of(X: Held, w: Floats) -> Floats:
    """X w.

    >>> scores_of((np.array([0, 1]), np.array([1], np.int32), np.array([2.0], np.float32)), np.array([1.0, 3.0]))
    array([6.])
    """
    return score_rows(X[0], X[1], X[2], w) if isinstance(X, tuple) else score(X, w)


def between(X: Held, start: int, stop: int) -> Held:
    """The rows from start to stop, without a copy."""
    return (X[0][start : stop + 1], X[1], X[2]) if isinstance(X, tuple) else X[start:stop]


def taken(X: Held, items: Integers) -> Held:
    """A copy of some rows, in the order given."""
    return _taken_rows(X[0], X[1], X[2], items) if isinstance(X, tuple) else _taken_matrix(X, items)


def add_to(direction: Floats, X: Held, i: int, g: float) -> None:
    """Adds g times row i to the direction. Each column adds up in the order of the calls: to the bit for both kinds."""
    if isinstance(X, tuple):
        add_row(X[0], X[1], X[2], i, g, direction)
    else:
        _add_matrix_row(X, i, g, direction)


def is_matrix(X: Held) -> bool:
    """Whether every feature is written out."""
    return not isinstance(X, tuple)


# In a kernel: the code for an array, or for the tuple of sparse rows. (Lambdas, for numba compares signatures to the
# letter, annotations too.)
overload(scores_of)(
    lambda X, w: (
        (lambda X, w: score(X, w)) if isinstance(X, types.Array) else (lambda X, w: score_rows(X[0], X[1], X[2], w))
    )
)
overload(between)(
    lambda X, start, stop: (
        (lambda X, start, stop: X[start:stop])
        if isinstance(X, types.Array)
        else (lambda X, start, stop: (X[0][start : stop + 1], X[1], X[2]))
    )
)
overload(taken)(
    lambda X, items: (
        (lambda X, items: _taken_matrix(X, items))
        if isinstance(X, types.Array)
        else (lambda X, items: _taken_rows(X[0], X[1], X[2], items))
    )
)
overload(add_to)(
    lambda direction, X, i, g: (
        (lambda direction, X, i, g: _add_matrix_row(X, i, g, direction))
        if isinstance(X, types.Array)
        else (lambda direction, X, i, g: add_row(X[0], X[1], X[2], i, g, direction))
    )
)
overload(is_matrix)(lambda X: (lambda X: True) if isinstance(X, types.Array) else (lambda X: False))
