"""`ranktron promote`."""

from __future__ import annotations

from typing import Any

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json


@click.command()
@click.argument("url", metavar="URL")
@click.option("--token", envvar="RANKTRON_TOKEN", help="Token with the scope admin; also RANKTRON_TOKEN.")
@click.option("--force", is_flag=True, help="Even if the leader still answers: it goes on, beside the new one.")
@as_json
def promote(url: str, token: str | None, force: bool, as_json: bool) -> None:
    """Let the follower at URL lead, since its leader is gone.

    The follower (`ranktron serve --follow ... --dir DIR`) writes what it has to the folder DIR, which must be new or
    empty, in a new epoch, and leads from there. What the leader had acknowledged and the follower has not heard of is
    lost; this command says how much of it is known. See to it that the leader of before does not come back as one.

    Example: ranktron promote http://10.0.0.6:8080
    """
    from ranktron.service.client import Client

    with Client(url, token, timeout=60.0) as client:
        answer = client.promote(force=force)
    if as_json:
        print_json({**answer, "lost": {each["name"]: _lost(each) for each in answer["rankers"]}})
        return
    for each in answer["rankers"]:
        click.echo(f"{each['name']}: {_gap(each, answer['reached'])}")
    click.echo(f"{url} leads from {answer['folder']}, in term {answer['term']:,}.")
    if not answer["reached"]:
        since = f"was last heard of {answer['unheard']:.1f} seconds before"
        click.echo(f"The leader {since}: what it acknowledged after that to others is lost, and not counted here.")


def _lost(ranker: dict[str, Any]) -> int:
    return max(0, int(ranker["acknowledged"]) - int(ranker["version"]))


def _gap(ranker: dict[str, Any], reached: bool) -> str:
    known = "exactly" if reached else "at least"
    goes_on = f"goes on from version {ranker['version']}; the leader had {ranker['acknowledged']} {known}"
    return f"{goes_on}: {_lost(ranker)} lost, as far as is known" if not reached else f"{goes_on}: {_lost(ranker)} lost"
