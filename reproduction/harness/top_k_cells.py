"""Cells of feedback at the top: regret with the theorem's settings, the loss that nobody can learn, what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ranktron.learners import TopK, online_listnet, top_k_ranker
from ranktron.learners.steps import InversePower
from ranktron.learners.top_k.estimator import Decomposed
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared
from ranktron.types import Learner
from reproduction.harness.data import all_lists
from reproduction.harness.online_cells import marks
from reproduction.theory.top_k_bounds import regret_bound, theorem_settings
from reproduction.theory.top_k_games import (
    Indistinguishable,
    KnownClicks,
    Player,
    Pool,
    average_so_far,
    full_feedback,
    midpoint,
    random_ndcg,
    regret,
    rtop_1f,
)

CONVEX: Mapping[str, Decomposed] = {
    "Squared": Squared(),
    "RankSVM": PairwiseHinge(),
    "KL": KL(),
    "KL as printed": KL(printed=True),
}
CLICKS = "Squared, clicks"


def _paper(surrogate: str, k: int) -> Callable[[int, int], Learner]:
    """RTop-kF with the paper's schedules."""
    return lambda d, seed: top_k_ranker(d, surrogate, k, "paper", seed=seed)


def _squared_learner(eta: float) -> Callable[[int, int], Learner]:
    return lambda d, seed: top_k_ranker(d, "squared", 1, "paper", eta=eta, seed=seed)


def _printed_sign(d: int, seed: int) -> Learner:
    explore, step = InversePower(0.1, 1.0 / 3.0), InversePower(0.01, 2.0 / 3.0)
    return TopK(d, SmoothDCG(printed=True), 1, explore, step, radius=0.3, seed=seed)


LEARNERS: Mapping[str, Callable[[int, int], Learner]] = {
    "ListNet": lambda d, seed: online_listnet(d, 0.01),
    "RankSVM": _paper("ranksvm", 2),
    "KL": _paper("kl", 1),
    "Squared": _paper("squared", 1),
    "SmoothDCG": _paper("smooth-dcg", 1),
    "SmoothDCG, printed sign": _printed_sign,
    "Squared, η × 100": _squared_learner(1.0),
    "Squared, η ÷ 100": _squared_learner(1e-4),
    "RankSVM, our setting": lambda d, seed: top_k_ranker(d, "ranksvm", 2, "recommended", 1.0, floor=0.0, seed=seed),
}


def mean_shown(learner: str, T: int, folder: str, seed: int) -> Any:
    """The mean NDCG@10 of all rankings shown up to some rounds; chance alone has the same value at all of them."""
    lists = all_lists(folder)
    if learner == "Random":
        at = marks(T)
        return {"at": at, "means": [random_ndcg(lists)] * len(at)}
    rounds, means = average_so_far(LEARNERS[learner](lists.n_features, seed), lists, T, seed, 50)
    return {"at": [int(t) for t in rounds], "means": means.round(6).tolist()}


def regrets(surrogate: str, horizons: Sequence[int], seed: int) -> Any:
    """Regret at each horizon, played with the exploration and step that the theorem chooses for it; and its bound."""
    pool = Pool()
    loss, clicks = (Squared(), KnownClicks()) if surrogate == CLICKS else (CONVEX[surrogate], None)
    limits = clicks.limits(pool) if clicks else pool.limits
    bounds = [regret_bound(loss, limits, T, *theorem_settings(loss, limits, T)) for T in horizons]
    found = [regret(loss, pool, T, seed, clicks) for T in horizons]
    return {"horizons": list(horizons), "regret": found, "bound": bounds}


def unlearnable(T: int, seed: int) -> Any:
    """Regret of the calibrated loss on each of two games that the first label cannot tell apart, for three players."""
    players: Mapping[str, Player] = {
        "RTop-1F": rtop_1f(T, seed),
        "knows both games": midpoint,
        "hears all labels": full_feedback,
    }
    games = {"one": Indistinguishable(), "other": Indistinguishable(other=True)}
    at = np.unique(np.linspace(T // 100, T, 100).astype(int))
    curves = {
        name: {
            which: np.cumsum([game.lost(scores) for scores in player(game.stream(T, seed))])[at - 1].tolist()
            for which, game in games.items()
        }
        for name, player in players.items()
    }
    return {"at": at.tolist(), "curves": curves}
