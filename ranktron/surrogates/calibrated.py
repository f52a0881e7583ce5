"""The squared loss that is calibrated with NDCG, and cannot be learnt from the top of the list."""

from dataclasses import dataclass

import numpy as np

from ranktron.kernels.grades import check_scores
from ranktron.kernels.jit import jit
from ranktron.metrics.gain import EXPONENTIAL_GAIN, LOG_DISCOUNT, exponential_gains, ideal_dcg
from ranktron.types import Floats


@jit
def _calibrated_loss(scores: Floats, labels: Floats, gradient: Floats) -> float:
    m = scores.shape[0]
    G = exponential_gains(labels)
    Z = ideal_dcg(labels, 0, EXPONENTIAL_GAIN, LOG_DISCOUNT)
    loss = 0.0
    for i in range(m):
        apart = scores[i] - (G[i] / Z if Z > 0.0 else 0.0)
        loss += apart * apart
        gradient[i] = 2.0 * apart
    return loss


@dataclass(frozen=True)
class CalibratedSquared:
    """Charges each document the squared distance of its score from its share of the ideal DCG.

        loss(s, R) = Σ_i (s_i − G(R_i) / Z(R))²,    G(r) = 2^r − 1,    Z(R) = the DCG of the ideal order

    Its minimiser over random labels is E[G(R)/Z(R)], the order of which is best for expected NDCG. Z takes all labels
    together: there is no decomposition over a few of them, and from the label of the first document alone nobody can
    have sublinear regret. A list without a relevant document asks for scores of 0.

    Examples
    --------
    >>> CalibratedSquared()(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    (1.0, array([-2.,  0.]))

    References
    ----------
    Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, section 5.
    """

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        return _calibrated_loss(scores, labels, gradient), gradient
