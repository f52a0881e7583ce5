"""`ranktron export`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import DATA, OUT, as_json, keep_inputs, null_option, read_data, scoring_options
from ranktron.cli.output import print_json, print_written
from ranktron.errors import DataError
from ranktron.export.targets import TARGETS

if TYPE_CHECKING:
    from ranktron.cli.options import F
    from ranktron.export import Export


def export_options(command: F) -> F:
    """The options that export and push share."""
    options: list[Callable[[F], F]] = [
        click.option("--name", help="Name of the model in the engine.  [default: the name of the file MODEL]"),
        click.option("--store", help="Feature store (Solr) or LTR store (Elasticsearch, OpenSearch)."),
        click.option(
            "--normalizers",
            type=click.Choice(["native", "fold"]),
            default="native",
            show_default=True,
            help="Export scaling as the engine's own normalizers, or fold it into the weights.",
        ),
        click.option("--features", type=DATA, help="File with the engine's feature names, one per line."),
        click.option("--data", type=DATA, help="Data to check the exported file with.  [default: random documents]"),
        click.option("--average", is_flag=True, help="Export the average of a model whose members vote."),
        click.option("--one", metavar="NAME", help="Feature that is always 1, to keep scores above 0 (Lucene)."),
        null_option,
        scoring_options,
        as_json,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("model", type=DATA)
@click.option("--to", type=click.Choice(list(TARGETS)), required=True, help="Search engine or format.")
@click.option("-o", "--out", type=OUT, help="File to write.  [default: standard output]")
@export_options
def export(model: str, to: str, out: str | None, as_json: bool, **options: Any) -> None:
    """Export MODEL to a file for a search engine, or to ONNX or JSON.

    The file is checked first: it must rank as the model does. vespa writes the weights as constants; vespa-inputs
    writes a profile with the weights as query inputs, which is deployed once, and vespa-weights the values for it.
    lucene-expression is a script over fields for Elasticsearch and OpenSearch, which can have bins, too. A
    model that an engine cannot represent is refused, with the reason and an alternative.

    Example: ranktron export my.model --to elasticsearch -o model.json
    """
    if out is not None:
        keep_inputs(out, model, options["data"], options["features"])
    if out is None and to == "onnx":
        raise click.UsageError("an ONNX file is binary: name the file to write with -o")
    exported = exported_model(model, to, options["name"] or model_name(model), options)
    if out is not None:
        exported.save(out)
    if as_json:
        content = {} if out is not None else {"content": exported.content.decode()}
        print_json({**summarize(exported), "out": out, **content})
        return
    if out is None:
        click.echo(exported.content.decode(), nl=False)
    else:
        print_written(out, f"{exported.name} for {to}, {describe_check(exported)}")
    print_notes(exported)


def exported_model(model: str, to: str, name: str, options: dict[str, Any]) -> Export:
    """The exported file, made and checked according to the options."""
    from ranktron.export import export as export_model
    from ranktron.training.model import load

    loaded = load(model)
    names = _lines(options["features"]) if options["features"] else None
    data = read_data(options["data"], options["null"], loaded, part="test") if options["data"] else None
    return export_model(
        loaded, to, name=name, store=options["store"], normalizers=options["normalizers"], feature_names=names,
        data=data, average=options["average"], one=options["one"],
    )  # fmt: skip


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the names in {path}: {error}") from None


def model_name(path: str) -> str:
    """A name for the model, derived from its file name."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(path).stem).strip("_-")
    return word if re.match(r"[A-Za-z]", word) else f"ranker_{word}".strip("_")


def summarize(exported: Export) -> dict[str, Any]:
    """An exported file as `--json` prints it."""
    return {
        "to": exported.target,
        "name": exported.name,
        "notes": list(exported.notes),
        "warnings": list(exported.warnings),
        "check": exported.check.as_dict(),
    }


def describe_check(exported: Export) -> str:
    """The result of checking the file, as text."""
    check = exported.check
    return f"checked on {check.sample}: {check.swapped:,} of {check.pairs:,} pairs swapped by rounding"


def print_notes(exported: Export) -> None:
    """Prints the notes and warnings about an exported file on standard error."""
    for note in exported.notes:
        click.echo(f"note: {note}", file=sys.stderr)
    for warning in exported.warnings:
        click.echo(f"warning: {warning}", file=sys.stderr)
