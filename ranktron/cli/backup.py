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
    """Back up the state folder DIR of a service to the new folder OUT, also while it runs.

    The backup is consistent: it holds all feedback acknowledged before one moment. For a journal in PostgreSQL, use
    PostgreSQL's own tools.

    Example: ranktron backup state backups/tuesday
    """
    try:
        from ranktron.store.journal.backup import back_up
    except ModuleNotFoundError:
        raise MissingExtra("a backup", "serve") from None
    created = back_up(folder, target)
    if as_json:
        versions = {ranker.name: ranker.version for ranker in created.rankers}
        print_json({"backup": target, "made": created.made, "bytes": created.bytes, "versions": versions})
        return
    rankers = ", ".join(f"{ranker.name} at version {ranker.version}" for ranker in created.rankers) or "no ranker"
    click.echo(f"{target}: {rankers} ({created.bytes / 1e6:,.1f} MB).")
