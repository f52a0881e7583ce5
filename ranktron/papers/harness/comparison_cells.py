"""Cells of the comparison: every learner of the library, and LightGBM where it is installed, on one fold of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from math import prod
from time import process_time
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.metrics import Evaluation, evaluate
from ranktron.papers.harness.data import cached_folds
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.cross_validation import Fold, cross_validate

METRICS = ("ndcg@10:letor", "map:letor")
SELECT = METRICS[0]
RAW = ("ohsumed-letor2",)
"""Sets whose features are not scaled yet; the others come scaled to [0, 1] within each list."""

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
    "RTop-kF, 2 labels": System("topk", {"setting": "recommended"}, {}, 100),
    "Predtron": System("predtron", {"average": True}, {"representation": ("-i^1.1", "discount")}, 10),
    "pairwise, average": System("pairwise", {"output": "average"}, {}, 20),
    "committee": System("committee", {"metric": SELECT}, {}, 20),
    "RankSVM": System("ranksvm", {}, _COST, 1, seeded=False),
    "RankBoost": System("rankboost", {"n_rounds": 500}, {}, 1, seeded=False),
    "RankMM-1": System("rankmm", {"loss": "average"}, _COST, 1, seeded=False),
    "RankMM-2": System("rankmm", {"loss": "max", "step": "paper"}, _STEPS, 10),
    "RankMM-3": System("rankmm", {"loss": "max-average", "step": "paper"}, _STEPS, 10),
}

_OTHERS = [name for name in ALGORITHMS if name not in {system.algorithm for system in NAMED.values()}]
SYSTEMS: Mapping[str, System] = {**NAMED, **{name: System(name, epochs=5) for name in _OTHERS}}
"""An algorithm that is new in the table takes part with its defaults, until it has a line above."""

BOOSTER = "LightGBM"
LEAVES = (7, 31)
TREES = 200


def names() -> list[str]:
    """All that take part here."""
    return [*SYSTEMS, *([BOOSTER] if find_spec("lightgbm") else [])]


@lru_cache(maxsize=5)
def scale_raw_fold(folder: str, fold: int) -> Fold:
    """A fold; raw features are scaled to [0, 1] within each list, the same for everyone."""
    data = cached_folds(folder)[fold]
    if not folder.endswith(RAW):
        return data
    scaler = fit_scaler("minmax-query", data.train)
    return Fold(data.name, *(scale(part, scaler) for part in data[1:]))


def measure_system(system: str, fold: int, folder: str, seed: int) -> Any:
    """One system on one fold: test values of every query, what validation chose, processor seconds of one training."""
    data = scale_raw_fold(folder, fold)
    one = SYSTEMS[system]
    began = process_time()
    report = cross_validate(
        one.algorithm, [data], {**ALGORITHMS[one.algorithm].preset("paper"), **one.parameters},
        grid=one.grid, epochs=one.epochs, seeds=[seed], scaling=None, select=SELECT, metrics=METRICS,
    )  # fmt: skip
    seconds = (process_time() - began) / prod(len(values) for values in one.grid.values())
    (trial,) = report.trials
    chosen = {**trial.parameters, **({"epochs": trial.epoch} if one.epochs > 1 else {})}
    queries = {name: values.tolist() for name, values in trial.test.per_query.items()}
    return {"queries": queries, "chosen": chosen, "seconds": seconds}


def measure_boosting(fold: int, trees: int, folder: str, seed: int) -> Any:
    """Gradient-boosted trees in the same way: their leaves and their number are chosen on the validation part."""
    import lightgbm

    data = scale_raw_fold(folder, fold)
    best: dict[str, Any] = {}
    began = process_time()
    for leaves in LEAVES:
        ranker = lightgbm.LGBMRanker(
            n_estimators=trees, learning_rate=0.05, num_leaves=leaves, min_child_samples=20, subsample=0.8,
            subsample_freq=1, colsample_bytree=0.8, n_jobs=1, random_state=seed, verbosity=-1,
        )  # fmt: skip
        ranker.fit(data.train.X, data.train.labels.astype(int), group=np.diff(data.train.offsets))
        for kept in range(10, trees + 1, 10):
            value = _evaluate_part(ranker, data.valid, kept).means[SELECT]
            if not best or value > best["value"]:
                best = {"value": value, "ranker": ranker, "leaves": leaves, "trees": kept}
    seconds = (process_time() - began) / len(LEAVES)
    queries = _evaluate_part(best["ranker"], data.test, best["trees"]).per_query
    return {
        "queries": {name: values.tolist() for name, values in queries.items()},
        "chosen": {"leaves": best["leaves"], "trees": best["trees"]},
        "seconds": seconds,
    }


def _evaluate_part(ranker: Any, part: Rounds, trees: int) -> Evaluation:
    return evaluate(ranker.predict(part.X, num_iteration=trees), part, METRICS)
