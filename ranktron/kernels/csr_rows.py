"""Sparse features: rows as lists of (column, value).

A `Sparse` can be used wherever a matrix of features can: it has a shape, a length and slices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.csr import ONES, Columns, Values, first_misplaced, score_rows
from ranktron.kernels.dense import first_non_finite, score
from ranktron.types import Features, Floats, Integers, Matrix

LARGEST_DENSE = 1 << 30
"""The largest size in bytes of a dense matrix made from sparse rows."""

FILL_IN = "a ranker with nan='mean', 'zero' or 'indicator' (--nan) takes NaN as a missing value"


@dataclass(frozen=True, eq=False)
class Sparse:
    """Rows of features in which only nonzero entries are stored (compressed sparse rows, CSR).

    Row i has `values[starts[i]:starts[i + 1]]` in the columns `columns[starts[i]:starts[i + 1]]`, each column at most
    once; if `values` is empty, all of them are 1. Slices share the arrays.

    Parameters
    ----------
    starts : int64, (rows + 1,)
        Where each row starts.
    columns : int32, or uint16 where they fit
        The column of each entry. The speed of a pass over rows of ones depends mostly on the size of this array.
    values : float32, as long as `columns`, or empty
        The value of each entry.
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
        """Converts a matrix or one of scipy's sparse matrices; entries of the same row and column are added up.

        Parameters
        ----------
        X : array or scipy sparse matrix
            A row per document.
        """
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
        """Some of the rows: a slice without copying, any other choice copied. `X[:, j]` is column j as an array."""
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

    def rearranged(self, places: Integers) -> Sparse:
        """The same rows with the columns in another order: column j of the result is column `places[j]` of this.

        Parameters
        ----------
        places : array of int
            A column of this for each column of the result.
        """
        columns: Any = np.argsort(places).astype(self.columns.dtype)[self.columns]
        return Sparse(self.starts, columns, self.values, self.width)

    def astype(self, _kind: Any) -> Sparse:
        """Returns itself: values are always float32.

        Parameters
        ----------
        _kind : type
            Ignored.
        """
        return self

    def copy(self) -> Sparse:
        """The same rows in arrays of their own."""
        return self._taken(np.arange(len(self)))

    def trimmed(self) -> Sparse:
        """The same rows with arrays that contain only their own entries, as views."""
        start, stop = int(self.starts[0]), int(self.starts[-1])
        if start == 0 and stop == len(self.columns):
            return self
        values = self.values[start:stop] if len(self.values) else self.values
        return Sparse(self.starts - start, self.columns[start:stop], values, self.width)

    def padded(self, front: int, back: int) -> Sparse:
        """The same rows with `front` empty columns before and `back` after their own.

        Parameters
        ----------
        front : int
            Columns before.
        back : int
            Columns after.
        """
        columns = self.columns + np.int32(front) if front else self.columns
        return Sparse(self.starts, columns, self.values, front + self.width + back)

    def check_places(self) -> None:
        """Refuses inconsistent arrays, because kernels do not check them."""
        kinds = [array.dtype.name for array in (self.starts, self.columns, self.values)]
        fits = kinds in (["int64", "int32", "float32"], ["int64", "uint16", "float32"]) and len(self.values) in (
            0,
            len(self.columns),
        )
        if not fits or len(self.starts) == 0:
            raise DataError("the arrays of these sparse rows do not fit together; build them with Sparse.from_matrix")
        row = first_misplaced(self.starts, self.columns, self.width)
        if row >= 0:
            raise DataError(f"sparse row {row} has a column twice, or one beyond the {self.width} columns")

    def check(self, missing: bool = False) -> None:
        """Refuses inconsistent arrays and values that are not finite; with `missing`, NaN is allowed.

        Parameters
        ----------
        missing : bool
            Whether NaN stands for a missing value.
        """
        self.check_places()
        own = self.trimmed()
        bad = first_infinite(own.values) if missing else first_non_finite(own.values)
        if bad >= 0:
            row = int(np.searchsorted(own.starts, bad, side="right")) - 1
            hint = f"; {FILL_IN}" if np.isnan(own.values[bad]) else ""
            raise DataError(
                "features contain NaN, infinity or a number too large for 32 bits, "
                f"first in row {row}, column {own.columns[bad]}{hint}"
            )

    def dense(self) -> Matrix:
        """The same numbers as a matrix; refused if it would be too large."""
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
        """Each column divided by a number of its own.

        Parameters
        ----------
        divisor : array of shape (columns,)
            A number other than 0 for each column.
        """
        own = self.trimmed()
        values = own.written_values() / divisor[own.columns]
        return Sparse(own.starts, own.columns, values.astype(np.float32), self.width)

    def written_values(self) -> Values:
        """The values as an array, also if all of them are 1."""
        return self.values if len(self.values) else np.ones(len(self.columns), np.float32)

    def score(self, w: Floats) -> Floats:
        """X w.

        Parameters
        ----------
        w : array of shape (columns,)
            Weights.
        """
        return score_rows(self.starts, self.columns, self.values, w)

    @staticmethod
    def concatenate(parts: list[Sparse]) -> Sparse:
        """Stacks rows of the same width.

        Parameters
        ----------
        parts : list of Sparse
            What to stack, in this order.
        """
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


def first_infinite(values: npt.NDArray[Any]) -> int:
    """The index of the first infinity among all values; -1 if there is none."""
    infinite = np.isinf(values).reshape(-1)
    return int(infinite.argmax()) if infinite.any() else -1


def _as_values(values: npt.NDArray[Any]) -> Values:
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


_KINDS = np.ndarray, Sparse


def check_features(X: Features, width: int) -> None:
    """Refuses features that a learner with `width` features cannot rank."""
    if not isinstance(X, _KINDS) or X.ndim != 2:
        what = f"an array of the shape {X.shape}" if isinstance(X, np.ndarray) else f"a {type(X).__name__}"
        raise DataError(
            f"features are np.asarray(X, np.float32) or Sparse.from_matrix(X), a row per document, not {what}"
        )
    if X.shape[1] != width:
        raise DataError(f"this learner has {width} features, the query has {X.shape[1]}")


def as_dense(X: Features) -> Matrix:
    """The features as a matrix; a matrix is given back as it is.

    >>> as_dense(Sparse.from_matrix(np.array([[0.0, 2.0]], np.float32)))
    array([[0., 2.]], dtype=float32)
    """
    return X.dense() if isinstance(X, Sparse) else X


def linear_scores(X: Features, w: Floats) -> Floats:
    """X w for either kind of features.

    >>> linear_scores(Sparse.from_matrix(np.array([[0.0, 2.0]], np.float32)), np.array([1.0, 3.0]))
    array([6.])
    """
    check_features(X, w.shape[0])
    return X.score(w) if isinstance(X, Sparse) else score(X, w)
