"""Subset ranking by Predtron: the general learner with permutations as predictions, for `play`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ranktron.defaults import PAPER
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features
from ranktron.kernels.dense import gather_observed
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.linear import why_refused
from ranktron.learners.mixing import mix_states
from ranktron.learners.predtron.links import make_link
from ranktron.learners.predtron.loop import Predtron, theoretical_step
from ranktron.learners.predtron.permutations import Permutations
from ranktron.learners.predtron.positions import PlaceLoss, Places
from ranktron.learners.predtron.variants import make_variant
from ranktron.learners.steps import Constant
from ranktron.types import Features, Feedback, Floats, Ranking, State

_PRINTED = PAPER["predtron"]


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


def predtron_ranker(
    n_features: int,
    representation: str = _PRINTED["representation"],
    loss: str = _PRINTED["loss"],
    variant: str = _PRINTED["variant"],
    norm: str = _PRINTED["norm"],
    eta: float = _PRINTED["eta"],
    step: str = _PRINTED["step"],
    radius: float = _PRINTED["radius"],
    documents: int = _PRINTED["documents"],
    highest: int = _PRINTED["highest"],
    average: bool = _PRINTED["average"],
) -> PredtronLearner:
    """Composes permutations, a variant, a link and a step size; `step="theory"` is that of the theorems.

    Parameters
    ----------
    n_features : int
        The number of features.
    representation : str
        `-i`, `-i^p`, `1/i` or `discount`: the representation of positions.
    loss : str
        `ndcg`, `ndcg@k` or `p@k`: what is optimised, and what counts as a mistake.
    variant : str
        `standard` or `loss-driven`: which ranking an update lowers.
    norm : {"l2", "l1", "group", "trace"}
        The norm in which margins are measured.
    eta : float
        The step size.
    step : {"constant", "theory"}
        A constant step size, or that of the theorems.
    radius, documents, highest
        For `step="theory"`: the largest operator norm and number of documents of a query, and the highest grade.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> predtron_ranker(3, representation="-i^1.1", norm="l2").core.step
    Constant(eta=0.1)
    """
    problem = Permutations(PlaceLoss(loss), Places(representation), documents, highest)
    how, link = make_variant(variant), make_link(norm, (n_features,))
    taken = theoretical_step(problem, how, link, radius) if step == "theory" else Constant(eta)
    return PredtronLearner(Predtron(problem, (n_features,), taken, how, link, average))
