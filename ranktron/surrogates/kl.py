"""The Kullback-Leibler divergence of unnormalised exponentials: a ListNet whose gradient is a sum over documents."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktron.kernels.grades import check_scores
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers


@jit
def _kl(scores: Floats, labels: Floats, gradient: Floats) -> float:
    loss = 0.0
    for i in range(scores.shape[0]):
        wanted, given = np.exp(labels[i]), np.exp(scores[i])
        loss += wanted * (labels[i] - scores[i] - 1.0) + given
        gradient[i] = given - wanted
    return loss


@jit
def _estimate_kl(scores: Floats, places: Integers, labels: Floats, weights: Floats, gradient: Floats) -> float:
    """Fills exp(s) − Σ exp(R_a) e_a / p(a): only labels are weighted, scores are known."""
    loss = 0.0
    for i in range(scores.shape[0]):
        gradient[i] = np.exp(scores[i])
        loss += gradient[i]
    for n in range(places.shape[0]):
        a, R = places[n], labels[n]
        wanted = np.exp(R) * weights[a]
        gradient[a] -= wanted
        loss += wanted * (R - scores[a] - 1.0)
    return loss


@jit
def _exponentials(scores: Floats) -> tuple[Floats, float]:
    given = np.empty(scores.shape[0])
    total = 0.0
    for i in range(scores.shape[0]):
        given[i] = np.exp(scores[i])
        total += given[i]
    return given, total


@jit
def _settle_kl(
    shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats, gradient: Floats
) -> float:
    """Fills −Σ exp(R_a) e_a / p(a) and returns the whole loss."""
    gradient[:] = 0.0
    loss = constant
    for n in range(places.shape[0]):
        a, R = places[n], labels[n]
        wanted = np.exp(R) * weights[a]
        gradient[a] -= wanted
        loss += wanted * (R - shown[a] - 1.0)
    return loss


@jit
def _estimated_as_printed(scores: Floats, places: Integers, labels: Floats, weights: Floats, gradient: Floats) -> float:
    """Fills Σ (exp(s_a) − exp(R_a)) e_a / p(a), for the first places only."""
    gradient[:] = 0.0
    loss = 0.0
    for n in range(places.shape[0]):
        a, R = places[n], labels[n]
        gradient[a] = (np.exp(scores[a]) - np.exp(R)) * weights[a]
        loss += (np.exp(R) * (R - scores[a] - 1.0) + np.exp(scores[a])) * weights[a]
    return loss


@dataclass(frozen=True)
class KL:
    """The divergence between exp(R) and exp(s), unnormalised: convex, never negative, 0 if s = R.

        loss(s, R) = Σ_i exp(R_i) (R_i − s_i − 1) + exp(s_i)

    Its gradient exp(s) − exp(R) is a sum of terms with one label each, unlike ListNet's. It has two unbiased
    estimates: the paper's also weights exp(s) by one over the propensity; ours does not, since scores are known, and
    has a far smaller variance.

    Parameters
    ----------
    printed : bool
        Whether to use the estimate of the paper.

    Examples
    --------
    >>> KL()(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    (0.0, array([0., 0.]))

    References
    ----------
    Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, section 4.1.
    """

    printed: bool = False
    coordinates: ClassVar[int] = 1
    compiled_margin: ClassVar[None] = None

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        return _kl(scores, labels, gradient), gradient

    def known(self, scores: Floats) -> Floats:
        """The term of the gradient without labels: exp(s), or nothing as printed."""
        return np.zeros(scores.shape[0]) if self.printed else np.exp(scores)

    def term(self, scores: Floats, items: tuple[int, ...], labels: tuple[float, ...]) -> Floats:
        """The term of the gradient with the label of one document: −exp(R_i) e_i, as printed with exp(s_i) e_i."""
        part = np.zeros(scores.shape[0])
        part[items[0]] = (np.exp(scores[items[0]]) if self.printed else 0.0) - np.exp(labels[0])
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
        if self.printed:
            gradient = np.empty(weights.shape[0])
            return _estimated_as_printed(scores, places, labels, weights, gradient), gradient
        gradient = np.empty(scores.shape[0])
        return _estimate_kl(scores, places, labels, weights, gradient), gradient

    def outline(self, scores: Floats, k: int) -> tuple[Floats, Floats, float]:
        """What is kept for late feedback: exp(s), the first k scores, and Σ exp(s); as printed, the scores alone."""
        if self.printed:
            return np.zeros(0), scores[:k].copy(), 0.0
        given, total = _exponentials(scores)
        return given, scores[:k].copy(), total

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        """The estimate from what `outline` kept: loss, factor of the base, gradient of the first k."""
        gradient = np.empty(weights.shape[0])
        if self.printed:
            return _estimated_as_printed(shown, places, labels, weights, gradient), 0.0, gradient
        return _settle_kl(shown, constant, places, labels, weights, gradient), 1.0, gradient
