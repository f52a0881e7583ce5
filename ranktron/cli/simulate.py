"""`ranktron simulate`."""

from __future__ import annotations

from typing import Any

import click

from ranktron.cli.options import OUT, as_json, keep_inputs
from ranktron.cli.output import print_json, print_written, show_activity


@click.command()
@click.argument("kind", type=click.Choice(["separable", "web"]))
@click.argument("target", metavar="OUT", type=OUT)
@click.option("--queries", default=1000, show_default=True, type=click.IntRange(1), help="Number of queries.")
@click.option("--documents", type=click.IntRange(2), help="Documents per query.  [default: 20; web: about 120]")
@click.option("--features", type=click.IntRange(1), help="Number of features.  [default: 20; web: 136]")
@click.option("--margin", default=0.5, show_default=True, help="Margin of separable data.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the true ranker and the data."
)
@click.option(
    "--skip",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Skip this many queries first: gives other queries of the same true ranker.",
)
@as_json
def simulate(
    kind: str, target: str, queries: int, documents: int | None, features: int | None, margin: float, seed: int,
    skip: int, as_json: bool,
) -> None:  # fmt: skip
    """Generate synthetic queries and write them to OUT.

    separable: a linear ranker orders the documents of every query perfectly, with a margin.
    web: noisy data shaped like web search, whose true ranker is not linear.
    For a validation or test set use the same seed and another --skip.

    Example: ranktron simulate separable train.txt --queries 500
    """
    from ranktron.data.io import write
    from ranktron.data.synthetic import Separable, WebSearch

    keep_inputs(target)
    with show_activity(f"generating {queries:,} queries"):
        size = {"documents": documents, "features": features}
        given: dict[str, Any] = {name: number for name, number in size.items() if number is not None}
        separable = kind == "separable"
        data = Separable(margin=margin, seed=seed, **given) if separable else WebSearch(seed=seed, **given)
        rounds = data.rounds(queries, skip)
        write(rounds, target, "letor" if target == "-" else None)
    if as_json:
        print_json({"kind": kind, "queries": len(rounds), "documents": len(rounds.labels), "out": target})
        return
    print_written(target, f"{len(rounds):,} queries, {len(rounds.labels):,} documents, {rounds.n_features} features")
