"""`ranktron sweep`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.cluster_options import task_workers, tasks_option
from ranktron.cli.options import (
    DATA,
    PICTURE,
    AlgorithmOptions,
    as_json,
    map_option,
    metrics_option,
    nan_option,
    null_for,
    null_option,
    parse_settings,
    preset_option,
    read_data,
    read_training_data,
    scale_option,
    table_options,
    take_options,
)
from ranktron.cli.output import print_json, print_table, show_progress
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM

if TYPE_CHECKING:
    from ranktron.metrics import Metric
    from ranktron.training.sweep import Swept


def _values(text: str) -> list[float] | None:
    """The N values of LOW:HIGH:N, evenly spaced on a logarithmic scale, or comma-separated values; None if neither."""
    try:
        if text.count(":") == 2:
            low, high, count = text.split(":")
            n, a, b = int(count), float(low), float(high)
            if n < 2 or not 0.0 < a < b:
                return None
            return [a * (b / a) ** (i / (n - 1)) for i in range(n)]
        return [float(value) for value in text.split(",")] if "," in text else None
    except ValueError:
        return None


@click.command()
@click.argument("data", type=DATA)
@click.option(
    "--algo", type=click.Choice(list(ALGORITHMS)), default=DEFAULT_ALGORITHM, show_default=True, help="Algorithm."
)
@preset_option
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUES",
    multiple=True,
    required=True,
    help="One parameter to vary, as KEY=LOW:HIGH:N (logarithmic) or KEY=A,B,C; fixed ones as KEY=VALUE.",
)
@click.option("--epochs", default=1, show_default=True, type=click.IntRange(1), help="Passes over the data.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the shuffling.")
@scale_option
@map_option
@click.option("--valid", type=DATA, help="Validation set.")
@click.option("--curve", type=PICTURE, help="Write a plot of the results (.png or .svg).")
@tasks_option
@metrics_option("ndcg@10")
@nan_option
@null_option
@table_options
@as_json
def sweep(**options: Any) -> None:
    """Train with many values of one parameter at once.

    Example: ranktron sweep train.txt --algo slam --set eta=1e-3:1e1:16
    """
    algorithm = take_options(AlgorithmOptions, options)
    _sweep(SweepOptions(**options, algorithm=algorithm))


@dataclass(frozen=True)
class SweepOptions:
    """The options of `ranktron sweep`."""

    data: str
    algorithm: AlgorithmOptions
    seed: int
    valid: str | None
    curve: str | None
    metrics: list[Metric]
    null: str | None
    dask: str | None
    as_json: bool


def _sweep(options: SweepOptions) -> None:
    """Reads the data, trains with every value, and reports."""
    from ranktron.training.sweep import sweep as sweep_values

    algo, settings, metrics = str(options.algorithm.algo), options.algorithm.settings, options.metrics
    ranges = {s.partition("=")[0]: v for s in settings if (v := _values(s.partition("=")[2])) is not None}
    if len(ranges) != 1:
        raise click.UsageError(
            "give exactly one parameter a range, LOW:HIGH:N with 0 < LOW < HIGH and N of 2 or more, "
            "as in --set eta=1e-3:1e1:16, or values, as in --set eta=0.1,1,10"
        )
    ((key, values),) = ranges.items()
    plan = options.algorithm.plan(algo, tuple(s for s in settings if s.partition("=")[0] != key))
    plan = replace(plan, schedule=replace(plan.schedule, seed=options.seed), metrics=metrics)
    parse_settings(algo, tuple(f"{key}={value}" for value in values))
    null = options.null or null_for(None, plan.nan)
    rounds = read_training_data(options.data, null)
    valid = read_data(options.valid, null, rounds, part="vali") if options.valid else None
    total = plan.schedule.epochs * len(rounds)
    with task_workers(options.dask) as workers, show_progress(f"sweeping {key}", total) as step:
        rows = sweep_values(plan, key, values, rounds, valid=valid, watch=step, workers=workers)
    first, sign = str(metrics[0]), 1.0 if metrics[0].higher_is_better else -1.0
    best = max(rows, key=lambda row: sign * (row.online if valid is None else row.valid)[first])
    title = f"{algo} on {options.data}"
    if options.curve:
        _draw(options.curve, rows, key, title)
    if options.as_json:
        print_json({"parameter": key, "rows": [vars(row) for row in rows], "best": best.value})
        return
    average, validation = (f"{m}, time average" for m in rows[0].online), (f"{m}, validation" for m in rows[0].valid)
    table = [(f"{row.value:.4g}", *row.online.values(), row.mistakes, *row.valid.values()) for row in rows]
    print_table(title, [key, *average, "mistakes", *validation], table)
    by = f"the time average of {first}" if valid is None else f"{first} on the validation set"
    click.echo(f"best by {by}: {key}={best.value:.4g}")


def _draw(path: str, rows: list[Swept], key: str, title: str) -> None:
    """Plots the time averages and validation metrics over the values."""
    from ranktron.training.figures.plots import curves

    values = [row.value for row in rows]
    lines = {f"{m}, time average": (values, [row.online[m] for row in rows]) for m in rows[0].online}
    lines |= {f"{m}, validation": (values, [row.valid[m] for row in rows]) for m in rows[0].valid}
    curves(path, lines, {}, title=title, x=key, y="value", log=True)
