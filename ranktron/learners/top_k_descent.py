"""What RTop-kF keeps of a list, and the step it takes: the kernels of `TopK`, for features of either kind."""

import numpy as np

from ranktron.features import Held, add_row_of, in_kernels, is_matrix, taken
from ranktron.kernels import kernel
from ranktron.sparse import Columns, squared_length
from ranktron.types import Floats, Integers


@kernel
def first_scores(scores: Floats, order: Integers, n: int) -> Floats:
    """The scores of the first n documents shown."""
    shown = np.empty(n)
    for place in range(n):
        shown[place] = scores[order[place]]
    return shown


def _kept(X: Held, items: Integers, drift: Floats) -> tuple[Floats, Columns]:
    """What is kept of a drift of some documents, and its columns: all of it, or where sparse rows leave it not 0."""
    return (_matrix_kept if is_matrix(X) else _rows_kept)(X, items, drift)


def _matrix_kept(X: Held, items: Integers, drift: Floats) -> tuple[Floats, Columns]:
    return drift, np.empty(0, np.int32)


def _rows_kept(X: Held, items: Integers, drift: Floats) -> tuple[Floats, Columns]:
    starts, columns, _ = X
    most = 0
    for item in items:
        most += starts[item + 1] - starts[item]
    own, values, n = np.empty(most, np.int32), np.empty(most), 0
    for item in items:
        for at in range(starts[item], starts[item + 1]):
            value = drift[columns[at]]
            if value != 0.0:
                own[n], values[n] = columns[at], value
                drift[columns[at]] = 0.0  # a column is kept once
                n += 1
    return values[:n].copy(), own[:n].copy()


in_kernels(_kept, _matrix_kept, _rows_kept)


@kernel
def gathered(X: Held, order: Integers, r: int, base: Floats, drift: Floats) -> tuple[Held, Floats, Columns]:
    """The rows of the first r documents, and the direction of a gradient that no label changes: `drift`, 0 before.

    Of sparse rows that direction is given where it is not 0, with its columns: a brief does not grow with d.
    """
    for place in range(base.shape[0]):
        add_row_of(X, order[place], base[place], drift)
    kept, columns = _kept(X, order[: base.shape[0]], drift)
    return taken(X, order[:r]), kept, columns


@kernel
def _move(j: int, z: Floats, eta: float, adaptive: bool, w: Floats, squares: Floats) -> None:
    if z[j] != 0.0:  # of sparse features most are
        squares[j] += z[j] * z[j]
        scale = np.sqrt(squares[j]) if adaptive else 1.0
        if scale > 0.0:  # not too small to be squared
            w[j] -= eta * z[j] / scale  # Algorithm 1, step 10
        z[j] = 0.0


def _move_along(X: Held, columns: Columns, z: Floats, eta: float, adaptive: bool, w: Floats, squares: Floats) -> None:
    """Steps against z, and leaves 0 there: everywhere, or where sparse rows and the columns have something."""
    (_matrix_move if is_matrix(X) else _rows_move)(X, columns, z, eta, adaptive, w, squares)


def _matrix_move(X: Held, columns: Columns, z: Floats, eta: float, adaptive: bool, w: Floats, squares: Floats) -> None:
    for j in range(z.shape[0]):
        _move(j, z, eta, adaptive, w, squares)


def _rows_move(X: Held, columns: Columns, z: Floats, eta: float, adaptive: bool, w: Floats, squares: Floats) -> None:
    for j in columns:
        _move(j, z, eta, adaptive, w, squares)
    for j in X[1][X[0][0] : X[0][-1]]:
        _move(j, z, eta, adaptive, w, squares)


in_kernels(_move_along, _matrix_move, _rows_move)


@kernel
def descended(
    rows: Held, gradient: Floats, drift: Floats, columns: Columns, factor: float, eta: float, radius: float,
    adaptive: bool, weight: float, w: Floats, total: Floats, squares: Floats, z: Floats,
) -> bool:  # fmt: skip
    """Steps against the gradient and back into the ball, in place; false, and nothing moved, on overflow.

    `z` is 0 before and after.
    """
    d = w.shape[0]
    for at in range(drift.shape[0]):
        z[columns[at] if columns.shape[0] else at] = factor * drift[at]
    for place in range(gradient.shape[0]):
        if gradient[place] != 0.0:
            add_row_of(rows, place, gradient[place], z)
    squared = squared_length(z)
    if not np.isfinite(max(eta * eta, 1.0) * squared):
        z[:] = 0.0
        return False
    for j in range(d):
        total[j] += weight * w[j]
    _move_along(rows, columns, z, eta, adaptive, w, squares)
    if radius < np.inf:
        length = 0.0
        for j in range(d):
            length += w[j] * w[j]
        length = np.sqrt(length)
        if length > radius:
            for j in range(d):
                w[j] *= radius / length  # step 11
    return True
