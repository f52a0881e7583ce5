"""The updates of kernel learners: those of the mistake-driven learners, as coefficients of documents.

Every mistake-driven learner updates its weights by Σ_i c_i x_i over the documents of a query, so that they are a sum of
documents, and scores are sums of inner products. An update computes the c_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.learners.kernelized.dual_history import DualHistory
from ranktron.learners.kernelized.support import Support
from ranktron.learners.predtron.problem import PredictionProblem
from ranktron.learners.predtron.variants import Variant
from ranktron.types import Features, Floats, Mistake, Step, Surrogate


class Move(NamedTuple):
    """The result of one round: the loss, the mistakes, the coefficients and their lagged sums, and the new history."""

    loss: float
    mistakes: int
    steps: Floats
    history: DualHistory


class Update(Protocol):
    """Computes the update of one query.

    `scores` are those that were shown; those of the current support may differ if feedback comes late. The arguments
    are not changed.
    """

    def __call__(
        self, support: Support, X: Features, scores: Floats, labels: Floats, number: int, history: DualHistory, /
    ) -> Move: ...


@dataclass(frozen=True)
class Descent:
    """The update of `Linear`: −η_t ∇φ(s_t, R_t), on mistakes only if `mistake` is given.

    Parameters
    ----------
    surrogate : Surrogate
        The loss in score space, with its gradient.
    step : Step
        The step size of each round.
    mistake : Mistake, optional
        Which rankings are mistakes; without it there is an update in every round.

    Examples
    --------
    >>> from ranktron.learners.steps import Constant
    >>> from ranktron.surrogates import WorstPair
    >>> Descent(WorstPair(), Constant(0.5)).surrogate
    WorstPair(margin=1.0)
    """

    surrogate: Surrogate
    step: Step
    mistake: Mistake | None = None

    def __call__(
        self, support: Support, X: Features, scores: Floats, labels: Floats, number: int, history: DualHistory
    ) -> Move:
        history = history.later()
        if self.mistake is not None and not self.mistake(scores, labels):
            return Move(0.0, 0, np.zeros((2, len(labels))), history)
        loss, gradient = self.surrogate(scores, labels)
        delta = -self.step(number) * gradient
        return Move(loss, int(loss > 0.0), np.vstack([delta, history.time * delta]), history)


@dataclass(frozen=True)
class PredtronLoss:
    """The loss of a Predtron problem with the gradient of its update, rep(σ~) − rep(σ_y), as a surrogate.

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    variant : Variant
        Which prediction the step moves away from.

    Examples
    --------
    >>> from ranktron.learners.predtron import Permutations, PlaceLoss, Places, make_variant
    >>> loss = PredtronLoss(Permutations(PlaceLoss("ndcg"), Places("-i")), make_variant("standard"))
    >>> round(loss(np.array([1.0, 0.0]), np.array([0.0, 1.0]))[0], 4)
    0.3691
    """

    problem: PredictionProblem
    variant: Variant

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        label = self.problem.check(labels)
        shown = self.problem.pred(scores, label)
        loss = self.problem.loss(shown, label)
        if not loss > 0.0:
            return 0.0, np.zeros(len(scores))
        rival = self.variant.rival(self.problem, scores, label, shown)
        correct = self.problem.correct(scores, label)
        return loss, self.variant.weight(loss) * (self.problem.rep(rival) - self.problem.rep(correct))
