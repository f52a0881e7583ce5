"""Where an online linear learner starts from, and how far from there its weights may go."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Floats, State


@jit
def keep_within(w: Floats, lagged_sum: Floats, centre: Floats, radius: float, t: float) -> None:
    """Projects w onto the ball around the centre, in place, as a part of the step of round t.

    `lagged_sum` is as for `kernels.dense.move`: the projection is part of the change that the average counts.
    """
    squared = 0.0
    for j in range(w.shape[0]):
        squared += (w[j] - centre[j]) ** 2
    length = np.sqrt(squared)
    if length > radius:
        for j in range(w.shape[0]):
            projected = centre[j] + (w[j] - centre[j]) * (radius / length)
            lagged_sum[j] += t * (projected - w[j])
            w[j] = projected


@dataclass(frozen=True, eq=False)
class Start:
    """The weights that a learner starts from, and the radius of the ball around them that it stays in.

    After each step w is projected onto {u : |u − weights| ≤ trust}, which is convex: of the regret inequalities all
    remain that hold for the learner without a projection, against every comparator in the ball.

    Parameters
    ----------
    weights : array of shape (n_features,)
        w_1, for scaled and mapped features.
    trust : float
        The radius of the ball, above 0; infinite for no limit.

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron
    >>> learner = hinge_perceptron(2)
    >>> learner.begin(Start(np.array([1.0, 0.0]), trust=0.5))
    >>> learner.scores(np.array([[3.0, 7.0]], np.float32))
    array([3.])
    """

    weights: Floats
    trust: float = inf

    def __post_init__(self) -> None:
        weights = np.array(self.weights, float)
        if weights.ndim != 1 or not np.isfinite(weights).all():
            raise DataError("a start has one finite weight for each feature")
        if not self.trust > 0.0:
            raise DataError(f"trust must be above 0, not {self.trust}")
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @property
    def bounded(self) -> bool:
        """Whether the ball has a radius."""
        return self.trust < inf

    def keep(self, w: Floats, lagged_sum: Floats, t: float) -> None:
        """Projects w onto the ball in place, as a part of the step of round t."""
        if self.bounded:
            keep_within(w, lagged_sum, self.weights, self.trust, t)

    def closest(self, w: Floats) -> Floats:
        """The point of the ball that is closest to w.

        >>> Start(np.array([1.0, 0.0]), trust=0.5).closest(np.array([1.0, 2.0]))
        array([1. , 0.5])
        """
        near = np.array(w, float)
        self.keep(near, np.zeros(len(near)), 0.0)
        return near

    def check(self, n_features: int) -> Start:
        """The start, if it is one for so many features."""
        if len(self.weights) != n_features:
            raise DataError(f"a start of {len(self.weights)} weights for {n_features} features")
        return self

    def state(self) -> State:
        """The part of a learner's state that says where it started."""
        return {"start": self.weights.copy(), **({"trust": self.trust} if self.bounded else {})}


def stored_start(state: State, n_features: int) -> Start | None:
    """The start in a learner's state; None if it started from nothing.

    >>> stored_start({"start": np.ones(2), "trust": 0.5}, 2).trust
    0.5
    """
    if "start" not in state:
        return None
    return Start(state["start"], float(state.get("trust", inf))).check(n_features)
