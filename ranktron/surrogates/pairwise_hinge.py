"""The pairwise hinge of RankSVM, summed or averaged over the pairs of a query, in O(m log m)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktron.kernels.grades import add_to_tree, by_grade, check_scores, sum_below
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_margin

_NOTHING = np.zeros(0)
_COMPARED_PAIRS = 1 << 17  # up to this many pairs are compared one by one
_LANES = 16  # documents are compared this many at a time


@jit
def _hinge_by_comparison(
    scores: Floats, documents: Integers, starts: Integers, margin: float, gradient: Floats
) -> float:
    """Fills the gradient of the summed hinge and counts the pairs with loss, by comparing all pairs.

    For a few hundred documents faster than sorting: the inner loop only counts, and is vectorised.
    """
    m = documents.shape[0]
    ordered, paid = np.empty(m + _LANES), np.zeros(m + _LANES, np.int32)
    for place in range(m):
        ordered[place] = scores[documents[place]]
    for place in range(m, m + _LANES):
        ordered[place] = -np.inf  # has no loss with any document
    pairs = 0
    for grade in range(starts.shape[0] - 2):
        worse = starts[grade + 1]
        n = (m - worse + _LANES - 1) // _LANES * _LANES  # so that the vectorised loop has no remainder
        lower, owed = ordered[worse : worse + n], paid[worse : worse + n]
        for i in range(starts[grade], worse):
            own, count = ordered[i], np.int32(0)
            for j in range(n):
                pays = np.int32(lower[j] - own > -margin)
                owed[j] += pays
                count += pays
            paid[i] -= count
            pairs += int(count)
    for place in range(m):
        gradient[documents[place]] = paid[place]
    return float(pairs)


@jit
def _hinge_by_sorting(scores: Floats, documents: Integers, starts: Integers, margin: float, gradient: Floats) -> float:
    """The same in O(m log m).

    In descending order of scores, a document has loss with each lower-graded document less than the margin below it.
    A second pass with scores and grades negated counts the other document of each pair. A Fenwick tree counts grades.
    """
    order = argsort_ascending(scores)
    m, count = scores.shape[0], starts.shape[0] - 1
    codes = np.empty(m, np.int64)
    for grade in range(count):
        for place in range(starts[grade], starts[grade + 1]):
            codes[documents[place]] = count - 1 - grade
    gradient[:] = 0.0
    pairs = 0.0
    for mirrored in range(2):
        sign = -1.0 if mirrored else 1.0
        tree = np.zeros((count + 1, 2))
        seen = 0
        for position in range(m):
            i = order[position] if mirrored else order[m - 1 - position]
            while seen < m:
                j = order[seen] if mirrored else order[m - 1 - seen]
                if not margin + sign * (scores[j] - scores[i]) > 0.0:
                    break
                add_to_tree(tree, count - 1 - codes[j] if mirrored else codes[j], 0.0, 1.0)
                seen += 1
            lower, _ = sum_below(tree, count - 1 - codes[i] if mirrored else codes[i])
            gradient[i] -= sign * lower
            pairs += lower
    return 0.5 * pairs


@jit
def summed_hinge(
    scores: Floats, documents: Integers, starts: Integers, margin: float, gradient: Floats
) -> tuple[float, float]:
    """Fills the gradient of the summed hinge of documents by grade: (the sum, the number of pairs of different grade).

    All counts are integers, so that the result does not depend on the order in which pairs are counted.
    """
    pairs = 0.0
    for grade in range(starts.shape[0] - 2):
        pairs += float(starts[grade + 1] - starts[grade]) * (scores.shape[0] - starts[grade + 1])
    if pairs == 0.0:
        gradient[:] = 0.0
        return 0.0, 0.0
    if pairs <= _COMPARED_PAIRS:
        loss = margin * _hinge_by_comparison(scores, documents, starts, margin, gradient)
    else:
        loss = margin * _hinge_by_sorting(scores, documents, starts, margin, gradient)
    for i in range(scores.shape[0]):
        loss += scores[i] * gradient[i]
    return 0.0 if loss < 0.0 else loss, pairs


@jit
def estimate_hinge(
    scores: Floats, places: Integers, labels: Floats, weights: Floats, margin: float, gradient: Floats
) -> float:
    """Fills the gradient of the pairs of observed documents, each with its own weight."""
    gradient[:] = 0.0
    loss = 0.0
    for a in range(places.shape[0]):
        for b in range(places.shape[0]):
            i, j = places[a], places[b]
            slack = margin + scores[j] - scores[i]
            if labels[a] > labels[b] and slack > 0.0:
                loss += slack * weights[i, j]
                gradient[i] -= weights[i, j]
                gradient[j] += weights[i, j]
    return loss


@dataclass(frozen=True)
class PairwiseHinge:
    """The sum of margin violations over all pairs of documents with different labels.

        loss(s, y) = Σ_{y_i > y_j} max(0, margin + s_j − s_i)

    With margin 1 an upper bound on the number of inverted pairs. Its gradient is a sum of terms with two labels each,
    and not of terms with fewer (Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, Lemma 2).

    Parameters
    ----------
    margin : float > 0
        Correctly ordered pairs whose scores are closer than this still incur loss.

    Examples
    --------
    >>> PairwiseHinge()(np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (2.0, array([-1.,  1.]))
    """

    margin: float = 1.0
    coordinates: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_margin(self.margin)

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        documents, starts, _ = by_grade(labels)
        loss, _ = summed_hinge(scores, documents, starts, self.margin, gradient)
        return loss, gradient

    @property
    def compiled_margin(self) -> float | None:
        """The margin, with which compiled rounds compute `estimate`; None for a subclass, which may do so otherwise."""
        return self.margin if type(self) is PairwiseHinge else None

    def known(self, scores: Floats) -> Floats:
        """The term of the gradient without labels: none."""
        return np.zeros(scores.shape[0])

    def term(self, scores: Floats, items: tuple[int, ...], labels: tuple[float, ...]) -> Floats:
        """The term of the gradient with the labels of two documents: [R_i > R_j] [margin + s_j > s_i] (e_j − e_i)."""
        part = np.zeros(scores.shape[0])
        i, j = items
        if labels[0] > labels[1] and self.margin + scores[j] - scores[i] > 0.0:
            part[i], part[j] = -1.0, 1.0
        return part

    def estimate(self, scores: Floats, places: Integers, labels: Floats, weights: Floats) -> tuple[float, Floats]:
        """The loss and gradient estimated from some labels, weighted by one over the pairs' propensities.

        The gradient is that of the first k documents only.

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
        gradient = np.empty(weights.shape[0])
        return estimate_hinge(scores, places, labels, weights, self.margin, gradient), gradient

    def outline(self, scores: Floats, k: int) -> tuple[Floats, Floats, float]:
        """What is kept for late feedback: the scores of the first k."""
        return _NOTHING, scores[:k].copy(), 0.0

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        """The estimate from what `outline` kept: loss, factor of the base (none), gradient of the first k."""
        loss, gradient = self.estimate(shown, places, labels, weights)
        return loss, 0.0, gradient


@dataclass(frozen=True)
class MeanPairwiseHinge:
    """The mean margin violation over all pairs, so that queries with many documents do not count more than others.

        loss(s, y) = 1/|S| Σ_{(i, j) ∈ S} max(0, margin + s_j − s_i),    S = {(i, j): y_i > y_j}

    Parameters
    ----------
    margin : float
        Correctly ordered pairs closer than this in score still incur loss.

    Examples
    --------
    >>> MeanPairwiseHinge()(np.array([1.0, 2.0, 2.0]), np.array([1.0, 0.0, 0.0]))
    (2.0, array([-1. ,  0.5,  0.5]))
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        check_margin(self.margin)

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        scores, labels = check_scores(scores, labels)
        gradient = np.empty(scores.shape[0])
        documents, starts, _ = by_grade(labels)
        loss, pairs = summed_hinge(scores, documents, starts, self.margin, gradient)
        return (loss / pairs, gradient / pairs) if pairs else (0.0, gradient)
