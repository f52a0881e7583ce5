"""Mistake rules: functions (scores, labels) -> bool, with ties broken in the worst way for a metric.

Scores are compared as float32, as everywhere where they decide an order. The rules do not sort: at w = 0 all scores
tie, and with ties in input order a query whose documents happen to be sorted by relevance would be no mistake.
"""

from dataclasses import dataclass

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.grades import best_below, check_scores, extremes, grades_seen
from ranktron.kernels.jit import jit
from ranktron.metrics import Metric
from ranktron.types import Floats, Integers, Mistake

__all__ = ["Misclassified", "Misordered", "MisorderedBinary", "mistake_rule"]


@jit
def misordered_grades(
    scores: Floats, documents: Integers, starts: Integers, lowest: Integers, best_below: Integers, k: int
) -> bool:
    """Whether NDCG@k (k = 0: of the whole list) of these grades would lose anything under the worst tie-breaking.

    Let g be the k-th best document's grade. Nothing is lost if every better grade is strictly above everything
    lower, and enough documents of grade g to fill the first k are above everything of a grade lower than g.
    """
    wanted = k if 0 < k < scores.shape[0] else scores.shape[0]
    for g in range(starts.shape[0] - 2):
        rival = np.float32(scores[best_below[g]])
        if wanted < starts[g + 1]:
            above = 0
            for place in range(starts[g], starts[g + 1]):
                above += bool(np.float32(scores[documents[place]]) > rival)
            return bool(starts[g] + above < wanted)
        if not np.float32(scores[lowest[g]]) > rival:
            return True
    return False


@jit
def misordered_list(scores: Floats, documents: Integers, starts: Integers) -> bool:
    """The same of the whole list, without the extremes of grades: it ends at the first document out of order."""
    least = np.float32(np.inf)  # of the better grades
    for g in range(starts.shape[0] - 1):
        own = least
        for place in range(starts[g], starts[g + 1]):
            score = np.float32(scores[documents[place]])
            if not (g == 0 or score < least) or score != score:
                return True
            own = score if score < own else own
        least = own
    return False


@jit
def misordered(scores: Floats, labels: Floats, k: int, binary: bool) -> bool:
    """The same from labels; `binary` is AP's rule: every label above 0 is relevant."""
    documents, starts, _ = grades_seen(labels, binary)
    lowest, highest = extremes(scores, documents, starts)
    return misordered_grades(scores, documents, starts, lowest, best_below(scores, highest), k)


@dataclass(frozen=True)
class Misordered:
    """A mistake unless NDCG (or NDCG@k) is 1 under the worst tie-breaking.

    Parameters
    ----------
    k : int
        Only the first k positions count; 0: all of them.

    Examples
    --------
    >>> Misordered()(np.array([2.0, 1.0]), np.array([1.0, 0.0]))
    False
    >>> Misordered()(np.array([1.0, 1.0]), np.array([1.0, 0.0]))
    True
    >>> Misordered(k=1)(np.array([3.0, 1.0, 2.0]), np.array([2.0, 1.0, 0.0]))  # wrong, but below rank 1
    False
    """

    k: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.k, int | np.integer) or self.k < 0:
            raise DataError(f"k must be a whole number, 0 for the whole list or more, not {self.k!r}")

    def __call__(self, scores: Floats, labels: Floats) -> bool:
        return bool(misordered(*check_scores(scores, labels), self.k, False))


@dataclass(frozen=True)
class MisorderedBinary:
    """A mistake unless AP is 1 under the worst tie-breaking, with every label above 0 relevant.

    >>> MisorderedBinary()(np.array([1.0, 2.0, 0.0]), np.array([2.0, 1.0, 0.0]))
    False
    """

    def __call__(self, scores: Floats, labels: Floats) -> bool:
        return bool(misordered(*check_scores(scores, labels), 0, True))


@dataclass(frozen=True)
class Misclassified:
    """A mistake unless every document lies strictly on its own side of 0 (label 0: the negative one).

    >>> Misclassified()(np.array([0.0]), np.array([1.0]))
    True
    """

    def __call__(self, scores: Floats, labels: Floats) -> bool:
        scores, labels = check_scores(scores, labels)
        return bool((np.where(labels > 0.0, scores, -scores) <= 0.0).any())


def mistake_rule(measure: Metric) -> Mistake:
    """The mistake rule of a metric.

    Parameters
    ----------
    measure : Metric
        `ndcg`, `ndcg@k` or `map`.

    Examples
    --------
    >>> from ranktron.metrics import metric
    >>> mistake_rule(metric("ndcg@10"))
    Misordered(k=10)
    """
    if measure.name == "ndcg":
        return Misordered(measure.k or 0)
    if measure.name == "map":
        return MisorderedBinary()
    raise DataError(f"there is no mistake rule for {measure}; there are rules for ndcg, ndcg@k and ap")
