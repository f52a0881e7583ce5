"""The worst pair of a list: the surrogate of the minimax perceptron."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels import grades, kernel
from ranktron.surrogates.pairwise_hinge import check_margin
from ranktron.types import Floats


@kernel
def closest_pair(scores: Floats, labels: Floats) -> tuple[float, int, int]:
    """The smallest lead of a better document over a worse one: (lead, better, worse); infinite without pairs.

    Of several such pairs the one of lowest grade counts.
    """
    codes, count = grades(labels)
    lowest = np.full(count, -1, np.int64)
    highest = np.full(count, -1, np.int64)
    for i in range(scores.shape[0]):
        g = codes[i]
        if lowest[g] < 0 or scores[i] < scores[lowest[g]]:
            lowest[g] = i
        if highest[g] < 0 or scores[i] > scores[highest[g]]:
            highest[g] = i
    lead, better, worse = np.inf, -1, -1
    below = highest[0]
    for g in range(1, count):
        if scores[lowest[g]] - scores[below] < lead:
            lead, better, worse = scores[lowest[g]] - scores[below], lowest[g], below
        if scores[highest[g]] > scores[below]:
            below = highest[g]
    return lead, better, worse


@kernel
def worst_pair(scores: Floats, labels: Floats, margin: float, gradient: Floats) -> float:
    """Fills the subgradient and returns the loss of Eq. (27)."""
    gradient[:] = 0.0
    lead, better, worse = closest_pair(scores, labels)
    if margin - lead <= 0.0:
        return 0.0
    gradient[better] = -1.0  # Eq. (29)
    gradient[worse] = 1.0
    return margin - lead


@dataclass(frozen=True)
class WorstPair:
    """Charges a list its worst pair alone.

        loss(s, R) = max_{R_i > R_j} max(0, margin + s_j − s_i)

    Examples
    --------
    >>> WorstPair()(np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.0, 0.0]))
    (4.0, array([-1.,  0.,  1.]))

    References
    ----------
    Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank, Eq. (26) to (29).
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        check_margin(self.margin)

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        gradient = np.empty(scores.shape[0])
        return worst_pair(scores, labels, self.margin, gradient), gradient
