"""The squared loss that is calibrated for NDCG, and cannot be learnt from the first k labels."""

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
    """The squared distance of each score from the document's gain divided by the ideal DCG.

        loss(s, R) = Σ_i (s_i − G(R_i) / Z(R))²,    G(r) = 2^r − 1,    Z(R) = the DCG of the ideal order

    Its minimiser for random labels is E[G(R)/Z(R)], whose order maximises expected NDCG. Z depends on all labels
    together: the loss is no sum of terms with a few labels each, and no learner that sees only the first label can
    have sublinear regret. For a query without a relevant document the best scores are 0.

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
