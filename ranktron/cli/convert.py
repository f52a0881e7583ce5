"""`ranktron convert`."""

from __future__ import annotations

import click

from ranktron.cli.options import DATA, as_json, keep_inputs, null_option, read
from ranktron.cli.output import print_json, working


@click.command()
@click.argument("source", metavar="IN", type=DATA)
@click.argument("target", metavar="OUT", type=click.Path())
@null_option
@as_json
def convert(source: str, target: str, null: str | None, as_json: bool) -> None:
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
