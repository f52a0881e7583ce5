"""The support of a kernel learner: the documents it remembers, and what each of them weighs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.learners.kernel_functions import KernelFunction
from ranktron.types import Floats, Integers, Matrix, State

FIRST = 256
"""So many documents a support has room for at first; from then on it doubles."""

CHUNK = 4096
"""So many documents are scored at a time: the table of their kernel values is what takes room."""


class Support:
    """Documents with their coefficients, in slots that are used again.

    Room doubles as it is needed, up to `most` documents. A document that is there already is not stored twice: its
    coefficients are added up. `lag` holds Σ T_k δ_k of the steps δ_k taken at the times T_k, so that the mean of all
    coefficients up to time T is alpha − lag / T.
    """

    def __init__(self, n_features: int, kernel: KernelFunction, most: int) -> None:
        self.kernel, self.most, self.n_features = kernel, most, n_features
        self.count = 0
        self.stored = 0  # how often a document came in, now and before: their ages
        self._X: npt.NDArray[Any] = np.empty((0, n_features), kernel.dtype)
        self._alpha, self._lag, self._born = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        self._slots: dict[int, int] = {}
        self._factor: tuple[Floats, bool] | None = None

    def _reserve(self, room: int) -> None:
        X = np.empty((room, self.n_features), self.kernel.dtype)
        alpha, lag, born = np.zeros(room), np.zeros(room), np.zeros(room, np.int64)
        for new, old in ((X, self._X), (alpha, self._alpha), (lag, self._lag), (born, self._born)):
            new[: self.count] = old[: self.count]
        self._X, self._alpha, self._lag, self._born = X, alpha, lag, born

    def __len__(self) -> int:
        return self.count

    @property
    def X(self) -> npt.NDArray[Any]:
        """The documents."""
        return self._X[: self.count]

    @property
    def alpha(self) -> Floats:
        """The coefficients."""
        return self._alpha[: self.count]

    @property
    def lag(self) -> Floats:
        """Σ t δ_t of each coefficient's steps δ_t."""
        return self._lag[: self.count]

    @property
    def born(self) -> Integers:
        """A number for each document that grows with the time at which it came in."""
        return self._born[: self.count]

    @property
    def room(self) -> int:
        """How many more documents may come in."""
        return self.most - self.count

    def scores(self, X: Matrix, coefficients: Floats) -> Floats:
        """K(X, support) times the coefficients: one matrix product a list."""
        scores = np.zeros(len(X))
        if self.count:
            for start in range(0, len(X), CHUNK):
                part = slice(start, start + CHUNK)
                K = self.kernel(X[part].astype(self.kernel.dtype, copy=False), self.X)
                scores[part] = K.astype(np.float64, copy=False) @ coefficients
        return scores

    def cross(self, X: Matrix, delta: Floats) -> Floats:
        """K(support, X) times a vector."""
        found: Floats = self.kernel(self.X, X.astype(self.kernel.dtype, copy=False)).astype(np.float64) @ delta
        return found

    def factor(self, ridge: float) -> tuple[Floats, bool]:
        """The Cholesky factor of K(support, support), a share of its diagonal's mean added to the diagonal."""
        if self._factor is None:
            from scipy.linalg import cho_factor

            K = self.kernel(self.X, self.X).astype(np.float64)
            K[np.diag_indices_from(K)] += ridge * K.diagonal().mean()
            self._factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        return self._factor

    def merge(self, X: Matrix, delta: Floats, lagged: Floats) -> Integers:
        """Adds to the coefficients of the documents that are here; gives the places in X of those that are not."""
        new = []
        for i in range(len(X)):
            slot = self._slots.get(hash(X[i].tobytes()))
            if slot is not None and np.array_equal(self._X[slot], X[i]):
                self._alpha[slot] += delta[i]
                self._lag[slot] += lagged[i]
            else:
                new.append(i)
        return np.array(new, np.int64)

    def add(self, X: Matrix, delta: Floats, lagged: Floats) -> None:
        """Stores documents, for which there must be room."""
        needed = self.count + len(X)
        if needed > len(self._alpha):
            self._reserve(min(max(FIRST, 2 * len(self._alpha), needed), self.most))
        slots = np.arange(self.count, needed)
        self.count = needed
        self._write(slots, X, delta, lagged)

    def replace(self, slots: Integers, X: Matrix, delta: Floats, lagged: Floats) -> None:
        """Stores documents in the place of others."""
        for slot in slots.tolist():
            self._forget(slot)
        self._write(slots, X, delta, lagged)

    def spread(self, delta: Floats, lagged: Floats) -> None:
        """Adds to the coefficients of all documents."""
        self._alpha[: self.count] += delta
        self._lag[: self.count] += lagged

    def shrink(self, factor: float, time: float) -> None:
        """Multiplies all coefficients."""
        self.spread((factor - 1.0) * self.alpha, time * (factor - 1.0) * self.alpha)

    def _write(self, slots: Integers, X: Matrix, delta: Floats, lagged: Floats) -> None:
        if len(slots) == 0:
            return
        self._X[slots], self._alpha[slots], self._lag[slots] = X, delta, lagged
        self._born[slots] = self.stored + np.arange(len(slots))
        self.stored += len(slots)
        self._factor = None
        for slot, row in zip(slots.tolist(), X, strict=True):
            self._slots[hash(row.tobytes())] = slot

    def _forget(self, slot: int) -> None:
        key = hash(self._X[slot].astype(np.float32).tobytes())
        if self._slots.get(key) == slot:
            del self._slots[key]

    def state(self) -> State:
        return {
            "X": self.X.astype(np.float32),
            "alpha": self.alpha.copy(),
            "support_lag": self.lag.copy(),
            "born": self.born.copy(),
            "stored": self.stored,
        }

    def restore(self, state: State) -> None:
        X, alpha = np.array(state["X"], np.float32), np.array(state["alpha"], np.float64)
        lag, born = np.array(state["support_lag"], np.float64), np.array(state["born"], np.int64)
        fits = X.shape == (len(alpha), self.n_features) and alpha.shape == lag.shape == born.shape
        if not fits or len(alpha) > self.most or not np.isfinite(X).all() or not np.isfinite(alpha + lag).all():
            raise DataError(f"the state does not hold a support of documents with {self.n_features} features")
        self.count, self._slots, self._factor = 0, {}, None
        self._reserve(0)
        self.add(X, alpha, lag)
        self._born[: self.count] = born
        self.stored = int(state["stored"])
