"""The three losses of a query, composed of pairwise hinges with relevance margins, with their subgradients.

    [y_j − y_k − (s_j − s_k)]_+ = [a_k − a_j]_+,    a = s − y,    for each pair (j, k) with y_j > y_k

All pairs are ordered with their margins if a increases with the label. Each kernel fills g ≥ 0 for documents to be
raised and g ≤ 0 for those to be lowered, so that the loss is −⟨g, a⟩: a vertex of the query's set of dual variables.
"""

from __future__ import annotations

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.grades import add_to_tree, sum_below
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers

LOSSES = ("average", "max", "max-average")
"""The losses of RankMM-1, RankMM-2 and RankMM-3."""

_AVERAGE, _MAX = 0, 1


@jit
def lower_counts(codes: Integers, count: int) -> Integers:
    """For each grade the number of documents of lower grades; the last entry is the number of all documents.

    >>> lower_counts(np.array([2, 0, 0, 1]), 3)
    array([0, 2, 3, 4])
    """
    lower = np.zeros(count + 1, np.int64)
    for i in range(codes.shape[0]):
        lower[codes[i] + 1] += 1
    for grade in range(count):
        lower[grade + 1] += lower[grade]
    return lower


@jit
def average_pairs(a: Floats, codes: Integers, count: int, parts: Floats, g: Floats) -> float:
    """The mean hinge over the pairs (section 3.1), in O(n log n).

    A pair has the product of its documents' parts as its weight: a document of part 2 counts like two documents.
    """
    lower = np.zeros(count + 1)
    for i in range(a.shape[0]):
        lower[codes[i] + 1] += parts[i]
    for grade in range(count):
        lower[grade + 1] += lower[grade]
    pairs = 0.0
    for i in range(a.shape[0]):
        pairs += parts[i] * lower[codes[i]]
    tree = np.zeros((count + 1, 2))
    loss, seen = 0.0, 0.0
    for i in argsort_ascending(a):
        fewer, _ = sum_below(tree, codes[i])
        upto, _ = sum_below(tree, codes[i] + 1)
        g[i] = parts[i] * (lower[codes[i]] - fewer - (seen - upto)) / pairs
        loss -= g[i] * a[i]
        add_to_tree(tree, codes[i], 0.0, parts[i])
        seen += parts[i]
    return max(loss, 0.0)


@jit
def worst_margin_pair(a: Floats, codes: Integers, count: int, parts: Floats, g: Floats) -> float:
    """The largest hinge of a pair (section 3.2), in O(n).

    To a maximum it is all the same whether a document is there twice: `parts` are not used.
    """
    largest, smallest = np.empty(count, np.int64), np.empty(count, np.int64)
    for grade in range(count):
        largest[grade] = smallest[grade] = -1
    for i in range(a.shape[0]):
        g[i] = 0.0
        grade = codes[i]
        if largest[grade] < 0 or a[i] > a[largest[grade]]:
            largest[grade] = i
        if smallest[grade] < 0 or a[i] < a[smallest[grade]]:
            smallest[grade] = i
    loss, j, k = 0.0, -1, -1
    lowest = largest[0]
    for grade in range(1, count):
        if a[lowest] - a[smallest[grade]] > loss:
            j, k = smallest[grade], lowest
            loss = a[k] - a[j]
        if a[largest[grade]] > a[lowest]:
            lowest = largest[grade]
    if j >= 0:
        g[j], g[k] = 1.0, -1.0
    return loss


@jit
def worst_document(a: Floats, codes: Integers, count: int, parts: Floats, g: Floats) -> float:
    """The largest mean hinge of a document with all that should be ranked above it (section 3.3), in O(n log n).

    `parts` are not used: see `worst_margin_pair`.
    """
    lower = lower_counts(codes, count)
    n = a.shape[0]
    tree = np.zeros((count + 1, 2))
    loss, worst, seen, total = 0.0, -1, 0.0, 0.0
    for k in argsort_ascending(a):
        g[k] = 0.0
        preferred = n - lower[codes[k] + 1]  # |P_k|
        if preferred > 0:
            number, part = sum_below(tree, codes[k] + 1)
            mean = ((seen - number) * a[k] - (total - part)) / preferred
            if mean > loss:
                loss, worst = mean, k
        add_to_tree(tree, codes[k], a[k])
        seen += 1.0
        total += a[k]
    if worst >= 0:
        share = 1.0 / (n - lower[codes[worst] + 1])
        for j in range(n):
            if codes[j] > codes[worst] and a[j] < a[worst]:
                g[j] = share
                g[worst] -= share
    return loss


@jit
def vertex(loss: int, a: Floats, codes: Integers, count: int, parts: Floats, g: Floats) -> float:
    """The loss of that code, for a query of at least two grades; fills the vertex of its dual variables."""
    if loss == _AVERAGE:
        return average_pairs(a, codes, count, parts, g)
    if loss == _MAX:
        return worst_margin_pair(a, codes, count, parts, g)
    return worst_document(a, codes, count, parts, g)


def loss_code(name: str) -> int:
    """The code of a loss for `vertex`."""
    if name not in LOSSES:
        raise DataError(f"loss must be {' or '.join(LOSSES)}, not {name!r}")
    return LOSSES.index(name)
