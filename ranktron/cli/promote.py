"""`ranktron promote`."""

from __future__ import annotations

from typing import Any

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json


@click.command()
@click.argument("url", metavar="URL")
@click.option("--token", envvar="RANKTRON_TOKEN", help="Token with the scope admin; also RANKTRON_TOKEN.")
@click.option("--force", is_flag=True, help="Promote even if the leader still answers; it must then be stopped.")
@as_json
def promote(url: str, token: str | None, force: bool, as_json: bool) -> None:
    """Promote the follower at URL to leader, after its leader has failed.

    The follower (`ranktron serve --follow ... --dir DIR`) writes its state to the folder DIR, which must be new or
    empty, and leads from there, in a new epoch. Feedback that the old leader acknowledged and the follower had not
    received is lost; this command prints how much, as far as is known. The old leader must not start as a leader again.

    Example: ranktron promote http://10.0.0.6:8080
    """
    from ranktron.service.client import Client

    with Client(url, token, timeout=60.0) as client:
        answer = client.promote(force=force)
    if as_json:
        print_json({**answer, "lost": {ranker["name"]: _lost(ranker) for ranker in answer["rankers"]}})
        return
    for ranker in answer["rankers"]:
        click.echo(f"{ranker['name']}: {_describe_loss(ranker, answer['reached'])}")
    click.echo(f"{url} leads from {answer['folder']}, in term {answer['term']:,}.")
    if not answer["reached"]:
        last = f"The old leader last answered {answer['unheard']:.1f} seconds before the promotion"
        click.echo(f"{last}: feedback that it acknowledged later is lost as well, and not counted here.")


def _lost(ranker: dict[str, Any]) -> int:
    return max(0, int(ranker["acknowledged"]) - int(ranker["version"]))


def _describe_loss(ranker: dict[str, Any], reached: bool) -> str:
    versions = f"continues from version {ranker['version']}; the old leader had"
    if reached:
        return f"{versions} {ranker['acknowledged']}: {_lost(ranker)} lost"
    return f"{versions} at least {ranker['acknowledged']}: at least {_lost(ranker)} lost"
