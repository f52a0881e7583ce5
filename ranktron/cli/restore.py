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
    """Restore a backup to the state folder DIR, which must be new or empty.

    A server that starts there continues from the backup, in a new epoch: feedback on rounds shown after the backup gets
    a 410, and is never learnt on another round.

    Example: ranktron restore backups/monday restored
    """
    try:
        from ranktron.store.journal.backup import restore as restore_backup
    except ModuleNotFoundError:
        raise MissingExtra("a restore", "serve") from None
    restored = restore_backup(backup, folder)
    if as_json:
        versions = {ranker.name: ranker.version for ranker in restored.rankers}
        print_json({"folder": folder, "made": restored.made, "versions": versions})
        return
    rankers = ", ".join(f"{ranker.name} at version {ranker.version}" for ranker in restored.rankers) or "no ranker"
    click.echo(f"{folder}: {rankers}, as of {restored.made}. Start with: ranktron serve --dir {folder}")
