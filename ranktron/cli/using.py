"""Commands that use a model: rank, explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.show import DATA, as_json, keep_inputs, null_option, print_json, print_table, read
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.model import Explanation, Model


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("-o", "--out", type=click.Path(), required=True, help="The file to write.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["scores", "trec"]),
    default="scores",
    show_default=True,
    help="scores: one a line, in the order of DATA. trec: a run file.",
)
@null_option
@as_json
def rank(model: str, data: str, out: str, style: str, null: str, as_json: bool) -> None:
    """Score the documents of DATA with MODEL and write them to a file.

    Example: ranktron rank my.model test.txt -o run.txt --format trec
    """
    from ranktron.files import atomically
    from ranktron.model import load

    keep_inputs(out, model, data)
    loaded = load(model)
    rounds = read(data, null, loaded)
    scores = loaded.score_rounds(rounds)
    if style == "scores":
        lines = "".join(f"{score!r}\n" for score in rounds.restore(scores).tolist())
        with atomically(out) as file:
            file.write(lines.encode("ascii"))
    else:
        from ranktron.io import write_run

        write_run(_as_run(rounds, scores), out, tag=loaded.kind)
    if as_json:
        print_json({"queries": len(rounds), "documents": len(scores), "out": out, "format": style})
    else:
        click.echo(f"{out}: {len(scores):,} scores of {len(rounds):,} queries")


def _as_run(rounds: Any, scores: Any) -> dict[str, dict[str, float]]:
    """A run by query and document; documents without a name are called by their place in the list."""
    run = {}
    for q, qid in enumerate(rounds.qids):
        a, b = rounds.offsets[q], rounds.offsets[q + 1]
        names = range(b - a) if rounds.docids is None else rounds.docids[a:b]
        documents = dict(zip(map(str, names), scores[a:b].tolist(), strict=True))
        if len(documents) < b - a:
            raise DataError(f"query {qid} has two documents of the same id: a run file cannot tell them apart")
        run[str(qid)] = documents
    return run


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA, required=False)
@click.option("--qid", help="The query of DATA to explain.")
@click.option("--out", type=click.Path(), help="Write the curves of a model with a bins map as a page (.html).")
@click.option("--top", default=10, show_default=True, type=click.IntRange(1), help="How many documents to show.")
@click.option("--features", default=4, show_default=True, type=click.IntRange(1), help="How many features to name.")
@null_option
@as_json
def explain(
    model: str, data: str | None, qid: str | None, out: str | None, top: int, features: int, null: str, as_json: bool
) -> None:
    """Show for one list of DATA what each feature contributed, and why a document is above the next.

    Example: ranktron explain my.model test.txt --qid 42
    """
    from ranktron.model import load

    if (data is None) != (qid is None) or data is out is None:
        raise click.UsageError("give DATA and --qid to explain a list, or --out for the curves of the model")
    loaded = load(model)
    if out is not None:
        keep_inputs(out, model, data)
        _draw_curves(loaded, out)
    if data is None or qid is None:
        if as_json:
            print_json({"out": out})
        else:
            click.echo(f"{out}: the page to look at")
        return
    rounds = read(data, null, loaded)
    queries = [str(q) for q in rounds.qids]
    if qid not in queries:
        raise DataError(f"{data} has no query {qid!r}; its first ones are {', '.join(queries[:5])}")
    query = queries.index(qid)
    one = rounds[query]
    explanation = loaded.explain(one.X)
    first = rounds.offsets[query]
    names = [str(i) if rounds.docids is None else str(rounds.docids[first + i]) for i in range(len(one.labels))]
    documents = [_document(explanation, names, one.labels, p, features) for p in range(min(top, len(names)))]
    if as_json:
        print_json({"qid": qid, "documents": documents})
        return
    rows = [
        (d["position"], d["id"], f"{d['label']:g}", d["score"], _terms(d["contributions"]), _terms(d["lead"]))
        for d in documents
    ]
    columns = ["#", "document", "label", "score", "strongest contributions", "lead over the next, by feature"]
    print_table(f"query {qid}: {len(names)} documents", columns, rows)


def _draw_curves(model: Model, out: str) -> None:
    from ranktron.files import atomically
    from ranktron.report.shapes import shapes_page

    page = shapes_page(model)
    with atomically(out) as file:
        file.write(page.encode())


def _document(explanation: Explanation, names: list[str], labels: Any, position: int, features: int) -> dict[str, Any]:
    document = int(explanation.order[position])
    last = position + 1 == len(names)
    return {
        "position": position + 1,
        "id": names[document],
        "label": float(labels[document]),
        "score": float(explanation.scores[document]),
        "contributions": _strongest(explanation.contributions[document], explanation.feature_names, features),
        "lead": {} if last else _strongest(explanation.lead(position), explanation.feature_names, features),
    }


def _strongest(contributions: Any, names: tuple[str, ...], count: int) -> dict[str, float]:
    chosen = sorted(range(len(names)), key=lambda j: -abs(contributions[j]))[:count]
    return {names[j]: float(contributions[j]) for j in chosen if contributions[j] != 0.0}


def _terms(contributions: dict[str, float]) -> str:
    return "  ".join(f"{name}: {value:+.3f}" for name, value in contributions.items())
