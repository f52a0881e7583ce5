"""Commands about data: info, convert, simulate."""

from __future__ import annotations

from typing import Any

import click

from ranktron.cli.output import DATA, as_json, keep_inputs, null_option, print_json, print_table, read, working


@click.command()
@click.argument("data", type=DATA)
@null_option
@as_json
def info(data: str, null: str, as_json: bool) -> None:
    """Describe DATA: queries, documents, features, labels, list lengths.

    Example: ranktron info train.txt
    """
    summary = describe(read(data, null))
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
        ("queries whose rows were scattered", summary["duplicate_qids"]),
        ("constant features", ", ".join(summary["constant_features"]) or "none"),
        ("range of the features", f"{summary['lowest']:g} – {summary['highest']:g}"),
    ]
    print_table(data, ["", ""], rows)
    total = summary["documents"]
    print_table("labels", ["grade", "documents", "share"], [
        (grade, count, f"{100 * count / total:.1f} %") for grade, count in summary["labels"].items()
    ])  # fmt: skip


def describe(rounds: Any) -> dict[str, Any]:
    """What `info` says about a data set."""
    import numpy as np

    from ranktron.data.scaling import extremes

    lengths = np.diff(rounds.offsets)
    grades, counts = np.unique(rounds.labels, return_counts=True)
    highest = np.maximum.reduceat(rounds.labels, rounds.offsets[:-1])
    lowest = np.minimum.reduceat(rounds.labels, rounds.offsets[:-1])
    names = rounds.feature_names or [str(j + rounds.first_index) for j in range(rounds.n_features)]
    low, high = extremes(rounds.X)
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
        "duplicate_qids": _scattered(rounds),
        "constant_features": [name for name, a, b in zip(names, low, high, strict=True) if a == b],
        "lowest": float(low.min()),
        "highest": float(high.max()),
        "first_index": rounds.first_index,
    }


def _scattered(rounds: Any) -> int:
    """How many queries had their rows in more than one place of the input."""
    import numpy as np

    if rounds.rows is None:
        return 0
    breaks = np.diff(rounds.rows) != 1
    breaks[rounds.offsets[1:-1] - 1] = False
    return len(np.unique(np.searchsorted(rounds.offsets, np.flatnonzero(breaks), side="right")))


@click.command()
@click.argument("source", metavar="IN", type=DATA)
@click.argument("target", metavar="OUT", type=click.Path())
@null_option
@as_json
def convert(source: str, target: str, null: str, as_json: bool) -> None:
    """Write the data of IN to OUT in the format of OUT's ending.

    .rounds is the binary store, which opens at once whatever its size; .parquet and text (.txt, .txt.gz, .txt.zst)
    are for other programs.

    Example: ranktron convert train.txt train.rounds
    """
    from ranktron.data.io import verify, write

    keep_inputs(target, source)
    rounds = read(source, null)
    with working(f"writing {target}"):
        write(rounds, target)
        if target.endswith(".rounds"):
            verify(target)
    if as_json:
        print_json({"queries": len(rounds), "documents": len(rounds.labels), "out": target})
        return
    click.echo(f"{target}: {len(rounds):,} queries, {len(rounds.labels):,} documents")


@click.command()
@click.argument("kind", type=click.Choice(["separable", "web"]))
@click.argument("target", metavar="OUT", type=click.Path())
@click.option("--queries", default=1000, show_default=True, type=click.IntRange(1), help="Number of lists.")
@click.option("--margin", default=0.5, show_default=True, help="Margin of the separable lists.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the truth and the lists.")
@click.option(
    "--skip",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Leave out that many lists first: other lists of the same truth.",
)
@as_json
def simulate(kind: str, target: str, queries: int, margin: float, seed: int, skip: int, as_json: bool) -> None:
    """Write simulated lists of some KIND to OUT.

    separable: one linear ranker orders every list perfectly, with a margin.
    web: noisy lists with the shape of web search, and a truth that is not linear.
    Held-out lists of the same truth have the same seed and another --skip.

    Example: ranktron simulate separable train.txt --queries 500
    """
    from ranktron.data.io import write
    from ranktron.data.synthetic import Separable, WebSearch

    with working(f"simulating {queries:,} lists"):
        data = Separable(margin=margin, seed=seed) if kind == "separable" else WebSearch(seed=seed)
        rounds = data.rounds(queries, skip)
        write(rounds, target)
    if as_json:
        print_json({"kind": kind, "queries": len(rounds), "documents": len(rounds.labels), "out": target})
        return
    click.echo(f"{target}: {len(rounds):,} lists, {len(rounds.labels):,} documents, {rounds.n_features} features")
