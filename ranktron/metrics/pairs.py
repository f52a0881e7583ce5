"""Metrics that count pairs of documents with different labels, binary or graded.

    Q   = #{pairs whose lower-labelled document is shown first}
    tau = 1 − 2 Q / P,  P = #{pairs with different labels}

Both take labels in ranked order.
"""

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.types import Floats


@jit
def _merge(source: Floats, target: Floats, start: int, middle: int, stop: int) -> int:
    """Merges two descending runs; counts the pairs whose second document has the higher label."""
    wrong = 0
    i, j = start, middle
    for out in range(start, stop):
        if j == stop or (i < middle and source[i] >= source[j]):
            target[out] = source[i]
            i += 1
        else:
            wrong += middle - i
            target[out] = source[j]
            j += 1
    return wrong


@jit
def wrong_and_all_pairs(labels: Floats) -> tuple[int, int]:
    """(Q, P) of labels in ranked order, counted by merge sort in O(m log m) (Knight, JASA 1966)."""
    m = labels.shape[0]
    runs, merged = labels.copy(), np.empty(m)
    wrong = 0
    width = 1
    while width < m:
        for start in range(0, m, 2 * width):
            wrong += _merge(runs, merged, start, min(start + width, m), min(start + 2 * width, m))
        runs, merged = merged, runs
        width *= 2
    pairs = 0
    first = 0
    for i in range(m):
        if runs[i] != runs[first]:
            first = i
        pairs += first
    return wrong, pairs


@jit
def inversions(labels: Floats) -> float:
    """Q of labels in ranked order."""
    return float(wrong_and_all_pairs(labels)[0])


@jit
def tau(labels: Floats, empty: float) -> float:
    """Kendall's tau of labels in ranked order; 1 if all labels are equal and above 0."""
    wrong, pairs = wrong_and_all_pairs(labels)
    if pairs > 0:
        return 1.0 - 2.0 * wrong / pairs
    return 1.0 if labels.shape[0] > 0 and labels[0] > 0.0 else empty
