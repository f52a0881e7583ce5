"""What RTop-kF keeps of a list, and the step it takes: the kernels of `TopK`, for features of either kind."""

import numpy as np

from ranktron.features import Held, add_row_of, is_matrix, taken
from ranktron.kernels import kernel
from ranktron.sparse import Columns
from ranktron.types import Floats, Integers


@kernel
def first_scores(scores: Floats, order: Integers, n: int) -> Floats:
    """The scores of the first n documents shown."""
    shown = np.empty(n)
    for place in range(n):
        shown[place] = scores[order[place]]
    return shown


@kernel
def gathered(X: Held, order: Integers, r: int, base: Floats, d: int) -> tuple[Held, Floats, Columns]:
    """The rows of the first r documents, and the direction of a gradient that no label changes.

    Of sparse rows that direction is given where it is not 0, with its columns: a brief does not grow with d.
    """
    rows = taken(X, order[:r])
    drift = np.zeros(d if base.shape[0] else 0)
    for place in range(base.shape[0]):
        add_row_of(X, order[place], base[place], drift)
    if is_matrix(X):
        return rows, drift, np.empty(0, np.int32)
    columns = np.flatnonzero(drift).astype(np.int32)
    return rows, drift[columns], columns


@kernel
def descended(
    rows: Held, gradient: Floats, drift: Floats, columns: Columns, factor: float, eta: float, radius: float,
    adaptive: bool, weight: float, w: Floats, total: Floats, squares: Floats,
) -> bool:  # fmt: skip
    """Steps against the gradient and back into the ball, in place; false, and nothing moved, on overflow."""
    d = w.shape[0]
    z = np.zeros(d)
    if columns.shape[0]:
        for at in range(columns.shape[0]):
            z[columns[at]] = factor * drift[at]
    else:
        for j in range(drift.shape[0]):
            z[j] = factor * drift[j]
    for place in range(gradient.shape[0]):
        if gradient[place] != 0.0:
            add_row_of(rows, place, gradient[place], z)
    squared = 0.0
    for j in range(d):
        squared += z[j] * z[j]
    if not np.isfinite(max(eta * eta, 1.0) * squared):
        return False
    length = 0.0
    for j in range(d):
        total[j] += weight * w[j]
        squares[j] += z[j] * z[j]
        scale = np.sqrt(squares[j]) if adaptive else 1.0
        if scale > 0.0:
            w[j] -= eta * z[j] / scale  # Algorithm 1, step 10
        length += w[j] * w[j]
    length = np.sqrt(length)
    if length > radius:
        for j in range(d):
            w[j] *= radius / length  # step 11
    return True
