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
@click.option("--prepare", is_flag=True, help="Only add the next key, which opens rounds but does not seal them yet.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Days to keep old keys; longer than rounds stay open (`open_seconds`).",
)
@as_json
def keys(file: str, prepare: bool, days: int, as_json: bool) -> None:
    """Create or rotate the keys that seal rounds.

    Creates FILE with an active key. If FILE exists, makes its next key, or a new one, the active key; the old one only
    opens rounds from then on, and is removed after --days. For several machines: run with --prepare, copy the file to
    all of them and send SIGHUP; then rotate, copy and send SIGHUP again. A key may seal 2^32 rounds: rotate it every
    week.

    Example: ranktron keys carry.keys
    """
    try:
        from ranktron.service.sealing_keys import change_keys, read_keys, write_keys
    except ModuleNotFoundError:
        raise MissingExtra("sealing rounds", "serve") from None
    path = Path(file)
    old_keys = read_keys(path) if path.exists() else []
    new_keys = change_keys(old_keys, datetime.now(UTC).date(), days, prepare=prepare)
    write_keys(path, new_keys)
    if as_json:
        print_json({"keys": [{"id": key.id, "state": key.state, "since": str(key.day)} for key in new_keys]})
        return
    click.echo(f"{file}: {', '.join(f'{key.id} ({key.state} since {key.day})' for key in new_keys)}")
