"""`ranktron ingest`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json

if TYPE_CHECKING:
    from ranktron.service.ingest.sources import FeedbackSource

_POLL_INTERVAL = 1.0  # seconds, with --follow


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option("--ranker", required=True, help="The ranker that learns.")
@click.option("--url", default="http://127.0.0.1:8080", show_default=True, help="Address of the service.")
@click.option("--token", envvar="RANKTRON_TOKEN", help="Token with the scope feedback; also RANKTRON_TOKEN.")
@click.option(
    "--gain",
    "gains",
    multiple=True,
    default=["click=1"],
    show_default=True,
    metavar="ACTION=NUMBER",
    help="Gain of an action; events with other actions are skipped.",
)
@click.option("--follow", is_flag=True, help="Keep reading what is appended, as tail -f does.")
@click.option(
    "--kafka-settings",
    "settings",
    type=click.Path(exists=True, dir_okay=False),
    help="TOML file with Kafka's security_protocol, sasl_mechanism, sasl_plain_username, sasl_plain_password, "
    "cafile, certfile, keyfile.",
)
@as_json
def ingest(
    source: str,
    ranker: str,
    url: str,
    token: str | None,
    gains: tuple[str, ...],
    follow: bool,
    settings: str | None,
    as_json: bool,
) -> None:
    """Let a ranker learn from events of User Behavior Insights (UBI).

    SOURCE is a file of JSON lines, or a Kafka topic of such messages, kafka://broker:9092/topic (extra `kafka`). An
    event's query_id is the round that `/rank` returned, event_attributes.object.object_id the document, and
    event_attributes.carry the token of a sealed round. Each event is learnt from exactly once, even if this command or
    the service is killed: the service writes the source's next offset in the same transaction. It keeps events that
    cannot be used as dead letters, with the reason.

    Example: ranktron ingest events.jsonl --ranker shop --gain click=1 --gain purchase=3
    """
    from ranktron.service.client import Client
    from ranktron.service.ingest.sources import Ingested
    from ranktron.service.ingest.sources import ingest as send

    action_gains, total = dict(map(_parse_gain, gains)), Ingested(0, 0, 0, 0, 0)
    with _open_sources(source, settings) as sources, Client(url, token, timeout=60.0) as client:
        while True:
            for each in sources:
                total = total.plus(send(client, ranker, each, action_gains))
            if not follow:
                break
            sleep(_POLL_INTERVAL)
        dead = [letter for each in sources for letter in client.source(each.name)["dead"]] if total.dead else []
    if as_json:
        print_json({"sources": [each.name for each in sources], **total._asdict()})
        return
    click.echo(
        f"{source}: {total.messages:,} events, {total.learned:,} rounds learnt, {total.repeated:,} repeated, "
        f"{total.dead:,} dead letters"
    )
    for letter in dead[-3:]:
        click.echo(f"  at {letter['place']:,}: {letter['reason']}", err=True)


@contextmanager
def _open_sources(source: str, settings: str | None) -> Iterator[Sequence[FeedbackSource]]:
    """A file, or the partitions of a topic."""
    if source.startswith("kafka://"):
        from ranktron.service.ingest.kafka_source import KafkaTopic

        with KafkaTopic(source, _read_settings(settings)) as topic:
            yield topic.partitions
    else:
        from ranktron.service.ingest.sources import JsonLinesFile

        yield [JsonLinesFile(source)]


def _read_settings(path: str | None) -> dict[str, Any]:
    try:
        return {} if path is None else tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{path} is not TOML: {error}", param_hint="--kafka-settings") from None


def _parse_gain(text: str) -> tuple[str, float]:
    action, _, number = text.partition("=")
    try:
        return action, float(number)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not ACTION=NUMBER", param_hint="--gain") from None
