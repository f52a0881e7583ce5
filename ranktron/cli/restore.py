"""`ranktron restore`."""

from __future__ import annotations

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json
from ranktron.errors import MissingExtra


@click.command()
@click.argument("backup", metavar="BACKUP", type=click.Path(exists=True, file_okay=False))
@click.argument("folder", metavar="DIR", type=click.Path())
@as_json
def restore(backup: str, folder: str, as_json: bool) -> None:
    """Make the state folder DIR of a backup; DIR must be new, or empty.

    A server that starts there goes on from the backup. It begins a new epoch: feedback on lists that were shown after
    the backup gets a 410, and is never learnt on another list.

    Example: ranktron restore backups/monday restored
    """
    try:
        from ranktron.store.journal.backup import restore as make_folder
    except ModuleNotFoundError:
        raise MissingExtra("a restore", "serve") from None
    found = make_folder(backup, folder)
    if as_json:
        print_json({"folder": folder, "made": found.made, "versions": {r.name: r.version for r in found.rankers}})
        return
    what = ", ".join(f"{each.name} at version {each.version}" for each in found.rankers) or "no ranker"
    click.echo(f"{folder}: {what}, as of {found.made}. Start with: ranktron serve --dir {folder}")
