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
    help="Scope of the token: rank (rank and read), feedback, admin (everything).",
)
@as_json
def token(name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Create an access token for the service.

    Prints the token to standard error, once; it is not stored. Prints the line with its hash to standard output: append
    it to the tokens file.

    Example: ranktron token shop --scope rank --scope feedback
    """
    from ranktron.service.auth import new_token

    secret, line = new_token(name, scopes)
    if as_json:
        print_json({"token": secret, "line": line})
        return
    click.echo(f"Token (shown only once): {secret}", err=True)
    click.echo(line)
