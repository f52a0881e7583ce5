"""The SLAM family: large-margin listwise losses that are upper bounds on the loss in NDCG, NDCG@k or AP.

Every document is compared with the best-scored document of any lower grade. Its weight v_i is what the metric would
lose at its position in the ideal order, in which documents are sorted by grade and, within a grade, by score.
"""

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.grades import best_below, check_scores, extremes, grades_seen
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending, ideal_order
from ranktron.metrics import Metric, metric
from ranktron.metrics.gain import EXPONENTIAL_GAIN, LOG_DISCOUNT, compute_gain, discount_at
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_margin

NDCG, AP = 0, 1


@jit
def slam_weights(starts: Integers, values: Floats, measure: int, k: int) -> Floats:
    """The weight v of each position in the ideal order, which depends on the grades only."""
    relevant = 0
    for g in range(values.shape[0]):
        if values[g] > 0.0:
            relevant = starts[g + 1]
    wanted = k if 0 < k < relevant else relevant
    v = np.empty(wanted)
    if measure == AP:
        for place in range(wanted):
            v[place] = 1.0 / wanted  # Eq. (10)
        return v
    g, total, gain = -1, 0.0, 0.0
    for place in range(wanted):
        while g < 0 or place >= starts[g + 1]:
            g += 1
            gain = compute_gain(values[g], EXPONENTIAL_GAIN)
        v[place] = gain * discount_at(place, LOG_DISCOUNT)
        total += v[place]
    for place in range(wanted):
        v[place] /= total  # Eq. (11), (24)
    return v


@jit
def slam(
    scores: Floats, starts: Integers, best_below: Integers, ideal: Integers, v: Floats, margin: float, gradient: Floats
) -> float:
    """Fills the subgradient and returns the loss of Eq. (9), for given (frozen) weights of the ideal positions."""
    gradient[:] = 0.0
    loss = 0.0
    g = 0
    for place in range(v.shape[0]):
        while place >= starts[g + 1]:
            g += 1
        i, k = ideal[place], best_below[g]
        if k >= 0:
            c = margin + scores[k] - scores[i]  # Eq. (14)
            if not c <= 0.0:  # NaN must not count as no loss
                loss += v[place] * c
                gradient[i] -= v[place]  # Eq. (13), (16)
                gradient[k] += v[place]
    return loss


@jit
def slam_fraction(
    scores: Floats, documents: Integers, starts: Integers, ideal: Integers, v: Floats, margin: float, fraction: float,
    gradient: Floats,
) -> float:  # fmt: skip
    """The loss with the mean hinge over the top fraction of the lower-graded documents in place of the maximum."""
    m = scores.shape[0]
    grade, lower = np.empty(m, np.int64), np.empty(m, np.int64)
    negated, sums, charged = np.empty(m), np.empty(m + 1), np.empty(m + 1)
    for g in range(starts.shape[0] - 1):
        for place in range(starts[g], starts[g + 1]):
            grade[documents[place]] = g
    for i in range(m):
        gradient[i] = 0.0
        negated[i] = -scores[i]
    order = argsort_ascending(negated)
    loss = 0.0
    for g in range(starts.shape[0] - 2):
        count = 0  # of documents of a lower grade, the best-scored first
        for place in range(m):
            lower[count] = order[place]
            count += grade[order[place]] > g
        q = int(np.ceil(fraction * count))
        q = q if q > 1 else 1
        sums[0] = charged[0] = 0.0
        for place in range(q):
            sums[place + 1] = sums[place] + scores[lower[place]]
            charged[place + 1] = 0.0
        for place in range(starts[g], starts[g + 1] if starts[g + 1] < v.shape[0] else v.shape[0]):
            i = ideal[place]
            p, after = 0, q  # how many of the q have loss, by bisection
            while p < after:
                middle = (p + after) // 2
                if negated[lower[middle]] < margin - scores[i]:
                    p = middle + 1
                else:
                    after = middle
            loss += v[place] * (p * (margin - scores[i]) + sums[p]) / q
            gradient[i] -= v[place] * p / q
            charged[p] += v[place] / q
        for place in range(q - 1, -1, -1):
            charged[place] += charged[place + 1]
            gradient[lower[place]] += charged[place + 1]
    return loss


@jit
def slam_at(
    scores: Floats, documents: Integers, starts: Integers, best_below: Integers, ideal: Integers, v: Floats,
    margin: float, fraction: float, gradient: Floats,
) -> float:  # fmt: skip
    """Loss and subgradient with the maximum (fraction 0) or the mean over a fraction."""
    if fraction == 0.0:
        return slam(scores, starts, best_below, ideal, v, margin, gradient)
    return slam_fraction(scores, documents, starts, ideal, v, margin, fraction, gradient)


@jit
def slam_round(
    scores: Floats, labels: Floats, measure: int, k: int, margin: float, fraction: float, gradient: Floats
) -> float:
    """Weights, loss and subgradient of one round."""
    documents, starts, values = grades_seen(labels, measure == AP)
    v = slam_weights(starts, values, measure, k)
    below = best_below(scores, extremes(scores, documents, starts)[1])
    ideal = ideal_order(scores, documents, starts, v.shape[0])
    return slam_at(scores, documents, starts, below, ideal, v, margin, fraction, gradient)


@dataclass(frozen=True)
class SLAM:
    """The weighted margin violation of each document by the best-scored document of a lower grade.

        loss(s, R) = Σ_i v_i max(0, max_{j: R_i > R_j} (margin + s_j − s_i))

    With margin 1 an upper bound on 1 − NDCG, 1 − NDCG@k or 1 − AP, for any scores. On noisy data the single
    best-scored of many lower documents says little: `fraction` > 0 takes the mean hinge over that share of them, which
    is still 0 for queries that are separated by the margin, but no longer bounds the metric.

    Parameters
    ----------
    measure : Metric or str
        "ndcg", "ndcg@k" or "map" (also "ap").
    margin : float > 0
        Correctly ordered pairs whose scores are closer than this still incur loss.
    fraction : float in [0, 1]
        0: the maximum, as in the paper; 1: the mean over all lower-graded documents.
    binarise : bool
        Whether AP treats every label above 0 as relevant; otherwise graded labels are refused.

    Examples
    --------
    >>> SLAM("ndcg")(np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.0, 0.0]))
    (4.0, array([-1.,  0.,  1.]))
    >>> SLAM("ndcg", fraction=1.0)(np.array([0.0, 1.0, 3.0]), np.array([1.0, 0.0, 0.0]))
    (3.0, array([-1. ,  0.5,  0.5]))

    References
    ----------
    Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank, Eq. (8) to (16), (24).
    """

    measure: Metric | str = "ndcg@10"
    margin: float = 1.0
    fraction: float = 0.0
    binarise: bool = True
    code: int = field(init=False, repr=False, compare=False)
    k: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        measure = metric(self.measure)
        if measure.name not in ("ndcg", "map") or measure.convention != "paper":
            raise DataError(f"SLAM is defined for ndcg, ndcg@k and ap, not for {measure}")
        check_margin(self.margin)
        if not 0.0 <= self.fraction <= 1.0:
            raise DataError(f"the fraction must lie between 0 and 1, not {self.fraction}")
        object.__setattr__(self, "measure", measure)
        object.__setattr__(self, "margin", float(self.margin))
        object.__setattr__(self, "fraction", float(self.fraction))
        object.__setattr__(self, "code", AP if measure.name == "map" else NDCG)
        object.__setattr__(self, "k", measure.k or 0)

    def weights(self, scores: Floats, labels: Floats) -> Floats:
        """The weights v, one per document, which are frozen in a round with these scores.

        Parameters
        ----------
        scores : array
            A score per document.
        labels : array
            A label per document.
        """
        documents, starts, values = self._grades(labels)
        worth = slam_weights(starts, values, self.code, self.k)
        v = np.zeros(len(scores))
        v[ideal_order(scores, documents, starts, len(worth))] = worth
        return v

    def at(self, scores: Floats, labels: Floats, v: Floats) -> tuple[float, Floats]:
        """Loss and gradient for given weights, which are convex in the scores.

        Parameters
        ----------
        scores : array
            A score per document.
        labels : array
            A label per document.
        v : array
            The weights, as `weights` returns them.
        """
        gradient = np.empty(len(scores))
        documents, starts, _ = self._grades(labels)
        below = best_below(scores, extremes(scores, documents, starts)[1])
        given = v[documents]  # one weight per document, 0 for most
        loss = slam_at(scores, documents, starts, below, documents, given, self.margin, self.fraction, gradient)
        return loss, gradient

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        if not self.binarise and self.code == AP:
            self._grades(labels)
        gradient = np.empty(scores.shape[0])
        return slam_round(scores, labels, self.code, self.k, self.margin, self.fraction, gradient), gradient

    def _grades(self, labels: Floats) -> tuple[Integers, Integers, Floats]:
        if self.code == AP and not self.binarise and ((labels > 0.0) != labels).any():
            raise DataError("AP needs labels 0 and 1; with binarise=True every label above 0 counts as relevant")
        return grades_seen(labels, self.code == AP)
