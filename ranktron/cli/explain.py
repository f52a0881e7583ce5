"""`ranktron explain`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import (
    DATA,
    OUT,
    as_json,
    keep_inputs,
    null_option,
    read_documents,
    scoring_options,
    strict_option,
)
from ranktron.cli.output import print_json, print_table, print_widest, table
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.training.figures.evaluation import EvaluatedModel
    from ranktron.training.figures.explanation import ExplainedList
    from ranktron.training.figures.weights import Weights
    from ranktron.training.model import Explanation, Model

METRICS = ("ndcg@10", "map")
"""The metrics of the page."""


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA, required=False)
@click.option("--qid", help="Id of the query to explain.")
@click.option("--top", type=click.IntRange(1), help="Number of rows to show.  [default: 10 documents, 20 weights]")
@click.option("--features", default=4, show_default=True, type=click.IntRange(1), help="Contributions per document.")
@click.option("--out", type=OUT, help="Write the explanation as a web page (.html).")
@null_option
@scoring_options
@strict_option
@as_json
def explain(
    model: str,
    data: str | None,
    qid: str | None,
    top: int | None,
    features: int,
    out: str | None,
    null: str | None,
    as_json: bool,
) -> None:
    """Explain the weights of MODEL, or its ranking of one query.

    The weights, for scaled and for raw features, with their spread over the last part of training; for a model with a
    feature map, the curve of each feature. With DATA and --qid: the contributions that add up to each score of this
    query, and the features that put a document above the next one. The page says which model it is about, and
    with labelled DATA how well it ranks them.

    Example: ranktron explain my.model test.txt --out page.html
    """
    from ranktron.data.maps.protocols import Additive
    from ranktron.training.model import load

    if data is None and qid is not None:
        raise click.UsageError("to explain the ranking of a query, give DATA, too")
    if out is not None:
        keep_inputs(out, model, data)
    loaded = load(model)
    rounds = None if data is None else read_documents(data, null, loaded)
    explained = None if rounds is None or qid is None else _explain_query(loaded, rounds, str(data), qid)
    evaluated = None if rounds is None or (out is None and qid is not None) else _evaluate(loaded, rounds)
    if out is not None:
        _write(loaded, explained, out, top or 10, _about(model, data, rounds), evaluated)
    if explained is not None:
        _show_list(explained, top or 10, features, out, as_json)
    elif loaded.map is not None and isinstance(loaded.explainable, Additive):
        _show_curves(loaded, top, out, as_json)
    elif loaded.map is not None:
        _show_spans(loaded, top, as_json)
    else:
        _show_weights(loaded, top, out, as_json)
    if evaluated is not None and explained is None and not as_json:
        from ranktron.training.figures.evaluation import describe_interval

        for row in evaluated.rows:
            interval = f" (95 % interval {describe_interval(row.interval)})" if row.interval else ""
            click.echo(f"{row.metric} on {data}: {row.mean:.4f}{interval}")


def _evaluate(model: Model, rounds: Rounds) -> EvaluatedModel | None:
    """How well the model ranks labelled data; None without labels."""
    import numpy as np

    from ranktron.metrics import metric
    from ranktron.training.figures.evaluation import evaluate_model

    if np.isnan(rounds.labels).any():
        return None
    model.warn_of_drift(rounds)
    return evaluate_model(model, rounds, [metric(m) for m in METRICS])


def _about(model: str, data: str | None, rounds: Rounds | None) -> list[tuple[str, str]]:
    """What the page is about: the model, the data, and when it was written."""
    about = [("model", model)]
    if data is not None and rounds is not None:
        about.append(("data", f"{data}: {len(rounds):,} queries, {len(rounds.labels):,} documents"))
    return [*about, ("written", time.strftime("%Y-%m-%d %H:%M"))]


def _explain_query(model: Model, rounds: Rounds, data: str, qid: str) -> ExplainedList:
    from ranktron.training.figures.explanation import ExplainedList

    queries = [str(q) for q in rounds.qids]
    if qid not in queries:
        raise DataError(f"{data} has no query {qid!r}; its first ones are {', '.join(queries[:5])}")
    query = queries.index(qid)
    one, first = rounds[query], rounds.offsets[query]
    names = [str(i) if rounds.docids is None else str(rounds.docids[first + i]) for i in range(len(one.labels))]
    return ExplainedList(qid, names, one.labels, model.explain(one.X))


def _write(
    model: Model, explained: ExplainedList | None, out: str, top: int, about: list[tuple[str, str]],
    evaluated: EvaluatedModel | None,
) -> None:  # fmt: skip
    from ranktron.data.files import atomically
    from ranktron.data.maps.protocols import Additive
    from ranktron.training.figures.evaluation import evaluation_piece
    from ranktron.training.figures.explanation import explanation_page
    from ranktron.training.figures.shapes import shape_pieces
    from ranktron.training.figures.weights import model_weights

    first = [] if evaluated is None else [("Evaluation", evaluation_piece(evaluated))]
    curved = explained is not None and model.learner().coef is None
    weights = None if model.map is not None or curved else model_weights(model)
    mixed = explained is not None and not isinstance(model.map, Additive)
    more = [] if model.map is None or mixed else shape_pieces(model)
    text = explanation_page(model, weights, explained, top, more, about, first)
    with atomically(out) as file:
        file.write(text.encode())


def _show_list(explained: ExplainedList, top: int, features: int, out: str | None, as_json: bool) -> None:
    names = explained.documents
    documents = [_document(explained, p, features) for p in range(min(top, len(names)))]
    if as_json:
        print_json({"qid": explained.qid, "documents": documents, "out": out})
        return
    title = f"query {explained.qid}: {len(names)} documents"
    print_widest([_table(title, documents, terms) for terms in range(features, 0, -1)])
    _report_page(out)


def _table(title: str, documents: list[dict[str, Any]], terms: int) -> Any:
    """The table with at most `terms` contributions per line, and a column of labels if there are any."""
    labelled = any(d["label"] is not None for d in documents)
    columns = ["#", "document", *["label"] * labelled, "score", "strongest\ncontributions", "lead over\nthe next"]
    rows = [
        [d["position"], d["id"], *([f"{d['label']:g}"] if labelled else []), d["score"]]
        + [_terms(d[key], terms) for key in ("contributions", "lead")]
        for d in documents
    ]
    return table(title, columns, rows)


def _document(explained: ExplainedList, position: int, features: int) -> dict[str, Any]:
    explanation: Explanation = explained.explanation
    document = int(explanation.order[position])
    last = position + 1 == len(explained.documents)
    names = explanation.feature_names
    return {
        "position": position + 1,
        "id": explained.documents[document],
        "label": explained.label(document),
        "score": float(explanation.scores[document]),
        "contributions": _strongest(explanation.contributions[document], names, features),
        "lead": {} if last else _strongest(explanation.lead(position), names, features),
        "decided_by": [] if last else [names[j] for j in explanation.deciding(position)],
    }


def _show_weights(model: Model, top: int | None, out: str | None, as_json: bool) -> None:
    from ranktron.training.figures.weights import model_weights

    weights = model_weights(model)
    table = [_weight(weights, j) for j in weights.strongest()[:top]]
    if as_json:
        scaling = "none" if model.scaler is None else model.scaler.name
        facts = {"algorithm": model.kind, "scale": scaling, "features": model.n_features}
        spread = {"spread": {"snapshots": weights.snapshots, "note": weights.note}}
        print_json({**facts, "weights": table, **spread, "out": out})
        return
    shown = [key for key in ("feature", "weight", "spread", "per_unit") if table[0][key] is not None]
    rows = [[_cell(row[key], key) for key in shown] for row in table[: top or 20]]
    titles = {"feature": "feature", "weight": "weight", "spread": "spread", "per_unit": "per unit, unscaled"}
    print_table(f"{model.kind}: {model.n_filled} weights", [titles[key] for key in shown], rows)
    if len(rows) < model.n_filled:
        click.echo(f"{model.n_filled - len(rows)} smaller weights are not shown: --top {model.n_filled} shows all.")
    click.echo(f"{weights.note[0].upper()}{weights.note[1:]}.")
    _report_page(out)


def _show_curves(model: Model, top: int | None, out: str | None, as_json: bool) -> None:
    from ranktron.training.figures.shapes import feature_shapes

    shapes = feature_shapes(model)
    if as_json:
        curves = [
            {"feature": name, "places": s.places.tolist(), "values": s.values.tolist()} for name, s in shapes[:top]
        ]
        facts = {
            "algorithm": model.kind,
            "features": model.n_features,
            "map": None if model.map is None else model.map.name,
        }
        print_json({**facts, "curves": curves, "out": out})
        return
    rows = [(name, f"{s.values.min():+.4g}", f"{s.values.max():+.4g}") for name, s in shapes[: top or 20]]
    print_table(f"{model.kind}: {model.n_filled} curves", ["feature", "lowest", "highest"], rows)
    if out is None:
        click.echo("To see what each value adds to a score, draw the curves with --out page.html.")
    _report_page(out)


def _show_spans(model: Model, top: int | None, as_json: bool) -> None:
    """Prints how much each feature can add to a score, for maps whose features interact and have no curves."""
    spans = model.explainable.spans(model.weights)
    widest = sorted(zip(model.filled_names, spans.tolist(), strict=True), key=lambda each: -each[1])
    if as_json:
        facts = {"algorithm": model.kind, "features": model.n_features, "map": model.map and model.map.name}
        print_json({**facts, "spans": [{"feature": name, "span": span} for name, span in widest[:top]]})
        return
    rows = [(name, f"{span:.4g}") for name, span in widest[: top or 20]]
    print_table(f"{model.kind}: {model.n_filled} features", ["feature", "most it can add"], rows)
    click.echo("To see what each feature adds to the scores of one query, give DATA and --qid.")


def _weight(weights: Weights, j: int) -> dict[str, Any]:
    return {
        "feature": weights.names[j],
        "weight": float(weights.scaled[j]),
        "spread": None if weights.spread is None else float(weights.spread[j]),
        "per_unit": None if weights.raw is None else float(weights.raw[j]),
    }


def _cell(value: Any, key: str) -> str:
    return str(value) if key == "feature" else f"± {value:.2g}" if key == "spread" else f"{value:+.4g}"


def _report_page(out: str | None) -> None:
    if out is not None:
        click.echo(f"Page written to {out}")


def _strongest(contributions: Any, names: tuple[str, ...], count: int) -> dict[str, float]:
    chosen = sorted(range(len(names)), key=lambda j: -abs(contributions[j]))[:count]
    return {names[j]: float(contributions[j]) for j in chosen if contributions[j] != 0.0}


def _terms(contributions: dict[str, float], a_line: int) -> str:
    terms = [f"{name}: {value:+.3f}" for name, value in contributions.items()]
    return "\n".join("  ".join(terms[i : i + a_line]) for i in range(0, len(terms), a_line))
