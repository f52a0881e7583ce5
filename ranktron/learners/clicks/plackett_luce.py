"""The Plackett-Luce model of scores: rankings drawn from it, and how its probability changes when two are swapped.

    P(R) = Π_r e^{s_{R_r}} / Σ_{r' ≥ r} e^{s_{R_r'}}

Only the first k places of a ranking are shown. Of the documents below, the sum of their e^s is all that matters. With
a price, the model is that of the shortlist that it leaves (`ranktron.kernels.exploration_price`); the documents that
are not on it follow by score.
"""

import numpy as np

from ranktron.kernels.dispatch import FeatureArrays, dot_rows
from ranktron.kernels.exploration_price import affordable_shortlist
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import copy_into
from ranktron.kernels.random_numbers import PLACKETT_LUCE, stream_origin, uniform
from ranktron.kernels.sorting import argsort_descending
from ranktron.types import Floats, Integers

_LARGEST = 600.0  # e to this power, many times over, is still a float64, and 1 is nothing beside it


@jit
def draw_ranking(X: FeatureArrays, w: Floats, seed: int, number: int, price: float) -> tuple[Integers, Floats, bool]:
    """A ranking drawn from the model, the scores that it was drawn by, and whether there was anything to draw.

    Scores plus independent Gumbel noise, sorted, are such a draw (Yellott, 1977). The highest score is taken from all
    of them first: they are compared as float32, where noise would be lost beside large numbers.
    """
    scores = dot_rows(X, w)
    if price < 1.0:
        order = argsort_descending(scores)
        shortlist = order[: affordable_shortlist(scores, order, price, order.shape[0])]
        copy_into(order, shortlist[_draw_order(scores[shortlist], seed, number)])
        return order, scores, shortlist.shape[0] > 1
    return _draw_order(scores, seed, number), scores, True


@jit
def _draw_order(scores: Floats, seed: int, number: int) -> Integers:
    origin = stream_origin(seed, number, PLACKETT_LUCE)
    highest = scores.max() if scores.shape[0] else 0.0
    keys = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        keys[i] = (scores[i] - highest) - np.log(-np.log(uniform(origin, i) + 2.0**-54))
    return argsort_descending(keys)


@jit
def log_sum_below(scores: Floats, order: Integers, k: int) -> float:
    """The log of Σ e^s over the documents of the order below the first k; -inf where there are none.

    >>> round(log_sum_below(np.array([5.0, 1.0, 1.0]), np.array([0, 2, 1]), 1), 4)
    1.6931
    """
    highest = -np.inf
    for place in range(k, order.shape[0]):
        highest = max(highest, scores[order[place]])
    if highest == -np.inf:
        return highest
    total = 0.0
    for place in range(k, order.shape[0]):
        total += np.exp(scores[order[place]] - highest)
    return float(highest + np.log(total))


@jit
def swap_weight(shown: Floats, log_below: float, one: int, other: int) -> float:
    """P(R*) / (P(R) + P(R*)), where R* is the ranking R with two of the places shown swapped.

        P(R*) / P(R) = Π_{lo < r ≤ hi} (S_r + e^{s_hi}) / (S_r + e^{s_lo}),   S_r = Σ_{r' ≥ r, r' ≠ hi} e^{s_r'}

    All factors are on the same side of 1, and exponents are taken from the largest of what no factor lacks: nothing
    overflows, cancels out, or becomes 0 / 0.

    >>> swap_weight(np.array([0.0, 0.0]), -np.inf, 0, 1)
    0.5
    """
    lo, hi = min(one, other), max(one, other)
    base = max(max(shown[lo], shown[hi]), log_below)
    for place in range(hi + 1, shown.shape[0]):
        base = max(base, shown[place])
    high, low = np.exp(shown[hi] - base), np.exp(shown[lo] - base)
    others = np.exp(log_below - base)
    for place in range(hi + 1, shown.shape[0]):
        others += np.exp(shown[place] - base)
    ratio = (others + high) / (others + low)
    for place in range(hi - 1, lo, -1):
        others += np.exp(min(shown[place] - base, _LARGEST))
        ratio *= (others + high) / (others + low)
    return float(1.0 / (1.0 + 1.0 / ratio))
