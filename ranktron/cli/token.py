"""`ranktron token`."""

from __future__ import annotations

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json


@click.command()
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["rank", "feedback", "admin"]),
    multiple=True,
    default=["rank", "feedback"],
    show_default=True,
    help="What the token allows: rank (rank and read), feedback, admin (everything).",
)
@as_json
def token(name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Create a token for the service.

    The token itself is printed once, to standard error, and is not stored. The line with its hash is printed to
    standard output: add it to the tokens file.

    Example: ranktron token shop --scope rank --scope feedback
    """
    from ranktron.service.auth import new_token

    made, line = new_token(name, scopes)
    if as_json:
        print_json({"token": made, "line": line})
        return
    click.echo(f"Token (shown only once): {made}", err=True)
    click.echo(line)
