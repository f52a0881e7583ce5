"""`ranktron rank`."""

from __future__ import annotations

from typing import Any

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


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("-o", "--out", type=OUT, required=True, help="File to write; - is standard output.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["scores", "trec"]),
    default="scores",
    show_default=True,
    help="scores: one per line, in the order of DATA. trec: a TREC run file.",
)
@null_option
@table_options
@strict_option
@as_json
def rank(model: str, data: str, out: str, style: str, null: str | None, as_json: bool) -> None:
    """Score the documents of DATA and write the scores to a file.

    Example: ranktron rank my.model test.txt -o run.txt --format trec
    """
    from ranktron.data.files import atomically
    from ranktron.training.model import load

    keep_inputs(out, model, data)
    loaded = load(model)
    rounds = read_documents(data, null, loaded)
    scores = loaded.score_rounds(rounds)
    if style == "scores":
        lines = "".join(f"{score!r}\n" for score in rounds.restore(scores).tolist())
        with atomically(out) as file:
            file.write(lines.encode("ascii"))
    else:
        from ranktron.data.io import write_run

        write_run(_as_run(rounds, scores), out, tag=loaded.kind)
    if as_json:
        print_json({"queries": len(rounds), "documents": len(scores), "out": out, "format": style})
    else:
        print_written(out, f"{len(scores):,} scores of {len(rounds):,} queries")


def _as_run(rounds: Any, scores: Any) -> dict[str, dict[str, float]]:
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
