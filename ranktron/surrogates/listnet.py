"""ListNet's cross-entropy between the top-one probabilities of labels and scores."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels import kernel
from ranktron.types import Floats


@kernel
def listnet(scores: Floats, labels: Floats, gradient: Floats) -> float:
    """Fills the gradient P(s) − P(y) and returns the cross-entropy; no score and no label is too large."""
    highest, best_label = scores[0], labels[0]
    for i in range(scores.shape[0]):
        highest, best_label = max(highest, scores[i]), max(best_label, labels[i])
    wanted = np.empty(scores.shape[0])
    total, label_total = 0.0, 0.0
    for i in range(scores.shape[0]):
        gradient[i], wanted[i] = np.exp(scores[i] - highest), np.exp(labels[i] - best_label)
        total += gradient[i]
        label_total += wanted[i]
    loss, level = 0.0, np.log(total) + highest
    for i in range(scores.shape[0]):
        wanted[i] /= label_total
        loss += wanted[i] * (level - scores[i])
        gradient[i] = gradient[i] / total - wanted[i]
    return loss


@dataclass(frozen=True)
class ListNet:
    """Compares two distributions over which document is first.

        loss(s, y) = −Σ_i P_y(i) log P_s(i),    P_a(i) = exp(a_i) / Σ_j exp(a_j)

    Examples
    --------
    >>> loss, gradient = ListNet()(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    >>> round(loss, 4), gradient.round(3)
    (0.6931, array([-0.231,  0.231]))

    References
    ----------
    Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach.
    """

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        gradient = np.empty(scores.shape[0])
        return listnet(scores, labels, gradient), gradient
