"""`ranktron serve`."""

from __future__ import annotations

import os

import click

from ranktron.errors import MissingExtra


@click.command()
@click.option(
    "--dir",
    "folder",
    envvar="RANKTRON_DIR",
    type=click.Path(file_okay=False),
    default="state",
    show_default=True,
    help="Folder for the state of all rankers; created if it does not exist.",
)
@click.option(
    "--model",
    "models",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="Model file to serve, as a ranker named after the file.",
)
@click.option(
    "--config",
    envvar="RANKTRON_CONFIG",
    type=click.Path(exists=True, dir_okay=False),
    help="Settings (a TOML file); environment variables such as RANKTRON_MAX_OPEN override them.",
)
@click.option("--host", envvar="RANKTRON_HOST", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    envvar="RANKTRON_PORT",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--journal",
    envvar="RANKTRON_JOURNAL",
    metavar="ADDRESS",
    help="PostgreSQL database for the journal, as postgresql://user@host/name; by default SQLite in the folder. A "
    "password belongs in RANKTRON_JOURNAL, which other users of the machine cannot see.",
)
@click.option(
    "--follow",
    metavar="URL",
    help="Run as a follower of this leader: rank with its weights, and forward all other requests to it. "
    "RANKTRON_LEADER_TOKEN holds a token of the leader with the scope admin. A promotion writes to --dir.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes at one address: a leader that learns, and followers that rank with its weights.",
)
@click.option("--shared", is_flag=True, hidden=True)
def serve(
    folder: str,
    models: tuple[str, ...],
    config: str | None,
    host: str,
    port: int,
    journal: str | None,
    follow: str | None,
    workers: int,
    shared: bool,
) -> None:
    """Serve rankers over HTTP, and let them learn from feedback.

    Environment variables set options as well: RANKTRON_DIR, RANKTRON_CONFIG, RANKTRON_HOST, RANKTRON_PORT.

    Example: ranktron serve --dir state
    """
    try:
        from ranktron.service.http import server
        from ranktron.service.replication import follower_server
    except ModuleNotFoundError:
        raise MissingExtra("serving", "serve") from None
    if follow is not None:
        if models or journal is not None or workers > 1:
            raise click.UsageError("--follow cannot be combined with --model, --journal or --workers")
        follower_server.follow(follow, config, host, port, os.environ.get("RANKTRON_LEADER_TOKEN"), folder, shared)
        return
    server.run(folder, config, host, port, models=models, journal=journal, workers=workers)
    storage = folder if journal is None else "the database"
    click.echo(f"Stopped. All acknowledged feedback is saved in {storage}; the next start continues from there.")
