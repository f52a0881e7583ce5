"""Games that show what RTop-kF can and cannot do: its regret in the long run, and a loss that nobody can learn.

Regret is counted as the paper counts it: the loss of the scores that were played (drawn ones, where a round explores)
against that of the best fixed weights in the ball, known only in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.feedback import ClickModel, position_based
from ranktron.learners.loop import play
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.estimator import Decomposed
from ranktron.learners.top_k.learner import TopK
from ranktron.metrics import evaluate, metric
from ranktron.surrogates import CalibratedSquared, Squared
from ranktron.types import FeedbackModel, Floats, Learner, Round, Surrogate
from reproduction.theory.top_k_bounds import Limits, theorem_settings

HORIZONS = (2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)


@dataclass(frozen=True)
class Pool:
    """A few short lists, played again and again in an order drawn from a seed; rows of length 1, noisy grades.

    >>> Pool().limits
    Limits(m=3, R_D=1.0, U=1.0, R_max=1.0)
    """

    documents: int = 3
    features: int = 3
    lists: int = 100
    highest: int = 1
    U: float = 1.0
    seed: int = 0

    @property
    def limits(self) -> Limits:
        return Limits(self.documents, 1.0, self.U, float(self.highest))

    def rounds(self) -> list[Round]:
        """The lists."""
        rng = np.random.default_rng((self.seed, 0))
        truth = rng.normal(size=self.features)
        thresholds = np.linspace(-1.0, 1.0, self.highest + 2)[1:-1]
        found = []
        for number in range(self.lists):
            X = rng.normal(size=(self.documents, self.features))
            X *= (0.999999 / np.linalg.norm(X, axis=1))[:, None]  # a little less than 1: features are rounded
            value = X @ truth + 0.3 * rng.normal(size=self.documents)
            found.append(Round(X.astype(np.float32), np.searchsorted(thresholds, value).astype(float), str(number)))
        return found

    def stream(self, T: int, seed: int) -> Iterator[Round]:
        """T rounds."""
        rounds = self.rounds()
        for number in np.random.default_rng((self.seed, 1, seed)).integers(self.lists, size=T).tolist():
            yield rounds[number]


@dataclass(frozen=True)
class KnownClicks:
    """Clicks on the first k documents instead of their labels, of users whose examination is known.

    A document of label r (0 or 1) at rank i is clicked with the probability α_i r + β_i, α_i = (1 − noise) / i and
    β_i = noise / i. RTop-kF takes (c − β_i) / α_i for its label: right on average, and at most (1 − β_k) / α_k.

    >>> KnownClicks().limits(Pool()).R_max  # 0.95 / 0.45
    2.111...
    """

    k: int = 2
    noise: float = 0.1

    @property
    def examination(self) -> Examination:
        ranks = np.arange(1.0, self.k + 1.0)
        return Examination((1.0 - self.noise) / ranks, offsets=self.noise / ranks)

    def limits(self, pool: Pool) -> Limits:
        """The theorem speaks of labels; these are larger than the true ones."""
        highest: float = self.examination.correct(np.ones(self.k), np.arange(1, self.k + 1)).max()
        return pool.limits._replace(R_max=float(highest))

    def user(self, seed: int) -> ClickModel:
        return position_based(1.0, self.noise, grades=2, seed=seed, k=self.k)


def losses(
    learner: TopK, rounds: Iterable[Round], surrogate: Surrogate, feedback: FeedbackModel | None = None
) -> Iterator[float]:
    """Plays, and yields the loss of the scores that each round was played with.

    >>> pool = Pool()
    >>> learner = TopK(3, Squared(), 1, explore=Constant(0.1), step=Constant(0.01))
    >>> len(list(losses(learner, pool.stream(10, seed=0), Squared())))
    10
    """
    kept: list[Round] = []

    def watched() -> Iterator[Round]:
        for round in rounds:
            kept[:] = [round]
            yield round

    for turn in play(learner, watched(), feedback or learner.simulated_feedback):
        yield surrogate(learner.played(turn.ranking), kept[0].labels)[0]


def best_fixed(surrogate: Surrogate, rounds: Sequence[Round], counts: Floats, U: float) -> float:
    """The smallest loss Σ counts · φ(X w, R) over the ball |w| ≤ U, found by descent from several starts."""
    from scipy.optimize import minimize

    X = [round.X.astype(float) for round in rounds]
    share = counts / counts.sum()

    def inside(w: Floats) -> Floats:
        return w * min(1.0, U / max(float(np.linalg.norm(w)), 1e-300))

    def loss(w: Floats) -> float:
        w = inside(w)
        return float(sum(c * surrogate(x @ w, r.labels)[0] for c, x, r in zip(share, X, rounds, strict=True) if c))

    starts = [np.zeros(X[0].shape[1])]
    starts += [inside(U * (r.labels @ x)) for x, r in zip(X[:3], rounds, strict=False)]
    found = [minimize(loss, start, method="Powell", options={"xtol": 1e-7, "ftol": 1e-10}) for start in starts]
    found += [minimize(loss, min(found, key=lambda f: f.fun).x, method="Nelder-Mead", options={"fatol": 1e-10})]
    return float(min(f.fun for f in found) * counts.sum())


def regret(surrogate: Decomposed, pool: Pool, T: int, seed: int, clicks: KnownClicks | None = None) -> float:
    """The regret of RTop-kF after T rounds, with the exploration and the step that the theorem chooses for T."""
    if clicks is None:
        limits, k, known, user = pool.limits, surrogate.coordinates, None, None
    else:
        limits, k, known, user = clicks.limits(pool), clicks.k, clicks.examination, clicks.user(seed)
    gamma, eta = theorem_settings(surrogate, limits, T)
    learner = TopK(
        pool.features, surrogate, k, Constant(gamma), Constant(eta), radius=pool.U, seed=seed, examination=known
    )
    suffered = sum(losses(learner, pool.stream(T, seed), surrogate, user))
    drawn = np.random.default_rng((pool.seed, 1, seed)).integers(pool.lists, size=T)
    counts = np.bincount(drawn, minlength=pool.lists).astype(float)
    return suffered - best_fixed(surrogate, pool.rounds(), counts, pool.U)


class Exponent(NamedTuple):
    """The slope of log regret over log T: its mean over seeds and the ends of its 95 % interval."""

    slope: float
    low: float
    high: float


def exponent(horizons: Sequence[int], regrets: Floats) -> Exponent:
    """Fits regret = c · T^slope, for each seed (a row of `regrets`) on its own.

    >>> exponent([10, 100, 1000], np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]))
    Exponent(slope=1.0, low=1.0, high=1.0)
    """
    from scipy.stats import t

    if (regrets <= 0.0).any():
        raise DataError("a regret of 0 or less has no exponent: the horizon is too short")
    slopes = np.array([np.polyfit(np.log(horizons), np.log(row), 1)[0] for row in regrets]).round(12)
    half = t.ppf(0.975, len(slopes) - 1) * slopes.std(ddof=1) / np.sqrt(len(slopes))
    return Exponent(float(slopes.mean()), float(slopes.mean() - half), float(slopes.mean() + half))


@dataclass(frozen=True)
class Indistinguishable:
    """Two ways to label three documents that nobody can tell apart from the label of the first one (Theorem 5.2).

    Each document is relevant in half of the rounds either way; but E[G/Z], what the calibrated loss asks for, has
    another winner. Whoever is right about one is wrong about the other: the regrets on both add up to at least
    |a − b|²/2 a round, where a and b are the two targets.

    >>> one, other = Indistinguishable(), Indistinguishable(other=True)
    >>> one.target.round(3), other.target.round(3)
    (array([0.5  , 0.307, 0.307]), array([0.307, 0.5  , 0.307]))
    >>> round(one.unavoidable, 4)
    0.0187
    """

    other: bool = False

    @property
    def patterns(self) -> Floats:
        """The two label vectors, each as likely."""
        if self.other:
            return np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
        return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])

    @property
    def target(self) -> Floats:
        """E[G/Z]: the scores that have the smallest expected loss."""
        zero = np.zeros(3)
        wanted: Floats = np.mean([CalibratedSquared()(zero, labels)[1] for labels in self.patterns], axis=0) / -2.0
        return wanted

    @property
    def unavoidable(self) -> float:
        """Per round, the regret of every learner on the worse of the two, at least: |a − b|²/4."""
        return float(np.sum((self.target - Indistinguishable(not self.other).target) ** 2) / 4.0)

    def stream(self, T: int, seed: int) -> Iterator[Round]:
        """T rounds, the features of each document a coordinate of its own."""
        X = np.eye(3, dtype=np.float32)
        for which in np.random.default_rng((seed, int(self.other))).integers(2, size=T).tolist():
            yield Round(X, self.patterns[which], "q")

    def lost(self, scores: Floats) -> float:
        """How much more than the best scores these lose in a round, in expectation: |s − E[G/Z]|²."""
        return float(np.sum((scores - self.target) ** 2))


Player = Callable[[Iterable[Round]], Iterator[Floats]]
"""Plays a stream and gives the scores of each round."""


def rtop_1f(T: int, seed: int) -> Player:
    """RTop-1F on the squared loss, the nearest that can be learnt from one label."""

    def player(rounds: Iterable[Round]) -> Iterator[Floats]:
        gamma, eta = theorem_settings(Squared(), Limits(3), T)
        learner = TopK(3, Squared(), 1, Constant(gamma), Constant(eta), radius=1.0, seed=seed)
        for turn in play(learner, rounds, learner.simulated_feedback):
            yield learner.played(turn.ranking)

    return player


def midpoint(rounds: Iterable[Round]) -> Iterator[Floats]:
    """The best that one can do who knows both distributions, and not which it is: their mean."""
    between = (Indistinguishable().target + Indistinguishable(other=True).target) / 2.0
    for _ in rounds:
        yield between


def full_feedback(rounds: Iterable[Round]) -> Iterator[Floats]:
    """Gradient descent on the calibrated loss itself, with all labels revealed."""
    scores = np.zeros(3)
    for t, round in enumerate(rounds, start=1):
        yield scores
        scores = scores - 0.5 / t * CalibratedSquared()(scores, round.labels)[1]


def impossibility(player: Callable[[int], Player], T: int, seeds: Sequence[int]) -> Floats:
    """The expected regret up to each round on the worse of the two distributions: a mean over seeds."""
    regrets = []
    for game in (Indistinguishable(), Indistinguishable(other=True)):
        runs = [[game.lost(scores) for scores in player(seed)(game.stream(T, seed))] for seed in seeds]
        regrets.append(np.cumsum(np.mean(runs, axis=0)))
    worse: Floats = max(regrets, key=lambda regret: regret[-1])
    return worse


class Outcome(NamedTuple):
    """What a learner reached on held-out queries (with its last weights, with those it serves) and on those shown."""

    last: float
    served: float
    shown: float


def endless(rounds: Rounds, seed: int) -> Iterator[Round]:
    """Passes over all lists without end, each in an order of its own."""
    lists = list(rounds)
    for epoch in count():
        for query in np.random.default_rng((seed, epoch)).permutation(len(lists)).tolist():
            yield lists[query]


def trial(learner: Learner, train: Rounds, test: Rounds, T: int, seed: int) -> Outcome:
    """Plays T rounds of the training queries; NDCG@10 on the test queries, and the mean over what was shown.

    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=5, features=3).rounds(20)
    >>> learner = TopK(3, Squared(), 1, Constant(0.1), Constant(0.01))
    >>> trial(learner, lists, lists, 100, seed=0).last > 0.5
    True
    """
    shown = 0.0
    for turn in play(learner, islice(endless(train, seed), T), learner.simulated_feedback, [metric("ndcg@10")]):
        shown += turn.values[0]
    last, served = (
        evaluate(test, scores, "ndcg@10").means["ndcg@10"]
        for scores in (learner.scores(test.X), learner.predict(test.X))
    )
    return Outcome(last, served, shown / T)


def random_ndcg(test: Rounds, draws: int = 30) -> float:
    """The mean NDCG@10 of random rankings."""
    rng = np.random.default_rng(0)
    values = [evaluate(test, rng.random(len(test.X)), "ndcg@10").means["ndcg@10"] for _ in range(draws)]
    return float(np.mean(values))


def average_so_far(learner: Learner, rounds: Rounds, T: int, seed: int, points: int = 100) -> tuple[Floats, Floats]:
    """The paper's curve: the mean NDCG@10 of all rankings shown up to a round, at some rounds."""
    values = [
        turn.values[0]
        for turn in play(learner, islice(endless(rounds, seed), T), learner.simulated_feedback, [metric("ndcg@10")])
    ]
    at = np.unique(np.geomspace(10, T, points).astype(int))
    means: Floats = (np.cumsum(values)[at - 1]) / at
    return at.astype(float), means
