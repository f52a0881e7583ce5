"""Graded metrics: DCG, NDCG, ERR.

    DCG@k  = Σ_{i<=k} gain(r_i) · discount(i)
    NDCG@k = DCG@k / max over all orders of DCG@k
    ERR@k  = Σ_{i<=k} (1/i) · R_i · Π_{j<i} (1 − R_j),  R = (2^r − 1) / 2^4

All take labels in ranked order; a `k` of 0 means all documents.
"""

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.metrics.conventions import HIGHEST_ERR_GRADE
from ranktron.types import Floats

EXPONENTIAL_GAIN = 0
LOG_DISCOUNT = 0
ZERO_IF_SHORT = 2


def log_discounts(m: int) -> Floats:
    """1/log2(1 + i) for the ranks i = 1, ..., m.

    >>> log_discounts(3).round(3)
    array([1.   , 0.631, 0.5  ])
    """
    return np.asarray(1.0 / np.log2(np.arange(2.0, m + 2.0)))


_GRADES = 32
_TABLE = 1024
_GAINS = 2.0 ** np.arange(_GRADES) - 1.0
_DISCOUNTS = np.stack([log_discounts(_TABLE), np.concatenate([[1.0], log_discounts(_TABLE - 1)])])


@jit
def cut_off(k: int, m: int) -> int:
    """How many of m documents count."""
    return k if 0 < k < m else m


@jit
def compute_gain(label: float, gain: int) -> float:
    """2^r − 1, or r."""
    if gain != EXPONENTIAL_GAIN:
        return label
    whole = np.int64(label)
    if whole == label and whole < 63:
        return float((np.int64(1) << whole) - np.int64(1))
    return float(2.0**label - 1.0)


@jit
def exponential_gains(labels: Floats) -> Floats:
    """2^r − 1 of each label."""
    gained = np.empty(labels.shape[0])
    for i in range(labels.shape[0]):
        grade = np.int64(labels[i])
        small = grade == labels[i] and 0 <= grade < _GRADES
        gained[i] = _GAINS[grade] if small else compute_gain(labels[i], EXPONENTIAL_GAIN)
    return gained


@jit
def discount_at(i: int, discount: int) -> float:
    """The weight of the position i, counted from 0."""
    if i < _TABLE:
        return float(_DISCOUNTS[discount, i])
    return float(1.0 / np.log2(i + 2)) if discount == LOG_DISCOUNT else float(1.0 / np.log2(i + 1))


@jit
def dcg(labels: Floats, k: int, gain: int, discount: int, short: int) -> float:
    """DCG@k of labels in ranked order."""
    m = labels.shape[0]
    if short == ZERO_IF_SHORT and m < k:
        return 0.0
    total = 0.0
    for i in range(cut_off(k, m)):
        total += compute_gain(labels[i], gain) * discount_at(i, discount)
    return total


@jit
def ideal_dcg(labels: Floats, k: int, gain: int, discount: int) -> float:
    """The highest DCG@k of any order, summed as in `dcg`, so that a perfect ranking has an NDCG of exactly 1."""
    depth = cut_off(k, labels.shape[0])
    highest, fractions = 0, 0
    for i in range(labels.shape[0]):
        whole = int(labels[i])
        highest = whole if whole > highest else highest
        fractions += whole != labels[i]
    if fractions or highest >= _GRADES:
        order, falling = argsort_ascending(labels), np.empty(labels.shape[0])
        for i in range(labels.shape[0]):
            falling[i] = labels[order[labels.shape[0] - 1 - i]]
        return dcg(falling, k, gain, discount, 0)
    total = 0.0
    position, grade = 0, highest
    while position < depth and grade > 0:
        size = 0  # a vectorised count per grade is faster than a histogram
        for i in range(labels.shape[0]):
            size += labels[i] == grade
        worth = compute_gain(float(grade), gain)
        for _ in range(size if size < depth - position else depth - position):
            total += worth * discount_at(position, discount)
            position += 1
        grade -= 1
    return total


@jit
def ndcg(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    """NDCG@k of labels in ranked order."""
    best = ideal_dcg(labels, k, gain, discount)
    if best == 0.0:
        return empty
    return dcg(labels, k, gain, discount, short) / best


@jit
def err(labels: Floats, k: int, empty: float) -> float:
    """ERR@k of labels in ranked order."""
    total = 0.0
    unsatisfied = 1.0
    relevant = False
    depth = cut_off(k, labels.shape[0])
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            relevant = True
            if i < depth:
                satisfied = compute_gain(labels[i], EXPONENTIAL_GAIN) / 2.0**HIGHEST_ERR_GRADE
                total += unsatisfied * satisfied / (i + 1)
                unsatisfied *= 1.0 - satisfied
    return total if relevant else empty
