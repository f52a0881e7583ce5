"""ListNet's cross-entropy between the top-one probabilities of labels and scores."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels import kernel
from ranktron.types import Floats

_FEW = 8  # whole labels below this have their exponentials in a table


@kernel
def _exponentials(labels: Floats, best: float) -> Floats:
    """exp(label − best) of every label; once for each grade where there are few."""
    values = np.empty(labels.shape[0])
    if best < _FEW:
        table = np.array([np.exp(grade - best) for grade in range(_FEW)])
        for i in range(labels.shape[0]):
            grade = np.int64(labels[i])
            if grade != labels[i] or grade < 0:
                break
            values[i] = table[grade]
        else:
            return values
    for i in range(labels.shape[0]):
        values[i] = np.exp(labels[i] - best)
    return values


@kernel
def listnet(scores: Floats, labels: Floats, gradient: Floats) -> float:
    """Fills the gradient P(s) − P(y) and returns the cross-entropy; no score and no label is too large."""
    highest, best_label = scores[0], labels[0]
    for i in range(scores.shape[0]):
        highest, best_label = max(highest, scores[i]), max(best_label, labels[i])
    wanted = _exponentials(labels, best_label)
    total, label_total = 0.0, 0.0
    for i in range(scores.shape[0]):
        gradient[i] = np.exp(scores[i] - highest)
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
