"""`ranktron rank`."""

from __future__ import annotations

import csv
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING

import click

from ranktron.cli.options import (
    DATA,
    OUT,
    as_json,
    keep_inputs,
    null_option,
    read_documents,
    strict_option,
    table_options,
)
from ranktron.cli.output import print_json, print_written
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.types import Floats


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("-o", "--out", type=OUT, required=True, help="File to write; - is standard output.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["scores", "csv", "trec"]),
    default="scores",
    show_default=True,
    help="scores: one per line, in the order of DATA. csv: query, document, score and rank. trec: a TREC run file, in "
    "which %20 stands for a blank in an id.",
)
@null_option
@table_options
@strict_option
@as_json
def rank(model: str, data: str, out: str, style: str, null: str | None, as_json: bool) -> None:
    """Score the documents of DATA and write the scores to a file.

    Example: ranktron rank my.model test.txt -o ranked.csv --format csv
    """
    from ranktron.data.files import atomically
    from ranktron.training.model import load

    keep_inputs(out, model, data)
    loaded = load(model)
    rounds = read_documents(data, null, loaded)
    drifts = loaded.warn_of_drift(rounds, model)
    scores = loaded.score_rounds(rounds)
    if style == "trec":
        from ranktron.data.io import write_run
        from ranktron.data.io.trec import trec_word

        run = _as_run(rounds, scores)
        write_run(run, out, tag=loaded.kind)
        if any(trec_word(name) != name for name in (*run, *chain.from_iterable(run.values()))):
            click.echo(f"{out}: blanks in ids are written as %20, since blanks separate words there", err=True)
    else:
        text = _as_csv(rounds, scores) if style == "csv" else _as_lines(rounds, scores)
        with atomically(out) as file:
            file.write(text.encode())
    if as_json:
        drift = [each._asdict() for each in drifts]
        print_json({"queries": len(rounds), "documents": len(scores), "out": out, "format": style, "drift": drift})
    else:
        print_written(out, f"{len(scores):,} scores of {len(rounds):,} queries")


def _as_lines(rounds: Rounds, scores: Floats) -> str:
    return "".join(f"{score!r}\n" for score in rounds.restore(scores).tolist())


def _as_csv(rounds: Rounds, scores: Floats) -> str:
    """The documents of each query, best first; those without an id are named by their index within the query."""
    from ranktron.kernels.sorting import argsort_descending

    text = StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["query", "document", "score", "rank"])
    for q, qid in enumerate(rounds.qids):
        a, b = rounds.offsets[q], rounds.offsets[q + 1]
        names = range(b - a) if rounds.docids is None else rounds.docids[a:b]
        for place, i in enumerate(argsort_descending(scores[a:b]), 1):
            table.writerow([qid, names[i], repr(float(scores[a + i])), place])
    return text.getvalue()


def _as_run(rounds: Rounds, scores: Floats) -> dict[str, dict[str, float]]:
    """A run by query and document; documents without an id are named by their index within the query."""
    run = {}
    for q, qid in enumerate(rounds.qids):
        a, b = rounds.offsets[q], rounds.offsets[q + 1]
        names = range(b - a) if rounds.docids is None else rounds.docids[a:b]
        documents = dict(zip(map(str, names), scores[a:b].tolist(), strict=True))
        if len(documents) < b - a:
            raise DataError(f"query {qid} has two documents of the same id: a run file cannot tell them apart")
        run[str(qid)] = documents
    return run
