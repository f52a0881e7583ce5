"""Exploration: random orders as a function of (seed, round), and their exact propensities.

With probability γ the documents are shown in an order drawn uniformly, else by score, best first. A shortlist of n
restricts the random order to the n best-scored documents; the others stay below them. A price chooses the shortlist
for each list; where it allows none of k documents, the list is shown by score.
"""

from itertools import product
from math import perm

import numpy as np

from ranktron.kernels.exploration_price import affordable_shortlist
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import copy_into
from ranktron.kernels.random_numbers import EXPLORATION, stream_origin, uniform
from ranktron.kernels.sorting import FEW, LANES, argsort_by_counting, argsort_radix
from ranktron.types import Floats, Integers


@jit
def explores(seed: int, number: int, gamma: float) -> bool:
    """Whether a round explores, which is true with probability γ.

    >>> sum(explores(0, number, 0.25) for number in range(1000))
    233
    """
    return uniform(stream_origin(seed, number, EXPLORATION), 0) < gamma


@jit
def uniform_scores(seed: int, number: int, m: int) -> Floats:
    """The scores that an exploring round draws from [0, 1)^m.

    >>> uniform_scores(0, 1, 3).round(3)
    array([0.135, 0.32 , 0.299])
    """
    origin = stream_origin(seed, number, EXPLORATION)
    scores = np.empty(m)
    for i in range(m):
        scores[i] = uniform(origin, 1 + i)
    return scores


@jit
def _argsort_drawn(drawn: Floats) -> Integers:
    """Orders random scores, highest first, by all 53 bits: a radix sort of the lower 32 bits, then of the others."""
    m = drawn.shape[0]
    if m <= FEW:
        few = np.empty((m + LANES - 1) // LANES * LANES, np.int64)
        for i in range(few.shape[0]):
            few[i] = np.int64((1.0 - drawn[i]) * 2.0**53) if i < m else 1 << 62
        return argsort_by_counting(few, m)
    keys = np.empty(drawn.shape[0], np.uint64)
    low, high = np.empty(drawn.shape[0], np.uint32), np.empty(drawn.shape[0], np.uint32)
    for i in range(drawn.shape[0]):
        keys[i] = np.uint64((1.0 - drawn[i]) * 2.0**53)
        low[i] = np.uint32(keys[i] & np.uint64(0xFFFFFFFF))
    by_low = argsort_radix(low)
    for i in range(drawn.shape[0]):
        high[i] = np.uint32(keys[by_low[i]] >> np.uint64(32))
    order = argsort_radix(high)
    for place in range(m):
        order[place] = by_low[order[place]]
    return order


@jit
def draw_order(best: Integers, seed: int, number: int, gamma: float, n: int) -> tuple[Integers, bool]:
    """The order to show: the best, or the first n of them by drawn scores."""
    if not explores(seed, number, gamma):
        return best, False
    origin, drawn = stream_origin(seed, number, EXPLORATION), np.empty(n)
    for place in range(n):
        drawn[place] = uniform(origin, 1 + best[place])  # as in `uniform_scores`, but of these documents alone
    order, by_chance = np.empty(best.shape[0], np.int64), _argsort_drawn(drawn)
    copy_into(order, best)
    for place in range(n):
        order[place] = best[by_chance[place]]
    return order, True


@jit
def _among_the_best(order: Integers, best: Integers, k: int) -> Floats:
    """1 for each of the first k positions whose document is among the first k by score, else 0."""
    marks, top = np.zeros(best.shape[0]), np.empty(k)
    for place in range(k):
        marks[best[place]] = 1.0
    for place in range(k):
        top[place] = marks[order[place]]
    return top


@jit
def document_propensities(order: Integers, best: Integers, gamma: float, k: int, n: int) -> Floats:
    """The probability of each of the first k documents to be among the first k.

        P(i) = (1 − γ) [i among the first k by score] + γ k / n

    >>> document_propensities(np.array([2, 0, 1]), np.array([0, 1, 2]), 0.5, 1, 3).round(3)
    array([0.167])
    """
    return (1.0 - gamma) * _among_the_best(order, best, k) + gamma * k / n  # Eq. (1)


@jit
def pair_propensities(order: Integers, best: Integers, gamma: float, k: int, n: int) -> Floats:
    """The probability of each two of the first k documents to be both among the first k; diagonal: of each alone.

        P(i, j) = (1 − γ) [both among the first k by score] + γ k (k − 1) / (n (n − 1))

    >>> pair_propensities(np.array([0, 1, 2]), np.array([0, 1, 2]), 0.5, 2, 3).round(3).tolist()
    [[0.833, 0.667], [0.667, 0.833]]
    """
    top = _among_the_best(order, best, k)
    by_chance = gamma * k * (k - 1.0) / (n * (n - 1.0)) if n > 1 else 0.0
    pairs = np.empty((k, k))
    for i in range(k):
        for j in range(k):
            pairs[i, j] = (1.0 - gamma) * top[i] * top[j] + by_chance  # Eq. (1)
        pairs[i, i] = (1.0 - gamma) * top[i] + gamma * k / n
    return pairs


def group_propensities(order: Integers, best: Integers, gamma: float, k: int, n: int, size: int) -> Floats:
    """The same for groups of any size, with one axis for each document of a group; slow.

        P(i_1, …, i_ℓ) = (1 − γ) [all among the first k by score] + γ k! (n − ℓ)! / ((k − ℓ)! n!)

    >>> group_propensities(np.array([0, 1, 2]), np.array([0, 1, 2]), 0.5, 2, 3, 2).round(3).tolist()
    [[0.833, 0.667], [0.667, 0.833]]
    """
    top = _among_the_best(order, best, k)
    groups = np.empty((k,) * size)
    for places in product(range(k), repeat=size):
        chosen = set(places)
        by_chance = perm(k, len(chosen)) / perm(n, len(chosen))
        groups[places] = (1.0 - gamma) * all(top[place] for place in chosen) + gamma * by_chance
    return groups


@jit
def restrict_exploration(
    scores: Floats, best: Integers, gamma: float, k: int, n: int, price: float
) -> tuple[float, int]:
    """γ and the shortlist that a price leaves for a list: not to explore, and the first k, where it allows fewer.

    >>> restrict_exploration(np.array([3.0, 2.0, 0.0]), np.arange(3), 0.5, 2, 3, 0.01)
    (0.0, 2)
    """
    affordable: int = affordable_shortlist(scores, best, price, n)
    if affordable < k:
        return 0.0, k
    return gamma, affordable
