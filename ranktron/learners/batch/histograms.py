"""Columns of features in bins: sorted once, divided where values change, and document weights summed for each bin.

Bins are numbered from the largest values down. A column of at most `BINS` values has a bin for each of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ranktron.kernels.csr import Values
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Matrix

BINS = 256
"""The largest number of bins of a feature: what a byte can tell apart."""

Codes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int32]
_Keys = npt.NDArray[np.uint32]


@jit
def _keys(column: Values, keys: _Keys, counts: Places) -> None:
    """Whole numbers that are ordered as the values are, the largest first, and how often each digit occurs."""
    bits = column.view(np.uint32)
    counts[:] = 0
    for i in range(column.shape[0]):
        key = bits[i]
        if column[i] == np.float32(0.0):  # 0 and −0 are the same value
            key = np.uint32(0)
        if key < np.uint32(0x80000000):
            key = np.uint32(0x7FFFFFFF) - key
        keys[i] = key
        counts[0, np.int64(key & np.uint32(2047)) + 1] += 1
        counts[1, np.int64((key >> np.uint32(11)) & np.uint32(2047)) + 1] += 1
        counts[2, np.int64(key >> np.uint32(22)) + 1] += 1


@jit
def sort_column(column: Values, order: Places, scratch: Places, keys: _Keys, moved: _Keys) -> None:
    """Fills the documents in order of their values, the largest first, equal ones as they come (radix sort).

    >>> order = np.empty(3, np.int32)
    >>> sort_column(np.array([1.0, -2.0, 1.0], np.float32), order, order.copy(), *np.empty((2, 3), np.uint32))
    >>> order
    array([0, 2, 1], dtype=int32)
    """
    n, counts = column.shape[0], np.empty((3, 2049), np.int32)
    _keys(column, keys, counts)
    for digit in range(3):
        for d in range(2048):
            counts[digit, d + 1] += counts[digit, d]
    for i in range(n):
        b = np.int64(keys[i] & np.uint32(2047))
        order[counts[0, b]], moved[counts[0, b]] = i, keys[i]
        counts[0, b] += 1
    for i in range(n):
        b = np.int64((moved[i] >> np.uint32(11)) & np.uint32(2047))
        scratch[counts[1, b]], keys[counts[1, b]] = order[i], moved[i]
        counts[1, b] += 1
    for i in range(n):
        b = np.int64(keys[i] >> np.uint32(22))
        order[counts[2, b]] = scratch[i]
        counts[2, b] += 1


@jit
def bin_columns(X: Matrix, orders: Places, codes: Codes, ends: Places, first: int, last: int) -> None:
    """Sorts columns and divides each of them into bins: fills the order, each document's bin, and where bins end.

    >>> orders, codes, ends = np.empty((1, 3), np.int32), np.empty((1, 3), np.uint8), np.empty((1, BINS), np.int32)
    >>> bin_columns(np.array([[1.0], [3.0], [1.0]], np.float32), orders, codes, ends, 0, 1)
    >>> codes, ends[0, :3]
    (array([[1, 0, 1]], dtype=uint8), array([1, 3, 3], dtype=int32))
    """
    n = X.shape[0]
    column, scratch = np.empty(n, np.float32), np.empty(n, np.int32)
    keys, moved = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for f in range(first, last):
        for i in range(n):
            column[i] = X[i, f]
        order = orders[f]
        sort_column(column, order, scratch, keys, moved)
        values = 1
        for at in range(1, n):
            values += column[order[at - 1]] > column[order[at]]
        least = 1 if values <= BINS else -(-n // BINS)  # so many documents at least, so that there are no more bins
        b, begun = 0, 0
        for at in range(n):
            if at - begun >= least and column[order[at - 1]] > column[order[at]]:
                ends[f, b] = at
                b, begun = b + 1, at
            codes[f, order[at]] = b
        ends[f, b:] = n


@jit
def sum_bins(codes: Codes, weights: Floats, sums: Floats, first: int, last: int) -> None:
    """Sums the weights of the documents in each bin of each column, one document after the other.

    Four columns at a time read each weight once, and their sums do not wait for each other.

    >>> sums = np.empty((1, BINS))
    >>> sum_bins(np.array([[1, 0, 1]], np.uint8), np.array([1.0, 2.0, 4.0]), sums, 0, 1)
    >>> sums[0, :3]
    array([2., 5., 0.])
    """
    sums[first:last] = 0.0
    at = first
    while at + 4 <= last:
        a, b, c, d = codes[at], codes[at + 1], codes[at + 2], codes[at + 3]
        in_a, in_b, in_c, in_d = sums[at], sums[at + 1], sums[at + 2], sums[at + 3]
        for i in range(weights.shape[0]):
            weight = weights[i]
            in_a[a[i]] += weight
            in_b[b[i]] += weight
            in_c[c[i]] += weight
            in_d[d[i]] += weight
        at += 4
    for f in range(at, last):
        own, inside = codes[f], sums[f]
        for i in range(weights.shape[0]):
            inside[own[i]] += weights[i]
