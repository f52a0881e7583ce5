"""Learners in dual form: they remember documents instead of weights, so that a kernel may bend the space."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktron import feedback as feedbacks
from ranktron.errors import DataError
from ranktron.kernels import descending
from ranktron.learners.kernel_functions import Gaussian, KernelFunction, kernel_of
from ranktron.learners.kernel_removal import RULES, Projection, Removal, Smallest
from ranktron.learners.kernel_support import Support
from ranktron.learners.kernel_updates import Descent, Move, PairSteps, PredtronLoss, Update
from ranktron.learners.linear import heard_scores, overflow
from ranktron.metrics import metric as as_metric
from ranktron.mistakes import Misordered, mistake_of
from ranktron.predtron import Permutations, PlaceLoss, Places, variant_of
from ranktron.steps import Constant, InversePower
from ranktron.surrogates import SLAM, ListNet, MeanPairwiseHinge, WorstPair
from ranktron.types import Feedback, Floats, Matrix, Ranking, State

UNLIMITED = 1 << 40
BESIDES = 250
"""Bytes that a document takes beside its features, its coefficients and its place in the table of documents."""


@dataclass(eq=False)
class KernelLearner:
    """Any mistake-driven learner with its weights as a sum of documents, w = Σ_s α_s φ(s).

        score(x) = Σ_s α_s k(s, x),    on a mistake α_i += the update's coefficient of document i

    Only documents that move the weights are remembered, and no more than `most` of them: `removal` says what happens
    when there is no room.

    Parameters
    ----------
    n_features : int
    update : Update
        `Descent` on any surrogate, or `PairSteps`.
    kernel : KernelFunction
        `LinearKernel`, `Polynomial` or `Gaussian`.
    most : int >= 1
        The budget: documents remembered at most.
    removal : Removal
        `Oldest`, `Random`, `Smallest` or `Projection`.
    average : bool
        Serve the mean of all weights.

    Examples
    --------
    >>> from ranktron.learners.kernel_functions import Polynomial
    >>> learner = KernelLearner(1, Descent(WorstPair(), Constant(1.0), Misordered()), Polynomial(degree=2))
    >>> X, labels = np.array([[-1.0], [0.0], [1.0]], np.float32), np.array([1.0, 0.0, 1.0])
    >>> for number in range(4):
    ...     loss = learner.learn(X, learner.rank(X, number), Feedback(np.arange(3), labels))
    >>> loss, learner.rank(X, 4).order.tolist()  # no linear ranker puts both ends above the middle
    (0.0, [0, 2, 1])
    """

    n_features: int
    update: Update
    kernel: KernelFunction = Gaussian()  # noqa: RUF009 (it is frozen)
    most: int = UNLIMITED
    removal: Removal = Smallest()  # noqa: RUF009 (it is frozen)
    average: bool = False
    rounds: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    time: float = field(default=0.0, init=False)
    support: Support = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise DataError(f"the budget must be at least one document, not {self.most}")
        self.support = Support(self.n_features, self.kernel, self.most)

    hears = staticmethod(feedbacks.full)

    @property
    def coefficients(self) -> Floats:
        """The coefficients to serve, one for each document of the support."""
        support = self.support
        return support.alpha - support.lag / self.time if self.average and self.time else support.alpha

    def scores(self, X: Matrix) -> Floats:
        return self.support.scores(X, self.support.alpha)

    def predict(self, X: Matrix) -> Floats:
        return self.support.scores(X, self.coefficients)

    def rank(self, X: Matrix, number: int) -> Ranking:
        if X.shape[1] != self.n_features:
            raise DataError(f"this learner knows {self.n_features} features, the list has {X.shape[1]}")
        scores = self.scores(X)
        return Ranking(descending(scores), scores, number)

    def learn(self, X: Matrix, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from what was observed and returns the update's loss (0 where nothing was wrong)."""
        scores = heard_scores(X, ranking, feedback)
        seen = X if len(feedback.items) == len(X) and scores is ranking.scores else X[feedback.items]
        move = self.update(self.support, seen, scores, feedback.labels, ranking.number, self.time)
        if not np.isfinite(move.loss + np.abs(move.delta).sum()) or not np.isfinite(scores).all():
            raise DataError(overflow(ranking.number))
        self._remember(seen, move)
        self.time = move.time
        self.rounds += 1
        self.mistakes += move.loss > 0.0
        return float(move.loss)

    def _remember(self, X: Matrix, move: Move) -> None:
        moved = np.flatnonzero((move.delta != 0.0) | (move.lagged != 0.0))  # steps that cancel still move the average
        if len(moved) > self.most:  # a list that is longer than the budget: those that matter most
            moved = np.sort(np.argpartition(-np.abs(move.delta), self.most - 1)[: self.most])
        X, delta, lagged = X[moved], move.delta[moved], move.lagged[moved]
        new = self.support.merge(X, delta, lagged)
        if len(new) <= self.support.room:
            self.support.add(X[new], delta[new], lagged[new])
        else:
            self.removal.admit(self.support, X[new], delta[new], lagged[new], move.time)

    def state(self) -> State:
        return {"rounds": self.rounds, "mistakes": self.mistakes, "time": self.time, **self.support.state()}

    def restore(self, state: State) -> None:
        rounds, mistakes, time = int(state["rounds"]), int(state["mistakes"]), float(state["time"])
        self.support.restore(state)
        self.rounds, self.mistakes, self.time = rounds, mistakes, time


def documents_within(bytes: float, n_features: int, kernel: KernelFunction, removal: Removal) -> int:
    """How many documents a budget in bytes holds; `Projection` needs a square table beside them.

    >>> documents_within(1e6, 136, Gaussian(), Smallest())
    1259
    """
    each = n_features * np.dtype(kernel.dtype).itemsize + BESIDES
    if not isinstance(removal, Projection):
        return int(bytes / each)
    return int((np.sqrt(each**2 + 32.0 * bytes) - each) / 16.0)


def update_of(name: str, metric: str, eta: float, margin: float, fraction: float) -> Update:
    """The update of that name: the step of one of the library's learners."""
    if name == "slam":
        measure = as_metric(metric)
        return Descent(SLAM(measure, margin, fraction), Constant(eta), mistake_of(measure))
    if name == "minimax":
        return Descent(WorstPair(), Constant(eta), Misordered())
    if name == "hinge":
        return Descent(MeanPairwiseHinge(margin), Constant(eta), Misordered())
    if name == "listnet":
        return Descent(ListNet(), InversePower(eta, 0.5))
    if name == "pairwise":
        return PairSteps()
    if name == "predtron":
        return Descent(
            PredtronLoss(Permutations(PlaceLoss(metric), Places("-i^1.1")), variant_of("standard")), Constant(eta)
        )
    raise DataError(f"there is no update {name!r}; there are: slam, minimax, hinge, listnet, pairwise, predtron")


def kernel_perceptron(
    n_features: int,
    kernel: str = "rbf",
    budget: int = 2000,
    metric: str = "ndcg@10",
    update: str = "slam",
    removal: str = "smallest",
    eta: float = 0.1,
    gamma: float = 0.0,
    degree: int = 2,
    constant: float = 1.0,
    margin: float = 1.0,
    fraction: float = 0.0,
    megabytes: float = 0.0,
    average: bool = False,
) -> KernelLearner:
    """Composes a kernel, an update and a budget with its rule.

    >>> kernel_perceptron(136, kernel="rbf", megabytes=1.0).most
    1259
    """
    function = kernel_of(kernel, n_features, gamma, degree, constant)
    if removal not in RULES:
        raise DataError(f"there is no rule {removal!r}; there are: {', '.join(RULES)}")
    rule = RULES[removal]
    most = budget or UNLIMITED
    if megabytes:
        most = min(most, documents_within(megabytes * 1e6, n_features, function, rule))
    step = update_of(update, metric, eta, margin, fraction)
    return KernelLearner(n_features, step, function, max(most, 1), rule, average)
