"""Sweeps: many values of one parameter on the same stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.fused import can_fuse, play_many
from ranktron.learners.loop import play
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import TrainingPlan, make_untrained, warn_unlearnable_queries
from ranktron.training.model import served_scores
from ranktron.training.workers import Workers, keep

Step = Callable[[], None]


@dataclass(frozen=True)
class Swept:
    """The results of one value: time averages, mistakes, and the metrics of the last weights on the validation set."""

    value: float
    online: dict[str, float]
    mistakes: int
    valid: dict[str, float]


def sweep(
    plan: TrainingPlan,
    key: str,
    values: Sequence[float],
    rounds: Rounds,
    *,
    valid: Rounds | None = None,
    watch: Step | None = None,
    workers: Workers | None = None,
) -> list[Swept]:
    """Plays the same stream for every value of one parameter, in one pass if the learners support it.

    Imputation, scaling and feature map are fitted on the whole stream first, once for all values. With `workers`, such
    as a Dask cluster, every value is a task of its own, and the rows are the same.

    >>> from ranktron.data.synthetic import Separable
    >>> rows = sweep(TrainingPlan("slam", metrics=["ndcg@10"]), "eta", [0.1, 1.0], Separable().rounds(50))
    >>> [row.value for row in rows]
    [0.1, 1.0]
    """
    algo, metrics = algorithm(plan.algorithm), plan.shown_metrics
    if algo.solver() is not None:
        raise DataError(f"{plan.algorithm} does not learn online: use cv to choose its parameters")
    if workers is not None:
        data = [workers.submit(keep, each, home=0) if each is not None else None for each in (rounds, valid)]
        tasks = [workers.submit(_sweep_value, plan, key, value, *data, home=at) for at, value in enumerate(values)]
        return [task.result() for task in tasks]
    warn_unlearnable_queries(rounds)
    model = make_untrained(plan, rounds)
    prepared, checked = model.prepare(rounds), None if valid is None else model.prepare(valid)
    learners = [algo.learner(prepared.n_features, {**plan.parameters, key: value}) for value in values]
    sums = _play_sums(learners, prepared, plan.schedule, metrics, watch)
    rows = []
    for value, learner, row in zip(values, learners, sums, strict=True):
        online = {str(m): float(total / learner.rounds) for m, total in zip(metrics, row, strict=True)}
        means = (
            {} if checked is None else dict(evaluate_rounds(checked, served_scores(learner, checked), metrics).means)
        )
        rows.append(Swept(value, online, learner.mistakes, means))
    return rows


def _sweep_value(plan: TrainingPlan, key: str, value: float, rounds: Rounds, valid: Rounds | None) -> Swept:
    return sweep(plan, key, [value], rounds, valid=valid)[0]


def _play_sums(
    learners: Sequence[BaseLearner], rounds: Rounds, schedule: Schedule, metrics: Sequence[Metric], watch: Step | None
) -> Any:
    """The sums of the metrics over the whole stream, learners × metrics."""
    sums = np.zeros((len(learners), len(metrics)))
    linear = [learner for learner in learners if can_fuse(learner)]
    for epoch in range(schedule.epochs):
        if len(linear) == len(learners):
            for _, values in play_many(linear, schedule.epoch(rounds, epoch), metrics):
                sums += values
                if watch is not None:
                    watch()
        else:
            for j, learner in enumerate(learners):
                for turn in play(learner, schedule.epoch(rounds, epoch), learner.simulated_feedback, metrics):
                    sums[j] += turn.values
                if watch is not None:
                    watch()
    return sums
