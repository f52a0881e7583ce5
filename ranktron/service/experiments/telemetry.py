"""Metrics of experiments, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ranktron.store.experiments.experiment import LiveExperiment
from ranktron.store.experiments.tally import Pair


class MetricSamples(NamedTuple):
    """One metric: its kind, its sentence, and its values with their labels; those that are None are left out."""

    name: str
    kind: str
    text: str
    values: Sequence[tuple[dict[str, str], float | None]]


def _evidence(experiment: LiveExperiment) -> float | None:
    found = [pair.detector for pair in experiment.tally.pairs if pair.detector is not None]
    return found[0].evidence if found else None


EXPERIMENT_METRICS: dict[str, tuple[str, str, Callable[[LiveExperiment], float | None]]] = {
    "ranktron_experiment_rounds_total": (
        "counter",
        "Pages shown, and numbers set aside before a crash.",
        lambda each: each.next,
    ),
    "ranktron_experiment_rounds_open": ("gauge", "Pages that are waiting for feedback.", lambda each: len(each.open)),
    "ranktron_experiment_users_total": ("counter", "Users that have counted.", lambda each: each.tally.count),
    "ranktron_experiment_decided": (
        "gauge",
        "1 if one arm is better than every other, else 0.",
        lambda each: each.tally.winner is not None,
    ),
    "ranktron_guard_evidence": (
        "gauge",
        "The guard's evidence that the ranker has become worse than its incumbent; an alarm at its run length.",
        _evidence,
    ),
    "ranktron_guard_alarm": (
        "gauge",
        "1 if the guard has gone back to the incumbent, else 0.",
        lambda each: None if each.definition.guard is None else each.tally.alarm is not None,
    ),
}
PAIR_METRICS: dict[str, tuple[str, Callable[[Pair], float]]] = {
    "ranktron_experiment_difference": (
        "How much better the second arm is than the first, by the users so far.",
        lambda pair: pair.sequence.mean,
    ),
    "ranktron_experiment_difference_low": (
        "Lower end of the confidence sequence of that difference.",
        lambda pair: pair.point().low,
    ),
    "ranktron_experiment_difference_high": (
        "Upper end of the confidence sequence of that difference.",
        lambda pair: pair.point().high,
    ),
}


def experiment_samples(experiments: Iterable[LiveExperiment]) -> Iterator[MetricSamples]:
    """All metrics of experiments."""
    every = list(experiments)
    for name, (kind, text, value) in EXPERIMENT_METRICS.items():
        numbers = [({"experiment": each.name}, value(each)) for each in every]
        yield MetricSamples(name, kind, text, numbers)
    for name, (text, measure) in PAIR_METRICS.items():
        differences: list[tuple[dict[str, str], float | None]] = []
        for each in every:
            arms = [arm.label for arm in each.definition.arms]
            for pair in each.tally.pairs:
                labels = {"experiment": each.name, "first": arms[pair.first], "second": arms[pair.second]}
                differences.append((labels, measure(pair)))
        yield MetricSamples(name, "gauge", text, differences)
