"""`ranktron sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ranktron.cli.options import (
    DATA,
    PICTURE,
    as_json,
    map_option,
    metrics_option,
    nan_option,
    null_for,
    null_option,
    parse_settings,
    preset_option,
    read_data,
    scale_option,
    table_options,
    with_preset,
)
from ranktron.cli.output import print_json, print_table, show_progress
from ranktron.cli.parts import task_workers, tasks_option
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM

if TYPE_CHECKING:
    from ranktron.metrics import Metric


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
def sweep(
    data: str, algo: str, preset: str | None, settings: tuple[str, ...], epochs: int, seed: int, scale: str | None,
    recipe: str | None, valid: str | None, curve: str | None, metrics: list[Metric], nan: str | None,
    null: str | None, dask: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Train with many values of one parameter at once.

    Example: ranktron sweep train.txt --algo slam --set eta=1e-3:1e1:16
    """
    from ranktron.learners.schedule import Schedule
    from ranktron.training.sweep import sweep as sweep_values

    ranges = {s.partition("=")[0]: v for s in settings if (v := _values(s.partition("=")[2])) is not None}
    if len(ranges) != 1:
        raise click.UsageError(
            "give exactly one parameter a range, LOW:HIGH:N with 0 < LOW < HIGH and N of 2 or more, "
            "as in --set eta=1e-3:1e1:16, or values, as in --set eta=0.1,1,10"
        )
    ((key, values),) = ranges.items()
    given = parse_settings(algo, tuple(s for s in settings if s.partition("=")[0] != key))
    parameters, scale, _ = with_preset(algo, preset, given, scale, epochs)
    parse_settings(algo, tuple(f"{key}={value}" for value in values))
    null = null or null_for(None, nan)
    rounds = read_data(data, null, part="train")
    checked = read_data(valid, null, rounds, part="vali") if valid else None
    with task_workers(dask) as workers, show_progress(f"sweeping {key}", epochs * len(rounds)) as step:
        rows = sweep_values(
            algo, parameters, key, values, rounds, Schedule(epochs, seed), metrics,
            scaling=scale, map=recipe, valid=checked, watch=step, nan=nan or "error", workers=workers,
        )  # fmt: skip
    first, sign = str(metrics[0]), 1.0 if metrics[0].higher_is_better else -1.0
    best = max(rows, key=lambda row: sign * (row.online if checked is None else row.valid)[first])
    if curve:
        from ranktron.training.figures.curves import curves

        lines = {f"{m}, time average": (values, [row.online[str(m)] for row in rows]) for m in metrics}
        if checked is not None:
            lines |= {f"{m}, validation": (values, [row.valid[str(m)] for row in rows]) for m in metrics}
        curves(curve, lines, {}, title=f"{algo} on {data}", x=key, y="value", log=True)
    if as_json:
        print_json({"parameter": key, "rows": [vars(row) for row in rows], "best": best.value})
        return
    columns = [
        key,
        *(f"{m}, time average" for m in metrics),
        "mistakes",
        *(f"{m}, validation" for m in metrics if valid),
    ]
    table = [(f"{row.value:.4g}", *row.online.values(), row.mistakes, *row.valid.values()) for row in rows]
    print_table(f"{algo} on {data}", columns, table)
    by = f"the time average of {first}" if checked is None else f"{first} on the validation set"
    click.echo(f"best by {by}: {key}={best.value:.4g}")
