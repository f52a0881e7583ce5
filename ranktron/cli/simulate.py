"""`ranktron simulate`."""

from __future__ import annotations

import click

from ranktron.cli.options import OUT, as_json, keep_inputs
from ranktron.cli.output import print_json, print_written, show_activity


@click.command()
@click.argument("kind", type=click.Choice(["separable", "web"]))
@click.argument("target", metavar="OUT", type=OUT)
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
    A validation or test set of the same truth has the same seed and another --skip.

    Example: ranktron simulate separable train.txt --queries 500
    """
    from ranktron.data.io import write
    from ranktron.data.synthetic import Separable, WebSearch

    keep_inputs(target)
    with show_activity(f"simulating {queries:,} lists"):
        data = Separable(margin=margin, seed=seed) if kind == "separable" else WebSearch(seed=seed)
        rounds = data.rounds(queries, skip)
        write(rounds, target, "letor" if target == "-" else None)
    if as_json:
        print_json({"kind": kind, "queries": len(rounds), "documents": len(rounds.labels), "out": target})
        return
    print_written(target, f"{len(rounds):,} lists, {len(rounds.labels):,} documents, {rounds.n_features} features")
