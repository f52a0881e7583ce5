"""Cells of what the committee paper leaves to future work: RankBoost's features, and a choice of size and bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.learners.pairwise.outputs import Committee, Output
from ranktron.learners.pairwise.passes import TrainedOutput, train_outputs
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training import TrainingPlan, train
from ranktron.training.cross_validation import Fold
from ranktron.types import Floats, State
from reproduction.harness.pairwise_cells import ALPHA_BOUND, METRICS, SELECT, scale_fold

PAPERS_SIZE = 30
FEATURES = ("plain", "its features", "its thresholds", "both")


def boosted_thresholds(data: Fold, n_rounds: int) -> State:
    """The thresholds of a RankBoost whose number of rounds the validation part chose."""
    plan = TrainingPlan("rankboost", {"n_rounds": n_rounds}, select=SELECT)
    return train(plan, data.train, valid=data.valid).model.state


def above_thresholds(X: Floats, features: Sequence[int], thresholds: Sequence[float]) -> Floats:
    """A column for each different threshold: 1 where the feature is above it.

    >>> above_thresholds(np.array([[1.0], [3.0]]), [0, 0, 0], [2.0, 5.0, 2.0])
    array([[0., 0.],
           [1., 0.]], dtype=float32)
    """
    chosen = sorted(set(zip(map(int, features), map(float, thresholds), strict=True)))
    return np.column_stack([X[:, f] > threshold for f, threshold in chosen]).astype(np.float32)


def with_features(rounds: Rounds, kind: str, boosted: State) -> Rounds:
    """Lists as they are, with the features alone that RankBoost chose, with its thresholds instead, or with both."""
    features, X = boosted["features"], np.asarray(rounds.X)
    if kind == "its features":
        X = X[:, np.unique(features)]
    elif kind != "plain":
        columns = above_thresholds(X, features, boosted["thresholds"])
        X = np.column_stack([X, columns]) if kind == "both" else columns
    return Rounds(np.ascontiguousarray(X, np.float32), rounds.labels, rounds.offsets, rounds.qids)


def measure_boosted_features(fold: int, n_rounds: int, epochs: int, folder: str, seed: int) -> Any:
    """{features: {metric: test mean}} of a committee of 30 on each kind of features, and of RankBoost itself."""
    data = scale_fold(folder, fold)
    boosted = boosted_thresholds(data, n_rounds)
    found = {}
    for kind in FEATURES:
        parts = Fold(data.name, *(with_features(part, kind, boosted) for part in data[1:]))
        outputs = _train_all(parts, {"committee": Committee(PAPERS_SIZE)}, ALPHA_BOUND, Schedule(epochs, seed))
        found[kind] = _means(outputs["committee"], parts.test)
    return {**found, "columns": len({*zip(boosted["features"], boosted["thresholds"], strict=True)})}


def measure_chosen_size(
    fold: int, sizes: Sequence[int], bounds: Sequence[float], epochs: int, folder: str, seed: int
) -> Any:
    """The paper's size and bound, and those that the validation part likes best: {which: {metric: test mean}}.

    Of equals the smaller committee and the tighter bound is taken.
    """
    data, found = scale_fold(folder, fold), dict[tuple[float, int], tuple[float, dict[str, float]]]()
    for bound in bounds:
        outputs = _train_all(data, {str(n): Committee(n) for n in sizes}, bound, Schedule(epochs, seed))
        for n in sizes:
            best = max(means[SELECT] for means in outputs[str(n)].valid)
            found[bound, n] = best, _means(outputs[str(n)], data.test)
    bound, n = max(sorted(found), key=lambda pair: found[pair][0])
    return {
        "chosen": found[bound, n][1],
        "fixed": found[ALPHA_BOUND, PAPERS_SIZE][1],
        "size": n,
        "bound": bound,
    }


def _train_all(data: Fold, outputs: dict[str, Output], bound: float, schedule: Schedule) -> dict[str, TrainedOutput]:
    return train_outputs(
        data.train, outputs, schedule, alpha_bound=bound, valid=data.valid, select=SELECT, weigh=SELECT
    )


def _means(output: TrainedOutput, test: Rounds) -> dict[str, float]:
    means = evaluate(test, output.learner.ensemble.of_rounds(test), METRICS).means
    return {name: round(value, 6) for name, value in means.items()}
