"""Multilabel classification: predictions and labels are subsets of m classes, written as m zeros and ones.

A subset is a corner of the cube, rep(σ) = 1/√m (Σ_{j ∈ σ} e_j − Σ_{j ∉ σ} e_j), and pred is the sign of each score.
The losses are functions f(b, c) of the number b of classes predicted wrongly and c of classes missed. If a class j
is wrong, the similarity decreases by flip_j = 2 s_j t_j / √m (s_j = ±1 tells whether j is in the label), so that
every argmax chooses a set of wrong classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers

Flags = npt.NDArray[np.bool_]


class CountLoss(Protocol):
    """A loss f(b, c) of b wrongly predicted and c missed classes, with the argmax of f(b, c) − Σ flip."""

    def __call__(self, b: int, c: int, /) -> float: ...

    def wrong(self, flips: Floats, label: Floats, /) -> Flags:
        """Returns which classes the argmax predicts wrongly.

        Parameters
        ----------
        flips : array
            What each class costs to predict wrongly.
        label : array of 0 and 1
            The classes.
        """


@jit
def _flips(scores: Floats, label: Floats) -> Floats:
    m = scores.shape[0]
    flips = np.empty(m)
    for j in range(m):
        flips[j] = (2.0 if label[j] == 1.0 else -2.0) * scores[j] / np.sqrt(m)
    return flips


@jit
def _cheapest_first(flips: Floats, label: Floats, member: float) -> Integers:
    classes = np.flatnonzero(label == member)
    return classes[argsort_ascending(flips[classes])]


@jit
def _any_wrong(flips: Floats) -> Flags:
    """All classes with a flip below 0; if there are none, the one with the smallest flip, if it is below 1."""
    wrong = flips < 0.0
    if not wrong.any():
        cheapest = np.argmin(flips)
        wrong[cheapest] = flips[cheapest] < 1.0
    return wrong


@jit
def _most_pairs_wrong(flips: Floats, label: Floats) -> Flags:
    """Maximises b c − Σ flip in one pass: the best c for a given b increases with b."""
    vain, missed = _cheapest_first(flips, label, 0.0), _cheapest_first(flips, label, 1.0)
    best, best_b, best_c = -np.inf, 0, 0
    cost_b, cost_c, c = 0.0, 0.0, 0
    for b in range(vain.shape[0] + 1):
        if b > 0:
            cost_b += flips[vain[b - 1]]
        while c < missed.shape[0] and flips[missed[c]] < b:
            cost_c += flips[missed[c]]
            c += 1
        value = float(b * c) - cost_b - cost_c
        if value > best:
            best, best_b, best_c = value, b, c
    return _mark(flips.shape[0], vain[:best_b], missed[:best_c])


@jit
def _best_counts(flips: Floats, label: Floats, table: Floats) -> Flags:
    """Maximises table[b, c] − Σ flip in O(m²): for given counts the classes with the smallest flips are wrong."""
    vain, missed = _cheapest_first(flips, label, 0.0), _cheapest_first(flips, label, 1.0)
    best, best_b, best_c = -np.inf, 0, 0
    cost_b = 0.0
    for b in range(vain.shape[0] + 1):
        if b > 0:
            cost_b += flips[vain[b - 1]]
        cost = cost_b
        for c in range(missed.shape[0] + 1):
            if c > 0:
                cost += flips[missed[c - 1]]
            if table[b, c] - cost > best:
                best, best_b, best_c = table[b, c] - cost, b, c
    return _mark(flips.shape[0], vain[:best_b], missed[:best_c])


@jit
def _mark(m: int, some: Integers, others: Integers) -> Flags:
    marked = np.zeros(m, np.bool_)
    for j in some:
        marked[j] = True
    for j in others:
        marked[j] = True
    return marked


@dataclass(frozen=True)
class SubsetZeroOne:
    """1 unless the subset is exactly right: f = 1 − [b = 0][c = 0].

    >>> SubsetZeroOne()(0, 1)
    1.0
    """

    def __call__(self, b: int, c: int) -> float:
        return float(b + c > 0)

    def wrong(self, flips: Floats, label: Floats) -> Flags:
        return _any_wrong(flips)


@dataclass(frozen=True)
class Hamming:
    """The number of wrong classes: f = b + c.

    >>> Hamming()(2, 1)
    3.0
    """

    def __call__(self, b: int, c: int) -> float:
        return float(b + c)

    def wrong(self, flips: Floats, label: Floats) -> Flags:
        return flips < 1.0


@dataclass(frozen=True)
class ErrorSetSize:
    """The number of pairs of a missed and a wrongly predicted class, and a cost for each of them: f = b c + δ (b + c).

    The paper's loss has δ = 0: whoever predicts all classes, or none, loses nothing.

    Parameters
    ----------
    class_cost : float >= 0
        δ, the cost of each wrong class beside the pairs.

    Examples
    --------
    >>> ErrorSetSize()(2, 3), ErrorSetSize(class_cost=0.1)(2, 3), ErrorSetSize()(2, 0)
    (6.0, 6.5, 0.0)
    """

    class_cost: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.class_cost < float("inf"):
            raise DataError(f"the cost of a wrong class must be a number of at least 0, not {self.class_cost}")

    def __call__(self, b: int, c: int) -> float:
        return float(b * c) + self.class_cost * (b + c)

    def wrong(self, flips: Floats, label: Floats) -> Flags:
        return _most_pairs_wrong(flips - self.class_cost, label)


@dataclass(frozen=True)
class Counted:
    """Any loss f(b, c) given as a function, by the O(m²) search of the paper's appendix C.2.

    Parameters
    ----------
    function : callable
        f(b, c): the loss of b labels too many and c labels too few.

    Examples
    --------
    >>> Counted(lambda b, c: b + 5.0 * c)(1, 1)
    6.0
    """

    function: Callable[[int, int], float]

    def __call__(self, b: int, c: int) -> float:
        return float(self.function(b, c))

    def wrong(self, flips: Floats, label: Floats) -> Flags:
        return _best_counts(flips, label, _table(self, label))


def _table(counts: CountLoss, label: Floats) -> Floats:
    members = int(label.sum())
    sizes = range(len(label) - members + 1), range(members + 1)
    return np.array([[counts(b, c) for c in sizes[1]] for b in sizes[0]])


@dataclass(frozen=True)
class Subsets:
    """Prediction of a subset of `classes` classes with a loss of counts.

    Parameters
    ----------
    classes : int >= 1
        The number of classes.
    counts : CountLoss
        `SubsetZeroOne()`, `Hamming()`, `ErrorSetSize()` or `Counted(f)`.

    Examples
    --------
    >>> problem = Subsets(3, Hamming())
    >>> problem.pred(np.array([0.5, -2.0, 0.1]))
    array([1., 0., 1.])
    >>> problem.augmented(np.array([0.5, -2.0, 0.1]), np.array([1.0, 0.0, 1.0])), problem.largest
    (array([0., 0., 0.]), 3.0)
    """

    classes: int
    counts: CountLoss = Hamming()

    def __post_init__(self) -> None:
        if self.classes < 1:
            raise DataError(f"a multilabel problem needs at least 1 class, not {self.classes}")
        if self.counts(0, 0) != 0.0:
            raise DataError("the loss of a subset that is exactly right must be 0")

    @property
    def smallest(self) -> float:
        return min(value for value in self._values() if value > 0.0)

    @property
    def largest(self) -> float:
        return max(self._values())

    def _values(self) -> list[float]:
        m = self.classes
        return [self.counts(b, c) for c in range(m + 1) for b in range(m + 1 - c)]

    def check(self, label: Any) -> Floats:
        given = np.asarray(label)
        if given.shape != (self.classes,) or given.dtype.kind not in "biuf" or not np.isin(given, (0, 1)).all():
            raise DataError(f"a label of this problem is {self.classes} zeros and ones, not {label!r}")
        return given.astype(float)

    def loss(self, prediction: Floats, label: Floats) -> float:
        return self._cost(prediction != label, label)

    def rep(self, prediction: Floats) -> Floats:
        corner: Floats = (2.0 * prediction - 1.0) / np.sqrt(self.classes)
        return corner

    def pred(self, scores: Floats, label: Floats | None = None) -> Floats:
        if label is None:
            return (scores > 0.0).astype(float)
        return _flip(label, _flips(scores, label) <= 0.0)

    def augmented(self, scores: Floats, label: Floats) -> Floats:
        return _flip(label, self.counts.wrong(_flips(scores, label), label))

    def correct(self, scores: Floats, label: Floats) -> Floats:
        return label

    def rival(self, scores: Floats, label: Floats) -> Floats | None:
        forbidden = np.where(_table(self.counts, label) > 0.0, 0.0, -np.inf)
        if np.isneginf(forbidden).all():
            return None
        return _flip(label, _best_counts(_flips(scores, label), label, forbidden))

    def _cost(self, wrong: Flags, label: Floats) -> float:
        missed = int(np.count_nonzero(wrong & (label == 1.0)))
        return self.counts(int(np.count_nonzero(wrong)) - missed, missed)


def _flip(label: Floats, wrong: Flags) -> Floats:
    return np.where(wrong, 1.0 - label, label)
