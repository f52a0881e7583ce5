"""Sorting: `argsort_descending` is the only function that orders documents by score."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers

Keys = npt.NDArray[Any]
"""Integer keys to sort by, padded with the largest one to a multiple of 16."""

_RUN = 8  # the length of the runs that merge sort starts with, made by insertion sort
FEW = 160  # up to this many documents are sorted by comparison counting
LANES = 16  # keys are padded to a multiple of this, so that vector loops have no remainder


@jit
def argsort_by_counting(keys: Keys, m: int) -> Integers:
    """Sorts few keys by counting how many are smaller than each: m² comparisons, but vectorised and branch-free."""
    # Comparison counting: Knuth, The Art of Computer Programming, volume 3, section 5.2, Algorithm C.
    n = keys.shape[0]
    ranks = np.zeros(2 * n, np.int32)  # the second half: for each rank, how many keys have it already
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
    """Sorts by four stable passes over bytes, without comparisons, half of which a processor would mispredict."""
    # Radix sort, least significant digit first: Knuth, volume 3, section 5.2.5, with all histograms made in one pass.
    m = keys.shape[0]
    counts = np.zeros(4 * 256, np.int32)
    order, other = np.empty(m, np.int64), np.empty(m, np.int64)
    for i in range(m):
        order[i] = i
        for digit in range(4):
            counts[256 * digit + ((keys[i] >> np.uint32(8 * digit)) & np.uint32(255))] += 1
    for digit in range(4):
        shift, first = np.uint32(8 * digit), 256 * digit
        if counts[first + ((keys[0] >> shift) & np.uint32(255))] == m:
            continue  # all keys agree in this byte
        place = 0
        for value in range(first, first + 256):
            count = counts[value]
            counts[value] = place
            place += count
        for i in range(m):
            value = first + ((keys[order[i]] >> shift) & np.uint32(255))
            other[counts[value]] = order[i]
            counts[value] += 1
        order, other = other, order
    return order


@jit
def _falling_keys(scores: Floats) -> Keys:
    """Integers in the reverse order of the scores as float32, padded with the largest one."""
    # Flipping bits makes floats compare as integers: Herf, Radix Tricks (2001).
    m = scores.shape[0]
    keys = np.empty((m + LANES - 1) // LANES * LANES, np.int32)
    singles = keys.view(np.float32)
    for i in range(m):
        singles[i] = np.float32(scores[i]) + np.float32(0.0)  # -0.0 and 0.0 are one score
    for i in range(m):
        keys[i] = ~(keys[i] ^ ((keys[i] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
    for i in range(m, keys.shape[0]):
        keys[i] = 0x7FFFFFFF
    return keys


@jit
def _argsort_by_radix(keys: Keys, m: int) -> Integers:
    if m <= FEW:
        return argsort_by_counting(keys, m)
    unsigned = np.empty(m, np.uint32)
    for i in range(m):
        unsigned[i] = np.uint32(keys[i]) ^ np.uint32(0x80000000)
    return argsort_radix(unsigned)


@jit
def argsort_descending(scores: Floats) -> Integers:
    """Orders documents by score, best first; equal scores (as float32) keep their input order.

    >>> argsort_descending(np.array([0.5, 2.0, 0.5]))
    array([1, 0, 2])
    """
    return _argsort_by_radix(_falling_keys(scores), scores.shape[0])


@jit
def argsort_top(scores: Floats, k: int) -> Integers:
    """The first k documents of `argsort_descending` (or all, if fewer), with a sort of few more than k documents.

    Documents are divided into k groups. The k best documents of these groups are at least as good as the worst of them,
    so that no document that is worse than that one can be among the first k.

    >>> argsort_top(np.array([0.5, 2.0, 0.0, 1.0]), 2)
    array([1, 3])
    """
    m = scores.shape[0]
    keys = _falling_keys(scores)
    if m < 4 * k:
        return _argsort_by_radix(keys, m)[:k]
    best = np.empty(k, np.int32)
    for group in range(k):
        best[group] = keys[group]
    for start in range(k, m - k + 1, k):
        for group in range(k):
            one, other = best[group], keys[start + group]
            best[group] = one if one < other else other
    last = best[0]
    for group in range(k):
        last = best[group] if best[group] > last else last
    chosen = np.empty(m, np.int64)
    n = 0
    for i in range(m):  # without branches: what is not chosen is overwritten by the next
        key = keys[i]
        chosen[n], keys[n] = i, key
        n += key <= last
    padded = (n + LANES - 1) // LANES * LANES
    for i in range(n, padded):
        keys[i] = 0x7FFFFFFF
    order, top = _argsort_by_radix(keys[:padded], n), np.empty(k, np.int64)
    for place in range(k):
        top[place] = chosen[order[place]]
    return top


@jit
def ideal_order(scores: Floats, documents: Integers, starts: Integers, wanted: int) -> Integers:
    """The first `wanted` documents of the ideal order: by grade, and by score within a grade.

    >>> ideal_order(np.array([0.5, 2.0, 1.0, 3.0]), np.array([0, 2, 3, 1]), np.array([0, 3, 4]), 2)
    array([3, 2])
    """
    count = 0
    while starts[count] < wanted:
        count += 1
    n = starts[count]
    if n > FEW:
        ideal = np.empty(n, np.int64)
        for g in range(count):
            first, size = starts[g], starts[g + 1] - starts[g]
            own = np.empty(size)
            for place in range(size):
                own[place] = scores[documents[first + place]]
            order = argsort_descending(own)
            for place in range(size):
                ideal[first + place] = documents[first + order[place]]
        return ideal[:wanted]
    singles = np.empty(n, np.float32)
    for place in range(n):
        singles[place] = np.float32(scores[documents[place]]) + np.float32(0.0)
    bits, keys = singles.view(np.int32), np.empty((n + LANES - 1) // LANES * LANES, np.int64)
    for g in range(count):
        for place in range(starts[g], starts[g + 1]):
            key = ~(bits[place] ^ ((bits[place] >> np.int32(31)) & np.int32(0x7FFFFFFF)))
            keys[place] = np.int64(key) + (g << 32)
    for place in range(n, keys.shape[0]):
        keys[place] = 0x7FFFFFFFFFFFFFFF
    order, ideal = argsort_by_counting(keys, n), np.empty(wanted, np.int64)
    for place in range(wanted):
        ideal[place] = documents[order[place]]
    return ideal


@jit
def argsort_ascending(values: npt.NDArray[Any]) -> Integers:
    """The stable order of any numbers, smallest first: a merge sort (Knuth, volume 3, section 5.2.4).

    Kernels use it instead of numpy's sorts, because several cached kernels with those can break one another.

    >>> argsort_ascending(np.array([2.0, 0.5, 2.0, -1.0]))
    array([3, 1, 0, 2])
    """
    m = values.shape[0]
    order, other = np.empty(m, np.int64), np.empty(m, np.int64)
    for start in range(0, m, _RUN):
        for i in range(start, start + _RUN if start + _RUN < m else m):
            place = i
            while place > start and values[order[place - 1]] > values[i]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = i
    width = _RUN
    while width < m:
        for start in range(0, m, 2 * width):
            left = start
            middle = start + width if start + width < m else m
            end = start + 2 * width if start + 2 * width < m else m
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
