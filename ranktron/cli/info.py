"""`ranktron info`."""

from __future__ import annotations

from typing import Any

import click

from ranktron.cli.options import DATA, as_json, input_file, null_option, read_data, reading_options, table_options
from ranktron.cli.output import print_json, print_table


@click.command()
@click.argument("data", type=DATA)
@null_option
@table_options
@as_json
def info(data: str, null: str | None, as_json: bool) -> None:
    """Describe DATA: sizes, labels, ranges and missing values.

    Example: ranktron info train.txt
    """
    from ranktron.data.files import from_standard_input
    from ranktron.data.io import read_roles

    with from_standard_input(data) as path:
        summary = describe(read_data(str(path), null or "nan"))
        options = reading_options()
        judgments = options.pop("judgments", None)
        roles = read_roles(input_file(str(path)), **options)
    if roles is not None:
        summary["columns"] = roles._asdict() | ({"label": judgments} if judgments else {})
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
        ("range of the features", f"{summary['lowest']:g} – {summary['highest']:g}"),
    ]
    print_table(data, ["", ""], rows)
    if "columns" in summary:
        print_table("columns", ["read as", "column"], _columns(summary["columns"]))
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
    names = rounds.feature_names or [str(j + rounds.first_index) for j in range(rounds.n_features)]
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
        "lowest": float(low.min()),
        "highest": float(high.max()),
        "first_index": rounds.first_index,
    }
