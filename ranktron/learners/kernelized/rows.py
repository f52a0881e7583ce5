"""The documents that a kernel learner remembers, as dense or sparse rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse, as_dense
from ranktron.kernels.jit import jit
from ranktron.types import Features, Floats, Integers, State

DOCUMENTS_AT_ONCE = 32
"""So many sparse documents are compared at a time."""

GROWTH = 1.5
"""By so much a table grows that is too small."""


class Entries(NamedTuple):
    """Sparse documents: document s holds `values[first[s] : first[s] + length[s]]` in the columns of these places."""

    first: Integers
    length: Integers
    columns: Columns
    values: Values
    width: int


Documents = Any
"""What kernels compare: a matrix in the kernel's own precision, or `Entries`."""


@jit
def _products(X: Entries, S: Entries) -> Floats:
    """Inner products with a few documents of X at a time, so that each entry of S is used for all of them at once."""
    K = np.zeros((X.first.shape[0], S.first.shape[0]))
    place = np.full(X.width, -1, np.int32)
    sums = np.empty(DOCUMENTS_AT_ONCE)
    for start in range(0, K.shape[0], DOCUMENTS_AT_ONCE):
        some = range(start, min(start + DOCUMENTS_AT_ONCE, K.shape[0]))
        used = 0
        for i in some:
            for at in range(X.first[i], X.first[i] + X.length[i]):
                if place[X.columns[at]] < 0:
                    place[X.columns[at]] = used
                    used += 1
        held = np.zeros((used, len(some)))
        for i in some:
            for at in range(X.first[i], X.first[i] + X.length[i]):
                held[place[X.columns[at]], i - start] = X.values[at]
        for s in range(K.shape[1]):
            sums[:] = 0.0
            for at in range(S.first[s], S.first[s] + S.length[s]):
                if place[S.columns[at]] >= 0:
                    value, row = np.float64(S.values[at]), held[place[S.columns[at]]]
                    for k in range(row.shape[0]):
                        sums[k] += value * row[k]
            for i in some:
                K[i, s] = sums[i - start]
        for i in some:
            for at in range(X.first[i], X.first[i] + X.length[i]):
                place[X.columns[at]] = -1
    return K


@jit
def _squares(X: Entries) -> Floats:
    squares = np.zeros(X.first.shape[0])
    for i in range(X.first.shape[0]):
        for at in range(X.first[i], X.first[i] + X.length[i]):
            squares[i] += np.float64(X.values[at]) * np.float64(X.values[at])
    return squares


def products(X: Documents, S: Documents) -> npt.NDArray[Any]:
    """⟨x, s⟩ for every document x of X and s of S, both dense or both sparse.

    >>> some = entries(Sparse.from_matrix(np.array([[0.0, 2.0], [1.0, 3.0]], np.float32)))
    >>> products(some, some)
    array([[ 4.,  6.],
           [ 6., 10.]])
    """
    K: npt.NDArray[Any] = _products(X, S) if isinstance(S, Entries) else X @ S.T
    return K


def squares(X: Documents) -> npt.NDArray[Any]:
    """⟨x, x⟩ for every document of X."""
    found: npt.NDArray[Any] = _squares(X) if isinstance(X, Entries) else np.einsum("ij,ij->i", X, X)
    return found


def entries(X: Sparse) -> Entries:
    """Sparse rows, with explicit values, as kernels take them."""
    return Entries(X.starts[:-1], np.diff(X.starts), X.columns, X.values, X.width)


class Rows(Protocol):
    """Documents in slots; new ones are converted by `rows` first."""

    entry_bytes: float
    alike: bool

    def rows(self, X: Features, /) -> Features: ...

    def documents(self, X: Features, /) -> Documents: ...

    def kept(self, count: int, /) -> Documents: ...

    def lengths(self, X: Features, /) -> Integers: ...

    def kept_lengths(self, count: int, /) -> Integers: ...

    def key(self, X: Features, i: int, /) -> bytes: ...

    def kept_key(self, slot: int, /) -> bytes: ...

    def reserve(self, room: int, /) -> None: ...

    def write(self, slots: Integers, X: Features, /) -> None: ...

    def move(self, slots: Integers, into: Integers, /) -> None: ...

    def forget(self, slots: Integers, /) -> None: ...

    def state(self, count: int, /) -> State: ...


class DenseRows:
    """Documents with all their features, in the precision of the kernel."""

    alike = True

    def __init__(self, n_features: int, dtype: type[Any]) -> None:
        self._X: npt.NDArray[Any] = np.empty((0, n_features), dtype)
        self.entry_bytes = float(self._X.itemsize)

    def rows(self, X: Features) -> Features:
        return as_dense(X)

    def documents(self, X: Features) -> Documents:
        return self.rows(X).astype(self._X.dtype, copy=False)

    def kept(self, count: int) -> Documents:
        return self._X[:count]

    def lengths(self, X: Features) -> Integers:
        return np.full(len(X), self._X.shape[1])

    def kept_lengths(self, count: int) -> Integers:
        return np.full(count, self._X.shape[1])

    def key(self, X: Features, i: int) -> bytes:
        key: bytes = X[i].astype(np.float32).tobytes()
        return key

    def kept_key(self, slot: int) -> bytes:
        key: bytes = self._X[slot].astype(np.float32).tobytes()
        return key

    def reserve(self, room: int) -> None:
        X, kept = np.empty((room, self._X.shape[1]), self._X.dtype), min(room, len(self._X))
        X[:kept] = self._X[:kept]
        self._X = X

    def write(self, slots: Integers, X: Features) -> None:
        self._X[slots] = X

    def move(self, slots: Integers, into: Integers) -> None:
        self._X[into] = self._X[slots]

    def forget(self, slots: Integers) -> None:
        pass

    def state(self, count: int) -> State:
        return {"X": self._X[:count].astype(np.float32)}


@jit
def _pack_entries(
    first: Integers, length: Integers, columns: Columns, values: Values, to: Columns, into: Values
) -> int:
    """Copies all entries to the beginning of other arrays; returns the position after the last."""
    end = 0
    for slot in range(first.shape[0]):
        start, first[slot] = first[slot], end
        for at in range(start, start + length[slot]):
            to[end], into[end] = columns[at], values[at]
            end += 1
    return end


class SparseRows:
    """Documents as consecutive lists of (column, value); gaps of removed documents are closed from time to time."""

    alike = False
    entry_bytes = 8.0 * GROWTH

    def __init__(self, n_features: int) -> None:
        self._width, self._end = n_features, 0
        self._first, self._length = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._columns, self._values = np.zeros(0, np.int32), np.zeros(0, np.float32)

    def rows(self, X: Features) -> Features:
        if not isinstance(X, Sparse):
            return Sparse.from_matrix(X)
        if len(X.values) == len(X.columns):
            return X
        own = X.copy()
        return Sparse(own.starts, own.columns, np.ones(len(own.columns), np.float32), own.width)

    def documents(self, X: Features) -> Documents:
        return entries(self.rows(X))

    def kept(self, count: int) -> Documents:
        return Entries(self._first[:count], self._length[:count], self._columns, self._values, self._width)

    def lengths(self, X: Features) -> Integers:
        lengths: Integers = np.diff(X.starts)
        return lengths

    def kept_lengths(self, count: int) -> Integers:
        return self._length[:count]

    def key(self, X: Features, i: int) -> bytes:
        held = slice(int(X.starts[i]), int(X.starts[i + 1]))
        key: bytes = X.columns[held].astype(np.int32).tobytes() + X.values[held].tobytes()
        return key

    def kept_key(self, slot: int) -> bytes:
        held = slice(int(self._first[slot]), int(self._first[slot] + self._length[slot]))
        return self._columns[held].tobytes() + self._values[held].tobytes()

    def reserve(self, room: int) -> None:
        first, length = np.zeros(room, np.int64), np.zeros(room, np.int64)
        kept = min(room, len(self._first))
        first[:kept], length[:kept] = self._first[:kept], self._length[:kept]
        self._first, self._length = first, length

    def write(self, slots: Integers, X: Features) -> None:
        own = X.copy()
        more = len(own.columns)
        self.forget(slots)
        if self._end + more > len(self._columns):
            self._pack(more)
        self._columns[self._end : self._end + more] = own.columns
        self._values[self._end : self._end + more] = own.values
        self._first[slots], self._length[slots] = self._end + own.starts[:-1], np.diff(own.starts)
        self._end += more

    def _pack(self, more: int) -> None:
        """Closes the gaps; if there were few, the arrays are enlarged."""
        needed, room = int(self._length.sum()) + more, len(self._columns)
        room = room if needed < 0.8 * room else int(GROWTH * needed)
        columns, values = np.zeros(room, np.int32), np.zeros(room, np.float32)
        self._end = _pack_entries(self._first, self._length, self._columns, self._values, columns, values)
        self._columns, self._values = columns, values

    def move(self, slots: Integers, into: Integers) -> None:
        self._first[into], self._length[into] = self._first[slots], self._length[slots]

    def forget(self, slots: Integers) -> None:
        self._length[slots] = 0

    def state(self, count: int) -> State:
        length = self._length[:count]
        starts = np.concatenate(([0], np.cumsum(length))).astype(np.int64)
        columns, values = np.zeros(int(starts[-1]), np.int32), np.zeros(int(starts[-1]), np.float32)
        _pack_entries(self._first[:count].copy(), length, self._columns, self._values, columns, values)
        return {"starts": starts, "columns": columns, "values": values}


def stored_documents(state: State, n_features: int) -> Features:
    """The documents of a state, dense or sparse; inconsistent ones are refused."""
    X: Features
    if "X" in state:
        X = np.array(state["X"], np.float32)
        fits = X.ndim == 2 and X.shape[1] == n_features and bool(np.isfinite(X).all())
    else:
        starts, columns = np.array(state["starts"], np.int64), np.array(state["columns"], np.int32)
        X = Sparse(starts, columns, np.array(state["values"], np.float32), n_features)
        fits = (
            starts.ndim == columns.ndim == 1
            and len(starts) > 0
            and starts[0] == 0
            and starts[-1] == len(columns) == len(X.values)
            and bool((np.diff(starts) >= 0).all())
            and bool(((columns >= 0) & (columns < n_features)).all())
            and bool(np.isfinite(X.values).all())
        )
    if not fits:
        raise DataError(f"the state does not hold documents with {n_features} features")
    return X
