"""ListNet's cross-entropy between the top-one probabilities of labels and scores."""

from dataclasses import dataclass
from math import factorial

import numpy as np

from ranktron.kernels.grades import check_scores
from ranktron.kernels.jit import jit, jit_dot, jit_rounding
from ranktron.types import Floats

_SERIES = tuple(1.0 / factorial(k) for k in range(14))
_LOG2_E, _LOG_2_HIGH, _LOG_2_LOW = 1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10
_LEAST = -708.0  # below this an exponential underflows


@jit_rounding
def exponentials(values: Floats, highest: float, out: Floats) -> None:
    """exp(value − highest), vectorised, which the library's exponential is not; correct to the last bit
    but one.

    exp(x) = 2^n exp(r) with an integer n and |r| <= log(2) / 2, for which few terms of the series are enough (Cody and
    Waite, Software Manual for the Elementary Functions, 1980, chapter 6).
    """
    powers = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        x = values[i] - highest
        x = x if x > _LEAST else _LEAST
        n = np.floor(x * _LOG2_E + 0.5)
        r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
        series = _SERIES[13]
        for k in range(12, -1, -1):
            series = _SERIES[k] + r * series
        out[i] = series
        powers[i] = (np.int64(n) + 1023) << 52  # the bits of 2^n
    scales = powers.view(np.float64)
    for i in range(values.shape[0]):
        out[i] *= scales[i]


@jit
def _highest(values: Floats) -> float:
    """The largest number, by eight independent maxima."""
    best = np.full(8, values[0])
    for start in range(0, values.shape[0] - 7, 8):
        for lane in range(8):
            best[lane] = max(best[lane], values[start + lane])
    highest = best[0]
    for lane in range(8):
        highest = max(highest, best[lane])
    for i in range(values.shape[0] & ~7, values.shape[0]):
        highest = max(highest, values[i])
    return float(highest)


@jit_dot
def listnet(scores: Floats, labels: Floats, gradient: Floats) -> float:
    """Fills the gradient P(s) − P(y) and returns the cross-entropy, without overflow for large scores and labels."""
    highest = _highest(scores)
    wanted = np.empty(labels.shape[0])
    exponentials(labels, _highest(labels), wanted)
    exponentials(scores, highest, gradient)
    total, label_total = 0.0, 0.0
    for i in range(scores.shape[0]):
        total += gradient[i]
        label_total += wanted[i]
    loss, level = 0.0, np.log(total) + highest
    share, label_share = 1.0 / total, 1.0 / label_total
    for i in range(scores.shape[0]):
        probability = wanted[i] * label_share
        loss += probability * (level - scores[i])
        gradient[i] = gradient[i] * share - probability
    return loss


@dataclass(frozen=True)
class ListNet:
    """The cross-entropy of two distributions over which document is ranked first.

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
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        return listnet(scores, labels, gradient), gradient
