"""`ranktron keys`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json
from ranktron.errors import MissingExtra


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--prepare", is_flag=True, help="Make the next key, which opens rounds but does not seal them yet.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Days that old keys stay; longer than rounds stay open (`open_seconds`).",
)
@as_json
def keys(file: str, prepare: bool, days: int, as_json: bool) -> None:
    """Make or change the keys of rounds that carry themselves.

    Without a file, makes one with an active key. With one, the next key becomes active, or a new one where there is
    none; the key that was active only opens rounds from then on, and is removed after some days. Where several
    machines share the keys: --prepare, copy the file to all of them, SIGHUP; then change, copy and SIGHUP again. One
    key may seal 2^32 rounds, so change it every week.

    Example: ranktron keys carry.keys
    """
    try:
        from ranktron.service.sealing_keys import change_keys, read_keys, write_keys
    except ModuleNotFoundError:
        raise MissingExtra("rounds that carry themselves", "serve") from None
    path = Path(file)
    before = read_keys(path) if path.exists() else []
    after = change_keys(before, datetime.now(UTC).date(), days, prepare=prepare)
    write_keys(path, after)
    if as_json:
        print_json({"keys": [{"id": key.id, "state": key.state, "since": str(key.day)} for key in after]})
        return
    click.echo(f"{file}: {', '.join(f'{key.id} ({key.state} since {key.day})' for key in after)}")
