"""How a kernel learner moves: the steps of the library's mistake-driven learners, as coefficients of documents.

Every learner of the library moves by Σ_i c_i x_i over the documents of a list, so that its weights are always a sum of
documents and its scores a sum of inner products. An update gives the c_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.kernels import kernel
from ranktron.learners.kernel_support import Support
from ranktron.learners.pairwise_pairs import Documents, Pairs
from ranktron.predtron.problem import Problem
from ranktron.predtron.variants import Variant
from ranktron.types import Floats, Integers, Matrix, Mistake, Step, Surrogate


class Move(NamedTuple):
    """One round's step: the loss, a coefficient for each document, the same times their moments, and the time after."""

    loss: float
    delta: Floats
    lagged: Floats
    time: float


class Update(Protocol):
    """Judges a list and gives the step.

    `scores` are those that were shown; what the support scores now may differ, where feedback comes late. `time` is
    what averages are taken over: rounds, or pairs that were ranked well.
    """

    def __call__(
        self, support: Support, X: Matrix, scores: Floats, labels: Floats, number: int, time: float, /
    ) -> Move: ...


@dataclass(frozen=True)
class Descent:
    """The step of `Linear`: −η_t ∇φ(s_t, R_t), on mistakes only where `mistake` is given.

    >>> from ranktron.steps import Constant
    >>> from ranktron.surrogates import WorstPair
    >>> Descent(WorstPair(), Constant(0.5)).surrogate
    WorstPair(margin=1.0)
    """

    surrogate: Surrogate
    step: Step
    mistake: Mistake | None = None

    def __call__(self, support: Support, X: Matrix, scores: Floats, labels: Floats, number: int, time: float) -> Move:
        if self.mistake is not None and not self.mistake(scores, labels):
            return Move(0.0, np.zeros(len(X)), np.zeros(len(X)), time + 1.0)
        loss, gradient = self.surrogate(scores, labels)
        delta = -self.step(number) * gradient
        return Move(loss, delta, (time + 1.0) * delta, time + 1.0)


@dataclass(frozen=True)
class PredtronLoss:
    """The loss of a Predtron problem with the gradient of its step, rep(σ~) − rep(σ_y), as a surrogate.

    >>> from ranktron.predtron import Permutations, PlaceLoss, Places, variant_of
    >>> loss = PredtronLoss(Permutations(PlaceLoss("ndcg"), Places("-i")), variant_of("standard"))
    >>> round(loss(np.array([1.0, 0.0]), np.array([0.0, 1.0]))[0], 4)
    0.3691
    """

    problem: Problem
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


@kernel
def _visit(
    K: Floats, scores: Floats, upper: Documents, lower: Documents, order: Integers, eta: float, time: float,
    delta: Floats, lagged: Floats,
) -> tuple[int, float]:  # fmt: skip
    """Visits the pairs of a list and lets each misranked one move the scores of all: (how many, the time after)."""
    mistakes = 0
    for at in range(order.shape[0]):
        i, j = upper[order[at]], lower[order[at]]
        if scores[i] - scores[j] > 0.0:
            time += 1.0
            continue
        mistakes += 1
        delta[i] += eta
        delta[j] -= eta
        lagged[i] += time * eta
        lagged[j] -= time * eta
        for a in range(scores.shape[0]):
            scores[a] += eta * (K[i, a] - K[j, a])
    return mistakes, time


@dataclass(frozen=True)
class PairSteps:
    """The steps of the pairwise perceptron, one for each misranked pair of a list (COMMITTEE, Eq. 2).

    α grows by η_q = 1/|S_q| for the better document and shrinks by it for the other. Time counts the pairs that were
    ranked well, so that the mean over time is the average perceptron. Of the outputs of the family there are the last
    and the average one.

    >>> PairSteps(pairs_per_query=100)
    PairSteps(pairs_per_query=100)
    """

    pairs_per_query: int = 0

    def __call__(self, support: Support, X: Matrix, scores: Floats, labels: Floats, number: int, time: float) -> Move:
        pairs = Pairs.of(labels, np.array([0, len(labels)]))
        rng = np.random.default_rng(number)
        numbers = pairs.sample(self.pairs_per_query, rng) if self.pairs_per_query else pairs.all()
        delta, lagged = np.zeros(len(X)), np.zeros(len(X))
        if len(numbers) == 0:
            return Move(0.0, delta, lagged, time)
        upper, lower = pairs.decode(numbers)
        rows = X.astype(support.kernel.dtype, copy=False)
        K = support.kernel(rows, rows).astype(np.float64)
        now = support.scores(X, support.alpha)
        order = rng.permutation(len(numbers))
        mistakes, time = _visit(K, now, upper, lower, order, 1.0 / len(numbers), time, delta, lagged)
        return Move(mistakes / len(numbers), delta, lagged, time)
