"""`ranktron tune`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.cluster_options import task_workers, tasks_option
from ranktron.cli.options import (
    DATA,
    OUT,
    as_json,
    as_metric,
    categorical_option,
    keep_inputs,
    nan_option,
    null_for,
    null_option,
    read_training_data,
    table_options,
)
from ranktron.cli.output import print_json, print_widest, show_activity, table

if TYPE_CHECKING:
    from ranktron.metrics import Metric
    from ranktron.training.tune import Progress, Tuned

_SHOWN = 12
_SHOWN_PARAMETERS = ("eta", "C", "n_rounds", "num_leaves")


@click.command()
@click.argument("data", type=DATA)
@click.option(
    "--minutes",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.0, min_open=True),
    help="Time budget; candidates that do not fit are not tried.",
)
@click.option("--metric", default="ndcg@10", show_default=True, callback=as_metric, help="Metric to choose by.")
@click.option("--algo", "learners", multiple=True, help="Choose from these algorithms only.  [default: all]")
@click.option("--trees", is_flag=True, help="Try LightGBM's trees, too, which take longer.")
@click.option(
    "--exportable", is_flag=True, help="Only what search engines can compute: no scaling within queries, no maps."
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Seed of the folds and of the order of the queries.",
)
@click.option("--model", "out", type=OUT, required=True, help="Where to save the model.")
@tasks_option
@nan_option
@null_option
@categorical_option
@table_options
@as_json
def tune(
    data: str, minutes: float, metric: Metric, learners: tuple[str, ...], trees: bool, exportable: bool, seed: int,
    out: str, dask: str | None, nan: str | None, null: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Choose learner, map and parameters for DATA, and save the model.

    A fifth of the queries is held out. Some 400 candidates are cross-validated on the others within the time budget.
    The best one is evaluated on the held-out queries, for an unbiased estimate, and then trained on all queries.
    Ctrl-C ends the search with the best candidate so far. The first run compiles before the time begins.

    Example: ranktron tune train.txt --minutes 0.2 --model my.model
    """
    from ranktron.training.tune import LEARNERS, TREES, compile_families, tune_rounds

    keep_inputs(out, data)
    if trees:
        learners = (*(learners or LEARNERS), TREES)
    rounds = read_training_data(data, null or null_for(None, nan))
    if dask is None:  # not within the time budget
        with show_activity("preparing (compiling on the first run only)"):
            compile_families(rounds, metric, learners or None, exportable, nan or "error")
    with task_workers(dask) as workers, _show_search() as watch:
        tuned = tune_rounds(
            rounds, minutes=minutes, metric=metric, learners=learners or None, exportable=exportable, seed=seed,
            nan=nan or "error", watch=watch, workers=workers,
        )  # fmt: skip
    tuned.model.save(out)
    if as_json:
        print_json(_content(tuned, out))
        return
    _print(tuned, str(metric), out)


@contextmanager
def _show_search() -> Iterator[Callable[[Progress], None] | None]:
    """Shows the progress of the search on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("preparing") as status:

        def watch(progress: Progress) -> None:
            best = f"; best so far: {progress.best}" if progress.best else ""
            left = f"{progress.tried} candidates tried, {progress.seconds_left:.0f} seconds left"
            status.update(f"fold {progress.fold} of {progress.folds}, {progress.family}: {left}{best}")

        yield watch


def _content(tuned: Tuned, out: str) -> dict[str, Any]:
    best = tuned.table[0]
    return {
        "chosen": {key: best[key] for key in ("learner", "parameters", "scale", "map", "epochs")},
        "exportable": _best_exportable(tuned),
        "test": tuned.test,
        "tried": len(tuned.table),
        "stopped": tuned.stopped or None,
        "table": tuned.table,
        "model": out,
    }


def _best_exportable(tuned: Tuned) -> dict[str, Any] | None:
    """The best candidate that engines can compute, among those tried on all folds of the winner."""
    from ranktron.training.tune import TREES

    for row in tuned.table:
        plain = row["map"] is None and row["learner"] != TREES and not (row["scale"] or "").endswith("-query")
        if plain and row["folds"] == tuned.table[0]["folds"]:
            return row
    return None


def _print(tuned: Tuned, metric: str, out: str) -> None:
    rows = [
        (
            row["learner"],
            " ".join(f"{key}={value}" for key, value in row["parameters"].items() if key in _SHOWN_PARAMETERS) or "–",
            row["scale"] or "none",
            row["map"] or "–",
            row["epochs"],
            row["mean"],
            f"{row['low']:.4f} – {row['high']:.4f}",
            row["folds"],
        )
        for row in tuned.table[:_SHOWN]
    ]
    columns = ["learner", "parameters", "scale", "feature\nmap", "passes", metric, "95 % interval", "folds"]
    tried = f"{len(tuned.table)} candidate{'s' if len(tuned.table) > 1 else ''}"
    title = f"The best of {tried} on validation queries → {out}"
    # narrow terminals get fewer columns, so that no number is broken
    print_widest([table(title, columns[:n], [row[:n] for row in rows]) for n in (8, 7, 6)], out)
    test, err = tuned.test, out == "-"
    value = f"{test['mean']:.4f} (95 % interval {test['low']:.4f} – {test['high']:.4f})"
    click.echo(f"{metric} of the best on {test['queries']:,} held-out queries: {value}", err=err)
    reasons = {
        "time": "out of time: not every candidate was tried",
        "interrupt": "interrupted: the best so far was taken",
    }
    if tuned.stopped:
        click.echo(reasons[tuned.stopped], err=err)
    click.echo(_describe_exportable(tuned, metric), err=err)


def _describe_exportable(tuned: Tuned, metric: str) -> str:
    """Whether search engines can compute the best candidate; otherwise the best one that they can, and its cost."""
    best, other = tuned.table[0], _best_exportable(tuned)
    if other is best:
        return "Search engines can compute it (ranktron export)."
    if other is None:
        return "Search engines cannot compute it, nor any candidate that was tried on as many queries (--exportable)."
    settings = ", ".join(f"{key}={value}" for key, value in other["parameters"].items() if key in _SHOWN_PARAMETERS)
    name = f"{other['learner']} ({settings})" if settings else other["learner"]
    difference = f"{metric} {other['mean']:.4f} instead of {best['mean']:.4f} on validation queries"
    return f"Search engines cannot compute it; the best candidate that they can (--exportable): {name}, {difference}."
