"""The support of a kernel learner: the documents it remembers, and their coefficients."""

from __future__ import annotations

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.kernelized.budget import Budget
from ranktron.learners.kernelized.functions import KernelFunction
from ranktron.learners.kernelized.rows import GROWTH, DenseRows, Documents, Rows, SparseRows, stored_documents
from ranktron.learners.linear import stored_count
from ranktron.types import Features, Floats, Integers, State

FIRST = 256
"""So many documents a support has room for at first; from then on it grows by half."""

CHUNK = 4096
"""So many documents are scored at a time: the table of their kernel values is what takes room."""

ALPHA, LAG = range(2)
"""The rows of a table of coefficients: the current hypothesis, and its lagged sum."""


class Support:
    """Documents with their coefficients, in slots that are reused.

    The current hypothesis and its lagged sum are two rows of coefficients of the same documents, and so is an update,
    with a column for each document of a query. A document is removed with its coefficients, and a known one is not
    stored twice: its coefficients are added up. `lagged_sum` is Σ T_k δ_k of the updates δ_k made at the times T_k, so
    that the mean of all coefficients up to time T is alpha − lagged_sum / T.

    The first document decides whether all are kept as dense or sparse rows.
    """

    def __init__(self, n_features: int, kernel: KernelFunction, budget: Budget) -> None:
        self.n_features, self.kernel, self.budget = n_features, kernel, budget
        self.count = 0
        self.stored = 0  # how many documents have been added so far, and the number of each: its age
        self._rows: Rows | None = None
        self._table, self._born = np.zeros((2, 0)), np.zeros(0, np.int64)
        self._slots: dict[int, int] = {}
        self._factor: tuple[Floats, bool] | None = None

    def __len__(self) -> int:
        return self.count

    @property
    def documents(self) -> Documents:
        """The documents, as the kernel takes them."""
        return np.zeros((0, self.n_features), self.kernel.dtype) if self._rows is None else self._rows.kept(self.count)

    @property
    def table(self) -> Floats:
        """All coefficients: two rows, one column for each document."""
        return self._table[:, : self.count]

    @property
    def alpha(self) -> Floats:
        """The coefficients of the current hypothesis."""
        return self._table[ALPHA, : self.count]

    @property
    def lagged_sum(self) -> Floats:
        """Σ t δ_t of each coefficient's steps δ_t."""
        return self._table[LAG, : self.count]

    @property
    def weights(self) -> Floats:
        """The weight of each document."""
        weights: Floats = np.abs(self.alpha)
        return weights

    @property
    def born(self) -> Integers:
        """A number for each document that increases with the time at which it was added."""
        return self._born[: self.count]

    def rows_for(self, X: Features) -> Rows:
        """The way in which documents are kept; if there are none yet, that of X."""
        if self._rows is not None:
            return self._rows
        return SparseRows(self.n_features) if isinstance(X, Sparse) else DenseRows(self.n_features, self.kernel.dtype)

    def kernel_within(self, X: Features) -> Floats:
        """K(X, X) of one list."""
        some = self.rows_for(X).documents(X)
        K: Floats = self.kernel(some, some).astype(np.float64, copy=False)
        return K

    def scores(self, X: Features, coefficients: Floats) -> Floats:
        """Coefficients times K(support, X), one matrix product per query: a vector, or one row for each row of them."""
        scores = np.zeros((*coefficients.shape[:-1], len(X)))
        if self.count:
            rows = self.rows_for(X)
            for start in range(0, len(X), CHUNK):
                part = slice(start, start + CHUNK)
                K = self.kernel(rows.documents(X[part]), self.documents)
                scores[..., part] = (K.astype(np.float64, copy=False) @ coefficients.T).T
        return scores

    def cross(self, X: Features, steps: Floats) -> Floats:
        """K(support, X) times each row of a table of updates, as columns."""
        K = self.kernel(self.documents, self.rows_for(X).documents(X))
        found: Floats = K.astype(np.float64) @ steps.T
        return found

    def factor(self, ridge: float) -> tuple[Floats, bool]:
        """The Cholesky factor of K(support, support) plus a share of the mean of its diagonal."""
        if self._factor is None:
            from scipy.linalg import cho_factor

            K = self.kernel(self.documents, self.documents).astype(np.float64)
            K[np.diag_indices_from(K)] += ridge * K.diagonal().mean()
            lower, _ = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
            self._factor = lower, True
        return self._factor

    def fitting(self, X: Features, *, alone: bool = False) -> int:
        """How many of these documents, from the first on, fit in addition to the present ones, or alone."""
        rows = self.rows_for(X)
        count, size = (0, 0.0) if alone else (self.count, self._size())
        sizes = size + rows.entry_bytes * np.cumsum(rows.lengths(rows.rows(X))).astype(np.float64)
        return int(np.count_nonzero(self.budget.allows(count + 1 + np.arange(len(X)), sizes)))

    def _size(self) -> float:
        return 0.0 if self._rows is None else float(self._rows.kept_lengths(self.count).sum() * self._rows.entry_bytes)

    def merge(self, X: Features, steps: Floats) -> tuple[Features, Floats]:
        """Adds to the coefficients of known documents; returns the others, without duplicates, with their updates."""
        rows = self.rows_for(X)
        X, new = rows.rows(X), dict[bytes, int]()
        for i in range(len(X)):
            key = rows.key(X, i)
            slot = self._slots.get(hash(key))
            if slot is not None and rows.kept_key(slot) == key:
                self._table[:, slot] += steps[:, i]
            elif key in new:
                steps[:, new[key]] += steps[:, i]
            else:
                new[key] = i
        places = np.array(list(new.values()), np.int64)
        return X[places], steps[:, places]

    def add(self, X: Features, steps: Floats) -> None:
        """Stores documents, for which there must be room."""
        if len(X) == 0:
            return
        if self._rows is None:
            self._rows = self.rows_for(X)
            self._rows.reserve(self._table.shape[1])
        slots = np.arange(self.count, self.count + len(X))
        self._make_room(self.count + len(X))
        self.count += len(X)
        self._write(self._rows, slots, X, steps)

    def _write(self, rows: Rows, slots: Integers, X: Features, steps: Floats) -> None:
        rows.write(slots, X)
        self._table[:, slots] = steps
        self._born[slots] = self.stored + np.arange(len(slots))
        self.stored += len(slots)
        self._factor = None
        for i, slot in enumerate(slots.tolist()):
            self._slots[hash(rows.key(X, i))] = slot

    def _make_room(self, needed: int) -> None:
        room = self._table.shape[1]
        if needed > room:
            most = self.budget.documents_of(self.n_features * self._entry_bytes)
            self._reserve(max(needed, min(max(FIRST, int(GROWTH * room)), most)))

    @property
    def _entry_bytes(self) -> float:
        return self._rows.entry_bytes if self._rows is not None and self._rows.alike else 0.0

    def _reserve(self, room: int) -> None:
        table, born = np.zeros((2, room)), np.zeros(room, np.int64)
        table[:, : self.count], born[: self.count] = self.table, self.born
        self._table, self._born = table, born
        if self._rows is not None:
            self._rows.reserve(room)

    def exchange(self, keys: Floats | Integers, X: Features, steps: Floats) -> int:
        """Stores documents and removes as few as possible for them, those with the smallest keys; returns how many.

        Of equal keys the first slot is removed first, so that dense and sparse documents are treated alike.
        """
        rows, going = self.rows_for(X), self._going(keys, X)
        for slot in going.tolist():
            self._slots.pop(hash(rows.kept_key(slot)), None)
        again = going[: len(X)]
        self._write(rows, again, X[: len(again)], steps[:, : len(again)])
        if len(going) > len(X):
            self._close(rows, going[len(X) :])
        self.add(X[len(again) :], steps[:, len(again) :])
        return len(going)

    def _going(self, keys: Floats | Integers, X: Features) -> Integers:
        rows = self.rows_for(X)
        if rows.alike:
            excess = self.count + len(X) - self.budget.documents_of(self.n_features * rows.entry_bytes)
            last = np.partition(keys, excess - 1)[excess - 1]
            below = np.flatnonzero(keys < last)
            return np.sort(np.concatenate([below, np.flatnonzero(keys == last)[: excess - len(below)]]))
        order = np.argsort(keys, kind="stable")
        freed: Floats = np.zeros(self.count + 1)
        freed[1:] = np.cumsum(rows.kept_lengths(self.count)[order])
        size: Floats = self._size() + (float(rows.lengths(rows.rows(X)).sum()) - freed) * rows.entry_bytes
        allowed = self.budget.allows(self.count + len(X) - np.arange(self.count + 1), size)
        return np.sort(order[: int(np.argmax(allowed))])

    def _close(self, rows: Rows, slots: Integers) -> None:
        """Moves the last documents into free slots."""
        left = self.count - len(slots)
        last = np.setdiff1d(np.arange(left, self.count), slots)
        holes = slots[slots < left]
        for slot, hole in zip(last.tolist(), holes.tolist(), strict=True):
            self._slots[hash(rows.kept_key(slot))] = hole
        self._table[:, holes], self._born[holes] = self._table[:, last], self._born[last]
        rows.move(last, holes)
        rows.forget(np.arange(left, self.count))
        self.count = left

    def spread(self, steps: Floats) -> None:
        """Adds to the coefficients of all documents."""
        self.table[:] += steps

    def shrink(self, factor: float, time: float) -> None:
        """Multiplies all coefficients; the mean over time does not change."""
        self.lagged_sum[:] += time * (factor - 1.0) * self.alpha
        self.alpha[:] *= factor

    def state(self) -> State:
        documents = {"X": self.documents.astype(np.float32)} if self._rows is None else self._rows.state(self.count)
        table = {"alpha": self.alpha.copy(), "support_lag": self.lagged_sum.copy()}
        return {**documents, **table, "born": self.born.copy(), "stored": self.stored}

    def restored(self, state: State) -> Support:
        """A support of the same kind with the documents and coefficients of a state."""
        X, born = stored_documents(state, self.n_features), np.array(state["born"], np.int64)
        alpha, lagged_sum = (np.array(state[name], np.float64) for name in ("alpha", "support_lag"))
        shapes = alpha.shape == lagged_sum.shape == born.shape == (len(X),)
        if not shapes or not np.isfinite(np.vstack([alpha, lagged_sum])).all():
            raise DataError("the state does not hold one finite coefficient for each document of the support")
        support = Support(self.n_features, self.kernel, self.budget)
        if support.fitting(X) < len(X):
            raise DataError(f"the state holds {len(X)} documents, more than the budget allows")
        support.add(X, np.vstack([alpha, lagged_sum]))
        support._born[: len(X)] = born
        support.stored = stored_count(state, "stored")
        return support
