"""`ranktron compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import (
    DATA,
    as_json,
    metrics_option,
    null_option,
    read_data,
    read_labels,
    strict_option,
    table_options,
)
from ranktron.cli.output import print_json
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.data.feature_ranges import Drift
    from ranktron.metrics import Evaluation, Metric


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=DATA)
@click.option("--data", type=DATA, help="Data with labels: each RUN is a model or a file with one score per line.")
@click.option("--qrels", type=DATA, help="TREC judgments: each RUN is a TREC run file.")
@click.option(
    "--test",
    type=click.Choice(["t", "permutation"]),
    default="t",
    show_default=True,
    help="Two-tailed paired test for each pair of runs.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "markdown", "latex"]),
    default="text",
    show_default=True,
    help="Format of the table.",
)
@metrics_option("ndcg@10,map")
@null_option
@table_options
@strict_option
@as_json
def compare(
    runs: tuple[str, ...], data: str | None, qrels: str | None, test: str, style: str, metrics: list[Metric],
    null: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Compare RUNs on the same queries, with significance tests.

    With --qrels runs are evaluated as by trec_eval -c: a relevant document that a run does not return gains nothing,
    and a query that is missing from a run counts 0.

    Example: ranktron compare ours.txt theirs.txt --data test.txt
    """
    from ranktron.metrics import compare as compare_evaluations

    if len(set(runs)) < len(runs):
        raise click.UsageError("the same run is named twice")
    if (data is None) == (qrels is None):
        raise click.UsageError("give either --data or --qrels, to evaluate the runs against")
    drifts: dict[str, list[Drift]] = {}
    if data is not None:
        evaluations = _on_data(runs, data, null, metrics, drifts)
    else:
        evaluations = _on_qrels(runs, str(qrels), metrics)
    comparison = compare_evaluations(evaluations, test=test)
    if as_json:
        p_values = {name: matrix.tolist() for name, matrix in comparison.p_values.items()}
        drift = {run: [each._asdict() for each in found] for run, found in drifts.items()}
        print_json({"systems": comparison.means, "better_than": comparison.beats, "p_values": p_values, "drift": drift})
    else:
        click.echo(getattr(comparison, style)())


def _on_data(
    runs: tuple[str, ...], data: str, null: str | None, metrics: list[Metric], drifts: dict[str, list[Drift]]
) -> dict[str, Evaluation]:
    """The evaluations of models and scores; `drifts` receives the features that have left a model's training data."""
    from ranktron.metrics import evaluate
    from ranktron.metrics.evaluation import evaluate_rounds
    from ranktron.training.model import load

    labels = None
    evaluations = {}
    for run in runs:
        if _kind_of(run) == "model":
            model = load(run)
            rounds = read_data(data, null, model, part="test")
            drifts[run] = model.warn_of_drift(rounds, run)
            evaluations[run] = evaluate_rounds(rounds, model.score_rounds(rounds), metrics)
            continue
        scores = _scores(run)
        labels = labels or read_labels(data, null, part="test")
        if scores.shape != labels.labels.shape:
            raise DataError(f"{run} has {scores.size:,} scores, but the data have {len(labels.labels):,} documents")
        evaluations[run] = evaluate(labels, scores, metrics, order="input")
    return evaluations


def _scores(run: str) -> Any:
    import numpy as np

    expected = "with --data a run is a model, or a file with one score per line, as `ranktron rank` writes it"
    if _kind_of(run) != "lines":
        raise DataError(f"{run} is a {_kind_of(run)} file: {expected}")
    try:
        return np.loadtxt(run, dtype=float, ndmin=1)
    except ValueError:
        with open(run, errors="replace") as file:
            line = file.readline().strip()
    if len(line.split()) == 6:
        raise DataError(f"{run} is a TREC run, which is evaluated with --qrels; {expected}")
    raise DataError(f"{run} begins with {line[:40]!r}: {expected}")


def _kind_of(path: str) -> str:
    """The content of a file: "model", "parquet", "store", or "lines" of text (possibly compressed)."""
    from ranktron.data.io.formats import TEXT, detect_kind

    kind = detect_kind(Path(path))
    return "lines" if kind in TEXT else kind


def _on_qrels(runs: tuple[str, ...], qrels: str, metrics: list[Metric]) -> dict[str, Evaluation]:
    from ranktron.data.io import read_qrels, read_run
    from ranktron.metrics import evaluate

    for path in (qrels, *runs):
        if _kind_of(path) != "lines":
            raise DataError(
                f"{path} is a {_kind_of(path)} file: with --qrels judgments and runs are TREC files; to compare models "
                "on data with labels, use --data"
            )
    judged = read_qrels(qrels)
    return {run: evaluate(judged, read_run(run), metrics) for run in runs}
