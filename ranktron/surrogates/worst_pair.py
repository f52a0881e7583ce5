"""The worst pair of a query: the surrogate of the minimax perceptron."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels.grades import best_below, by_grade, check_scores, extremes
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_margin


@jit
def nearest(scores: Floats, lowest: Integers, best_below: Integers) -> tuple[float, int, int]:
    """The smallest lead of a better document over a worse one, from the extreme scores of every grade."""
    lead, better, worse = np.inf, -1, -1
    for g in range(lowest.shape[0] - 2, -1, -1):
        own = scores[lowest[g]] - scores[best_below[g]]
        if own < lead or np.isnan(own):
            lead, better, worse = own, lowest[g], best_below[g]
    return lead, better, worse


@jit
def closest_pair(scores: Floats, labels: Floats) -> tuple[float, int, int]:
    """The smallest lead of a better document over a worse one: (lead, better, worse); infinite without pairs.

    Of several such pairs the one of lowest grade is returned.
    """
    documents, starts, _ = by_grade(labels)
    lowest, highest = extremes(scores, documents, starts)
    return nearest(scores, lowest, best_below(scores, highest))


@jit
def worst_pair_at(scores: Floats, lowest: Integers, best_below: Integers, margin: float, gradient: Floats) -> float:
    """Fills the subgradient and returns the loss of Eq. (27)."""
    gradient[:] = 0.0
    lead, better, worse = nearest(scores, lowest, best_below)
    if margin - lead <= 0.0:
        return 0.0
    gradient[better] = -1.0  # Eq. (29)
    gradient[worse] = 1.0
    return margin - lead


@jit
def worst_pair(scores: Floats, labels: Floats, margin: float, gradient: Floats) -> float:
    """The same from labels."""
    documents, starts, _ = by_grade(labels)
    lowest, highest = extremes(scores, documents, starts)
    return worst_pair_at(scores, lowest, best_below(scores, highest), margin, gradient)


@dataclass(frozen=True)
class WorstPair:
    """The largest margin violation of any pair of the query.

        loss(s, R) = max_{R_i > R_j} max(0, margin + s_j − s_i)

    Parameters
    ----------
    margin : float
        Correctly ordered pairs closer than this in score still incur loss.

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
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        return worst_pair(scores, labels, self.margin, gradient), gradient
