"""Cut points of features whose documents are in several parts: each part sends its bins, which are merged.

A feature with at most `BINS` values in all parts is cut between each two of them. Another one is cut so that about as
many documents lie between two cut points, judged by the ends of the parts' bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.learners.batch.histograms import BINS, Codes, Places, bin_columns
from ranktron.types import Floats, Matrix

_COLUMNS = 16
"""So many columns are sorted at a time, to need little memory beside the matrix."""


class ColumnBins(NamedTuple):
    """The bins of the columns of a part: the highest and lowest value of each, and how many documents end with it."""

    highest: Matrix
    lowest: Matrix
    ends: Places


def find_column_bins(X: Matrix) -> ColumnBins:
    """The bins of all columns of a matrix.

    >>> bins = find_column_bins(np.array([[1.0], [3.0], [1.0]], np.float32))
    >>> bins.highest[0, :2], bins.ends[0, :2]
    (array([3., 1.], dtype=float32), array([1, 3], dtype=int32))
    """
    n, width = X.shape
    ends = np.empty((width, BINS), np.int32)
    highest, lowest = np.zeros((width, BINS), np.float32), np.zeros((width, BINS), np.float32)
    for a in range(0, width, _COLUMNS):
        block = np.ascontiguousarray(X[:, a : a + _COLUMNS])
        count = block.shape[1]
        orders, codes = np.empty((count, n), np.int32), np.empty((count, n), np.uint8)
        bin_columns(block, orders, codes, ends[a : a + count], 0, count)
        for f in range(count):
            column, last = block[orders[f], f], ends[a + f]
            highest[a + f] = column[np.minimum(np.append(0, last[:-1]), n - 1)]
            lowest[a + f] = column[last - 1]
    return ColumnBins(highest, lowest, ends)


def merge_bins(parts: Sequence[ColumnBins]) -> Floats:
    """The cut points of each column, the highest first; −∞ where there are fewer than a column may have.

    >>> halves = [np.array([[1.0], [3.0]], np.float32), np.array([[2.0], [3.0]], np.float32)]
    >>> merge_bins([find_column_bins(half) for half in halves])[0, :3]
    array([ 2.5,  1.5, -inf])
    """
    width = len(parts[0].ends)
    cuts = np.full((width, BINS - 1), -np.inf)
    for f in range(width):
        found = _cut_column([(part.highest[f], part.lowest[f], part.ends[f]) for part in parts])
        cuts[f, : len(found)] = found
    return cuts


def _cut_column(bins: list[tuple[Floats, Floats, Places]]) -> Floats:
    tops, bottoms, counts = [], [], []
    for highest, lowest, ends in bins:
        used = np.diff(ends, prepend=0) > 0
        tops.append(highest[used].astype(float))
        bottoms.append(lowest[used].astype(float))
        counts.append(np.diff(ends, prepend=0)[used])
    known = np.unique(np.concatenate([*tops, *bottoms]))[::-1]
    if len(known) > BINS or any((a != b).any() for a, b in zip(tops, bottoms, strict=True)):
        order = np.argsort(-np.concatenate(bottoms), kind="stable")
        ending, above = np.concatenate(bottoms)[order], np.cumsum(np.concatenate(counts)[order])
        goals = above[-1] * np.arange(1, BINS) / BINS
        borders = np.unique(ending[np.searchsorted(above, goals)])[::-1]
    else:
        borders = known
    next_lower = np.searchsorted(-known, -borders) + 1
    inner = next_lower < len(known)
    found: Floats = 0.5 * (borders[inner] + known[next_lower[inner]])
    return found


@jit
def bin_by_cuts(X: Matrix, cuts: Floats, codes: Codes) -> None:
    """Fills the bin of each document in each column: how many cut points are at its value or above.

    >>> codes = np.empty((1, 3), np.uint8)
    >>> bin_by_cuts(np.array([[1.0], [3.0], [2.5]], np.float32), np.array([[2.5, 1.5]]), codes)
    >>> codes
    array([[2, 0, 1]], dtype=uint8)
    """
    for f in range(X.shape[1]):
        own = cuts[f]
        for i in range(X.shape[0]):
            value, low, high = np.float64(X[i, f]), 0, own.shape[0]
            while low < high:
                middle = (low + high) // 2
                if own[middle] >= value:
                    low = middle + 1
                else:
                    high = middle
            codes[f, i] = low
