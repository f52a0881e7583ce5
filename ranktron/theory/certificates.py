"""Certificates: the loss of an actual run beside the theoretical bounds on it, with every condition checked.

The run is replayed from the model's record on the data it was trained on; other data give other weights and no
certificate. Losses are those of the theorems: f_t is the surrogate of round t with its weights frozen, and 0 if the
ranking of that round was no mistake. If several shards were mixed, the theorems are about losses that are weighted by
the shares of their shards, which add up to 1; the total of all shards is beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds, largest_row_norm
from ranktron.data.serialization import same
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.dispatch import linear_direction
from ranktron.learners import Linear
from ranktron.learners.loop import play
from ranktron.learners.mixing import as_shares, start_from_mean
from ranktron.learners.schedule import Schedule
from ranktron.learners.start import stored_start
from ranktron.learners.steps import Constant
from ranktron.metrics import Metric
from ranktron.surrogates import SLAM, WorstPair
from ranktron.theory import bounds
from ranktron.training.model import Model
from ranktron.training.shards import Division, recorded_division, starts_from_mean
from ranktron.types import Floats, Integers

_STARTED = "it is for weights that start from 0"
Frozen = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class CertificateLine:
    """One line of a certificate: a theorem, the observed loss and its bound, or why the theorem does not apply.

    Parameters
    ----------
    statement : str
        Which theorem, and what it bounds.
    observed : float, optional
        The value of the run.
    bound : float, optional
        What it must not exceed.
    why_not : str
        Why the theorem does not apply to this run, if it does not.

    Examples
    --------
    >>> CertificateLine("mistakes", observed=3.0, bound=8.0).holds
    True
    """

    statement: str
    observed: float | None = None
    bound: float | None = None
    why_not: str = ""

    @property
    def holds(self) -> bool | None:
        if self.observed is None or self.bound is None:
            return None
        return self.observed <= self.bound * (1.0 + 1e-9) + 1e-6


@dataclass(frozen=True)
class Certificate:
    """The losses of a run, its constants, and a line for every theorem; made by `certify`.

    Parameters
    ----------
    rounds, mistakes : int
        How many rounds were played, and in how many the ranking was a mistake.
    measure : str
        The metric that the theorems are about.
    metric_loss, surrogate_loss : float
        The cumulative losses: 1 − metric, and the surrogate f_t.
    shards : int
        How many shards were mixed; 1 for a run in one piece.
    weighted_loss : float
        The metric loss, each round weighted by the share of its shard; the same as `metric_loss` for one.
    radius : float
        R, the length of the longest row.
    v_max : float
        The largest ratio of two weights within a query; 1 where the surrogate has none.
    margin : float
        γ, the largest margin on the data; 0 if they are not separable.
    comparator : array of shape (n_features,)
        u, of those tried the one with the lowest regret bound.
    lines : tuple of CertificateLine
        The theorems.

    Examples
    --------
    >>> import ranktron
    >>> from ranktron.training.fit import TrainingPlan, train
    >>> lists = ranktron.synthetic.Separable().rounds(50)
    >>> certificate = certify(train(TrainingPlan("minimax"), lists).model, lists)
    >>> all(line.holds is not False for line in certificate.lines)
    True
    """

    rounds: int
    mistakes: int
    measure: str
    metric_loss: float
    surrogate_loss: float
    radius: float
    v_max: float
    margin: float
    comparator: Floats
    lines: tuple[CertificateLine, ...]
    shards: int = 1
    weighted_loss: float = 0.0


@dataclass
class _Run:
    """A replayed run: its sums, and the frozen loss of every round with an update, with the share of its shard."""

    learner: Linear
    measure: Metric
    shares: Floats = field(default_factory=lambda: np.ones(1))
    metric_loss: float = 0.0
    total_loss: float = 0.0
    sums: Floats = field(default_factory=lambda: np.zeros(3))
    steps: list[tuple[int, float, float, Frozen]] = field(default_factory=list)
    turns: list[tuple[float, Floats, int]] = field(default_factory=list)
    faded: bool = False

    def play(self, learner: Linear, rounds: Rounds, queries: Integers, share: float = 1.0) -> None:
        """Plays some queries of a shard."""
        before = reached = learner.sums.copy()
        numbers = queries.tolist()
        stream = (rounds[query] for query in numbers)
        for query, turn in zip(numbers, play(learner, stream, learner.simulated_feedback, [self.measure]), strict=True):
            lost = 1.0 - turn.values[0]
            self.metric_loss, self.total_loss = self.metric_loss + share * lost, self.total_loss + lost
            self.turns.append((lost, learner.sums - reached, len(self.steps) if turn.loss > 0.0 else -1))
            if turn.loss > 0.0:
                frozen = _freeze(learner.surrogate, turn.ranking.scores, turn.feedback.labels)
                self.steps.append((query, learner.step(learner.rounds - 1), share, frozen))
            reached = learner.sums.copy()
        self.sums = self.sums + share * (learner.sums - before)

    def fade(self) -> None:
        """Goes on from the mean of w_1 … w_T, of which T − t contain the step of round t: its share is 1 − t/T."""
        self.metric_loss, self.sums, self.faded = 0.0, np.zeros(3), True
        for t, (lost, added, step) in enumerate(self.turns, 1):
            share = 1.0 - t / len(self.turns)
            self.metric_loss, self.sums = self.metric_loss + share * lost, self.sums + share * added
            if step >= 0:
                query, eta, _, frozen = self.steps[step]
                self.steps[step] = query, eta, share, frozen
        self.learner.restore(start_from_mean(self.learner.state()))

    @property
    def origin(self) -> Floats:
        """w_1, from which the bounds measure comparators."""
        start = self.learner.start
        return np.zeros(self.learner.n_features) if start is None else start.weights

    def distance(self, u: Floats) -> float:
        """|u − w_1|."""
        return float(np.linalg.norm(u - self.origin))

    def against(self, u: Floats, rounds: Rounds, weighted: bool) -> tuple[float, Floats]:
        """Σ μ_t f_t(u), or Σ μ_t η_t f_t(u), and its gradient; μ_t is the share of the shard of round t."""
        scores = linear_scores(rounds.X, u)
        pulled = np.zeros(len(scores))
        total = 0.0
        for query, eta, share, loss_at in self.steps:
            a, b = rounds.offsets[query], rounds.offsets[query + 1]
            loss, gradient = loss_at(scores[a:b])
            factor = share * (eta if weighted else 1.0)
            total += factor * loss
            pulled[a:b] += factor * gradient
        return total, linear_direction(rounds.X, pulled)


def _freeze(surrogate: Any, scores: Floats, labels: Floats) -> Frozen:
    if isinstance(surrogate, SLAM):
        return partial(surrogate.at, labels=labels, v=surrogate.weights(scores, labels))
    return partial(_with_labels, surrogate, labels)


def _with_labels(surrogate: Any, labels: Floats, scores: Floats) -> tuple[float, Floats]:
    answer: tuple[float, Floats] = surrogate(scores, labels)
    return answer


def certify(model: Model, rounds: Rounds, comparator: Floats | None = None) -> Certificate:
    """Replays the run that a model records and checks it against the theoretical bounds.

    Parameters
    ----------
    model : Model
        A slam, minimax, listnet or hinge model that `train` trained.
    rounds : Rounds
        The data it was trained on.
    comparator : array of shape (n_features,), optional
        The u of the bounds; by default a good one is searched for.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.training.fit import TrainingPlan, train
    >>> lists = Separable(documents=5, features=4).rounds(50)
    >>> certificate = certify(train(TrainingPlan("minimax", schedule=Schedule(2)), lists).model, lists)
    >>> all(line.holds is not False for line in certificate.lines)
    True
    """
    run, scaled = _replay(model, rounds)
    origin, R = run.origin, largest_row_norm(scaled)
    surrogate = run.learner.surrogate
    v_max = bounds.largest_weight_ratio(scaled, surrogate) if isinstance(surrogate, SLAM) else 1.0
    separation = bounds.best_margin(scaled)
    candidates = [origin, run.learner.w, run.learner.coef]
    if comparator is not None:
        candidates = [np.asarray(comparator, float)]
    else:
        if 0.0 < separation.margin < inf:
            candidates.append(separation.ranker / separation.margin * (1.0 + 1e-3))
        candidates.append(_hindsight(run, scaled, candidates))
    start = run.learner.start
    if start is not None and start.bounded:
        candidates = [start.closest(u) for u in candidates]  # the theorems are about comparators in the ball
    lines = _Claims(run, scaled, candidates, R, v_max, separation.margin).lines()
    best = min(candidates, key=lambda u: run.against(u, scaled, True)[0] + run.distance(u) ** 2 / 2.0)
    return Certificate(
        run.learner.rounds, run.learner.mistakes, str(run.measure), run.total_loss, float(run.learner.sums[0]),
        R, v_max, separation.margin, best, lines, len(run.shares), run.metric_loss,
    )  # fmt: skip


def _replay(model: Model, rounds: Rounds) -> tuple[_Run, Rounds]:
    learner = model.blank_learner()
    if not isinstance(learner, Linear):
        raise DataError(f"there are certificates for slam, minimax, listnet and hinge models, not for {model.kind}")
    if "epoch" not in model.record:
        raise DataError("no run recorded: certificates are for models that `ranktron train` trained")
    start = stored_start(model.state, learner.n_features)
    if start is not None:
        learner.begin(start)
    scaled = model.prepare(rounds)
    measure = bounds.bounded_measure(learner.surrogate)
    division = recorded_division(model.record)
    run = _Run(learner, measure, np.ones(1) if division is None else as_shares(division.weights(), division.shards))
    schedule = Schedule(1, model.record["seed"], model.record["shuffle"])
    for epoch in range(model.record["epoch"] + 1):
        limit = model.record["position"] if epoch == model.record["epoch"] else len(scaled)
        if division is not None:
            _replay_mixed(run, model, scaled, division, schedule, epoch, limit)
        else:
            run.play(learner, scaled, schedule.queries(len(scaled), epoch)[:limit])
    if not same(learner.state(), model.state):
        raise DataError("replaying the recorded run gives other weights: this is not the data the model was trained on")
    return run, scaled


def _replay_mixed(
    run: _Run, model: Model, rounds: Rounds, division: Division, schedule: Schedule, epoch: int, limit: int
) -> None:
    """Replays the first `limit` queries of an epoch that was played in shards."""
    played, offsets = 0, division.offsets
    if limit and starts_from_mean(run.learner, division, epoch):
        run.fade()
    for shards in division.pieces(schedule, epoch):
        if played >= limit:
            return
        start, states = run.learner.state(), []
        shares = run.shares if len(shards) > 1 else np.ones(1)  # a sequential pass has one learner
        for share, pieces in zip(shares.tolist(), shards, strict=True):
            learner = model.blank_learner()
            assert isinstance(learner, Linear)
            learner.restore(start)
            for piece in pieces:
                run.play(learner, rounds, offsets[piece.part] + piece.queries, share)
                played += len(piece.queries)
            states.append(learner.state())
        weights = division.weights() if len(shards) > 1 else shares  # as they were mixed, to the bit
        run.learner.restore(run.learner.mix(start, states, weights))


def _hindsight(run: _Run, rounds: Rounds, candidates: list[Floats]) -> Floats:
    """A comparator with a low regret bound: the theorems hold for any, and a good one gives tighter bounds."""
    from scipy.optimize import minimize

    def objective(u: Floats) -> tuple[float, Floats]:
        total, gradient = run.against(u, rounds, True)
        away = u - run.origin
        return float(total + away @ away / 2.0), gradient + away

    start = min(candidates, key=lambda u: objective(u)[0])
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 25})
    return np.asarray(found.x, float)


@dataclass(frozen=True)
class _Claims:
    """The theorems, checked on one run."""

    run: _Run
    rounds: Rounds
    candidates: list[Floats]
    R: float
    v_max: float
    margin: float

    def lines(self) -> tuple[CertificateLine, ...]:
        surrogate = self.run.learner.surrogate
        lines = [self._regret()]
        if isinstance(surrogate, SLAM):
            lines += self._slam(surrogate)
        elif isinstance(surrogate, WorstPair):
            lines += self._minimax()
        return tuple(lines) if len(self.run.shares) == 1 else (*map(_weighted, lines), self._total(lines))

    def _total(self, lines: list[CertificateLine]) -> CertificateLine:
        """The total is at most the weighted loss divided by the smallest share."""
        known = [line.bound for line in lines if line.bound is not None and line.observed == self.run.metric_loss]
        least, statement = float(self.run.shares.min()), "total loss of all shards: a weighted bound / smallest share"
        if self.run.faded:
            why = "in a first pass whose mean the shards begin with, the share of a round goes down to 0"
            return CertificateLine(statement, self.run.total_loss, why_not=why)
        if not known:
            return CertificateLine(statement, self.run.total_loss, why_not="there is no weighted bound on it")
        return CertificateLine(statement, self.run.total_loss, min(known) / least)

    def _least(self, form: Callable[[float, float], float]) -> float:
        """The least value of a bound (L, |u − w_1|) over the comparators."""
        values = [form(self.run.against(u, self.rounds, False)[0], self.run.distance(u)) for u in self.candidates]
        return min(values)

    def _regret(self) -> CertificateLine:
        _, weighted, squares = self.run.sums
        right = squares / 2.0 + min(
            self.run.against(u, self.rounds, True)[0] + self.run.distance(u) ** 2 / 2.0 for u in self.candidates
        )
        step = self.run.learner.step
        if isinstance(step, Constant):
            observed, bound = weighted / step.eta, right / step.eta
            return CertificateLine("regret inequality (Eq. 17): surrogate loss", float(observed), float(bound))
        return CertificateLine(
            "regret inequality (Eq. 17), losses weighted by the steps", float(weighted), float(right)
        )

    def _slam(self, surrogate: SLAM) -> list[CertificateLine]:
        lost, sums = self.run.metric_loss, self.run.sums
        step = self.run.learner.step
        names = ("metric loss ≤ surrogate loss (Eq. 15)", "Theorem 8" if surrogate.k else "Theorem 6", "Corollary 7",
                 "our own bound for any eta")  # fmt: skip
        if surrogate.fraction > 0.0 or surrogate.margin != 1.0:
            why = "a fraction above 0 does not bound the measure" if surrogate.fraction else "the margin is not 1"
            return [CertificateLine(name, why_not=why) for name in names]
        lines = [CertificateLine(names[0], lost, float(sums[0]))]
        if not isinstance(step, Constant):
            return lines + [CertificateLine(name, why_not="the step is not constant") for name in names[1:]]
        eta = step.eta
        K = bounds.slam_constant(surrogate.k or int(np.diff(self.rounds.offsets).max()), self.R, self.v_max)
        if eta < 2.0 / K:
            bound = self._least(lambda L, n: bounds.bound_at(eta, L, n, K))
            lines.append(CertificateLine(f"{names[1]} at eta = {eta:g}", lost, bound))
        else:
            lines.append(CertificateLine(names[1], why_not=f"it needs eta < 2/K = {2.0 / K:.3g}; the run had {eta:g}"))
        if self.run.learner.start is not None:
            return lines + [CertificateLine(name, why_not=_STARTED) for name in names[2:]]
        if not 0.0 < self.margin < inf:
            lines.append(CertificateLine(names[2], why_not="the data are not separable"))
        elif abs(eta * K - 1.0) > 1e-6:
            lines.append(CertificateLine(names[2], why_not=f"it needs eta = 1/K = {1.0 / K:.3g}; the run had {eta:g}"))
        else:
            lines.append(CertificateLine(names[2], lost, bounds.shared_bound(0.0, 1.0 / self.margin, K)))
        bound = self._least(lambda L, n: bounds.bound_for_any_eta(eta, L, n, self.R))
        return [*lines, CertificateLine(names[3], lost, bound)]

    def _minimax(self) -> list[CertificateLine]:
        K = 4.0 * self.R * self.R
        lost = self.run.metric_loss
        if self.run.learner.start is not None:
            return self._minimax_from_start(lost, K)
        lines = [
            CertificateLine("metric loss ≤ surrogate loss (Eq. 28)", lost, float(self.run.sums[0])),
            CertificateLine("Theorem 10", lost, self._least(lambda L, n: bounds.shared_bound(L, n, K))),
        ]
        if 0.0 < self.margin < inf:
            return [*lines, CertificateLine("Corollary 11", lost, bounds.shared_bound(0.0, 1.0 / self.margin, K))]
        return [*lines, CertificateLine("Corollary 11", why_not="the data are not separable")]

    def _minimax_from_start(self, lost: float, K: float) -> list[CertificateLine]:
        """Theorem 10 takes weights that are proportional to the step; from a start the form with the step remains."""
        learner = self.run.learner
        names = ("metric loss ≤ surrogate loss (Eq. 28)", "our own bound from a start", "Theorem 10", "Corollary 11")
        unknown = [CertificateLine(name, why_not=_STARTED) for name in names[2:]]
        if not isinstance(learner.surrogate, WorstPair) or learner.surrogate.margin != 1.0:
            return [*(CertificateLine(name, why_not="the margin is not 1") for name in names[:2]), *unknown]
        lines = [CertificateLine(names[0], lost, float(self.run.sums[0]))]
        if not isinstance(learner.step, Constant):
            return [*lines, CertificateLine(names[1], why_not="the step is not constant"), *unknown]
        eta = learner.step.eta
        if not eta < 2.0 / K:
            why = f"it needs eta < 2/K = {2.0 / K:.3g}; the run had {eta:g}"
            return [*lines, CertificateLine(names[1], why_not=why), *unknown]
        bound = self._least(lambda L, n: bounds.bound_at(eta, L, n, K))
        return [*lines, CertificateLine(f"{names[1]} at eta = {eta:g}", lost, bound), *unknown]


def _weighted(line: CertificateLine) -> CertificateLine:
    return replace(line, statement=f"{line.statement}, weighted by shards")
