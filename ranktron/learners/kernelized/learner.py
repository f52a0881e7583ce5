"""Kernelized learners: they remember documents instead of weights, so that a kernel can replace the inner product."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features, linear_scores
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.kernelized.budget import BYTES_PER_DOCUMENT, UNLIMITED, Budget
from ranktron.learners.kernelized.dual_history import DualHistory
from ranktron.learners.kernelized.functions import Gaussian, KernelFunction
from ranktron.learners.kernelized.pairs import PairSteps
from ranktron.learners.kernelized.removal import RULES, Projection, Removal, Smallest
from ranktron.learners.kernelized.support import ALPHA, Support
from ranktron.learners.kernelized.updates import Descent, Move, PredtronLoss, Update
from ranktron.learners.linear import observed_scores, overflow, stored_count
from ranktron.learners.mistakes import Misordered, mistake_rule
from ranktron.learners.pairwise.outputs import Average, Last
from ranktron.learners.parameters import Parameters
from ranktron.learners.predtron import Permutations, PlaceLoss, Places, make_variant
from ranktron.learners.steps import Constant, InversePower
from ranktron.metrics import metric as as_metric
from ranktron.surrogates import SLAM, ListNet, MeanPairwiseHinge, WorstPair
from ranktron.types import Features, Feedback, Floats, Ranking, State


@dataclass(eq=False)
class KernelLearner(BaseLearner):
    """A mistake-driven learner whose weights are a sum of documents, w = Σ_s α_s φ(s).

        score(x) = Σ_s α_s k(s, x),    on a mistake α_i += the update's coefficient of document i

    Only documents of updates are remembered, and no more than the budget allows: `removal` decides what happens
    when there is no room.

    Parameters
    ----------
    n_features : int
        The number of features.
    update : Update
        `Descent` on any surrogate, or `PairSteps`.
    kernel : KernelFunction
        `LinearKernel`, `Polynomial` or `Gaussian`.
    most : int >= 1
        The budget: the maximum number of documents.
    removal : Removal
        `Oldest`, `Random`, `Smallest` or `Projection`.
    output : Output
        What `predict` uses: `Last` or `Average`.
    selective : int >= 0
        With `PairSteps`: hypotheses that ranked fewer pairs correctly than this are ignored.
    bytes : float
        The budget in bytes, in addition to that in documents.

    Examples
    --------
    >>> from ranktron.learners.kernelized.functions import Polynomial
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
    output: Last | Average = Last()  # noqa: RUF009 (it is frozen)
    selective: int = 0
    bytes: float = np.inf
    rounds: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    history: DualHistory = field(init=False, repr=False)
    support: Support = field(init=False, repr=False)

    _hypothesis: Floats | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.update, PairSteps) and self.selective:
            raise DataError(
                "only the pairwise perceptron has hypotheses to choose from: selective needs the update pairwise, "
                "PairSteps"
            )
        if self.selective < 0:
            raise DataError(f"selective must be 0 (off) or more, not {self.selective}")
        budget = Budget(self.most, self.bytes, BYTES_PER_DOCUMENT, isinstance(self.removal, Projection))
        self.support = Support(self.n_features, self.kernel, budget)
        self.history = DualHistory(np.zeros(5, np.int64), self.selective)

    linear = False

    @property
    def hypothesis(self) -> Floats:
        """The hypothesis that is served, as a row of coefficients of the documents."""
        if self._hypothesis is None:
            settled = self.history.hypotheses(self.support).settled(1, self.history.floor)
            self._hypothesis = self.output.ensemble(settled).members
        return self._hypothesis

    def scores(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        return self.support.scores(X, self.support.alpha)

    def predict(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        scores: Floats = self.support.scores(X, self.hypothesis)[0]
        return scores

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from what was observed and returns the update's loss (0 where nothing was wrong)."""
        check_features(X, self.n_features)
        scores = observed_scores(X, ranking, feedback)
        seen = X if len(feedback.items) == len(X) and scores is ranking.scores else X[feedback.items]
        move = self.update(self.support, seen, scores, feedback.labels, ranking.number, self.history)
        # 0 times what is not finite is not a number; no score shows it as long as nothing is stored.
        nothing = linear_scores(seen, np.zeros(self.n_features))
        if not np.isfinite(move.loss + np.abs(move.steps).sum()) or first_non_finite(scores + nothing) >= 0:
            raise DataError(overflow(ranking.number))
        if move.steps.any():
            self._remember(seen, move)
        self.history, self._hypothesis = move.history, None
        self.rounds += 1
        self.mistakes += move.mistakes
        return float(move.loss)

    def _remember(self, X: Features, move: Move) -> None:
        moved = np.flatnonzero(move.steps.any(axis=0))  # steps that cancel still move the average
        X, steps = X[moved], move.steps[:, moved]
        if self.support.fitting(X, alone=True) < len(X):  # a list longer than the budget: those that matter most
            heaviest = np.argsort(-np.abs(steps[ALPHA]), kind="stable")
            kept = np.sort(heaviest[: self.support.fitting(X[heaviest], alone=True)])
            X, steps = X[kept], steps[:, kept]
        X, steps = self.support.merge(X, steps)
        if self.support.fitting(X) == len(X):
            self.support.add(X, steps)
        else:
            self.removal.admit(self.support, X, steps, float(move.history.time))

    def state(self) -> State:
        return {"rounds": self.rounds, "mistakes": self.mistakes, **self.support.state(), **self.history.state()}

    def restore(self, state: State) -> None:
        rounds, mistakes = stored_count(state, "rounds"), stored_count(state, "mistakes")
        support = self.support.restored(state)
        history = self.history.restored(state)
        self.rounds, self.mistakes, self.support = rounds, mistakes, support
        self.history, self._hypothesis = history, None


def make_update(p: Parameters) -> Update:
    """The update that is named: the step of one of the library's learners."""
    name, metric, eta = p.update, p.metric, p.eta
    if name == "slam":
        measure = as_metric(metric)
        return Descent(SLAM(measure, p.margin, p.fraction), Constant(eta), mistake_rule(measure))
    if name == "minimax":
        return Descent(WorstPair(), Constant(eta), Misordered())
    if name == "hinge":
        return Descent(MeanPairwiseHinge(p.margin), Constant(eta), Misordered())
    if name == "listnet":
        return Descent(ListNet(), InversePower(eta, 0.5))
    if name == "pairwise":
        return PairSteps(p.pairs_per_query)
    if name == "predtron":
        return Descent(
            PredtronLoss(Permutations(PlaceLoss(metric), Places("-i^1.1")), make_variant("standard")), Constant(eta)
        )
    raise DataError(f"there is no update {name!r}; there are: slam, minimax, hinge, listnet, pairwise, predtron")


def make_removal(name: str, output: Last | Average) -> Removal:
    """The rule of that name; `auto` forgets where the last hypothesis is served, and projects for the mean.

    A mean consists of past hypotheses, which lose what they have learnt when their documents are removed.

    >>> make_removal("auto", Last()), make_removal("auto", Average())
    (Smallest(fade=1.0), Projection(ridge=0.0001))
    """
    if name == "auto":
        return RULES["smallest" if isinstance(output, Last) else "projection"]
    if name not in RULES:
        raise DataError(f"there is no rule {name!r}; there are: auto, {', '.join(RULES)}")
    return RULES[name]
