"""`ranktron verify`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ranktron.cli.export import model_name
from ranktron.cli.options import DATA, as_json, null_option, read_data, scoring_options
from ranktron.cli.output import print_json
from ranktron.errors import DataError

_ENGINES = ("elasticsearch", "opensearch", "solr", "lucene-expression")


@click.command()
@click.argument("model", type=DATA)
@click.argument("data", type=DATA)
@click.option("--against", "url", metavar="URL", required=True, help="Address of the engine.")
@click.option("--to", type=click.Choice(_ENGINES), required=True, help="Engine that MODEL was exported to.")
@click.option("--index", required=True, help="Index, collection or core with the documents of DATA.")
@click.option("--name", help="Name of the model in the engine.  [default: the name of the file MODEL]")
@click.option(
    "--params", type=DATA, help='JSON file with the parameters of the features: {"QUERY ID": {"keywords": "..."}}.'
)
@click.option("--key", default="id", show_default=True, help="Field with the document ids (Solr).")
@click.option(
    "--queries", default=100, show_default=True, type=click.IntRange(1), help="Number of queries of DATA to check."
)
@click.option(
    "--tolerance",
    default=1e-5,
    show_default=True,
    type=click.FloatRange(0.0),
    help="Largest difference, as a share of the largest score.",
)
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1), help="Seconds per request.")
@null_option
@scoring_options
@as_json
def verify(**options: Any) -> int:
    """Compare the scores of a running search engine with those of MODEL, on the documents of DATA.

    DATA has the ids of the documents in the engine, and the features of MODEL. The engine scores them with the uploaded
    model (for lucene-expression with the script, which is sent along); nothing in it is changed. Scores may differ by a
    constant. The exit code is 1 if they differ by more, or if a document is missing. Credentials are read from the
    environment, as for push.

    Example: ranktron verify my.model judged.csv --to elasticsearch --index films --against https://search:9200
    """
    return _verify(VerifyOptions(**options))


@dataclass(frozen=True)
class VerifyOptions:
    """The options of `ranktron verify`."""

    model: str
    data: str
    url: str
    to: str
    index: str
    name: str | None
    params: str | None
    key: str
    queries: int
    tolerance: float
    timeout: float
    null: str | None
    as_json: bool


def _verify(options: VerifyOptions) -> int:
    """Asks the engine for its scores and reports the differences; returns the exit code."""
    from ranktron.export import asking, export, pushing
    from ranktron.training.model import load

    to, index = options.to, options.index
    address = pushing.checked_url(options.url, "--against")
    model = load(options.model)
    rounds = read_data(options.data, options.null, model, part="test")[: options.queries]
    script = None
    if to == "lucene-expression":
        script = json.loads(export(model, to, data=rounds).content)["script"]
    scores = asking.ask_scores(
        address, to, index, rounds, key=options.key, name=options.name or model_name(options.model), script=script,
        params=_params(options.params), headers=pushing.credentials(), timeout=options.timeout,
    )  # fmt: skip
    comparison = asking.compare_scores(rounds, model.score_rounds(rounds), scores, options.tolerance)
    if options.as_json:
        print_json({"to": to, "url": address, **comparison.as_dict()})
        return 0 if comparison.fits else 1
    click.echo(f"{comparison.documents:,} documents of {comparison.queries:,} queries at {address}")
    difference = f"largest difference: {comparison.error:.2g} of the largest score"
    click.echo(f"{difference}; {comparison.swapped:,} pairs swapped")
    if comparison.fits:
        click.echo("The engine scores as the model does.")
        return 0
    if comparison.missing:
        raise DataError(f"the engine did not return {comparison.missing:,} documents: are all of them in {index}?")
    raise DataError(
        f"the engine does not score as the model does: {comparison.worst}; are the features in the engine those of the "
        "data, and the model the one that was uploaded?"
    )


def _params(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the parameters in {path}: {error}") from None
    if not isinstance(content, dict) or not all(isinstance(value, dict) for value in content.values()):
        raise DataError(f'{path} must hold {{"QUERY ID": {{"keywords": "..."}}, ...}}')
    return content
