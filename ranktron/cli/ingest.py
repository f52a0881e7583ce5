"""`ranktron ingest`."""

from __future__ import annotations

from time import sleep

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json

_PAUSE = 1.0  # seconds between two looks at a file that is followed


@click.command()
@click.argument("source", metavar="FILE", type=click.Path(exists=True, dir_okay=False))
@click.option("--ranker", required=True, help="The ranker that learns.")
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Where the service is.")
@click.option("--token", envvar="RANKTRON_TOKEN", help="Token with the scope feedback; also RANKTRON_TOKEN.")
@click.option(
    "--gain",
    "gains",
    multiple=True,
    default=["click=1"],
    show_default=True,
    metavar="ACTION=NUMBER",
    help="What an action of the log gains; actions that are not named are passed over.",
)
@click.option("--follow", is_flag=True, help="Go on when the end is reached, and read what is added.")
@as_json
def ingest(
    source: str, ranker: str, url: str, token: str | None, gains: tuple[str, ...], follow: bool, as_json: bool
) -> None:
    """Let a ranker learn from events of User Behavior Insights (UBI), a file of JSON lines.

    The query_id of an event is the round that `/rank` gave, event_attributes.object.object_id the document; a round
    that carries itself is event_attributes.carry. Each event is learnt from once, even if this command or the service
    is killed: the service keeps how far the file was read in the same transaction. Events that cannot be used are kept
    there as dead letters, with the reason.

    Example: ranktron ingest events.jsonl --ranker shop --gain click=1 --gain purchase=3
    """
    from ranktron.service.client import Client
    from ranktron.service.sources import Ingested, JsonLinesFile
    from ranktron.service.sources import ingest as send

    known = dict(map(_gain, gains))
    file, total = JsonLinesFile(source), Ingested(0, 0, 0, 0, 0)
    with Client(url, token, timeout=60.0) as client:
        while True:
            done = send(client, ranker, file, known)
            total = total.plus(done)
            if not follow:
                break
            sleep(_PAUSE)
        dead = client.source(file.name)["dead"] if total.dead else []
    if as_json:
        print_json({"source": file.name, **total._asdict()})
        return
    click.echo(
        f"{source}: {total.messages:,} events, {total.learned:,} lessons, {total.repeated:,} that added nothing, "
        f"{total.dead:,} dead letters"
    )
    for letter in dead[-3:]:
        click.echo(f"  at byte {letter['place']:,}: {letter['reason']}", err=True)


def _gain(text: str) -> tuple[str, float]:
    action, _, number = text.partition("=")
    try:
        return action, float(number)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not ACTION=NUMBER", param_hint="--gain") from None
