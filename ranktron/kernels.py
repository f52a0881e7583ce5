"""The leaf kernels that every learner shares: score, pull back, order.

A kernel takes arrays and numbers and gives arrays and numbers; it calls nothing but other module-level kernels, so
that its machine code is found on disk by the next process.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from ranktron.types import Floats, Integers, Matrix

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compiles a leaf kernel on first use and keeps its machine code on disk."""
    return _compiled(function)


def dot_kernel(function: F) -> F:
    """Compiles a kernel that is one sum of products, which may be added up in any order."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def _compiled(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the home can be written to: every process compiles anew
        return cast(F, numba.njit(**options)(function))


_RUN = 8  # so long are the runs that a merge sort begins with
_FEW = 32  # so few documents are sorted by insertion
_SMALL = 32  # labels below this that are whole numbers are graded without sorting


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
def pull_back(X: Matrix, items: Integers, gradient: Floats, direction: Floats) -> float:
    """Carries a gradient in score space back to the weights: direction = Σ_i gradient_i X[items_i].

    Returns the squared length of the direction.

    >>> direction = np.empty(2)
    >>> pull_back(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([1]), np.array([0.5]), direction)
    6.25
    >>> direction
    array([1.5, 2. ])
    """
    d = direction.shape[0]
    direction[:] = 0.0
    for i in range(items.shape[0]):
        item, g = items[i], gradient[i]  # read once: inside the loop they would keep it from being vectorised
        if g != 0.0:
            for j in range(d):
                direction[j] += g * X[item, j]
    squared = 0.0
    for j in range(d):
        squared += direction[j] * direction[j]
    return squared


@kernel
def move(w: Floats, lag: Floats, direction: Floats, eta: float, t: float) -> None:
    """Steps against the direction, in place: w -= η·direction, and lag -= t·η·direction for the average."""
    for j in range(w.shape[0]):
        step = eta * direction[j]
        w[j] -= step
        lag[j] -= t * step


@kernel
def descend(
    X: Matrix, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, direction: Floats,
) -> bool:  # fmt: skip
    """Takes the step of round t and adds the round to Σ f_t, Σ η_t f_t and Σ η_t² |z_t|².

    False, and nothing changed, where the loss or the step is not a number any more.
    """
    squared = pull_back(X, items, gradient, direction)
    if not np.isfinite(loss + eta * squared * eta):
        return False
    move(w, lag, direction, eta, t)
    sums[0] += loss
    sums[1] += eta * loss
    sums[2] += eta * squared * eta
    return True


@kernel
def _insertion_sorted(keys: npt.NDArray[np.uint32]) -> Integers:
    order = np.arange(keys.shape[0])
    for i in range(1, keys.shape[0]):
        place = i
        while place > 0 and keys[order[place - 1]] > keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
    return order


@kernel
def _radix_sorted(keys: npt.NDArray[np.uint32]) -> Integers:
    """Four stable passes over bytes without a comparison, which a processor would guess wrong half of the time."""
    m = keys.shape[0]
    counts = np.zeros((4, 256), np.int32)
    for i in range(m):
        for digit in range(4):
            counts[digit, (keys[i] >> np.uint32(8 * digit)) & np.uint32(255)] += 1
    order, other = np.arange(m), np.empty(m, np.int64)
    for digit in range(4):
        shift = np.uint32(8 * digit)
        if counts[digit, (keys[0] >> shift) & np.uint32(255)] == m:
            continue  # all keys agree in this byte
        place = 0
        for value in range(256):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for i in range(m):
            value = (keys[order[i]] >> shift) & np.uint32(255)
            other[counts[digit, value]] = order[i]
            counts[digit, value] += 1
        order, other = other, order
    return order


@kernel
def _falling_keys(scores: Floats) -> npt.NDArray[np.uint32]:
    """Bits of the scores as float32 that, as whole numbers, grow as the scores fall."""
    singles = scores.astype(np.float32) + np.float32(0.0)  # -0.0 and 0.0 are one score
    keys = singles.view(np.uint32)
    for i in range(scores.shape[0]):
        keys[i] = keys[i] if keys[i] >> np.uint32(31) else ~(keys[i] | np.uint32(0x80000000))
    return keys


@kernel
def descending(scores: Floats) -> Integers:
    """Orders documents by score, best first; equal scores (as float32) keep their input order.

    >>> descending(np.array([0.5, 2.0, 0.5]))
    array([1, 0, 2])
    """
    keys = _falling_keys(scores)
    return _insertion_sorted(keys) if scores.shape[0] <= _FEW else _radix_sorted(keys)


@kernel
def shown(X: Matrix, w: Floats) -> tuple[Integers, Floats]:
    """The order in which a list is shown, and its scores."""
    scores = score(X, w)
    return descending(scores), scores


@kernel
def foremost(scores: Floats, k: int) -> Integers:
    """The first k places of `descending` (all of them in a shorter list), found by insertion: for small k.

    >>> foremost(np.array([0.5, 2.0, 0.0, 1.0]), 2)
    array([1, 3])
    """
    singles = scores.astype(np.float32)
    first = np.empty(min(k, scores.shape[0]), np.int64)
    n = 0
    for i in range(scores.shape[0]):
        s = singles[i]
        if n < first.shape[0]:
            n += 1
        elif not s > singles[first[n - 1]]:
            continue
        place = n - 1
        while place > 0 and s > singles[first[place - 1]]:
            first[place] = first[place - 1]
            place -= 1
        first[place] = i
    return first


@kernel
def rising(values: npt.NDArray[Any]) -> Integers:
    """The stable order of any numbers, smallest first: a merge sort.

    Kernels use it in place of numpy's own sorts: several cached kernels that contain those can disturb one another.

    >>> rising(np.array([2.0, 0.5, 2.0, -1.0]))
    array([3, 1, 0, 2])
    """
    m = values.shape[0]
    order, other = np.arange(m), np.empty(m, np.int64)
    for start in range(0, m, _RUN):
        for i in range(start + 1, min(start + _RUN, m)):
            place = i
            while place > start and values[order[place - 1]] > values[i]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
    width = _RUN
    while width < m:
        for start in range(0, m, 2 * width):
            left, middle, end = start, min(start + width, m), min(start + 2 * width, m)
            right = middle
            for place in range(start, end):
                if left < middle and (right >= end or values[order[left]] <= values[order[right]]):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def is_full(items: Integers, labels: Floats, m: int) -> bool:
    """Whether feedback is on every document of the list in its order, with labels that can be."""
    if items.shape[0] != m:
        return False
    full = True
    for i in range(m):
        full &= items[i] == i and 0.0 <= labels[i] < np.inf
    return full


@kernel
def observed(scores: Floats, items: Integers, labels: Floats) -> tuple[Floats, int]:
    """Gathers the scores of the observed documents.

    The second number is -1, or the position of the first observation that cannot be: a document that is not in the
    list, the same document twice, a label that is negative or not a number.
    """
    gathered = np.empty(items.shape[0])
    seen = np.zeros(scores.shape[0], np.bool_)
    for i in range(items.shape[0]):
        item = items[i]
        if item < 0 or item >= scores.shape[0] or seen[item] or not (0.0 <= labels[i] < np.inf):
            return gathered, i
        seen[item] = True
        gathered[i] = scores[item]
    return gathered, -1


@kernel
def _sorted_grades(labels: Floats) -> tuple[Integers, int]:
    order = rising(labels)
    codes = np.empty(labels.shape[0], np.int64)
    count = 0
    for i in range(order.shape[0]):
        if i == 0 or labels[order[i]] != labels[order[i - 1]]:
            count += 1
        codes[order[i]] = count - 1
    return codes, count


@kernel
def grades(labels: Floats) -> tuple[Integers, int]:
    """Numbers the grades of a list from 0 (the lowest label in it) upwards: (each document's grade, how many).

    >>> grades(np.array([2.0, 0.0, 2.0, 0.5]))
    (array([2, 0, 2, 1]), 3)
    """
    codes = np.empty(labels.shape[0], np.int64)
    present = np.zeros(_SMALL, np.int64)
    for i in range(labels.shape[0]):
        whole = np.int64(labels[i])
        if whole >= _SMALL or whole != labels[i]:
            return _sorted_grades(labels)
        codes[i] = whole
        present[whole] = 1
    count = 0
    for grade in range(_SMALL):
        if present[grade]:
            present[grade] = count
            count += 1
    for i in range(labels.shape[0]):
        codes[i] = present[codes[i]]
    return codes, count


@kernel
def first_non_finite(values: npt.NDArray[Any]) -> int:
    """Finds the first NaN or infinity, -1 where there is none."""
    for i in range(values.shape[0]):
        if not np.isfinite(values[i]):
            return i
    return -1
