"""`ranktron backup`."""

from __future__ import annotations

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json
from ranktron.errors import MissingExtra


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False))
@click.argument("target", metavar="OUT", type=click.Path())
@as_json
def backup(folder: str, target: str, as_json: bool) -> None:
    """Copy the state folder DIR of a service to the new folder OUT, while it runs.

    The copy is that of one moment: all that was acknowledged before it. Where the journal is in PostgreSQL, use the
    tools of PostgreSQL.

    Example: ranktron backup state backups/tuesday
    """
    try:
        from ranktron.store.journal.backup import back_up
    except ModuleNotFoundError:
        raise MissingExtra("a backup", "serve") from None
    made = back_up(folder, target)
    if as_json:
        versions = {each.name: each.version for each in made.rankers}
        print_json({"backup": target, "made": made.made, "bytes": made.bytes, "versions": versions})
        return
    what = ", ".join(f"{each.name} at version {each.version}" for each in made.rankers) or "no ranker"
    click.echo(f"{target}: {what} ({made.bytes / 1e6:,.1f} MB).")
