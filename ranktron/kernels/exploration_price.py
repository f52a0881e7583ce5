"""Exploration with a price: among how many of the best documents an order may be drawn at random.

The reward of a list is estimated as its DCG at 10, where a document gains its score above the lowest one. A price of
0.1 means that no list that is shown falls more than 10 % below the list by score in this reward, whatever is drawn.
"""

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers

_PLACES = 10


@jit
def _worst_reward(gains: Floats, n: int) -> float:
    """The estimated reward of the worst order of the first n documents; `gains` are sorted, highest first."""
    reward = 0.0
    for place in range(min(_PLACES, gains.shape[0])):
        gain = gains[n - 1 - place] if place < n else gains[place]
        reward += gain / np.log2(2.0 + place)
    return reward


@jit
def affordable_shortlist(scores: Floats, best: Integers, price: float, limit: int) -> int:
    """The largest n, at most `limit`, such that no order of the n best documents costs more than the price.

    The worst order of n documents is the reverse one, which costs more the larger n is: n is found by bisection. At
    equal scores every order is as good as any other, and exploration is free.

    >>> scores = np.array([3.0, 2.9, 2.8, 0.0])
    >>> [affordable_shortlist(scores, np.arange(4), price, 4) for price in (0.0, 0.01, 0.05, 1.0)]
    [1, 2, 3, 4]
    """
    m = best.shape[0]
    if price >= 1.0 or m == 0:
        return limit
    gains = np.empty(m)
    for place in range(m):
        gains[place] = scores[best[place]] - scores[best[m - 1]]
    least = (1.0 - price) * _worst_reward(gains, 1)
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        if _worst_reward(gains, middle) >= least:
            low = middle
        else:
            high = middle - 1
    return low
