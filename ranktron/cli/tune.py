"""`ranktron tune`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import (
    DATA,
    OUT,
    as_json,
    as_metric,
    keep_inputs,
    nan_option,
    null_for,
    null_option,
    read_data,
    table_options,
)
from ranktron.cli.output import print_json, print_widest, show_activity, table
from ranktron.cli.parts import task_workers, tasks_option

if TYPE_CHECKING:
    from ranktron.metrics import Metric
    from ranktron.training.tune import Progress, Tuned

_SHOWN = 12


@click.command()
@click.argument("data", type=DATA)
@click.option(
    "--minutes",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.0, min_open=True),
    help="How long it may take; what does not fit is not tried.",
)
@click.option("--metric", default="ndcg@10", show_default=True, callback=as_metric, help="What is to be best.")
@click.option("--algo", "learners", multiple=True, help="Choose among these algorithms only.  [default: all]")
@click.option(
    "--exportable", is_flag=True, help="Only what search engines can compute: no scaling within queries, no maps."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of division and order.")
@click.option("--model", "out", type=OUT, required=True, help="Where to save the model.")
@tasks_option
@nan_option
@null_option
@table_options
@as_json
def tune(
    data: str, minutes: float, metric: Metric, learners: tuple[str, ...], exportable: bool, seed: int, out: str,
    dask: str | None, nan: str | None, null: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Choose learner, map and parameters for DATA, and save the model.

    A fifth of the queries is set aside. On the others, divided into folds, some 400 settings are tried within the
    time that is given. The best one is measured on the fifth, which has chosen nothing: that is the number to expect.
    Then it is trained on everything. Ctrl-C ends the search and goes on with the best so far. The first run compiles
    before the time begins.

    Example: ranktron tune train.txt --minutes 0.2 --model my.model
    """
    from ranktron.training.tune import rehearse, tune_rounds

    keep_inputs(out, data)
    rounds = read_data(data, null or null_for(None, nan), part="train")
    if dask is None:  # the time that is given is for the search
        with show_activity("preparing (compiling on the first run only)"):
            rehearse(rounds, metric, learners or None, exportable, nan or "error")
    with task_workers(dask) as workers, _line() as watch:
        found = tune_rounds(
            rounds, minutes=minutes, metric=metric, learners=learners or None, exportable=exportable, seed=seed,
            nan=nan or "error", watch=watch, workers=workers,
        )  # fmt: skip
    found.model.save(out)
    if as_json:
        print_json(_content(found, out))
        return
    _print(found, str(metric), out)


@contextmanager
def _line() -> Iterator[Callable[[Progress], None] | None]:
    """On a terminal a line that says how far the search is."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with console.status("getting ready") as status:

        def watch(now: Progress) -> None:
            best = f"; best so far: {now.best}" if now.best else ""
            left = f"{now.tried} settings tried, {now.seconds_left:.0f} seconds left"
            status.update(f"fold {now.fold} of {now.folds}, {now.family}: {left}{best}")

        yield watch


def _content(found: Tuned, out: str) -> dict[str, Any]:
    best = found.table[0]
    chosen = {key: best[key] for key in ("learner", "parameters", "scale", "map", "epochs")}
    return {
        "chosen": chosen,
        "exportable": _best_exportable(found),
        "test": found.test,
        "tried": len(found.table),
        "stopped": found.stopped or None,
        "table": found.table,
        "model": out,
    }


def _best_exportable(found: Tuned) -> dict[str, Any] | None:
    """The first row without a map and without scaling within queries, that was tried on as many folds as the best."""
    for row in found.table:
        if (
            row["map"] is None
            and not (row["scale"] or "").endswith("-query")
            and row["folds"] == found.table[0]["folds"]
        ):
            return row
    return None


def _print(found: Tuned, metric: str, out: str) -> None:
    rows = [
        (
            row["learner"],
            " ".join(f"{key}={value}" for key, value in row["parameters"].items() if key in ("eta", "C")) or "–",
            row["scale"] or "none",
            row["map"] or "–",
            row["epochs"],
            row["mean"],
            f"{row['low']:.4f} – {row['high']:.4f}",
            row["folds"],
        )
        for row in found.table[:_SHOWN]
    ]
    columns = ["learner", "parameters", "scale", "map", "passes", metric, "95 % interval", "folds"]
    tried = f"{len(found.table)} setting{'s' if len(found.table) > 1 else ''}"
    title = f"The best of {tried} on validation queries → {out}"
    # narrow terminals get fewer columns: a number is never broken
    print_widest([table(title, columns[:n], [row[:n] for row in rows]) for n in (8, 7, 6)], out)
    test, err = found.test, out == "-"
    expected = f"{test['mean']:.4f} (95 % interval {test['low']:.4f} – {test['high']:.4f})"
    click.echo(f"{metric} of the first on {test['queries']:,} queries that chose nothing: {expected}", err=err)
    why = {"time": "the time was up before everything was tried", "interrupt": "interrupted: the best so far was taken"}
    if found.stopped:
        click.echo(why[found.stopped], err=err)
    best, other = found.table[0], _best_exportable(found)
    if best["map"] is None and best["scale"] and best["scale"].endswith("-query"):
        click.echo("it scales within each query, which search engines cannot do", err=err)
    if other is not None and other is not best:
        given = ", ".join(f"{key}={value}" for key, value in other["parameters"].items() if key in ("eta", "C"))
        name = f"{other['learner']} ({given})" if given else other["learner"]
        difference = f"{metric} {other['mean']:.4f}, {other['mean'] - best['mean']:+.4f}"
        click.echo(f"of what every engine can compute (--exportable), {name} was best: {difference}", err=err)
