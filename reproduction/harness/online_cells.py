"""Cells that play streams: time-averaged metrics of many learners at once, and the adversary of Theorem 9."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any

import numpy as np

from ranktron.data.synthetic import Adversary, Separable
from ranktron.learners import Linear, feedback, minimax_perceptron, online_listnet, slam_perceptron
from ranktron.learners.fused import play_many
from ranktron.learners.loop import play
from ranktron.learners.schedule import Schedule
from ranktron.metrics import metric
from ranktron.theory import bounds
from ranktron.types import Floats, Round
from reproduction.harness.data import all_lists

LEARNERS: Mapping[str, Callable[[int, float], Linear]] = {
    "Algorithm 2": lambda d, eta: slam_perceptron(d, "ndcg@10", eta),
    "Algorithm 2, v of full NDCG": lambda d, eta: slam_perceptron(d, "ndcg", eta),
    "Algorithm 2, v of AP": lambda d, eta: slam_perceptron(d, "map", eta),
    "Algorithm 3": minimax_perceptron,
    "fraction 0.7 (ours)": lambda d, eta: slam_perceptron(d, "ndcg@10", eta, fraction=0.7),
    "ListNet": online_listnet,
    "ListNet, constant step": lambda d, eta: online_listnet(d, eta, "constant"),
}
METRICS = ("ndcg@10", "map")


def marks(T: int, points: int = 60) -> list[int]:
    """Rounds at which a curve is drawn, even on a logarithmic axis.

    >>> marks(100, 4)
    [1, 4, 21, 100]
    """
    return [int(t) for t in np.unique(np.geomspace(1, T, points).astype(int))]


def time_averages(rounds: Iterable[Round], features: int, T: int, rates: Mapping[str, Sequence[float]]) -> Any:
    """Plays T rounds with every learner at every rate: {"at", "curves": {learner: {rate: {metric: means so far}}}}."""
    keys = [(name, eta) for name, etas in rates.items() for eta in etas]
    learners = [LEARNERS[name](features, eta) for name, eta in keys]
    values = np.empty((T, len(keys), len(METRICS)))
    for t, (_, row) in enumerate(play_many(learners, islice(rounds, T), [metric(m) for m in METRICS])):
        values[t] = row
    at = np.array(marks(T))
    means = (np.cumsum(values, axis=0)[at - 1] / at[:, None, None]).round(6)
    curves: dict[str, dict[str, dict[str, list[float]]]] = {name: {} for name in rates}
    for j, (name, eta) in enumerate(keys):
        curves[name][f"{eta:g}"] = {m: means[:, j, c].tolist() for c, m in enumerate(METRICS)}
    return {"at": at.tolist(), "curves": curves}


def separable(T: int, margin: float, rates: Mapping[str, Sequence[float]], seed: int) -> Any:
    """SLAM's simulated stream: 20 documents, 20 features, five grades."""
    data = Separable(margin=margin, seed=seed)
    return time_averages(data, data.features, T, rates)


def shares_of_bounds(T: int, margin: float, seed: int) -> Any:
    """The largest share of its bound that the cumulative NDCG@10 loss reaches at any prefix of a separable stream."""
    data = Separable(margin=margin, seed=seed)
    lists = data.rounds(T)
    longest = np.maximum.accumulate(np.linalg.norm(lists.X.astype(float), axis=1))[lists.offsets[1:] - 1]
    R, norm = float(longest[-1]), 1.0 / margin
    surrogate: Any = slam_perceptron(data.features, "ndcg@10").surrogate
    K = bounds.slam_constant(10, R, bounds.largest_weight_ratio(lists, surrogate))
    runs: dict[str, tuple[Linear, Floats]] = {
        "Corollary 11": (
            minimax_perceptron(data.features),
            np.array([bounds.shared_bound(0.0, norm, 4.0 * r * r) for r in longest]),
        ),
        "Theorem 8": (
            slam_perceptron(data.features, "ndcg@10", 1.0 / K),
            np.full(T, bounds.bound_at(1.0 / K, 0.0, norm, K)),
        ),
        "any step": (
            slam_perceptron(data.features, "ndcg@10", 0.1),
            np.array([bounds.active_weight_bound(0.1, 0.0, norm, float(r)) for r in longest]),
        ),
    }
    shares = {}
    for name, (learner, bound) in runs.items():
        lost = [1.0 - turn.values[0] for turn in play(learner, lists, feedback.full, [metric("ndcg@10")])]
        shares[name] = float(np.max(np.cumsum(lost) / bound))
    return shares


def against_the_adversary(margin: float, documents: int, seed: int) -> Any:
    """Theorem 9's adversary: for each learner the least loss of a round, the losses' sum, and how separable it was."""
    adversary = Adversary(1.0, margin, documents)
    found = {}
    for name, make in LEARNERS.items():
        for which in ("ndcg", "map"):
            learner, least, total, faced = make(adversary.features, 0.1), inf, 0.0, list[Round]()
            for round in adversary.against(learner):
                faced.append(round)
                (turn,) = play(learner, [round], feedback.full, [metric(which)])
                least, total = min(least, 1.0 - turn.values[0]), total + 1.0 - turn.values[0]
            u = adversary.ranker(faced)
            leads = [float(((r.X[r.labels > 0.0] - r.X[r.labels == 0.0]) @ u).min()) for r in faced]
            separation = {"lead": min(leads), "length": float(np.linalg.norm(u))}
            found[f"{name}, {which}"] = {"least": least, "total": total, "rounds": len(faced), **separation}
    return found


def play_passes(T: int, rates: Mapping[str, Sequence[float]], folder: str, seed: int) -> Any:
    """T rounds over all lists of a data set, each pass in an order of its own."""
    lists = all_lists(folder)
    schedule = Schedule(-(-T // len(lists)), seed)
    stream = (round for epoch in range(schedule.epochs) for round in schedule.epoch(lists, epoch))
    return {**time_averages(stream, lists.n_features, T, rates), "lists": len(lists)}
