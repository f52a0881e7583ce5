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
Keys = npt.NDArray[Any]
"""Whole numbers to sort by, filled up with the highest to a multiple of 16."""


def kernel(function: F) -> F:
    """Compiles a leaf kernel on first use and keeps its machine code on disk."""
    return _compiled(function, fastmath=False)  # said aloud: left open, it would be that of whoever calls it first


def dot_kernel(function: F) -> F:
    """Compiles a kernel whose sums may be added up in any order."""
    return _compiled(function, fastmath={"reassoc", "contract", "nsz"})


def rounding_kernel(function: F) -> F:
    """Compiles a kernel that may round once, instead of twice, where it multiplies and adds."""
    return _compiled(function, fastmath={"contract"})


def _compiled(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the home can be written to: every process compiles anew
        return cast(F, numba.njit(**options)(function))


_RUN = 8  # so long are the runs that a merge sort begins with
_FEW = 160  # so few documents are sorted by comparing each with each
_LANES = 16  # keys are filled up to a multiple of this, so that no vector is begun and not filled


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


@dot_kernel
def squared_length(direction: Floats) -> float:
    """The sum of squares: added one after the other they would take longer than all the rest of a short round."""
    squared = 0.0
    for j in range(direction.shape[0]):
        squared += direction[j] * direction[j]
    return squared


@kernel
def add_row(X: Matrix, i: int, g: float, direction: Floats) -> None:
    """Adds g times row i to the direction."""
    for j in range(direction.shape[0]):
        direction[j] += g * X[i, j]


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
    one = -1  # rows are added two at a time, so that the direction is read and written half as often
    for other in range(items.shape[0]):
        if gradient[other] == 0.0:
            continue
        if one < 0:
            one = other
            continue
        a, b, g, h = items[one], items[other], gradient[one], gradient[other]
        for j in range(d):
            direction[j] = (direction[j] + g * X[a, j]) + h * X[b, j]
        one = -1
    if one >= 0:
        add_row(X, items[one], gradient[one], direction)
    return squared_length(direction)


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

    False, and nothing changed, where the loss or the step is not a number any more. `direction` is 0 before and after.
    """
    squared = pull_back(X, items, gradient, direction)
    if not np.isfinite(loss + eta * squared * eta):
        direction[:] = 0.0
        return False
    move(w, lag, direction, eta, t)
    direction[:] = 0.0
    sums[0] += loss
    sums[1] += eta * loss
    sums[2] += eta * squared * eta
    return True


@kernel
def _compared(keys: Keys, m: int) -> Integers:
    """Sorts few keys by counting, for each, how many are smaller: m² comparisons, but many at a time and no guess."""
    n = keys.shape[0]
    ranks = np.zeros(2 * n, np.int32)  # and behind them, for each rank, how many have it already
    for j in range(0, m, 4):
        a, b, c, d = keys[j], keys[j + 1], keys[j + 2], keys[j + 3]
        for i in range(n):
            key = keys[i]
            ranks[i] += np.int32(a < key) + np.int32(b < key) + np.int32(c < key) + np.int32(d < key)
    order = np.empty(m, np.int64)
    for i in range(m):
        rank = ranks[i]
        order[rank + ranks[n + rank]] = i
        ranks[n + rank] += np.int32(1)
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
def _blank_keys(m: int) -> Keys:
    """Room for m keys and, up to a multiple of 16, keys above all others."""
    return np.full((m + _LANES - 1) // _LANES * _LANES, 0x7FFFFFFF, np.int32)


@kernel
def _blank_from(keys: Keys, n: int) -> Keys:
    """The first n keys, filled up in the same way."""
    full = (n + _LANES - 1) // _LANES * _LANES
    keys[n:full] = 0x7FFFFFFF
    return keys[:full]


@kernel
def _falling_keys(scores: Floats) -> Keys:
    """Whole numbers that grow as the scores, as float32, fall."""
    keys = _blank_keys(scores.shape[0])
    singles = keys.view(np.float32)
    for i in range(scores.shape[0]):
        singles[i] = np.float32(scores[i]) + np.float32(0.0)  # -0.0 and 0.0 are one score
    for i in range(scores.shape[0]):
        keys[i] = ~(keys[i] ^ ((keys[i] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
    return keys


@kernel
def _sorted(keys: Keys, m: int) -> Integers:
    if m <= _FEW:
        return _compared(keys, m)
    return _radix_sorted(keys[:m].view(np.uint32) ^ np.uint32(0x80000000))


@kernel
def descending(scores: Floats) -> Integers:
    """Orders documents by score, best first; equal scores (as float32) keep their input order.

    >>> descending(np.array([0.5, 2.0, 0.5]))
    array([1, 0, 2])
    """
    return _sorted(_falling_keys(scores), scores.shape[0])


@kernel
def shown(X: Matrix, w: Floats) -> tuple[Integers, Floats]:
    """The order in which a list is shown, and its scores."""
    scores = score(X, w)
    return descending(scores), scores


@kernel
def foremost(scores: Floats, k: int) -> Integers:
    """The first k places of `descending` (all of them in a shorter list), with a sort of few more than k documents.

    Of k groups of documents each has a best one: nobody behind the last of these can be among the first k.

    >>> foremost(np.array([0.5, 2.0, 0.0, 1.0]), 2)
    array([1, 3])
    """
    m = scores.shape[0]
    keys = _falling_keys(scores)
    if m < 4 * k:
        return _sorted(keys, m)[:k]
    best = keys[:k].copy()
    for start in range(k, m - k + 1, k):
        for group in range(k):
            best[group] = min(best[group], keys[start + group])
    last = best[0]
    for group in range(k):
        last = max(last, best[group])
    chosen = np.empty(m, np.int64)
    n = 0
    for i in range(m):  # without a guess: what is not chosen is written over by the next
        key = keys[i]
        chosen[n], keys[n] = i, key
        n += key <= last
    return chosen[_sorted(_blank_from(keys, n), n)[:k]]


@kernel
def ideal_order(scores: Floats, documents: Integers, starts: Integers, wanted: int) -> Integers:
    """The first places of the ideal order: by grade and, within a grade, as a ranking shows its documents.

    >>> ideal_order(np.array([0.5, 2.0, 1.0, 3.0]), np.array([0, 2, 3, 1]), np.array([0, 3, 4]), 2)
    array([3, 2])
    """
    count = 0
    while starts[count] < wanted:
        count += 1
    n = starts[count]
    if n > _FEW:
        ideal = np.empty(n, np.int64)
        for g in range(count):
            own = documents[starts[g] : starts[g + 1]]
            ideal[starts[g] : starts[g + 1]] = own[descending(scores[own])]
        return ideal[:wanted]
    falling = _falling_keys(scores)
    keys = np.full((n + _LANES - 1) // _LANES * _LANES, 0x7FFFFFFFFFFFFFFF, np.int64)
    for g in range(count):
        for place in range(starts[g], starts[g + 1]):
            keys[place] = np.int64(falling[documents[place]]) + (g << 32)
    return documents[_compared(keys, n)[:wanted]]


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
    if items.shape[0] != m or labels.shape[0] != m:
        return False
    full = True
    for i in range(m):
        full &= items[i] == i and 0.0 <= labels[i] < np.inf
    return full


@kernel
def observed(scores: Floats, items: Integers, labels: Floats) -> tuple[Floats, int]:
    """Gathers the scores of the observed documents.

    The second number is -1, or the position of the first observation that cannot be: a document that is not in the
    list, the same document twice, a label that is negative, missing or not a number.
    """
    gathered = np.empty(items.shape[0])
    if items.shape[0] != labels.shape[0]:
        return gathered, 0
    seen = np.zeros(scores.shape[0], np.bool_)
    for i in range(items.shape[0]):
        item = items[i]
        if item < 0 or item >= scores.shape[0] or seen[item] or not (0.0 <= labels[i] < np.inf):
            return gathered, i
        seen[item] = True
        gathered[i] = scores[item]
    return gathered, -1


@kernel
def first_non_finite(values: npt.NDArray[Any]) -> int:
    """Finds the first NaN or infinity, -1 where there is none."""
    for i in range(values.shape[0]):
        if not np.isfinite(values[i]):
            return i
    return -1
