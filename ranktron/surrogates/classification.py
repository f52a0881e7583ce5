"""The hinge loss of the classification perceptron, for each document separately."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels.grades import check_scores
from ranktron.types import Floats


@dataclass(frozen=True)
class ClassificationHinge:
    """The hinge loss of classification by the sign of the score: label 0 is the class −1, all others +1.

        loss(s, y) = Σ_i max(0, 1 − y_i s_i)

    Examples
    --------
    >>> ClassificationHinge()(np.array([0.5]), np.array([1.0]))
    (0.5, array([-1.]))

    References
    ----------
    Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank, Eq. (3).
    """

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        y = np.where(labels > 0.0, 1.0, -1.0)
        slack = 1.0 - y * scores
        return float(slack[slack > 0.0].sum()), np.where(slack > 0.0, -y, 0.0)
