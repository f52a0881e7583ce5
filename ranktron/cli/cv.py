"""`ranktron cv`."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.cluster_options import task_workers, tasks_option
from ranktron.cli.options import (
    AlgorithmOptions,
    as_json,
    as_metric,
    categorical_option,
    epochs_option,
    map_option,
    metrics_option,
    nan_option,
    null_for,
    null_option,
    parse_settings,
    preset_option,
    read_training_data,
    reading_options,
    say_columns,
    scale_option,
    table_options,
    take_options,
)
from ranktron.cli.output import print_json, print_table, show_activity, show_progress
from ranktron.errors import DataError
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, TRAINING

if TYPE_CHECKING:
    from ranktron.metrics import Evaluation, Metric
    from ranktron.training.cross_validation import Report, Trial

_SHUFFLE = TRAINING[1]


@click.command()
@click.argument("data", metavar="DATA", type=click.Path(exists=True))
@click.option(
    "--algo", type=click.Choice(list(ALGORITHMS)), default=DEFAULT_ALGORITHM, show_default=True, help="Algorithm."
)
@preset_option
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A parameter of the algorithm.")
@click.option("--grid", metavar="KEY=V1,V2,...", multiple=True, help="Values of a parameter to choose from.")
@epochs_option
@click.option(
    "--folds",
    type=click.IntRange(3),
    default=5,
    show_default=True,
    help="Number of folds, if DATA is a file.",
)
@click.option(
    "--split-seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the split into folds."
)
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1), help="Number of seeds (0, 1, ...).")
@click.option(
    "--shuffle/--no-shuffle", default=_SHUFFLE.default, show_default=True, help=f"{_SHUFFLE.help.capitalize()}."
)
@scale_option
@map_option
@click.option("--select", default="ndcg@10", show_default=True, callback=as_metric, help="Metric to select by.")
@click.option("--out", type=click.Path(dir_okay=False), help="Write the full report, with values per query, as JSON.")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Report of an earlier run (--out) to compare with, by a paired test over queries.",
)
@tasks_option
@metrics_option("ndcg@10,map")
@nan_option
@null_option
@categorical_option
@table_options
@as_json
def cv(**options: Any) -> None:
    """Cross-validate an algorithm on DATA.

    DATA is a file, or a folder with folds as in LETOR: Fold1/train.txt, vali.txt, test.txt and so on. The queries of a
    file are split into folds at random; of five, three train, one validates and one tests.

    On the validation set of each fold, --select chooses among the values of --grid and, for iterative learners, the
    number of passes. The chosen model is evaluated on the test set. Means are over folds and seeds, the spread is over
    seeds.

    Example: ranktron cv OHSUMED --algo committee --epochs 50 --seeds 10 --select ndcg@10 --metrics ndcg@10,map
    """
    algorithm = take_options(AlgorithmOptions, options)
    _cross_validate(CrossValidationOptions(**options, algorithm=algorithm))


@dataclass(frozen=True)
class CrossValidationOptions:
    """The options of `ranktron cv`."""

    data: str
    algorithm: AlgorithmOptions
    grid: tuple[str, ...]
    folds: int
    split_seed: int
    seeds: int
    shuffle: bool
    select: Metric
    out: str | None
    against: tuple[str, ...]
    metrics: list[Metric]
    null: str | None
    dask: str | None
    as_json: bool


def _cross_validate(options: CrossValidationOptions) -> None:
    """Reads the folds, trains on them, and reports."""
    from ranktron.training.cross_validation import cross_validate, read_folds, split_folds

    data, seeds, algo = options.data, options.seeds, str(options.algorithm.algo)
    points, plan = _grid(algo, options.grid), options.algorithm.plan(algo)
    plan = replace(plan, schedule=replace(plan.schedule, shuffle=options.shuffle), select=options.select)
    earlier = {Path(path).stem: _read_report(path) for path in options.against}
    null = options.null or null_for(None, plan.nan)
    if Path(data).is_dir():
        with show_activity(f"reading {data}"):
            folds = list(read_folds(data, null, **reading_options()))
        _say_columns(data)
    else:
        folds = split_folds(read_training_data(data, null), options.folds, options.split_seed)
    trainings = len(folds) * seeds
    for values in points.values():
        trainings *= len(values)
    with task_workers(options.dask) as workers, show_progress(f"training {algo}", trainings) as step:
        report = cross_validate(
            plan, folds, grid=points, seeds=seeds, metrics=options.metrics, watch=step, workers=workers
        )
    content = _content(report, seeds)
    if options.out:
        _write(options.out, {**content, "per_query": _per_query(report.evaluation)})
    comparison = _compare_with_earlier(algo, report, earlier)
    if options.as_json:
        print_json(content | ({"comparison": comparison[0]} if comparison else {}))
        return
    _print(report, data, seeds)
    if comparison:
        click.echo(comparison[1])


def _say_columns(data: str) -> None:
    """Says which columns of the first training set are what."""
    from ranktron.data.files import fold_parts
    from ranktron.training.cross_validation import fold_folders

    parts = fold_parts(fold_folders(data)[0])
    if "train" in parts:
        say_columns(data, str(parts["train"]))


def _grid(algo: str, grid: tuple[str, ...]) -> dict[str, list[Any]]:
    points: dict[str, list[Any]] = {}
    for entry in grid:
        key, _, values = entry.partition("=")
        points[key] = [parse_settings(algo, (f"{key}={value}",), "--grid")[key] for value in values.split(",")]
    return points


def _content(report: Report, seeds: int) -> dict[str, Any]:
    return {
        "algorithm": report.algorithm,
        "select": str(report.select),
        "seeds": seeds,
        "folds": [_fold(report.of_fold(fold)) for fold in report.folds],
        "mean": report.mean,
        "std": report.std,
    }


def _fold(trials: list[Trial]) -> dict[str, Any]:
    first = trials[0]
    return {
        "fold": first.fold,
        "queries": len(first.test.qids),
        "mean": {m: sum(t.test.means[m] for t in trials) / len(trials) for m in first.test.means},
        "trials": [
            {
                "seed": t.seed,
                "parameters": dict(t.parameters),
                "epoch": t.epoch,
                "valid": t.valid,
                "test": dict(t.test.means),
                "seconds": t.seconds,
                "remarks": dict(t.remarks),
            }
            for t in trials
        ],
    }


def _per_query(evaluation: Evaluation) -> dict[str, Any]:
    values = {name: row.tolist() for name, row in evaluation.per_query.items()}
    return {"qids": evaluation.qids.tolist(), "empty_queries": evaluation.empty_queries, "values": values}


def _write(path: str, content: dict[str, Any]) -> None:
    from ranktron.data.files import atomically

    with atomically(path) as file:
        file.write((json.dumps(content, allow_nan=False) + "\n").encode("ascii"))


def _read_report(path: str) -> Evaluation:
    """The values per query of a report that `--out` wrote."""
    import numpy as np

    from ranktron.metrics import Evaluation

    try:
        report = json.loads(Path(path).read_text())["per_query"]
        per_query = {name: np.array(values, float) for name, values in report["values"].items()}
        means = {name: float(row.mean()) for name, row in per_query.items()}
        return Evaluation(means, per_query, np.array(report["qids"]), int(report["empty_queries"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is not a report that `ranktron cv --out` wrote: {error}") from None


def _compare_with_earlier(
    algo: str, report: Report, earlier: dict[str, Evaluation]
) -> tuple[dict[str, Any], str] | None:
    from ranktron.metrics import compare

    if not earlier:
        return None
    name = algo if algo not in earlier else f"{algo} (this run)"
    comparison = compare({name: report.evaluation, **earlier})
    p_values = {name: matrix.tolist() for name, matrix in comparison.p_values.items()}
    content = {"systems": comparison.means, "better_than": comparison.beats, "p_values": p_values}
    return content, comparison.text()


def _print(report: Report, data: str, seeds: int) -> None:
    with_grid = any(trial.parameters for trial in report.trials)
    columns = ["fold", "queries", "validation", "epoch", *(["chosen"] if with_grid else []), *report.metrics]
    rows: list[tuple[object, ...]] = []
    for fold in report.folds:
        trials = report.of_fold(fold)
        means = [sum(t.test.means[m] for t in trials) / len(trials) for m in report.metrics]
        valid = sum(t.valid for t in trials) / len(trials)
        epochs = f"{sum(t.epoch for t in trials) / len(trials):.1f}".removesuffix(".0")
        selected = [_describe_selection(trials)] if with_grid else []
        rows.append((fold, len(trials[0].test.qids), valid, epochs, *selected, *means))
    blank = [""] * (len(columns) - len(report.metrics) - 1)
    rows.append(("mean", *blank, *report.mean.values()))
    if seeds > 1:
        rows.append(("±", *blank, *report.std.values()))
    spread = "; ± over seeds" if seeds > 1 else ""
    print_table(f"{report.algorithm} on {data}, selected by {report.select}{spread}", columns, rows)
    for remark, count in _remarks(report).items():
        click.echo(f"{remark}: {count:,}")


def _describe_selection(trials: list[Trial]) -> str:
    values = dict.fromkeys(" ".join(f"{k}={v}" for k, v in t.parameters.items()) for t in trials)
    return " | ".join(v for v in values if v) or "–"


def _remarks(report: Report) -> dict[str, int]:
    """The largest count of each remark over all folds and seeds."""
    largest: dict[str, int] = {}
    for trial in report.trials:
        for remark, count in trial.remarks.items():
            largest[remark] = max(count, largest.get(remark, 0))
    return {f"{remark} (maximum over trainings)": count for remark, count in largest.items() if count}
