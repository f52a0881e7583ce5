"""What is taken from curves over seeds: the best learning rate, the values at the end, the panels of a figure.

A series of `online.time_averages` has one part, {"at": [...], "curves": {learner: {rate: {metric: [...]}}}}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ranktron.types import Floats
from reproduction.harness.verdicts import Values
from reproduction.report.charts import ChartLine, Panel

Seeds = Sequence[Sequence[Any]]


def best_rates(series: Seeds, metric: str) -> dict[str, str]:
    """For each learner the rate with the best time average at the end, in the mean over seeds."""

    def end(learner: str, rate: str) -> float:
        return float(np.mean([row[0]["curves"][learner][rate][metric][-1] for row in series]))

    tried = series[0][0]["curves"]
    return {learner: max(rates, key=partial(end, learner)) for learner, rates in tried.items()}


def at_best_rate(series: Seeds, metric: str) -> dict[str, Floats]:
    """For each learner its curves at the best rate: seeds × points."""
    best = best_rates(series, metric)
    return {
        learner: np.array([row[0]["curves"][learner][rate][metric] for row in series]) for learner, rate in best.items()
    }


def last(series: Seeds, metric: str) -> dict[str, Floats]:
    """For each learner the time average at the end, one value for each seed."""
    return {learner: curves[:, -1] for learner, curves in at_best_rate(series, metric).items()}


def curve_lines(
    curves: Mapping[str, Floats], x: Sequence[float], names: Sequence[str] | None = None
) -> list[ChartLine]:
    """Means over seeds, with bands of one standard deviation."""
    return [
        ChartLine(name, x, curves[name].mean(axis=0).tolist(), _deviations(curves[name]))
        for name in (names if names is not None else curves)
    ]


def _deviations(table: Floats) -> list[float]:
    return table.std(axis=0, ddof=1).tolist() if len(table) > 1 else []


def time_panel(series: Seeds, metric: str, title: str, y: str, names: Sequence[str] | None = None) -> Panel:
    """Time averages against rounds."""
    at = series[0][0]["at"]
    first = next((i for i, t in enumerate(at) if t >= 10), 0)
    curves = {name: table[:, first:] for name, table in at_best_rate(series, metric).items()}
    return Panel(title, "rounds", y, curve_lines(curves, at[first:], names), log_x=True)


def best_of_families(values: Values, families: Sequence[str]) -> dict[str, Floats]:
    """Of all variants whose names begin alike the one with the best mean.

    >>> best_of_families({"a": np.array([1.0]), "a, too": np.array([2.0]), "b": np.array([0.0])}, ["a", "b"])
    {'a': array([2.]), 'b': array([0.])}
    """
    return {
        family: max((row for name, row in values.items() if name.startswith(family)), key=lambda row: float(row.mean()))
        for family in families
    }
