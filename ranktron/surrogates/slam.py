"""The SLAM family: large-margin listwise losses that bound what NDCG, NDCG@k or AP lose.

Every document is compared with the best-scored document of any lower grade. Its weight v_i is what the measure would
lose at the document's place in the ideal order, where documents stand by grade and, within a grade, by score.
"""

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels import descending, grades, kernel
from ranktron.metrics import Metric, metric
from ranktron.surrogates.pairwise_hinge import check_margin
from ranktron.types import Floats, Integers

NDCG, AP = 0, 1


@kernel
def binarised(labels: Floats) -> Floats:
    """1 for every label above 0: what AP takes for relevant."""
    relevant = np.zeros(labels.shape[0])
    for i in range(labels.shape[0]):
        if labels[i] > 0.0:
            relevant[i] = 1.0
    return relevant


@kernel
def ideal_top(scores: Floats, labels: Floats, k: int) -> Integers:
    """The first k relevant documents (k = 0: all of them) by label and, within a label, as a ranking shows them."""
    codes, count = grades(labels)
    ends = np.zeros(count, np.int64)
    for i in range(codes.shape[0]):
        if labels[i] > 0.0:
            ends[codes[i]] += 1
    for grade in range(count - 2, -1, -1):
        ends[grade] += ends[grade + 1]
    wanted = ends[0] if k == 0 else min(k, ends[0])
    candidates = np.empty(codes.shape[0], np.int64)
    n = 0
    for i in range(codes.shape[0]):
        better = ends[codes[i] + 1] if codes[i] + 1 < count else 0
        if labels[i] > 0.0 and better < wanted:
            candidates[n] = i
            n += 1
    ideal = np.empty(n, np.int64)
    filled = np.zeros(count, np.int64)
    for i in candidates[:n][descending(scores[candidates[:n]])]:
        better = ends[codes[i] + 1] if codes[i] + 1 < count else 0
        ideal[better + filled[codes[i]]] = i
        filled[codes[i]] += 1
    return ideal[:wanted]


@kernel
def slam_weights(scores: Floats, labels: Floats, measure: int, k: int) -> Floats:
    """The weights v of Eq. (10), (11), (24); documents of label 0 weigh nothing and are never sorted."""
    v = np.zeros(scores.shape[0])
    if measure == AP:
        relevant = np.count_nonzero(labels)
        for i in range(scores.shape[0]):
            if labels[i] > 0.0:
                v[i] = 1.0 / relevant  # Eq. (10)
        return v
    ideal = ideal_top(scores, labels, k)
    total = 0.0
    for place in range(ideal.shape[0]):
        v[ideal[place]] = (2.0 ** labels[ideal[place]] - 1.0) / np.log2(place + 2.0)
        total += v[ideal[place]]
    for i in ideal:
        v[i] /= total  # Eq. (11), (24)
    return v


@kernel
def _best_below(scores: Floats, codes: Integers, count: int) -> Integers:
    """For each grade the best-scored document of any lower grade, -1 for the lowest grade."""
    best = np.full(count, -1, np.int64)
    for i in range(scores.shape[0]):
        above = codes[i] + 1
        if above < count and (best[above] < 0 or scores[i] > scores[best[above]]):
            best[above] = i
    for grade in range(2, count):
        if best[grade] < 0 or scores[best[grade - 1]] > scores[best[grade]]:
            best[grade] = best[grade - 1]
    return best


@kernel
def slam(scores: Floats, labels: Floats, v: Floats, margin: float, gradient: Floats) -> float:
    """Fills the subgradient and returns the loss of Eq. (9) for weights that are given (and so frozen)."""
    gradient[:] = 0.0
    codes, count = grades(labels)
    best = _best_below(scores, codes, count)
    loss = 0.0
    for i in range(scores.shape[0]):
        k = best[codes[i]]
        if k >= 0 and v[i] > 0.0:
            c = margin + scores[k] - scores[i]  # Eq. (14)
            if c > 0.0:
                loss += v[i] * c
                gradient[i] -= v[i]  # Eq. (13), (16)
                gradient[k] += v[i]
    return loss


@kernel
def slam_fraction(scores: Floats, labels: Floats, v: Floats, margin: float, fraction: float, gradient: Floats) -> float:
    """The loss with the mean hinge over the top fraction of the lower-graded documents in place of the maximum."""
    gradient[:] = 0.0
    codes, count = grades(labels)
    order = np.argsort(-scores, kind="mergesort")
    loss = 0.0
    for grade in range(1, count):
        lower = order[codes[order] < grade]
        q = max(1, int(np.ceil(fraction * lower.shape[0])))
        falling = scores[lower[:q]]
        sums = np.concatenate((np.zeros(1), np.cumsum(falling)))
        charged = np.zeros(q + 1)
        for i in np.flatnonzero(codes == grade):
            if v[i] > 0.0:
                p = np.searchsorted(-falling, margin - scores[i], side="left")  # how many of the q still pay
                loss += v[i] * (p * (margin - scores[i]) + sums[p]) / q
                gradient[i] -= v[i] * p / q
                charged[p] += v[i] / q
        for place in range(q - 1, -1, -1):
            charged[place] += charged[place + 1]
            gradient[lower[place]] += charged[place + 1]
    return loss


@dataclass(frozen=True)
class SLAM:
    """Charges every document for the best-scored document of lower grade that comes within the margin.

        loss(s, R) = Σ_i v_i max(0, max_{j: R_i > R_j} (margin + s_j − s_i))

    With margin 1 an upper bound on 1 − NDCG, 1 − NDCG@k or 1 − AP, whatever the scores. On noisy lists the single
    best of many lower documents says little: `fraction` > 0 takes the mean hinge over that share of them instead,
    which still costs nothing once the list is separated by the margin, but no longer bounds the measure.

    Parameters
    ----------
    measure : Metric or str
        "ndcg", "ndcg@k" or "map" (also "ap").
    margin : float > 0
    fraction : float in [0, 1]
        0 is the maximum of the paper, 1 the mean over all lower-graded documents.
    binarise : bool
        Whether AP takes every label above 0 for relevant; if not, graded labels are refused.

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
    _code: int = field(init=False, repr=False, compare=False)
    _k: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        measure = metric(self.measure)
        if measure.name not in ("ndcg", "map") or measure.convention != "paper":
            raise DataError(f"SLAM is defined for ndcg, ndcg@k and ap, not for {measure}")
        check_margin(self.margin)
        if not 0.0 <= self.fraction <= 1.0:
            raise DataError(f"the fraction must lie between 0 and 1, not {self.fraction}")
        object.__setattr__(self, "measure", measure)
        object.__setattr__(self, "_code", AP if measure.name == "map" else NDCG)
        object.__setattr__(self, "_k", measure.k or 0)

    def weights(self, scores: Floats, labels: Floats) -> Floats:
        """The weights v that a round at these scores freezes."""
        return slam_weights(scores, self.relevance(labels), self._code, self._k)

    def relevance(self, labels: Floats) -> Floats:
        """The labels as the measure sees them: binary under AP."""
        if self._code == NDCG:
            return labels
        relevant = binarised(labels)
        if not self.binarise and (relevant != labels).any():
            raise DataError("AP needs labels 0 and 1; with binarise=True every label above 0 counts as relevant")
        return relevant

    def at(self, scores: Floats, labels: Floats, v: Floats) -> tuple[float, Floats]:
        """Loss and gradient under weights that are given: convex in the scores, as the weights do not move."""
        relevant = self.relevance(labels)
        gradient = np.empty(scores.shape[0])
        if self.fraction == 0.0:
            return slam(scores, relevant, v, self.margin, gradient), gradient
        return slam_fraction(scores, relevant, v, self.margin, self.fraction, gradient), gradient

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        return self.at(scores, labels, self.weights(scores, labels))
