"""`ranktron info`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import (
    DATA,
    as_json,
    input_file,
    null_option,
    read_data,
    read_labels,
    reading_options,
    table_options,
)
from ranktron.cli.output import print_json, print_table

if TYPE_CHECKING:
    from ranktron.data.io.api import TextColumns
    from ranktron.data.rounds import Rounds

_FREQUENT = 3  # texts that are shown for each column


@click.command()
@click.argument("data", type=DATA)
@null_option
@table_options
@as_json
def info(data: str, null: str | None, as_json: bool) -> None:
    """Describe DATA: sizes, labels, ranges, missing values, and columns of text.

    Columns of text are described, too, and not counted among the features.

    Example: ranktron info train.txt
    """
    from ranktron.data.files import from_standard_input
    from ranktron.data.io import read_text_columns

    with from_standard_input(data) as path:
        options = reading_options()
        judgments = options.pop("judgments", None)
        texts = read_text_columns(input_file(str(path)), labelled=judgments is None, **options)
        summary = describe(_read_numbers(str(path), null or "nan", texts))
    if texts is not None:
        summary["columns"] = texts.roles._asdict() | ({"label": judgments} if judgments else {})
        summary["texts"] = _describe_texts(texts)
        del summary["columns"]["categorical"]
    if as_json:
        print_json(summary)
        return
    length = summary["list_lengths"]
    rows: list[tuple[str, object]] = [
        ("queries", summary["queries"]),
        ("documents", summary["documents"]),
        ("features", summary["features"]),
        ("documents per query", f"{length['min']} – {length['max']}, median {length['median']:g}"),
        ("queries without a relevant document", summary["queries_without_relevant"]),
        ("queries whose labels are all equal", summary["queries_with_one_label"]),
        ("queries whose rows are not adjacent", summary["duplicate_qids"]),
        ("missing values (see --nan)", _describe_missing(summary["missing"])),
        ("constant features", _describe_constant(summary["constant_features"])),
    ]
    if summary["lowest"] is not None:
        rows.append(("range of the features", f"{summary['lowest']:g} – {summary['highest']:g}"))
    print_table(data, ["", ""], rows)
    if "columns" in summary:
        print_table("columns", ["read as", "column"], _columns(summary["columns"]))
    if summary.get("texts"):
        described = [_text_row(name, text) for name, text in summary["texts"].items()]
        columns = ["column", "values", "most frequent", "--categorical auto"]
        print_table("columns that hold no numbers", columns, described)
    total = summary["documents"]
    print_table("labels", ["grade", "documents", "share"], [
        (grade, count, f"{100 * count / total:.1f} %") for grade, count in summary["labels"].items()
    ])  # fmt: skip


def _describe_constant(names: list[str]) -> str:
    from ranktron.data.io.columns import join_names

    return f"{len(names):,}: {join_names(names)}" if len(names) > 20 else ", ".join(names) or "none"


def _describe_missing(counts: dict[str, int]) -> str:
    from ranktron.data.io.columns import join_names

    total = f"{sum(counts.values()):,} in {len(counts):,} features: "
    return total + join_names([f"{name} ({count:,})" for name, count in counts.items()]) if counts else "none"


def _read_numbers(path: str, null: str, texts: TextColumns | None) -> Rounds:
    """The data with the features that are numbers."""
    no_numbers = [] if texts is None else [*dict.fromkeys((*texts.counts, *texts.left_out))]
    if texts is None or not no_numbers:
        return read_data(path, null)
    numbers = texts.roles.features
    return read_data(path, null, features=numbers, drop=None) if numbers else read_labels(path)


def _describe_texts(texts: TextColumns) -> dict[str, dict[str, Any]]:
    described: dict[str, dict[str, Any]] = {}
    for name, counts in texts.counts.items():
        frequent = [(text, count) for text, count in counts.most_common() if text is not None][:_FREQUENT]
        described[name] = {"different": len(counts) - (None in counts), "missing": counts[None]}
        described[name] |= {"frequent": dict(frequent), "left_out": texts.left_out.get(name)}
    others = {name: kind for name, kind in texts.left_out.items() if name not in texts.counts}
    return described | {name: {"left_out": kind} for name, kind in others.items()}


def _text_row(name: str, text: dict[str, Any]) -> tuple[str, str, str, str]:
    taken = "a feature for each" if text["left_out"] is None else f"leaves it out: {text['left_out']}"
    if "different" not in text:
        return name, "–", "–", taken
    missing = f", {text['missing']:,} missing" if text["missing"] else ""
    frequent = ", ".join(f"{value[:30]} ({count:,})" for value, count in text["frequent"].items())
    return name, f"{text['different']:,}{missing}", frequent, taken


def _columns(columns: dict[str, Any]) -> list[tuple[str, str]]:
    """The role of each column, and whether it was found by the column's name."""
    from ranktron.data.io.columns import join_names

    words = {"label": "label", "query": "query id", "doc": "document id"}
    rows = []
    for role, word in words.items():
        by_name, name = role in columns["guessed"], columns[role]
        hint = f" (found by its name; --{role} overrides)" if by_name else ""
        rows.append((word, "none" if name is None else name + hint))
    rows.append((f"features ({len(columns['features'])})", join_names(columns["features"])))
    return rows + ([("ignored", join_names(columns["dropped"]))] if columns["dropped"] else [])


def describe(rounds: Any) -> dict[str, Any]:
    """The facts that `info` prints about a data set."""
    import numpy as np

    from ranktron.data.imputation import count_missing, fit_imputer, impute
    from ranktron.data.io.grouping import scattered_queries
    from ranktron.data.scaling import feature_ranges

    lengths = np.diff(rounds.offsets)
    grades, counts = np.unique(rounds.labels, return_counts=True)
    highest = np.maximum.reduceat(rounds.labels, rounds.offsets[:-1])
    lowest = np.minimum.reduceat(rounds.labels, rounds.offsets[:-1])
    names = rounds.names
    missing = count_missing(rounds).tolist()
    # Missing values are replaced by means, which do not change the range of a feature.
    imputed = impute(rounds, fit_imputer("mean", rounds)) if any(missing) else rounds
    low, high = feature_ranges(imputed.X)
    return {
        "queries": len(rounds),
        "documents": len(rounds.labels),
        "features": rounds.n_features,
        "labels": {f"{grade:g}": int(count) for grade, count in zip(grades, counts, strict=True)},
        "list_lengths": {
            "min": int(lengths.min()),
            "median": float(np.median(lengths)),
            "mean": float(lengths.mean()),
            "max": int(lengths.max()),
        },
        "queries_without_relevant": int((highest <= 0).sum()),
        "queries_with_one_label": int((highest == lowest).sum()),
        "duplicate_qids": scattered_queries(rounds),
        "missing": {name: count for name, count in zip(names, missing, strict=True) if count},
        "constant_features": [name for name, a, b in zip(names, low, high, strict=True) if a == b],
        "lowest": float(low.min()) if len(low) else None,
        "highest": float(high.max()) if len(high) else None,
        "first_index": rounds.first_index,
    }
