"""Ordering: `argsort_descending` is the only place that orders documents by score."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers

Keys = npt.NDArray[Any]
"""Whole numbers to sort by, filled up with the highest to a multiple of 16."""

_RUN = 8  # so long are the runs that a merge sort begins with
_FEW = 160  # so few documents are sorted by comparing each with each
_LANES = 16  # keys are filled up to a multiple of this, so that no vector is begun and not filled


@jit
def _argsort_by_counting(keys: Keys, m: int) -> Integers:
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


@jit
def argsort_radix(keys: npt.NDArray[np.uint32]) -> Integers:
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


@jit
def _blank_keys(m: int) -> Keys:
    """Room for m keys and, up to a multiple of 16, keys above all others."""
    return np.full((m + _LANES - 1) // _LANES * _LANES, 0x7FFFFFFF, np.int32)


@jit
def _blank_from(keys: Keys, n: int) -> Keys:
    """The first n keys, filled up in the same way."""
    full = (n + _LANES - 1) // _LANES * _LANES
    keys[n:full] = 0x7FFFFFFF
    return keys[:full]


@jit
def _falling_keys(scores: Floats) -> Keys:
    """Whole numbers that grow as the scores, as float32, fall."""
    keys = _blank_keys(scores.shape[0])
    singles = keys.view(np.float32)
    for i in range(scores.shape[0]):
        singles[i] = np.float32(scores[i]) + np.float32(0.0)  # -0.0 and 0.0 are one score
    for i in range(scores.shape[0]):
        keys[i] = ~(keys[i] ^ ((keys[i] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
    return keys


@jit
def _argsort_by_radix(keys: Keys, m: int) -> Integers:
    if m <= _FEW:
        return _argsort_by_counting(keys, m)
    return argsort_radix(keys[:m].view(np.uint32) ^ np.uint32(0x80000000))


@jit
def argsort_descending(scores: Floats) -> Integers:
    """Orders documents by score, best first; equal scores (as float32) keep their input order.

    >>> argsort_descending(np.array([0.5, 2.0, 0.5]))
    array([1, 0, 2])
    """
    return _argsort_by_radix(_falling_keys(scores), scores.shape[0])


@jit
def argsort_top(scores: Floats, k: int) -> Integers:
    """The first k places of `argsort_descending` (all of a shorter list), with a sort of few more than k documents.

    Of k groups of documents each has a best one: nobody behind the last of these can be among the first k.

    >>> argsort_top(np.array([0.5, 2.0, 0.0, 1.0]), 2)
    array([1, 3])
    """
    m = scores.shape[0]
    keys = _falling_keys(scores)
    if m < 4 * k:
        return _argsort_by_radix(keys, m)[:k]
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
    return chosen[_argsort_by_radix(_blank_from(keys, n), n)[:k]]


@jit
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
            ideal[starts[g] : starts[g + 1]] = own[argsort_descending(scores[own])]
        return ideal[:wanted]
    falling = _falling_keys(scores)
    keys = np.full((n + _LANES - 1) // _LANES * _LANES, 0x7FFFFFFFFFFFFFFF, np.int64)
    for g in range(count):
        for place in range(starts[g], starts[g + 1]):
            keys[place] = np.int64(falling[documents[place]]) + (g << 32)
    return documents[_argsort_by_counting(keys, n)[:wanted]]


@jit
def argsort_ascending(values: npt.NDArray[Any]) -> Integers:
    """The stable order of any numbers, smallest first: a merge sort.

    Kernels use it in place of numpy's own sorts: several cached kernels that contain those can disturb one another.

    >>> argsort_ascending(np.array([2.0, 0.5, 2.0, -1.0]))
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
