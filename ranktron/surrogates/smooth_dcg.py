"""SmoothDCG@1: the expected gain of a document drawn by a softmax of the scores."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.grades import check_scores
from ranktron.kernels.jit import jit
from ranktron.metrics.gain import EXPONENTIAL_GAIN, compute_gain
from ranktron.types import Floats, Integers


@jit
def _softmax(scores: Floats, epsilon: float) -> Floats:
    highest = scores[0]
    for i in range(scores.shape[0]):
        highest = max(highest, scores[i])
    P = np.empty(scores.shape[0])
    total = 0.0
    for i in range(scores.shape[0]):
        P[i] = np.exp((scores[i] - highest) / epsilon)
        total += P[i]
    for i in range(scores.shape[0]):
        P[i] /= total
    return P


@jit
def _estimate_smooth_dcg(
    scores: Floats, places: Integers, labels: Floats, weights: Floats, epsilon: float, sign: float, gradient: Floats
) -> float:
    P = _softmax(scores, epsilon)
    gain = 0.0
    gradient[:] = 0.0
    for n in range(places.shape[0]):
        a = places[n]
        G = compute_gain(labels[n], EXPONENTIAL_GAIN) * weights[a]
        gain += G * P[a]
        gradient[a] += sign * G * P[a] / epsilon
    for j in range(scores.shape[0]):
        gradient[j] -= sign * gain * P[j] / epsilon
    return sign * gain


@jit
def _settle_smooth_dcg(
    P: Floats, places: Integers, labels: Floats, weights: Floats, epsilon: float, gradient: Floats
) -> float:
    """Fills Σ G_a P_a e_a / ε and returns the gain."""
    gain = 0.0
    gradient[:] = 0.0
    for n in range(places.shape[0]):
        a = places[n]
        G = compute_gain(labels[n], EXPONENTIAL_GAIN) * weights[a]
        gain += G * P[a]
        gradient[a] += G * P[a] / epsilon
    return gain


@dataclass(frozen=True)
class SmoothDCG:
    """The negative expected gain of the first document if it is drawn from a softmax of the scores.

        loss(s, R) = −Σ_i (2^{R_i} − 1) P_i,    P_i = exp(s_i / ε) / Σ_j exp(s_j / ε)

    Not convex. The paper prints it without the minus sign, as if the gain were to be minimised; `printed` keeps that.
    Its gradient is a sum of terms with one label each.

    Parameters
    ----------
    epsilon : float > 0
        The temperature of the softmax; 0 would be the maximum.
    printed : bool
        Whether to minimise the gain, as the paper prints it.

    Examples
    --------
    >>> SmoothDCG(epsilon=1.0)(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    (-0.5, array([-0.25,  0.25]))

    References
    ----------
    Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, section 4.1.1.
    """

    epsilon: float = 0.01
    printed: bool = False
    coordinates: ClassVar[int] = 1
    compiled_margin: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < float("inf"):
            raise DataError(f"the smoothing epsilon must be a positive number, not {self.epsilon}")

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        m = scores.shape[0]
        return self.estimate(scores, np.arange(m), labels, np.ones(m))

    def known(self, scores: Floats) -> Floats:
        """The term of the gradient without labels: none."""
        return np.zeros(scores.shape[0])

    def term(self, scores: Floats, items: tuple[int, ...], labels: tuple[float, ...]) -> Floats:
        """The term of the gradient with the label of one document: ∓G(R_i) P_i (e_i − P) / ε."""
        P = np.exp((scores - scores.max()) / self.epsilon)
        P /= P.sum()
        G = (1.0 if self.printed else -1.0) * compute_gain(float(labels[0]), EXPONENTIAL_GAIN)
        return np.asarray(G * P[items[0]] * (np.eye(len(scores))[items[0]] - P) / self.epsilon)

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
        sign = 1.0 if self.printed else -1.0
        return _estimate_smooth_dcg(scores, places, labels, weights, self.epsilon, sign, gradient), gradient

    def outline(self, scores: Floats, k: int) -> tuple[Floats, Floats, float]:
        """What is kept for late feedback: P, and its first k."""
        P = _softmax(scores, self.epsilon)
        return P, P[:k].copy(), 0.0

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        """The estimate from what `outline` kept: loss, factor of P, gradient of the first k."""
        gradient = np.empty(weights.shape[0])
        sign = 1.0 if self.printed else -1.0
        gain = _settle_smooth_dcg(shown, places, labels, weights, self.epsilon, gradient)
        return sign * gain, -sign * gain / self.epsilon, sign * gradient
