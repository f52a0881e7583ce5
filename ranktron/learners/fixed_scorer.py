"""A linear scorer that does not learn: the result of a batch solver, or a model with its scaling folded in."""

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.linear import as_weights, stored_number
from ranktron.types import Features, Feedback, Floats, Ranking, State


@dataclass(eq=False)
class Fixed(BaseLearner):
    """Scores X · coef + constant and refuses to learn.

    >>> fixed = Fixed(2)
    >>> fixed.restore({"coef": np.array([1.0, -1.0]), "constant": 0.5})
    >>> fixed.predict(np.array([[3.0, 1.0]], np.float32))
    array([2.5])
    """

    n_features: int
    rounds: int = field(default=0, init=False)
    constant: float = field(default=0.0, init=False)
    weights: Floats = field(init=False, repr=False)

    learns_online = False

    def __post_init__(self) -> None:
        self.weights = np.zeros(self.n_features)

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        return self.weights

    ranking_weights = coef

    def scores(self, X: Features) -> Floats:
        return linear_scores(X, self.weights) + self.constant

    predict = scores

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        raise DataError("this model has fixed weights and cannot learn online: train it again")

    def state(self) -> State:
        return {"coef": self.weights.copy(), "constant": self.constant}

    def restore(self, state: State) -> None:
        self.weights, self.constant = as_weights(state["coef"], self.n_features), stored_number(state, "constant")
