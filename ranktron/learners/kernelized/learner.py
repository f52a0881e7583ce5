"""Kernelized learners: they remember documents instead of weights, so that a kernel can replace the inner product."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features, linear_scores
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.kernelized.budget import BYTES_PER_DOCUMENT, UNLIMITED, Budget
from ranktron.learners.kernelized.dual_history import DualHistory, blank_pool
from ranktron.learners.kernelized.functions import Gaussian, KernelFunction
from ranktron.learners.kernelized.pairs import PairSteps
from ranktron.learners.kernelized.removal import RULES, Projection, Removal, Smallest
from ranktron.learners.kernelized.rows import GROWTH
from ranktron.learners.kernelized.support import LAG, Support
from ranktron.learners.kernelized.updates import Descent, Move, PredtronLoss, Update
from ranktron.learners.linear import observed_scores, overflow, stored_count
from ranktron.learners.mistakes import Misordered, mistake_rule
from ranktron.learners.pairwise.outputs import EVERYONE, Committee, Ensemble, Last, Output
from ranktron.learners.parameters import Parameters
from ranktron.learners.predtron import Permutations, PlaceLoss, Places, make_variant
from ranktron.learners.steps import Constant, InversePower
from ranktron.metrics import Metric, evaluate
from ranktron.metrics import metric as as_metric
from ranktron.surrogates import SLAM, ListNet, MeanPairwiseHinge, WorstPair
from ranktron.types import Features, Feedback, Floats, Ranking, State


@dataclass(eq=False)
class KernelLearner(BaseLearner):
    """A mistake-driven learner whose weights are a sum of documents, w = Σ_s α_s φ(s).

        score(x) = Σ_s α_s k(s, x),    on a mistake α_i += the update's coefficient of document i

    Only documents of updates are remembered, and no more than the budget allows: `removal` decides what happens
    when there is no room. Each hypothesis that a committee keeps is one more row of coefficients of the same
    documents, so that all members score a query in one matrix product.

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
        What `predict` uses: `Last`, `Average`, or, with `PairSteps`, a `Committee`.
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
    output: Output = Last()  # noqa: RUF009 (it is frozen)
    selective: int = 0
    bytes: float = np.inf
    rounds: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    pool: DualHistory = field(init=False, repr=False)
    support: Support = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.update, PairSteps) and (self.size or self.selective):
            raise DataError(
                "only the pairwise perceptron has hypotheses to choose from: pocket, voted, committee and selective "
                "need the update pairwise (PairSteps)"
            )
        if self.selective < 0:
            raise DataError(f"selective must be 0 (off) or more, not {self.selective}")
        if self.size >= EVERYONE and self.bytes < np.inf:
            raise DataError(
                "a voted perceptron keeps every hypothesis, which no budget in bytes can hold: take a committee of "
                "some size, or a budget in documents"
            )
        beside = BYTES_PER_DOCUMENT + (8.0 * GROWTH * self.size if self.bytes < np.inf else 0.0)
        budget = Budget(self.most, self.bytes, beside, isinstance(self.removal, Projection))
        self.support = Support(self.n_features, self.kernel, budget)
        floor = max(self.selective, 1) if self.size >= EVERYONE else self.selective
        self.pool = blank_pool(self.size, floor)
        self._ensemble: Ensemble | None = None

    linear = False

    @property
    def size(self) -> int:
        """How many hypotheses are kept in addition to the current one."""
        return self.output.size if isinstance(self.output, Committee) else 0

    @property
    def votes(self) -> bool:
        """Whether `predict` takes one query at a time, because its scores are votes."""
        return self.output.votes

    @property
    def ensemble(self) -> Ensemble:
        """The hypotheses of the output as rows of coefficients, and their weights."""
        if self._ensemble is None:
            hypotheses = self.pool.hypotheses(self.support)
            self._ensemble = self.output.ensemble(hypotheses.settled(max(self.size, 1), self.pool.floor))
        return self._ensemble

    def scores(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        return self.support.scores(X, self.support.alpha)

    def predict(self, X: Features) -> Floats:
        check_features(X, self.n_features)
        return self.ensemble.counted(self.support.scores(X, self.ensemble.members))

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from what was observed and returns the update's loss (0 where nothing was wrong)."""
        check_features(X, self.n_features)
        scores = observed_scores(X, ranking, feedback)
        seen = X if len(feedback.items) == len(X) and scores is ranking.scores else X[feedback.items]
        move = self.update(self.support, seen, scores, feedback.labels, ranking.number, self.pool)
        # 0 times what is not finite is not a number; no score shows it as long as nothing is stored.
        nothing = linear_scores(seen, np.zeros(self.n_features))
        if not np.isfinite(move.loss + np.abs(move.steps).sum()) or first_non_finite(scores + nothing) >= 0:
            raise DataError(overflow(ranking.number))
        if move.steps.any():
            self.support.widen(len(move.steps), len(seen))
            self.support.enter(move.pool.entered_since(self.pool))
            self._remember(seen, move)
        self.pool, self._ensemble = move.pool, None
        self.rounds += 1
        self.mistakes += move.mistakes
        return float(move.loss)

    def _remember(self, X: Features, move: Move) -> None:
        moved = np.flatnonzero(move.steps.any(axis=0))  # steps that cancel still move the average
        X, steps = X[moved], move.steps[:, moved]
        if self.support.fitting(X, alone=True) < len(X):  # a list longer than the budget: those that matter most
            heaviest = np.argsort(-np.abs(np.delete(steps, LAG, axis=0)).max(axis=0), kind="stable")
            kept = np.sort(heaviest[: self.support.fitting(X[heaviest], alone=True)])
            X, steps = X[kept], steps[:, kept]
        X, steps = self.support.merge(X, steps)
        if self.support.fitting(X) == len(X):
            self.support.add(X, steps)
        else:
            self.removal.admit(self.support, X, steps, float(move.pool.time))

    def weigh_members(self, valid: Rounds, metric: Metric) -> None:
        """Lets validation queries say what the members of a committee are worth, where it asks for that."""
        if not self.output.measured:
            return
        if not metric.higher_is_better:
            raise DataError(f"{metric} cannot weight a committee: choose a metric whose higher values are better")
        scores = self.support.scores(valid.X, np.vstack([self.support.alpha, self.support.members]))
        values = np.array([evaluate(row, valid, [metric]).means[str(metric)] for row in scores])
        self.pool, self._ensemble = self.pool._replace(value=values[:1], values=values[1:]), None

    def state(self) -> State:
        return {"rounds": self.rounds, "mistakes": self.mistakes, **self.support.state(), **self.pool.state()}

    def restore(self, state: State) -> None:
        rounds, mistakes = stored_count(state, "rounds"), stored_count(state, "mistakes")
        support = self.support.restored(state)
        pool = self.pool.restored(state, len(support.members))
        self.rounds, self.mistakes, self.support, self.pool, self._ensemble = rounds, mistakes, support, pool, None


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


def make_removal(name: str, output: Output) -> Removal:
    """The rule of that name; `auto` forgets where the last hypothesis is served, and projects for all other outputs.

    A mean or a committee consists of past hypotheses, which lose what they have learnt when their documents are
    removed.

    >>> from ranktron.learners.pairwise.outputs import Average
    >>> make_removal("auto", Last()), make_removal("auto", Average())
    (Smallest(fade=1.0), Projection(ridge=0.0001))
    """
    if name == "auto":
        return RULES["smallest" if isinstance(output, Last) else "projection"]
    if name not in RULES:
        raise DataError(f"there is no rule {name!r}; there are: auto, {', '.join(RULES)}")
    return RULES[name]
