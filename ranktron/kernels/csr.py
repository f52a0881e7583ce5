"""The kernels `score`, `pull_back` and `descend` for sparse rows (compressed sparse rows, CSR).

Rows are three arrays: where each row starts, its columns, its values (empty if all are 1). Each kernel gives the same
result as its dense counterpart.
"""

import numpy as np
import numpy.typing as npt

from ranktron.kernels.dense import move, squared_length
from ranktron.kernels.jit import jit, jit_dot
from ranktron.types import Floats, Integers

Columns = npt.NDArray[np.int32] | npt.NDArray[np.uint16]
Values = npt.NDArray[np.float32]

ONES: Values = np.empty(0, np.float32)
"""The values of rows whose entries are all 1."""


@jit
def _score_ones(starts: Integers, columns: Columns, w: Floats) -> Floats:
    """Scores rows of ones with four independent sums, which is faster than vector gather instructions."""
    scores = np.empty(starts.shape[0] - 1)
    for i in range(scores.shape[0]):
        row = columns[starts[i] : starts[i + 1]]
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        whole = row.shape[0] & ~3
        for at in range(0, whole, 4):
            a += w[np.uint64(row[at])]
            b += w[np.uint64(row[at + 1])]
            c += w[np.uint64(row[at + 2])]
            d += w[np.uint64(row[at + 3])]
        for at in range(whole, row.shape[0]):
            a += w[np.uint64(row[at])]
        scores[i] = (a + b) + (c + d)
    return scores


@jit_dot
def score_rows(starts: Integers, columns: Columns, values: Values, w: Floats) -> Floats:
    """Scores sparse rows: the counterpart of `dense.score`.

    >>> score_rows(np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), ONES, np.array([1.0, 10.0]))
    array([10., 11.])
    """
    if values.shape[0] == 0:
        return _score_ones(starts, columns, w)
    m = starts.shape[0] - 1
    scores = np.empty(m)
    # With slices and unsigned indices numba omits the check for negative indices.
    for i in range(m):
        row, held = columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]]
        total = 0.0
        for at in range(row.shape[0]):
            total += held[at] * w[np.uint64(row[at])]
        scores[i] = total
    return scores


@jit
def add_sparse_row(starts: Integers, columns: Columns, values: Values, i: int, g: float, direction: Floats) -> None:
    """Adds g times a row to the direction: the counterpart of `dense.add_row`."""
    row = columns[starts[i] : starts[i + 1]]
    if values.shape[0] == 0:
        for at in range(row.shape[0]):
            direction[np.uint64(row[at])] += g
    else:
        held = values[starts[i] : starts[i + 1]]
        for at in range(row.shape[0]):
            direction[np.uint64(row[at])] += g * held[at]


@jit
def _add_ones(starts: Integers, columns: Columns, items: Integers, gradient: Floats, direction: Floats) -> None:
    """Adds rows of ones, each times its gradient."""
    for i in range(items.shape[0]):
        g, row = gradient[i], columns[starts[items[i]] : starts[items[i] + 1]]
        if g == 0.0:
            continue
        whole = row.shape[0] & ~3
        # The columns of a row differ, so four can be read before the first is written.
        for at in range(0, whole, 4):
            a, b, c, d = np.uint64(row[at]), np.uint64(row[at + 1]), np.uint64(row[at + 2]), np.uint64(row[at + 3])
            p, q, r, s = direction[a], direction[b], direction[c], direction[d]
            direction[a], direction[b], direction[c], direction[d] = p + g, q + g, r + g, s + g
        for at in range(whole, row.shape[0]):
            direction[np.uint64(row[at])] += g


@jit
def _add_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, direction: Floats
) -> None:
    """Adds rows, each times its gradient."""
    if values.shape[0] == 0:
        _add_ones(starts, columns, items, gradient, direction)
        return
    for i in range(items.shape[0]):
        if gradient[i] != 0.0:
            add_sparse_row(starts, columns, values, items[i], gradient[i], direction)


@jit
def pull_back_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, direction: Floats
) -> float:
    """Computes the gradient in the weights and returns its squared length: the counterpart of `dense.pull_back`.

    >>> direction = np.empty(2)
    >>> rows = np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), ONES
    >>> pull_back_rows(*rows, np.array([1]), np.array([0.5]), direction), direction
    (0.5, array([0.5, 0.5]))
    """
    direction[:] = 0.0
    _add_rows(starts, columns, values, items, gradient, direction)
    return squared_length(direction)


@jit
def _add_row_measured(starts: Integers, columns: Columns, values: Values, i: int, g: float, direction: Floats) -> float:
    """Adds a row and returns by how much the squared length of the direction grows."""
    grown = 0.0
    for at in range(starts[i], starts[i + 1]):
        column = np.uint32(columns[at])
        step = g if values.shape[0] == 0 else g * values[at]
        before = direction[column]
        direction[column] = before + step
        grown += step * (before + direction[column])
    return grown


@jit
def _move_row(
    starts: Integers, columns: Columns, i: int, eta: float, t: float, w: Floats, lagged_sum: Floats, direction: Floats
) -> None:
    """Takes the step in the columns of this row, and sets the direction to 0 there."""
    for at in range(starts[i], starts[i + 1]):
        column = np.uint32(columns[at])
        step = eta * direction[column]
        w[column] -= step
        lagged_sum[column] -= t * step
        direction[column] = 0.0


@jit
def descend_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, loss: float, eta: float,
    t: float, w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats,
) -> bool:  # fmt: skip
    """Takes the step of round t: the counterpart of `dense.descend`.

    If the query has fewer entries than there are columns, only these columns are visited.
    """
    touched = 0
    for i in range(items.shape[0]):
        if gradient[i] != 0.0:
            touched += starts[items[i] + 1] - starts[items[i]]
    few = touched < direction.shape[0]
    squared = 0.0
    if few:
        for i in range(items.shape[0]):
            if gradient[i] != 0.0:
                squared += _add_row_measured(starts, columns, values, items[i], gradient[i], direction)
    else:
        _add_rows(starts, columns, values, items, gradient, direction)
        squared = squared_length(direction)
    if not np.isfinite(loss + eta * squared * eta):
        direction[:] = 0.0
        return False
    if few:
        for i in range(items.shape[0]):
            if gradient[i] != 0.0:
                _move_row(starts, columns, items[i], eta, t, w, lagged_sum, direction)
    else:
        move(w, lagged_sum, direction, eta, t)
        direction[:] = 0.0
    sums[0] += loss
    sums[1] += eta * loss
    sums[2] += eta * max(squared, 0.0) * eta
    return True


@jit
def first_misplaced(starts: Integers, columns: Columns, width: int) -> int:
    """The first row that reaches beyond the arrays or the width, or has a column twice; -1 if there is none."""
    last = np.full(width, -1, np.int32)  # the last row with an entry in each column
    for i in range(starts.shape[0] - 1):
        if not 0 <= starts[i] <= starts[i + 1] <= columns.shape[0]:
            return i
        for at in range(starts[i], starts[i + 1]):
            if not 0 <= columns[at] < width or last[columns[at]] == i:
                return i
            last[columns[at]] = i
    return -1


@jit
def longest_sparse_row(starts: Integers, values: Values) -> float:
    """The length of the longest row."""
    longest = 0.0
    for i in range(starts.shape[0] - 1):
        squared = float(starts[i + 1] - starts[i])
        if values.shape[0]:
            squared = 0.0
            for at in range(starts[i], starts[i + 1]):
                squared += np.float64(values[at]) * np.float64(values[at])
        longest = max(longest, squared)
    return float(np.sqrt(longest))
