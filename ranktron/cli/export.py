"""Commands that bring a model to a search engine: export, push."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.output import DATA, as_json, keep_inputs, null_option, print_json, read
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.cli.output import F
    from ranktron.export import Export

_ENDPOINTS = ("elasticsearch", "opensearch", "solr")
_TARGETS = ("solr", "elasticsearch", "opensearch", "vespa", "vespa-inputs", "vespa-weights", "onnx", "json")


def _export_options(command: F) -> F:
    """The options that export and push share."""
    options: list[Callable[[F], F]] = [
        click.option("--name", help="What the engine calls the model.  [default: the name of the file MODEL]"),
        click.option("--store", help="The feature store (Solr) or the LTR store (Elasticsearch, OpenSearch)."),
        click.option(
            "--normalizers",
            type=click.Choice(["native", "fold"]),
            default="native",
            show_default=True,
            help="Scaling as the engine's own normalisers, or folded into the weights.",
        ),
        click.option("--features", type=DATA, help="A file with the engine's names of the features, one a line."),
        click.option("--data", type=DATA, help="Lists to check the file with.  [default: random ones]"),
        click.option("--average", is_flag=True, help="The average of a model whose members vote."),
        click.option("--one", metavar="NAME", help="A feature that is always 1: it keeps scores above 0 (Lucene)."),
        null_option,
        as_json,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("model", type=DATA)
@click.option("--to", type=click.Choice(_TARGETS), required=True, help="The engine.")
@click.option("-o", "--out", type=click.Path(), help="The file to write.  [default: standard output]")
@_export_options
def export(model: str, to: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Write MODEL as a file for a search engine, after checking that it ranks as the model does.

    vespa has the weights as constants, vespa-inputs as query inputs (deployed once), vespa-weights the parameters of
    the query for these. What an engine cannot hold is refused, with the reason and a way out.

    Example: ranktron export my.model --to elasticsearch -o model.json
    """
    if out is not None:
        keep_inputs(out, model, options["data"], options["features"])
    if out is None and to == "onnx":
        raise click.UsageError("an ONNX file is binary: name the file to write with -o")
    exported = _exported(model, to, options["name"] or _name_of(model), options)
    if out is not None:
        exported.save(out)
    if as_json:
        content = {} if out is not None else {"content": exported.content.decode()}
        print_json({**_summary(exported), "out": out, **content})
        return
    if out is None:
        click.echo(exported.content.decode(), nl=False)
    else:
        click.echo(f"{out}: {exported.name} for {to}, {_checked(exported)}")
    _tell(exported)


@click.command()
@click.argument("model", type=DATA)
@click.option("--to", type=click.Choice([*_ENDPOINTS, "vespa"]), required=True, help="The engine.")
@click.option("--url", help="Where the engine answers.  [default: its usual port on this machine]")
@click.option("--featureset", help="The feature set to make the model from (Elasticsearch, OpenSearch).")
@click.option("--collection", help="The collection or core (Solr).")
@click.option("--version", help="What follows the name.  [default: the time]")
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1), help="Seconds for each call.")
@click.option("--dry-run", is_flag=True, help="Print the calls and make none.")
@_export_options
def push(
    model: str, to: str, url: str | None, featureset: str | None, collection: str | None, version: str | None,
    timeout: float, dry_run: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Upload MODEL to a search engine under a new name, next to the versions before it.

    The user and password, or the API key, come from the environment: RANKTRON_ENGINE_USER and RANKTRON_ENGINE_PASSWORD,
    or RANKTRON_ENGINE_API_KEY.

    Example: ranktron push my.model --to elasticsearch --featureset movies --url https://search:9200
    """
    from ranktron.export import pushing

    name = f"{options['name'] or _name_of(model)}-{version or time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    if to == "vespa":
        raise click.UsageError(
            "Vespa takes models with the application: export with --to vespa into schemas/SCHEMA/NAME.profile and run "
            "vespa deploy, or deploy --to vespa-inputs once and send what --to vespa-weights writes with the queries"
        )
    if to == "solr" and collection is None:
        raise click.UsageError("Solr keeps models in a collection: name it with --collection")
    if to != "solr" and featureset is None:
        raise click.UsageError("the LTR plugin makes models from a feature set: name it with --featureset")
    address = pushing.checked_url(url or pushing.HOMES[to])
    exported = _exported(model, to, name, options)
    if to == "solr":
        calls = pushing.solr_calls(exported.content, str(collection))
    else:
        calls = pushing.plugin_calls(exported.content, str(featureset), options["store"])
    made = []
    if not dry_run:
        pushing.send(address, calls, pushing.credentials(), timeout, lambda call, status: made.append((call, status)))
    shown = [(call, None) for call in calls] if dry_run else made
    if as_json:
        answers = [_call(address, call, status) for call, status in shown]
        print_json({**_summary(exported), "url": address, "dry_run": dry_run, "calls": answers})
        return
    for call, status in shown:
        click.echo(f"{call.method} {address}{call.path}" + ("" if status is None else f"  {status}"))
        if dry_run and call.body is not None:
            click.echo(call.body.decode(), nl=False)
    if not dry_run:
        click.echo(f"{exported.name} is there, {_checked(exported)}; queries use it when they name it")
    _tell(exported)


def _exported(model: str, to: str, name: str, options: dict[str, Any]) -> Export:
    from ranktron.export import export as export_model
    from ranktron.training.model import load

    loaded = load(model)
    names = _lines(options["features"]) if options["features"] else None
    data = read(options["data"], options["null"], loaded) if options["data"] else None
    return export_model(
        loaded, to, name=name, store=options["store"], normalizers=options["normalizers"], feature_names=names,
        data=data, average=options["average"], one=options["one"],
    )  # fmt: skip


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the names in {path}: {error}") from None


def _name_of(path: str) -> str:
    """A name for the model, from that of its file."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(path).stem).strip("_-")
    return word if re.match(r"[A-Za-z]", word) else f"ranker_{word}".strip("_")


def _summary(exported: Export) -> dict[str, Any]:
    return {
        "to": exported.target,
        "name": exported.name,
        "notes": list(exported.notes),
        "warnings": list(exported.warnings),
        "check": exported.check.as_dict(),
    }


def _call(address: str, call: Any, status: int | None) -> dict[str, Any]:
    body = None if call.body is None else json.loads(call.body)
    return {"method": call.method, "url": address + call.path, "body": body, "status": status}


def _checked(exported: Export) -> str:
    check = exported.check
    return f"checked on {check.sample}: {check.swapped:,} of {check.pairs:,} pairs swapped by rounding"


def _tell(exported: Export) -> None:
    for note in exported.notes:
        click.echo(f"note: {note}", file=sys.stderr)
    for warning in exported.warnings:
        click.echo(f"warning: {warning}", file=sys.stderr)
