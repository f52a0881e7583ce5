"""`ranktron push`."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from ranktron.cli.export import describe_check, export_options, exported_model, model_name, print_notes, summarize
from ranktron.cli.options import DATA
from ranktron.cli.output import print_json

_ENGINES = ("elasticsearch", "opensearch", "solr", "vespa")


@click.command()
@click.argument("model", type=DATA)
@click.option("--to", type=click.Choice(_ENGINES), required=True, help="Search engine.")
@click.option("--url", help="Address of the engine.  [default: its usual port on this machine]")
@click.option("--featureset", help="Feature set to create the model from (Elasticsearch, OpenSearch).")
@click.option("--collection", help="Collection or core (Solr).")
@click.option("--version", help="Version, appended to the name.  [default: the current time]")
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1), help="Seconds per request.")
@click.option("--dry-run", is_flag=True, help="Print the requests without sending them.")
@export_options
def push(
    model: str, to: str, url: str | None, featureset: str | None, collection: str | None, version: str | None,
    timeout: float, dry_run: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Upload MODEL to a search engine as a new version.

    Earlier versions are kept. Credentials are read from the environment: RANKTRON_ENGINE_USER and
    RANKTRON_ENGINE_PASSWORD, or RANKTRON_ENGINE_API_KEY.

    Example: ranktron push my.model --to elasticsearch --featureset movies --url https://search:9200
    """
    from ranktron.export import pushing

    name = f"{options['name'] or model_name(model)}-{version or time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    if to == "vespa":
        raise click.UsageError(
            "Vespa models are part of the application: export with --to vespa into schemas/SCHEMA/NAME.profile and run "
            "vespa deploy, or deploy --to vespa-inputs once and send the output of --to vespa-weights with the queries"
        )
    if to == "solr" and collection is None:
        raise click.UsageError("Solr stores models in a collection: name it with --collection")
    if to != "solr" and featureset is None:
        raise click.UsageError("the LTR plugin creates models from a feature set: name it with --featureset")
    address = pushing.checked_url(url or pushing.HOMES[to])
    exported = exported_model(model, to, name, options)
    if to == "solr":
        calls = pushing.solr_calls(exported.content, str(collection))
    else:
        calls = pushing.plugin_calls(exported.content, str(featureset), options["store"])
    sent = []
    if not dry_run:
        pushing.send(address, calls, pushing.credentials(), timeout, lambda call, status: sent.append((call, status)))
    shown = [(call, None) for call in calls] if dry_run else sent
    if as_json:
        answers = [_call(address, call, status) for call, status in shown]
        print_json({**summarize(exported), "url": address, "dry_run": dry_run, "calls": answers})
        return
    for call, status in shown:
        click.echo(f"{call.method} {address}{call.path}" + ("" if status is None else f"  {status}"))
        if dry_run and call.body is not None:
            click.echo(call.body.decode(), nl=False)
    if not dry_run:
        click.echo(f"Uploaded {exported.name}, {describe_check(exported)}; queries use it when they name it")
    print_notes(exported)


def _call(address: str, call: Any, status: int | None) -> dict[str, Any]:
    body = None if call.body is None else json.loads(call.body)
    return {"method": call.method, "url": address + call.path, "body": body, "status": status}
