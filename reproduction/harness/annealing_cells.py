"""SmoothDCG with a smoothing that falls from round to round: the annealing that the paper knows for batches only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ranktron.learners.algorithms.topk import PAPER
from ranktron.learners.steps import Constant, InversePower
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import SmoothDCG
from ranktron.types import Features, Feedback, Ranking, Step
from reproduction.harness.data import all_lists
from reproduction.theory.top_k_games import average_so_far

SHARP = 0.01
"""The printed ε."""
SCHEDULES: Mapping[str, Step] = {
    "ε = 0.01": Constant(SHARP),
    "ε = 1": Constant(1.0),
    "ε falls from 1": InversePower(1.0, 0.4),  # reaches 0.01 after 100,000 rounds
}


@dataclass(eq=False)
class AnnealedTopK(TopK):
    """RTop-1F on SmoothDCG, its ε a function of the round's number and never below the printed 0.01.

    The estimate stays without bias: each round has a surrogate of its own, known before its labels come.

    Parameters
    ----------
    smoothing : Step
        ε_t for round number t, from 0.

    Examples
    --------
    >>> learner = AnnealedTopK(2, SmoothDCG(), 1, Constant(0.1), Constant(0.1), smoothing=InversePower(1.0, 0.5))
    >>> [learner.smoothed(number).epsilon for number in (0, 3, 10**6)]
    [1.0, 0.5, 0.01]

    References
    ----------
    Chapelle and Wu, Gradient descent optimization of smoothed information retrieval metrics, section 4.
    """

    smoothing: Step = Constant(SHARP)  # noqa: RUF009 (it is frozen)

    def smoothed(self, number: int) -> SmoothDCG:
        """The surrogate of a round."""
        return SmoothDCG(max(SHARP, self.smoothing(number)))

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        self.surrogate = self.smoothed(ranking.number)
        return super().learn(X, ranking, feedback)


def annealed_ranker(n_features: int, schedule: str, scaled: bool, seed: int) -> AnnealedTopK:
    """The paper's setting with another ε; `scaled` multiplies the step by ε_t/0.01, since gradients go with 1/ε.

    >>> annealed_ranker(3, "ε = 1", scaled=True, seed=0).step(0)
    1.0
    """
    setting, smoothing = PAPER["smooth-dcg"], SCHEDULES[schedule]
    steps = InversePower(setting.eta, 2.0 / 3.0)

    def step(number: int) -> float:
        return steps(number) * (max(SHARP, smoothing(number)) / SHARP if scaled else 1.0)

    explore = InversePower(setting.explore, 1.0 / 3.0)
    return AnnealedTopK(
        n_features, SmoothDCG(SHARP), 1, explore, step, radius=setting.radius, require_full_lists=True, seed=seed,
        smoothing=smoothing,
    )  # fmt: skip


def measure_annealing(schedule: str, scaled: bool, T: int, folder: str, seed: int) -> Any:
    """The mean NDCG@10 of all rankings shown up to some rounds."""
    lists = all_lists(folder)
    rounds, means = average_so_far(annealed_ranker(lists.n_features, schedule, scaled, seed), lists, T, seed, 50)
    return {"at": [int(t) for t in rounds], "means": means.round(6).tolist()}
