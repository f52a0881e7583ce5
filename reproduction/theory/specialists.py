"""The perceptrons that Predtron's paper compares its bounds with: PRank, MMP, and uneven margins.

Each is made for one problem, where Predtron has an instance for all of them. They are here to be compared with, not to
be used: `learn` returns what a round lost and then takes its step. Ties go against them, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.predtron.permutations import Permutations
from ranktron.types import Floats


@dataclass(eq=False)
class PRank:
    """One vector and l − 1 thresholds for l ordered classes, 0 to l − 1.

        predicted: the number of thresholds b_r with <w, x> > b_r
        for every r on the wrong side, y_r <w, x> <= y_r b_r:    w += y_r x,    b_r −= y_r,    y_r = ±1 as y is above r

    Parameters
    ----------
    classes, features : int

    Examples
    --------
    >>> learner = PRank(classes=3, features=1)
    >>> learner.learn(np.array([1.0]), 2), learner.learn(np.array([1.0]), 2)
    (2.0, 0.0)

    References
    ----------
    Crammer and Singer, Pranking with ranking, NIPS 2002.
    """

    classes: int
    features: int
    w: Floats = field(init=False, repr=False)
    b: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise DataError(f"ordered classes must be at least 2, not {self.classes}")
        self.w, self.b = np.zeros(self.features), np.zeros(self.classes - 1)

    def learn(self, x: Floats, label: int) -> float:
        side = np.where(label > np.arange(self.classes - 1), 1.0, -1.0)
        wrong = side * (x @ self.w - self.b) <= 0.0
        self.w = self.w + np.sum(side[wrong]) * x
        self.b = self.b - side * wrong
        return float(wrong.sum())  # thresholds stay in order, so these lie between prediction and label


def prank_bound(R: float, gamma: float, classes: int) -> float:
    """Bounds the total distance of PRank, γ the least |<w, x> − b_r| of a (w, b) of norm 1: (l − 1)(R² + 1)/γ².

    >>> prank_bound(R=1.0, gamma=0.5, classes=5)
    32.0
    """
    return (classes - 1.0) * (R**2 + 1.0) / gamma**2


@dataclass(eq=False)
class MMP:
    """One row of weights for each label of multilabel ranking; a step is shared by all pairs in the wrong order.

        E = {(r, s): r in y, s not in y, <w_r, x> <= <w_s, x>},    for each pair in E: w_r += L x/|E|, w_s −= L x/|E|

    Parameters
    ----------
    problem : Permutations
        Its loss L, between 0 and 1, weighs the step.
    labels, features : int

    Examples
    --------
    >>> learner = MMP(Permutations(), labels=3, features=1)
    >>> learner.learn(np.array([1.0]), np.array([0.0, 0.0, 1.0])), learner.W.ravel().tolist()
    (0.5, [-0.25, -0.25, 0.5])

    References
    ----------
    Crammer and Singer, A family of additive online algorithms for category ranking, JMLR 2003 (the uniform update).
    """

    problem: Permutations
    labels: int
    features: int
    W: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.W = np.zeros((self.labels, self.features))

    def learn(self, x: Floats, label: Floats) -> float:
        scores: Floats = self.W @ x
        loss = self.problem.loss(self.problem.pred(scores, label), label)
        E = (label[:, None] > label[None, :]) & (scores[:, None] <= scores[None, :])
        if loss > 0.0 and E.any():
            self.W += loss * np.outer((E.sum(axis=1) - E.sum(axis=0)) / E.sum(), x)
        return loss


def mmp_bound(R: float, gamma: float, largest: float = 1.0) -> float:
    """Bounds the total loss of MMP, γ the least <w_r − w_s, x> of a W of norm 1: 2 R² C_L/γ².

    A step has L on each side, so that |W|² grows by at most 2 R² L² and <W*, W> by at least γ L.

    >>> mmp_bound(R=1.0, gamma=0.5)
    8.0
    """
    return 2.0 * R**2 * largest / gamma**2


@dataclass(eq=False)
class UnevenPerceptron:
    """Two classes, 0 and 1, each with a margin of its own: a step where y <w, x> <= τ_y.

    Parameters
    ----------
    features : int
    margins : pair of float >= 0
        τ of class 0 and of class 1.

    Examples
    --------
    >>> learner = UnevenPerceptron(1, margins=(0.0, 1.5))
    >>> [learner.learn(np.array([1.0]), 1) for _ in range(3)], learner.updates
    ([1.0, 0.0, 0.0], 2)

    References
    ----------
    Li, Zaragoza, Herbrich, Shawe-Taylor and Kandola, The perceptron algorithm with uneven margins, ICML 2002.
    """

    features: int
    margins: Sequence[float] = (0.0, 0.0)
    updates: int = field(default=0, init=False)
    w: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not all(0.0 <= margin < np.inf for margin in self.margins):
            raise DataError(f"margins must be 0 or more, not {tuple(self.margins)}")
        self.w = np.zeros(self.features)

    def learn(self, x: Floats, label: int) -> float:
        y = 2.0 * label - 1.0
        score = y * float(self.w @ x)
        if score <= self.margins[label]:
            self.w = self.w + y * x
            self.updates += 1
        return float(score <= 0.0)


def uneven_bound(R: float, gamma: float, margins: Sequence[float]) -> float:
    """Bounds the updates, and so the mistakes of either class, γ the least y <w, x> of a unit w: (R² + 2 τ_max)/γ².

    |w|² grows by at most R² + 2 τ_y in an update, <w*, w> by at least γ.

    >>> uneven_bound(R=1.0, gamma=0.5, margins=(0.0, 1.5))
    16.0
    """
    return (R**2 + 2.0 * max(margins)) / gamma**2
