"""Commands around the service: serve, token."""

from __future__ import annotations

import click

from ranktron.cli.output import as_json, print_json
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


@click.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["rank", "feedback", "admin"]),
    multiple=True,
    default=["rank", "feedback"],
    show_default=True,
    help="What the token allows; may be given more than once.",
)
@as_json
def token(name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a token for the service: the token itself, once, and the line that lets the service know it.

    Example: ranktron token shop --scope rank --scope feedback
    """
    from ranktron.service.tokens import new_token

    made, line = new_token(name, scopes)
    if as_json:
        print_json({"token": made, "line": line})
        return
    click.echo(f"token (shown only now): {made}", err=True)
    click.echo(line)
