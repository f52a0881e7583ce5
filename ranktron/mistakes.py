"""What counts as a mistake: rules (scores, labels) -> bool under the worst tie-breaking.

Scores are compared as float32, as everywhere where they decide an order. The rules never sort: at w = 0 all scores
tie, and a rule that trusted the input order would call a list that happens to be sorted by relevance perfect.
"""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels import grades, kernel
from ranktron.types import Floats


@kernel
def _misordered(scores: Floats, labels: Floats) -> bool:
    codes, count = grades(labels)
    lowest = np.full(count, np.inf, np.float32)
    highest = np.full(count, -np.inf, np.float32)
    for i in range(scores.shape[0]):
        s = np.float32(scores[i])
        lowest[codes[i]] = min(lowest[codes[i]], s)
        highest[codes[i]] = max(highest[codes[i]], s)
    below = np.float32(-np.inf)
    for grade in range(1, count):
        below = max(below, highest[grade - 1])
        if not lowest[grade] > below:
            return True
    return False


@dataclass(frozen=True)
class Misordered:
    """A mistake unless every document scores above all documents of lower grade (NDCG ≠ 1).

    >>> Misordered()(np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    False
    >>> Misordered()(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    True
    """

    def __call__(self, scores: Floats, labels: Floats) -> bool:
        return bool(_misordered(scores, labels))
