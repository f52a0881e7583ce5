"""Subset ranking by Predtron: the general learner with permutations as predictions, for `play`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features
from ranktron.kernels.dense import gather_observed
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.linear import why_refused
from ranktron.learners.mixing import mix_states
from ranktron.learners.predtron.loop import Predtron
from ranktron.types import Features, Feedback, Floats, Ranking, State


@dataclass(eq=False)
class PredtronLearner(BaseLearner):
    """A Predtron with a weight vector as a learner: ranks documents and learns from feedback, at the scores shown.

    Parameters
    ----------
    core : Predtron
        The Predtron with its problem, variant, link and step.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.learners import predtron_ranker
    >>> learner = predtron_ranker(1, representation="-i")
    >>> X = np.array([[1.0], [3.0]], np.float32)
    >>> round(learner.learn(X, learner.rank(X, 0), Feedback(np.array([0, 1]), np.array([0.0, 1.0]))), 4)
    0.3691
    >>> learner.coef > 0.0
    array([ True])
    """

    core: Predtron
    mixes: ClassVar = True

    @property
    def rounds(self) -> int:
        return self.core.rounds

    @property
    def mistakes(self) -> int:
        """The number of rounds with a loss so far."""
        return self.core.mistakes

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        return self.core.coef

    @property
    def ranking_weights(self) -> Floats:
        return self.core.W

    def scores(self, X: Features) -> Floats:
        check_features(X, self.core.W.shape[0])
        return self.core.scores(X)

    def predict(self, X: Features) -> Floats:
        check_features(X, self.core.W.shape[0])
        return self.core.predict(X)

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from the observed labels and returns the loss of the ranking, with ties broken against the ranker."""
        check_features(X, self.core.W.shape[0])
        items, labels = feedback
        scores, bad = gather_observed(ranking.scores, items, labels)
        if bad >= 0 or X.shape[0] != ranking.scores.shape[0]:
            raise DataError(why_refused(ranking, feedback, bad))
        seen = X if len(items) == len(X) and (items[1:] > items[:-1]).all() else X[items]
        mistake = self.core.learn(seen, scores, labels, ranking.number)
        return 0.0 if mistake is None else mistake.loss

    def mix(self, start: State, states: Sequence[State], weights: Floats) -> State:
        return mix_states(start, states, weights, "theta", self.core.link)

    def state(self) -> State:
        return self.core.state()

    def restore(self, state: State) -> None:
        self.core.restore(state)
