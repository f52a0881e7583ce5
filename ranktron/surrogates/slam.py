"""The SLAM family: large-margin listwise losses that bound what NDCG, NDCG@k or AP lose.

Every document is compared with the best-scored document of any lower grade. Its weight v_i is what the measure would
lose at the document's place in the ideal order, where documents stand by grade and, within a grade, by score.
"""

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels import descending, grades, kernel, rising
from ranktron.metrics import Metric, metric
from ranktron.metrics.gain import EXPONENTIAL_GAIN, LOG_DISCOUNT, discount_at, gain_of
from ranktron.surrogates.pairwise_hinge import check_margin
from ranktron.types import Floats, Integers

NDCG, AP = 0, 1
_FEW = 32  # so few ideal places are filled by insertion


@kernel
def binary_grades(labels: Floats) -> tuple[Integers, int]:
    """Grade 1 for every label above 0: what AP takes for relevant."""
    codes = np.zeros(labels.shape[0], np.int64)
    for i in range(labels.shape[0]):
        codes[i] = labels[i] > 0.0
    return codes, 2


@kernel
def slam_plan(labels: Floats, codes: Integers, count: int, measure: int, k: int) -> tuple[Integers, Integers, Floats]:
    """What a list's labels say before its scores do: the documents that may carry weight, best grade not yet first;
    how many relevant documents have a higher grade than each grade; and the weight v of each ideal place.
    """
    m = labels.shape[0]
    above, value = np.zeros(count + 1, np.int64), np.zeros(count)
    for i in range(m):
        above[codes[i]] += labels[i] > 0.0
        value[codes[i]] = labels[i]
    for grade in range(count - 2, -1, -1):
        above[grade] += above[grade + 1]
    wanted = above[0] if k == 0 else min(k, above[0])
    counts = np.zeros(count, np.int64)
    for grade in range(count):
        counts[grade] = value[grade] > 0.0 and above[grade + 1] < wanted
    candidates = np.empty(m, np.int64)
    n = 0
    for i in range(m):  # without a branch, which a processor would guess wrong half of the time
        candidates[n] = i
        n += counts[codes[i]]
    if measure == AP:
        return candidates[:n], above, np.full(wanted, 1.0 / max(wanted, 1))  # Eq. (10)
    v = np.empty(wanted)
    grade, total, gain = count, 0.0, 0.0
    for place in range(wanted):
        while grade == count or place >= above[grade]:
            grade -= 1
            gain = gain_of(value[grade], EXPONENTIAL_GAIN)
        v[place] = gain * discount_at(place, LOG_DISCOUNT)
        total += v[place]
    for place in range(wanted):
        v[place] /= total  # Eq. (11), (24)
    return candidates[:n], above, v


@kernel
def ideal_order(scores: Floats, codes: Integers, candidates: Integers, above: Integers, wanted: int) -> Integers:
    """The documents at the ideal places: by grade and, within a grade, as a ranking shows them."""
    if wanted <= _FEW:
        return _few_ideal(scores, codes, candidates, above, wanted)
    filled = above.copy()
    ideal = np.empty(candidates.shape[0], np.int64)
    for place in descending(scores[candidates]):
        i = candidates[place]
        ideal[filled[codes[i] + 1]] = i
        filled[codes[i] + 1] += 1
    return ideal[:wanted]


@kernel
def _few_ideal(scores: Floats, codes: Integers, candidates: Integers, above: Integers, wanted: int) -> Integers:
    """The same by insertion into the few places that count, where a sort of all candidates would cost more."""
    filled = above.copy()
    ideal = np.empty(wanted, np.int64)
    for i in candidates:
        first = above[codes[i] + 1]
        place, s = filled[codes[i] + 1], np.float32(scores[i])
        if place < wanted:
            filled[codes[i] + 1] += 1
        elif s > np.float32(scores[ideal[wanted - 1]]):  # only the lowest grade has more documents than places
            place = wanted - 1
        else:
            continue
        while place > first and s > np.float32(scores[ideal[place - 1]]):
            ideal[place] = ideal[place - 1]
            place -= 1
        ideal[place] = i
    return ideal


@kernel
def _best_below(scores: Floats, codes: Integers, count: int) -> Integers:
    """For each grade the best-scored document of any lower grade, -1 for the lowest grade."""
    best = np.full(count + 1, -1, np.int64)
    highest = np.full(count + 1, -np.inf)
    for i in range(scores.shape[0]):
        if scores[i] > highest[codes[i] + 1]:
            highest[codes[i] + 1] = scores[i]
            best[codes[i] + 1] = i
    for grade in range(2, count):
        if highest[grade - 1] > highest[grade]:
            highest[grade], best[grade] = highest[grade - 1], best[grade - 1]
    return best


@kernel
def slam(
    scores: Floats, codes: Integers, count: int, documents: Integers, v: Floats, margin: float, gradient: Floats
) -> float:
    """Fills the subgradient and returns the loss of Eq. (9), the documents and their weights given (and so frozen)."""
    gradient[:] = 0.0
    best = _best_below(scores, codes, count)
    loss = 0.0
    for place in range(documents.shape[0]):
        i = documents[place]
        k = best[codes[i]]
        if k >= 0:
            c = margin + scores[k] - scores[i]  # Eq. (14)
            if c > 0.0:
                loss += v[place] * c
                gradient[i] -= v[place]  # Eq. (13), (16)
                gradient[k] += v[place]
    return loss


@kernel
def slam_fraction(
    scores: Floats, codes: Integers, count: int, documents: Integers, v: Floats, margin: float, fraction: float,
    gradient: Floats,
) -> float:  # fmt: skip
    """The loss with the mean hinge over the top fraction of the lower-graded documents in place of the maximum."""
    gradient[:] = 0.0
    order = rising(-scores)
    loss = 0.0
    for grade in range(1, count):
        lower = order[codes[order] < grade]
        if lower.shape[0] == 0:
            continue
        q = max(1, int(np.ceil(fraction * lower.shape[0])))
        falling = scores[lower[:q]]
        sums = np.concatenate((np.zeros(1), np.cumsum(falling)))
        charged = np.zeros(q + 1)
        for place in range(documents.shape[0]):
            i = documents[place]
            if codes[i] == grade:
                p = np.searchsorted(-falling, margin - scores[i], side="left")  # how many of the q still pay
                loss += v[place] * (p * (margin - scores[i]) + sums[p]) / q
                gradient[i] -= v[place] * p / q
                charged[p] += v[place] / q
        for place in range(q - 1, -1, -1):
            charged[place] += charged[place + 1]
            gradient[lower[place]] += charged[place + 1]
    return loss


@kernel
def slam_at(
    scores: Floats, codes: Integers, count: int, documents: Integers, v: Floats, margin: float, fraction: float,
    gradient: Floats,
) -> float:  # fmt: skip
    """Loss and subgradient with the maximum (fraction 0) or the mean over a fraction."""
    if fraction == 0.0:
        return slam(scores, codes, count, documents, v, margin, gradient)
    return slam_fraction(scores, codes, count, documents, v, margin, fraction, gradient)


@kernel
def slam_round(
    scores: Floats, labels: Floats, measure: int, k: int, margin: float, fraction: float, gradient: Floats
) -> float:
    """Weights, loss and subgradient of one round."""
    codes, count = binary_grades(labels) if measure == AP else grades(labels)
    candidates, above, v = slam_plan(labels, codes, count, measure, k)
    ideal = ideal_order(scores, codes, candidates, above, v.shape[0])
    return slam_at(scores, codes, count, ideal, v, margin, fraction, gradient)


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
        """The weights v, one per document, that a round at these scores freezes."""
        codes, count = self._grades(labels)
        candidates, above, worth = slam_plan(labels, codes, count, self.code, self.k)
        v = np.zeros(len(scores))
        v[ideal_order(scores, codes, candidates, above, len(worth))] = worth
        return v

    def at(self, scores: Floats, labels: Floats, v: Floats) -> tuple[float, Floats]:
        """Loss and gradient under weights that are given: convex in the scores, as the weights do not move."""
        gradient = np.empty(len(scores))
        documents = np.flatnonzero(v)
        codes, count = self._grades(labels)
        loss = slam_at(scores, codes, count, documents, v[documents], self.margin, self.fraction, gradient)
        return loss, gradient

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        if not self.binarise and self.code == AP:
            self._grades(labels)
        gradient = np.empty(scores.shape[0])
        return slam_round(scores, labels, self.code, self.k, self.margin, self.fraction, gradient), gradient

    def _grades(self, labels: Floats) -> tuple[Integers, int]:
        if self.code == NDCG:
            return grades(labels)
        codes, count = binary_grades(labels)
        if not self.binarise and (codes != labels).any():
            raise DataError("AP needs labels 0 and 1; with binarise=True every label above 0 counts as relevant")
        return codes, count
