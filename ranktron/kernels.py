"""The leaf kernels that every learner shares: score, pull back, order.

A kernel takes arrays and numbers and gives arrays and numbers; it calls nothing but other module-level kernels, so
that its machine code is found on disk by the next process.
"""

from collections.abc import Callable
from typing import TypeVar

import numba
import numpy as np

from ranktron.types import Floats, Integers, Matrix

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compiles a leaf kernel on first use and keeps its machine code on disk."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def dot_kernel(function: F) -> F:
    """Compiles a kernel that is one sum of products, which may be added up in any order."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(
        function
    )
    return compiled


@dot_kernel
def score(X: Matrix, w: Floats) -> Floats:
    """Scores each row of X: s = X w.

    >>> score(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([1.0, -1.0]))
    array([-1., -1.])
    """
    scores = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * w[j]
        scores[i] = total
    return scores


@kernel
def pull_back(X: Matrix, items: Integers, gradient: Floats, factor: float, w: Floats) -> None:
    """Carries a gradient in score space back to the weights, in place: w += factor · Σ_i gradient_i X[items_i].

    >>> w = np.zeros(2)
    >>> pull_back(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([1]), np.array([1.0]), -0.5, w)
    >>> w
    array([-1.5, -2. ])
    """
    for i in range(items.shape[0]):
        amount = factor * gradient[i]
        if amount != 0.0:
            row = X[items[i]]
            for j in range(w.shape[0]):
                w[j] += amount * row[j]


@kernel
def descending(scores: Floats) -> Integers:
    """Orders documents by score, best first; equal scores (as float32) keep their input order.

    A score and its document share one 64-bit key (float32 bits that sort like numbers, then the index), so that one
    sort of plain integers does the work.

    >>> descending(np.array([0.5, 2.0, 0.5]))
    array([1, 0, 2])
    """
    keys = np.empty(scores.shape[0], np.uint64)
    singles = scores.astype(np.float32)
    for i in range(scores.shape[0]):
        if singles[i] == 0.0:
            singles[i] = 0.0  # -0.0 and 0.0 are one score
    bits = singles.view(np.uint32)
    for i in range(scores.shape[0]):
        b = bits[i]
        ascending = ~b if b >> np.uint32(31) else b | np.uint32(0x80000000)
        keys[i] = (np.uint64(~np.uint32(ascending)) << np.uint64(32)) | np.uint64(i)
    keys.sort()
    order = np.empty(scores.shape[0], np.int64)
    for i in range(scores.shape[0]):
        order[i] = np.int64(keys[i] & np.uint64(0xFFFFFFFF))
    return order


@kernel
def first_non_finite(values: Floats) -> int:
    """Finds the first NaN or infinity, -1 where there is none."""
    for i in range(values.shape[0]):
        if not np.isfinite(values[i]):
            return i
    return -1
