"""The squared loss between scores and labels."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktron.kernels.grades import check_scores
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers


@jit
def _squared_loss(scores: Floats, labels: Floats, gradient: Floats) -> float:
    loss = 0.0
    for i in range(scores.shape[0]):
        apart = scores[i] - labels[i]
        loss += apart * apart
        gradient[i] = 2.0 * apart
    return loss


@jit
def _estimate_squared(scores: Floats, places: Integers, labels: Floats, weights: Floats, gradient: Floats) -> float:
    """Fills 2 (s − Σ R_a e_a / p(a)) and returns the loss of which this is the gradient."""
    loss = 0.0
    for i in range(scores.shape[0]):
        loss += scores[i] * scores[i]
        gradient[i] = 2.0 * scores[i]
    for n in range(places.shape[0]):
        a, R = places[n], labels[n]
        gradient[a] -= 2.0 * R * weights[a]
        loss += (R * R - 2.0 * scores[a] * R) * weights[a]
    return loss


@jit
def _double_scores(scores: Floats, doubled: Floats) -> float:
    """Fills 2 s and returns Σ s²."""
    squares = 0.0
    for i in range(scores.shape[0]):
        squares += scores[i] * scores[i]
        doubled[i] = 2.0 * scores[i]
    return squares


@jit
def _settle_squared(
    shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats, gradient: Floats
) -> float:
    """Fills −2 Σ R_a e_a / p(a) and returns the whole loss."""
    gradient[:] = 0.0
    loss = constant
    for n in range(places.shape[0]):
        a, R = places[n], labels[n]
        gradient[a] -= 2.0 * R * weights[a]
        loss += (R * R - 2.0 * shown[a] * R) * weights[a]
    return loss


@jit
def _weigh_residuals(scores: Floats, places: Integers, labels: Floats, weights: Floats, gradient: Floats) -> float:
    """Fills Σ 2 (s_a − R_a) e_a / p(a) and returns the loss of which this is the gradient."""
    gradient[:] = 0.0
    loss = 0.0
    for n in range(places.shape[0]):
        a = places[n]
        apart = scores[a] - labels[n]
        gradient[a] = 2.0 * apart * weights[a]
        loss += apart * apart * weights[a]
    return loss


@dataclass(frozen=True)
class Squared:
    """The squared distance between scores and labels: a pointwise loss.

        loss(s, R) = Σ_i (s_i − R_i)²

    Its gradient 2 (s − R) is a sum of terms with one label each: the label of one document is enough to estimate it.
    It has two unbiased estimates. The paper's weights the label of an observed document by one over its propensity, and
    counts the scores of all documents. The other weights the residual s − R of an observed document, and leaves the
    others alone: the doubly robust estimate whose model of the labels are the scores themselves. It varies less the
    better the scores are, and tolerates a floor of the propensities.

    Parameters
    ----------
    residual : bool
        Whether to weight residuals instead of labels.

    Examples
    --------
    >>> Squared()(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (4.0, array([0., 4.]))

    The label 3 of the first of two documents, which was observed with probability 1/2:

    >>> observed = np.array([0]), np.array([3.0]), np.array([2.0])
    >>> Squared().estimate(np.array([1.0, 2.0]), *observed)[1]
    array([-10.,   4.])
    >>> Squared(residual=True).estimate(np.array([1.0, 2.0]), *observed)[1]
    array([-8.,  0.])

    References
    ----------
    Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, section 4.1.
    Dudík, Langford and Li, Doubly Robust Policy Evaluation and Learning, 2011.
    """

    residual: bool = False
    coordinates: ClassVar[int] = 1
    compiled_margin: ClassVar[None] = None
    linear_in_label: ClassVar[bool] = True  # its gradient: unbiased labels are enough, they need not be grades

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        return _squared_loss(scores, labels, gradient), gradient

    def known(self, scores: Floats) -> Floats:
        """The term of the gradient without labels: 2 s, or none with residuals."""
        return np.zeros(scores.shape[0]) if self.residual else 2.0 * scores

    def term(self, scores: Floats, items: tuple[int, ...], labels: tuple[float, ...]) -> Floats:
        """The term of the gradient with the label of one document: −2 R_i e_i, or 2 (s_i − R_i) e_i."""
        part = np.zeros(scores.shape[0])
        part[items[0]] = 2.0 * ((scores[items[0]] if self.residual else 0.0) - labels[0])
        return part

    def estimate(self, scores: Floats, places: Integers, labels: Floats, weights: Floats) -> tuple[float, Floats]:
        """The loss and gradient estimated from some labels, weighted by one over their propensities.

        Parameters
        ----------
        scores : array
            The scores of all documents, in the order shown.
        places : array of int
            The positions whose labels are known.
        labels : array
            These labels.
        weights : array
            One over their propensities.
        """
        gradient = np.empty(scores.shape[0])
        weigh = _weigh_residuals if self.residual else _estimate_squared
        return weigh(scores, places, labels, weights, gradient), gradient

    def outline(self, scores: Floats, k: int) -> tuple[Floats, Floats, float]:
        """What is kept for late feedback: 2 s, the first k scores, and Σ s²; of residuals the scores alone."""
        if self.residual:
            return np.zeros(0), scores[:k].copy(), 0.0
        doubled = np.empty(scores.shape[0])
        return doubled, scores[:k].copy(), _double_scores(scores, doubled)

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        """The estimate from what `outline` kept: loss, factor of the base, gradient of the first k."""
        gradient = np.empty(weights.shape[0])
        if self.residual:
            return _weigh_residuals(shown, places, labels, weights, gradient), 0.0, gradient
        return _settle_squared(shown, constant, places, labels, weights, gradient), 1.0, gradient
