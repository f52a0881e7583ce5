"""Sweeps: many values of one parameter on the same stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.maps import FeatureMap
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.fused import can_fuse, play_many
from ranktron.learners.loop import play
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Metric, evaluate
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import make_untrained, warn_unlearnable_queries
from ranktron.training.model import served_scores
from ranktron.training.parts import Workers, keep

Step = Callable[[], None]


@dataclass(frozen=True)
class Swept:
    """The results of one value: time averages, mistakes, and the metrics of the last weights on the validation set."""

    value: float
    online: dict[str, float]
    mistakes: int
    valid: dict[str, float]


def sweep(
    name: str,
    parameters: Mapping[str, Any],
    key: str,
    values: Sequence[float],
    rounds: Rounds,
    schedule: Schedule,
    metrics: Sequence[Metric],
    *,
    scaling: str | None = None,
    map: str | FeatureMap | None = None,
    nan: str = "error",
    valid: Rounds | None = None,
    watch: Step | None = None,
    workers: Workers | None = None,
) -> list[Swept]:
    """Plays the same stream for every value of one parameter, all at the same time if the learners support it.

    Imputation, scaling and feature map are fitted on the whole stream first, once for all values. With `workers`, such
    as a Dask cluster, every value is a task of its own, and the rows are the same.

    >>> from ranktron.metrics import metric
    >>> from ranktron.data.synthetic import Separable
    >>> rows = sweep("slam", {}, "eta", [0.1, 1.0], Separable().rounds(50), Schedule(), [metric("ndcg@10")])
    >>> [row.value for row in rows]
    [0.1, 1.0]
    """
    algo = algorithm(name)
    if algo.solver() is not None:
        raise DataError(f"{name} does not learn online: use cv to choose its parameters")
    if workers is not None:
        options = {"scaling": scaling, "map": map, "nan": nan}
        data = [workers.submit(keep, each, home=0) if each is not None else None for each in (rounds, valid)]
        asked = [(data[0], data[1], name, parameters, key, value, schedule, metrics, options) for value in values]
        tasks = [workers.submit(_sweep_value, *each, home=at) for at, each in enumerate(asked)]
        return [task.result() for task in tasks]
    warn_unlearnable_queries(rounds)
    model = make_untrained(name, parameters, rounds, scaling, map, nan)
    prepared, checked = model.prepare(rounds), None if valid is None else model.prepare(valid)
    learners = [algo.learner(prepared.n_features, {**parameters, key: value}) for value in values]
    sums = _play_sums(learners, prepared, schedule, metrics, watch)
    rows = []
    for value, learner, row in zip(values, learners, sums, strict=True):
        online = {str(m): float(total / learner.rounds) for m, total in zip(metrics, row, strict=True)}
        means = {} if checked is None else dict(evaluate(served_scores(learner, checked), checked, metrics).means)
        rows.append(Swept(value, online, learner.mistakes, means))
    return rows


def _sweep_value(
    rounds: Rounds, valid: Rounds | None, name: str, parameters: Mapping[str, Any], key: str, value: float,
    schedule: Schedule, metrics: Sequence[Metric], options: Mapping[str, Any],
) -> Swept:  # fmt: skip
    return sweep(name, parameters, key, [value], rounds, schedule, metrics, valid=valid, **options)[0]


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
