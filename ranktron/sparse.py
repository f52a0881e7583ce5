"""Features most of which are 0: rows as lists of (column, value), and the twins of the kernels that score and learn.

A `Sparse` stands wherever a matrix of features may stand: it has a shape, a length and slices. Each kernel here gives
the numbers of the kernel of `kernels.py` it is the twin of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels import descend, descending, dot_kernel, first_non_finite, kernel, move, score, squared_length
from ranktron.types import Features, Floats, Integers, Matrix

Columns = npt.NDArray[np.int32] | npt.NDArray[np.uint16]
Values = npt.NDArray[np.float32]

ONES: Values = np.empty(0, np.float32)
"""The values of rows that hold nothing but ones."""

LARGEST_DENSE = 1 << 30
"""So many bytes a sparse table may take when it is made dense."""


@kernel
def _score_ones(starts: Integers, columns: Columns, w: Floats) -> Floats:
    """Scores rows of ones in four sums side by side: instructions that gather weights would take longer."""
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


@dot_kernel
def score_rows(starts: Integers, columns: Columns, values: Values, w: Floats) -> Floats:
    """Scores sparse rows: the twin of `kernels.score`.

    >>> score_rows(np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), ONES, np.array([1.0, 10.0]))
    array([10., 11.])
    """
    if values.shape[0] == 0:
        return _score_ones(starts, columns, w)
    m = starts.shape[0] - 1
    scores = np.empty(m)
    # Slices and unsigned places let the loops run without a look at each place.
    for i in range(m):
        row, held = columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]]
        total = 0.0
        for at in range(row.shape[0]):
            total += held[at] * w[np.uint64(row[at])]
        scores[i] = total
    return scores


@kernel
def add_row(starts: Integers, columns: Columns, values: Values, i: int, g: float, direction: Floats) -> None:
    """Adds g times a row to the direction."""
    row = columns[starts[i] : starts[i + 1]]
    if values.shape[0] == 0:
        for at in range(row.shape[0]):
            direction[np.uint64(row[at])] += g
    else:
        held = values[starts[i] : starts[i + 1]]
        for at in range(row.shape[0]):
            direction[np.uint64(row[at])] += g * held[at]


@kernel
def _add_ones(starts: Integers, columns: Columns, items: Integers, gradient: Floats, direction: Floats) -> None:
    """Adds rows of ones, each times its gradient."""
    for i in range(items.shape[0]):
        g, row = gradient[i], columns[starts[items[i]] : starts[items[i] + 1]]
        if g == 0.0:
            continue
        whole = row.shape[0] & ~3
        for at in range(0, whole, 4):  # the columns of a row differ: four are read before the first is written
            a, b, c, d = np.uint64(row[at]), np.uint64(row[at + 1]), np.uint64(row[at + 2]), np.uint64(row[at + 3])
            p, q, r, s = direction[a], direction[b], direction[c], direction[d]
            direction[a], direction[b], direction[c], direction[d] = p + g, q + g, r + g, s + g
        for at in range(whole, row.shape[0]):
            direction[np.uint64(row[at])] += g


@kernel
def _add_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, direction: Floats
) -> None:
    """Adds rows, each times its gradient."""
    if values.shape[0] == 0:
        _add_ones(starts, columns, items, gradient, direction)
        return
    for i in range(items.shape[0]):
        if gradient[i] != 0.0:
            add_row(starts, columns, values, items[i], gradient[i], direction)


@kernel
def pull_back_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, direction: Floats
) -> float:
    """Carries a gradient back to the weights and returns the squared length: the twin of `kernels.pull_back`.

    >>> direction = np.empty(2)
    >>> rows = np.array([0, 1, 3]), np.array([1, 0, 1], np.int32), ONES
    >>> pull_back_rows(*rows, np.array([1]), np.array([0.5]), direction), direction
    (0.5, array([0.5, 0.5]))
    """
    direction[:] = 0.0
    _add_rows(starts, columns, values, items, gradient, direction)
    return squared_length(direction)


@kernel
def _add_row_measured(starts: Integers, columns: Columns, values: Values, i: int, g: float, direction: Floats) -> float:
    """Adds a row, and says by how much the squared length of the direction grows."""
    grown = 0.0
    for at in range(starts[i], starts[i + 1]):
        column = np.uint32(columns[at])
        step = g if values.shape[0] == 0 else g * values[at]
        before = direction[column]
        direction[column] = before + step
        grown += step * (before + direction[column])
    return grown


@kernel
def _move_row(
    starts: Integers, columns: Columns, i: int, eta: float, t: float, w: Floats, lag: Floats, direction: Floats
) -> None:
    """Steps along the direction where this row has something, and leaves a direction of 0 there."""
    for at in range(starts[i], starts[i + 1]):
        column = np.uint32(columns[at])
        step = eta * direction[column]
        w[column] -= step
        lag[column] -= t * step
        direction[column] = 0.0


@kernel
def descend_rows(
    starts: Integers, columns: Columns, values: Values, items: Integers, gradient: Floats, loss: float, eta: float,
    t: float, w: Floats, lag: Floats, sums: Floats, direction: Floats,
) -> bool:  # fmt: skip
    """Takes the step of round t: the twin of `kernels.descend`, but for `direction`: it is 0 before and after.

    Where the list has fewer entries than there are columns, only its own columns are visited.
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
                _move_row(starts, columns, items[i], eta, t, w, lag, direction)
    else:
        move(w, lag, direction, eta, t)
        direction[:] = 0.0
    sums[0] += loss
    sums[1] += eta * loss
    sums[2] += eta * max(squared, 0.0) * eta
    return True


@kernel
def _first_misplaced(starts: Integers, columns: Columns, width: int) -> int:
    """The first row that reaches beyond the arrays or the width, or names a column twice; -1 if there is none."""
    last = np.full(width, -1, np.int32)  # the last row that had something in a column
    for i in range(starts.shape[0] - 1):
        if not 0 <= starts[i] <= starts[i + 1] <= columns.shape[0]:
            return i
        for at in range(starts[i], starts[i + 1]):
            if not 0 <= columns[at] < width or last[columns[at]] == i:
                return i
            last[columns[at]] = i
    return -1


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of features of which only those that are not 0 are held.

    Row i holds `values[starts[i]:starts[i + 1]]` in the columns `columns[starts[i]:starts[i + 1]]`, each column at most
    once; where `values` is empty, all of them are 1. Slices share the arrays.

    Parameters
    ----------
    starts : int64, (rows + 1,)
    columns : int32, or uint16 where they fit: a pass over rows of ones waits for little but their columns
    values : float32, as long as `columns`, or empty
    width : int
        The number of columns.

    Examples
    --------
    >>> X = Sparse.from_matrix(np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 0.0]], np.float32))
    >>> X.shape, X.columns.tolist(), X[1:].dense().tolist()
    ((3, 2), [1, 0], [[1.0, 0.0], [0.0, 0.0]])
    """

    starts: Integers
    columns: Columns
    values: Values
    width: int

    @classmethod
    def from_matrix(cls, X: Any) -> Sparse:
        """The same numbers as a matrix or as one of scipy's sparse ones; a column named twice in a row is added up."""
        if not hasattr(X, "tocsr"):
            X = np.asarray(X)
            rows, columns = np.nonzero(X)
            starts = np.searchsorted(rows, np.arange(X.shape[0] + 1))
            return cls(starts.astype(np.int64), columns.astype(np.int32), _as_values(X[rows, columns]), X.shape[1])
        given = X.tocsr()
        if not given.has_canonical_format:
            given = given.copy()
            given.sum_duplicates()
        starts, columns = given.indptr.astype(np.int64), given.indices.astype(np.int32)
        return cls(starts, columns, _as_values(given.data), int(given.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.starts) - 1, self.width

    @property
    def ndim(self) -> int:
        return 2

    @property
    def size(self) -> int:
        return len(self) * self.width

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, rows: Any) -> Any:
        """Some of the rows: a slice without copying, any other choice copied. `X[:, j]` is column j, written out."""
        if isinstance(rows, tuple):
            return self._column(*rows)
        if isinstance(rows, slice):
            start, stop, stride = rows.indices(len(self))
            if stride == 1:
                return Sparse(self.starts[start : max(start, stop) + 1], self.columns, self.values, self.width)
        return self._taken(np.arange(len(self))[rows])

    def _taken(self, rows: Integers) -> Sparse:
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        values = self.values if len(self.values) == 0 else self.values[places]
        return Sparse(starts, self.columns[places], values, self.width)

    def _column(self, rows: Any, column: int) -> Values:
        own = self.trimmed()
        found = np.flatnonzero(own.columns == column)
        values = np.zeros(len(self), np.float32)
        values[np.searchsorted(own.starts, found, side="right") - 1] = own.values[found] if len(own.values) else 1.0
        chosen: Values = values[rows]
        return chosen

    def astype(self, _kind: Any) -> Sparse:
        """Itself: its values have the one type that they can have."""
        return self

    def copy(self) -> Sparse:
        """The same rows in arrays of their own."""
        return self._taken(np.arange(len(self)))

    def trimmed(self) -> Sparse:
        """The same rows with no entries but theirs in the arrays, which are views of these."""
        start, stop = int(self.starts[0]), int(self.starts[-1])
        if start == 0 and stop == len(self.columns):
            return self
        values = self.values[start:stop] if len(self.values) else self.values
        return Sparse(self.starts - start, self.columns[start:stop], values, self.width)

    def padded(self, front: int, back: int) -> Sparse:
        """The same rows with so many empty columns before and after their own."""
        columns = self.columns + np.int32(front) if front else self.columns
        return Sparse(self.starts, columns, self.values, front + self.width + back)

    def check_places(self) -> None:
        """Refuses arrays that do not fit together: kernels trust them."""
        kinds = [array.dtype.name for array in (self.starts, self.columns, self.values)]
        fits = kinds in (["int64", "int32", "float32"], ["int64", "uint16", "float32"]) and len(self.values) in (
            0,
            len(self.columns),
        )
        if not fits or len(self.starts) == 0:
            raise DataError("the arrays of these sparse rows do not fit together; build them with Sparse.from_matrix")
        row = _first_misplaced(self.starts, self.columns, self.width)
        if row >= 0:
            raise DataError(f"sparse row {row} names a column twice, or one beyond the {self.width} that there are")

    def check(self) -> None:
        """Refuses arrays that do not fit together and values that are not finite."""
        self.check_places()
        own = self.trimmed()
        bad = first_non_finite(own.values)
        if bad >= 0:
            row = int(np.searchsorted(own.starts, bad, side="right")) - 1
            raise DataError(
                "features contain NaN, infinity or a number too large for 32 bits, "
                f"first in row {row}, column {own.columns[bad]}"
            )

    def dense(self) -> Matrix:
        """The same numbers as a matrix; refused where it would be too large."""
        if self.size * 4 > LARGEST_DENSE:
            raise DataError(
                f"{len(self)} rows of {self.width} features are too many to write out with all their zeros "
                f"({self.size * 4 / 1e9:.1f} GB)"
            )
        X = np.zeros(self.shape, np.float32)
        own = self.trimmed()
        X[np.repeat(np.arange(len(self)), np.diff(self.starts)), own.columns] = own.written_values()
        return X

    def divided(self, divisor: Floats) -> Sparse:
        """Each column divided by a number of its own."""
        own = self.trimmed()
        values = own.written_values() / divisor[own.columns]
        return Sparse(own.starts, own.columns, values.astype(np.float32), self.width)

    def written_values(self) -> Values:
        """The values, where all of them are 1 too."""
        return self.values if len(self.values) else np.ones(len(self.columns), np.float32)

    def score(self, w: Floats) -> Floats:
        """X w."""
        return score_rows(self.starts, self.columns, self.values, w)

    def shown(self, w: Floats) -> tuple[Integers, Floats]:
        """The order in which a list is shown, and its scores."""
        scores = score_rows(self.starts, self.columns, self.values, w)
        return descending(scores), scores

    @staticmethod
    def concatenate(parts: list[Sparse]) -> Sparse:
        """Rows below rows, all of the same width."""
        own = [part.trimmed() for part in parts]
        ends = np.cumsum([0, *(len(part.columns) for part in own)])
        starts = [part.starts[1:] + end for part, end in zip(own, ends, strict=False)]
        ones = all(len(part.values) == 0 for part in own)
        values = [part.written_values() for part in own]
        return Sparse(
            np.concatenate([[0], *starts]).astype(np.int64),
            np.concatenate([part.columns for part in own]),
            ONES if ones else np.concatenate(values),
            parts[0].width,
        )


def _as_values(values: npt.NDArray[Any]) -> Values:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def linear_scores(X: Features, w: Floats) -> Floats:
    """X w for either kind of features.

    >>> linear_scores(Sparse.from_matrix(np.array([[0.0, 2.0]], np.float32)), np.array([1.0, 3.0]))
    array([6.])
    """
    return X.score(w) if isinstance(X, Sparse) else score(X, w)


def linear_step(
    X: Features, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, direction: Floats,
) -> bool:  # fmt: skip
    """`kernels.descend` for either kind of features."""
    if isinstance(X, Sparse):
        rows = X.starts, X.columns, X.values
        return descend_rows(*rows, items, gradient, loss, eta, t, w, lag, sums, direction)
    return descend(X, items, gradient, loss, eta, t, w, lag, sums, direction)
