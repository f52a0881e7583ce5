"""`ranktron evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.cluster_options import PARTS, evaluate_on_parts
from ranktron.cli.data_checks import refuse_uninformative, warn_below_random
from ranktron.cli.options import (
    DATA,
    PICTURE,
    as_json,
    click_log_options,
    log_columns,
    metrics_option,
    null_option,
    read_clicks_as_labels,
    read_data,
    strict_option,
    table_options,
)
from ranktron.cli.output import print_json, print_table, show_progress

if TYPE_CHECKING:
    from ranktron.data.feature_ranges import Drift
    from ranktron.metrics import Evaluation, Metric


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=PARTS)
@click.option("--curve", type=PICTURE, help="Write a plot of NDCG@1 to NDCG@20 (.png or .svg).")
@click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Let the workers of a Dask cluster read DATA, which may be a pattern: the address of the scheduler, or "
    "`local`. The values are the same; baselines are omitted.",
)
@click.option(
    "--clicks", is_flag=True, help="DATA is a click log: its impressions are the lists, its clicks the labels."
)
@click_log_options("impression", "position", "click", "item", "ranker", "exploration", "propensity")
@metrics_option("ndcg@10,map")
@null_option
@table_options
@strict_option
@as_json
def evaluate(
    model: str, data: str, curve: str | None, dask: str | None, clicks: bool, metrics: list[Metric],
    null: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Evaluate MODEL on DATA, and compare it with simple baselines.

    The baselines are a random order and the best single feature. That feature is chosen on DATA itself by the first
    metric, so it is an optimistic baseline.

    Example: ranktron evaluate my.model test.txt --metrics ndcg@10,map:letor
    """
    from ranktron.metrics.evaluation import evaluate_rounds
    from ranktron.training.baselines import best_feature, random_means
    from ranktron.training.model import load

    if log_columns() and not clicks:
        raise click.UsageError(f"--{next(iter(log_columns()))} names a column of a click log: add --clicks")
    loaded = load(model)
    if dask:
        if clicks:
            raise click.UsageError("--clicks reads the log in this process: leave it out, or --dask")
        if curve:
            raise click.UsageError(
                "--curve draws baselines, which need the data in this process: leave it out, or --dask"
            )
        evaluation, drifts = evaluate_on_parts(loaded, model, data, metrics, null or "error", dask)
        _show_parts(evaluation, drifts, model, data, metrics, as_json)
        return
    rounds = read_clicks_as_labels(data, null, loaded) if clicks else read_data(data, null, loaded, part="test")
    refuse_uninformative(data, rounds, "there is nothing to measure")
    drifts = loaded.warn_of_drift(rounds, model, labelled=not clicks)
    scores = loaded.score_rounds(rounds)
    evaluation = evaluate_rounds(rounds, scores, metrics)
    filled = loaded.fill(rounds)
    with show_progress("single features", filled.n_features) as step:
        best = best_feature(filled, metrics, None if step is None else lambda _column: step())
    chance = random_means(rounds, metrics)
    feature = ("" if best.sign > 0 else "-") + loaded.filled_names[best.column]
    warn_below_random(data, evaluation, chance)
    if curve:
        _draw(curve, model, rounds, scores, best.sign * filled.X[:, best.column].astype(float), feature)
    if as_json:
        content = _as_content(evaluation, metrics, chance, {"feature": feature, **best.means})
        print_json({**content, "drift": [drift._asdict() for drift in drifts]})
        return
    rows = [(m, evaluation.means[m], _interval(evaluation, m), chance[m], best.means[m]) for m in map(str, metrics)]
    columns = ["metric", "model", "95 % interval", "random", f"best feature ({feature})"]
    print_table(f"{model} on {data}", columns, rows)
    click.echo(_count_queries(evaluation))


def _show_parts(
    evaluation: Evaluation, drifts: list[Drift], model: str, data: str, metrics: list[Metric], as_json: bool
) -> None:
    """Prints the values of the model; baselines would need all documents here."""
    if as_json:
        content = _as_content(evaluation, metrics, None, None)
        content["drift"] = [drift._asdict() for drift in drifts]
        print_json({name: value for name, value in content.items() if name != "baselines"})
        return
    rows = [(str(m), evaluation.means[str(m)], _interval(evaluation, m)) for m in metrics]
    print_table(f"{model} on {data}", ["metric", "model", "95 % interval"], rows)
    click.echo(_count_queries(evaluation))


def _count_queries(evaluation: Evaluation) -> str:
    if len(evaluation.qids) == 1:
        return "1 query: no interval"
    return f"{len(evaluation.qids):,} queries, {evaluation.empty_queries:,} of them without a relevant document"


def _interval(evaluation: Evaluation, m: str | Metric) -> str:
    low, high = _limits(evaluation, str(m))
    return "–" if low is None else f"{low:.4f} – {high:.4f}"


def _limits(evaluation: Evaluation, m: str) -> tuple[float | None, float | None]:
    """The confidence interval; None for a single query."""
    return (None, None) if len(evaluation.qids) == 1 else evaluation.interval(m)


def _as_content(evaluation: Evaluation, metrics: list[Metric], chance: Any, best: Any) -> dict[str, Any]:
    values = {}
    for m in map(str, metrics):
        low, high = _limits(evaluation, m)
        values[m] = {"mean": evaluation.means[m], "low": low, "high": high}
    return {
        "queries": len(evaluation.qids),
        "empty_queries": evaluation.empty_queries,
        "metrics": values,
        "baselines": {"random": chance, "best feature": best},
    }


def _draw(path: str, model: str, rounds: Any, scores: Any, feature_scores: Any, feature: str) -> None:
    from ranktron.metrics import metric
    from ranktron.metrics.evaluation import evaluate_rounds
    from ranktron.training.baselines import random_means
    from ranktron.training.figures.plots import curves

    depths = list(range(1, 21))
    cuts = [metric(f"ndcg@{k}") for k in depths]
    systems = {
        model: evaluate_rounds(rounds, scores, cuts).means,
        f"best feature ({feature})": evaluate_rounds(rounds, feature_scores, cuts).means,
        "random": random_means(rounds, cuts),
    }
    lines = {name: (depths, [means[str(c)] for c in cuts]) for name, means in systems.items()}
    curves(path, lines, {}, title="NDCG@k", x="k", y="mean over queries")
