"""`ranktron serve`."""

from __future__ import annotations

import click

from ranktron.errors import MissingExtra


@click.command()
@click.option("--dir", "folder", type=click.Path(file_okay=False), required=True, help="Where the rankers are kept.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False), help="Settings, a file in TOML.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: any free port.")
def serve(folder: str, config: str | None, host: str, port: int) -> None:
    """Serve rankers that learn while they serve.

    Example: ranktron serve --dir state
    """
    try:
        from ranktron.service.server import run
    except ModuleNotFoundError:
        raise MissingExtra("serving", "serve") from None
    run(folder, config, host, port)
    click.echo(f"ended; all that was acknowledged is in {folder}, and the next start goes on from there")
