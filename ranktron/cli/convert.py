"""`ranktron convert`."""

from __future__ import annotations

import click

from ranktron.cli.options import DATA, OUT, as_json, keep_inputs, null_option, read_data, table_options
from ranktron.cli.output import print_json, print_written, show_activity
from ranktron.data.option_names import FORMATS


@click.command()
@click.argument("source", metavar="IN", type=DATA)
@click.argument("target", metavar="OUT", type=OUT)
@click.option(
    "--format",
    "style",
    type=click.Choice([format for format in FORMATS if format != "ltrlog"]),
    help="Format of OUT.  [default: by its extension; letor on standard output]",
)
@null_option
@table_options
@as_json
def convert(source: str, target: str, style: str | None, null: str | None, as_json: bool) -> None:
    """Convert data to the format of OUT's file extension.

    .rounds is a binary store, which opens in milliseconds at any size; .csv, .tsv, .jsonl, .parquet, .arrow and
    LETOR text (.txt) are for other programs. Text is compressed if .gz, .zst, .bz2 or .xz follows, as in .txt.gz.
    - is standard input or output.

    Example: ranktron convert train.txt train.rounds
    """
    from ranktron.data.io import verify, write

    keep_inputs(target, source)
    rounds = read_data(source, null)
    with show_activity(f"writing {target}"):
        write(rounds, target, style or ("letor" if target == "-" else None))
        if target.endswith(".rounds"):
            verify(target)
    if as_json:
        print_json({"queries": len(rounds), "documents": len(rounds.labels), "out": target})
        return
    print_written(target, f"{len(rounds):,} queries, {len(rounds.labels):,} documents")
