"""Cells of the comparison: every learner of the library, and trees where they are installed, on one fold of a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Evaluation, evaluate
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.cross_validation import Fold, cross_validate
from ranktron.training.fit import TrainingPlan
from reproduction.datasets.simulations import simulated_fold
from reproduction.harness.data import cached_folds

METRICS = ("NDCG@10", "MAP")
SELECT = METRICS[0]
LETOR_SETS = ("ohsumed-letor3", "ohsumed-letor2", "mq2008")
LETOR = {"NDCG@10": "ndcg@10:letor", "MAP": "map:letor"}
OWN = {"NDCG@10": "ndcg@10", "MAP": "map"}
"""How a metric is computed: on LETOR's sets as LETOR's script does, which gives a list shorter than ten NDCG@10 0."""
SCALING: Mapping[str, str | None] = {
    "ohsumed-letor3": None,
    "ohsumed-letor2": "minmax-query",
    "mq2008": None,
    "mslr-sample": "minmax-query",
    "yandex-imat2009-sample": "minmax-query",
    "web": "standard",
    "decisive": "standard",
}
"""How everyone's features are scaled, the trees' too; two of LETOR's sets come scaled to [0, 1] within each list."""

Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class System:
    """An algorithm of the table: parameters, the values that validation chooses among, passes, whether it has seeds."""

    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)
    epochs: int = 30
    seeded: bool = True


_COST = {"C": (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)}
_STEPS = {"C": (1.0, 100.0), "eta": (1e-2, 1e-3, 1e-4)}

NAMED: Mapping[str, System] = {
    "SLAM": System("slam", {}, {"eta": (0.01, 0.03, 0.1)}),
    "SLAM, fraction 0.7": System("slam", {"fraction": 0.7, "average": True}, {"eta": (0.01, 0.03, 0.1)}),
    "minimax perceptron": System("minimax", {}, {"average": (False, True)}),
    "ListNet": System("listnet", {"average": True}, {"eta": (0.3, 1.0, 3.0)}),
    "hinge perceptron": System("hinge", {"average": True}, {"eta": (0.03, 0.1, 0.3)}),
    "RTop-kF, 2 labels": System("topk", {"preset": "recommended", "explore": 1.0, "floor": 0.0}, {}, 100),
    "Predtron": System("predtron", {"average": True}, {"representation": ("-i^1.1", "discount")}, 10),
    "PDGD, clicks": System("pdgd", {}, {"eta": (0.1, 1.0), "average": (False, True)}),
    "kernel ListNet": System("kernel", {"update": "listnet", "average": True}, {"eta": (0.3, 1.0, 3.0)}, 5),
    "pairwise, average": System("pairwise", {"output": "average"}, {}, 20),
    "committee": System("committee", {}, {}, 20),
    "RankSVM": System("ranksvm", {}, _COST, 1, seeded=False),
    "SmoothRank": System("smoothrank", {}, {"C": (3.0, 10.0, 30.0, 100.0)}, 1),
    "RankBoost": System("rankboost", {"n_rounds": 500}, {}, 1, seeded=False),
    "RankMM-1": System("rankmm", {"loss": "average"}, _COST, 1, seeded=False),
    "RankMM-2": System("rankmm", {"loss": "max", "step": "paper"}, _STEPS, 10),
    "RankMM-3": System("rankmm", {"loss": "max-average", "step": "paper"}, _STEPS, 10),
}

_OTHERS = [name for name in ALGORITHMS if name not in {system.algorithm for system in NAMED.values()}]
SYSTEMS: Mapping[str, System] = {**NAMED, **{name: System(name, epochs=5) for name in _OTHERS}}
"""An algorithm that is new in the table takes part with its defaults, until it has a line above."""

TREES = 200
STEP = 10
"""Validation looks at every tenth number of trees."""


@dataclass(frozen=True)
class Booster:
    """Boosted trees of another library: its package, the sizes of trees to choose among, and how to grow them.

    `grow` takes queries, a size with a learning rate, the number of trees and a seed; it returns the function that
    scores queries with the first so many trees.
    """

    package: str
    sizes: Sequence[Mapping[str, int]]
    grow: Callable[[Rounds, Mapping[str, Any], int, int], Callable[[Rounds, int], Any]]


def _grow_lightgbm(part: Rounds, setting: Mapping[str, Any], trees: int, seed: int) -> Any:
    from lightgbm import LGBMRanker

    ranker = LGBMRanker(
        n_estimators=trees, min_child_samples=20, subsample=0.8, subsample_freq=1, colsample_bytree=0.8, n_jobs=1,
        random_state=seed, verbosity=-1, **setting,
    )  # fmt: skip
    ranker.fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return lambda lists, kept: ranker.predict(lists.X, num_iteration=kept)


def _grow_xgboost(part: Rounds, setting: Mapping[str, Any], trees: int, seed: int) -> Any:
    from xgboost import XGBRanker

    ranker = XGBRanker(n_estimators=trees, subsample=0.8, colsample_bytree=0.8, n_jobs=1, random_state=seed, **setting)
    ranker.fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return lambda lists, kept: ranker.predict(lists.X, iteration_range=(0, kept))


def _grow_catboost(part: Rounds, setting: Mapping[str, Any], trees: int, seed: int) -> Any:
    from catboost import CatBoostRanker

    quiet = {"verbose": False, "allow_writing_files": False}
    ranker = CatBoostRanker(iterations=trees, thread_count=1, random_seed=seed, **quiet, **setting)
    ranker.fit(part.X, part.labels, group_id=np.repeat(np.arange(len(part)), np.diff(part.offsets)))
    return lambda lists, kept: ranker.predict(lists.X, ntree_end=kept)


_DEPTHS = ({"max_depth": 3}, {"max_depth": 5})
BOOSTERS: Mapping[str, Booster] = {
    "LightGBM": Booster("lightgbm", ({"num_leaves": 7}, {"num_leaves": 31}), _grow_lightgbm),
    "XGBoost": Booster("xgboost", _DEPTHS, _grow_xgboost),
    "CatBoost": Booster("catboost", _DEPTHS, _grow_catboost),
}


def names() -> list[str]:
    """All that take part here: of the boosters those that are installed."""
    return [*SYSTEMS, *(name for name, one in BOOSTERS.items() if find_spec(one.package))]


@lru_cache(maxsize=5)
def scaled_fold(fold: int = 0, folder: str = "", simulation: str = "", queries: int = 0) -> Fold:
    """A fold of the set in a folder, or the only one of a simulation; scaled, the same for everyone."""
    data = simulated_fold(simulation, queries) if simulation else cached_folds(folder)[fold]
    scaler = fit_scaler(SCALING[simulation or Path(folder).name.lower()], data.train)
    return Fold(data.name, *(scale(part, scaler) for part in data[1:]))


def metrics_of(folder: str = "", **_: Any) -> Mapping[str, str]:
    """How the metrics are computed there."""
    return LETOR if Path(folder).name.lower() in LETOR_SETS else OWN


def measure_system(system: str, seed: int, **source: Any) -> Any:
    """One system on one fold: test values of every query, what validation chose, out of how many, and seconds.

    `source` is what `scaled_fold` takes; seconds are processor time of one training.
    """
    data, spelled = scaled_fold(**source), metrics_of(**source)
    one = SYSTEMS[system]
    given = {**ALGORITHMS[one.algorithm].preset("paper"), **one.parameters}
    if one.algorithm == "committee":
        given["metric"] = spelled[SELECT]
    began = process_time()
    plan = TrainingPlan(one.algorithm, given, Schedule(one.epochs), select=spelled[SELECT])
    report = cross_validate(plan, [data], grid=one.grid, seeds=[seed], metrics=list(spelled.values()))
    points = prod(len(values) for values in one.grid.values())
    seconds = (process_time() - began) / points
    (trial,) = report.trials
    chosen = {**trial.parameters, **({"epochs": trial.epoch} if one.epochs > 1 else {})}
    return _result(trial.test, spelled, chosen, points * one.epochs, seconds)


def measure_boosting(booster: str, trees: int, rates: Sequence[float], seed: int, **source: Any) -> Any:
    """Boosted trees in the same way: their size, learning rate and number are chosen on the validation part."""
    data, spelled = scaled_fold(**source), metrics_of(**source)
    one = BOOSTERS[booster]
    found = []
    began = process_time()
    settings: list[dict[str, Any]] = [{**size, "learning_rate": rate} for size in one.sizes for rate in rates]
    for setting in settings:
        score = one.grow(data.train, setting, trees, seed)
        for kept in range(STEP, trees + 1, STEP):
            value = _evaluate(score, data.valid, kept, [spelled[SELECT]]).means[spelled[SELECT]]
            found.append((value, score, {**setting, "trees": kept}))
    seconds = (process_time() - began) / len(settings)
    _, score, chosen = max(found, key=lambda each: each[0])
    tested = _evaluate(score, data.test, chosen["trees"], list(spelled.values()))
    return _result(tested, spelled, chosen, len(found), seconds)


def _evaluate(score: Callable[[Rounds, int], Any], part: Rounds, kept: int, metrics: Sequence[str]) -> Evaluation:
    return evaluate(part, np.asarray(score(part, kept), np.float64), metrics)


def _result(
    tested: Evaluation, spelled: Mapping[str, str], chosen: Mapping[str, Any], tried: int, seconds: float
) -> Any:
    queries = {shown: tested.per_query[name].tolist() for shown, name in spelled.items()}
    return {"queries": queries, "chosen": chosen, "tried": tried, "seconds": seconds}
