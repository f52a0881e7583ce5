"""`ranktron verify`."""

from __future__ import annotations

import json
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
@click.option("--to", type=click.Choice(_ENGINES), required=True, help="What MODEL was exported to.")
@click.option("--index", required=True, help="Index, collection or core with the documents of DATA.")
@click.option("--name", help="Name of the model in the engine.  [default: the name of the file MODEL]")
@click.option("--params", type=DATA, help='JSON file, {"QUERY ID": {"keywords": "..."}}: what the features need.')
@click.option("--key", default="id", show_default=True, help="Field with the ids of documents (Solr).")
@click.option("--queries", default=100, show_default=True, type=click.IntRange(1), help="Queries of DATA to ask for.")
@click.option("--tolerance", default=1e-5, show_default=True, type=click.FloatRange(0.0), help="Of the largest score.")
@click.option("--timeout", default=30.0, show_default=True, type=click.FloatRange(0.1), help="Seconds per request.")
@null_option
@scoring_options
@as_json
def verify(
    model: str, data: str, url: str, to: str, index: str, name: str | None, params: str | None, key: str, queries: int,
    tolerance: float, timeout: float, null: Any, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Compare the scores of a running search engine with those of MODEL, on the documents of DATA.

    DATA has the ids of the documents in the engine, and the features that MODEL sees. The engine scores them with the
    model that was uploaded (for lucene-expression: with the script, which need not be), and only searches. Scores may
    differ by a constant. The exit code is 1 if they differ by more, or if a document is missing. Credentials are read
    from the environment, as for push.

    Example: ranktron verify my.model judged.csv --to elasticsearch --index films --against https://search:9200
    """
    from ranktron.export import asking, export, pushing
    from ranktron.training.model import load

    address = pushing.checked_url(url, "--against")
    loaded = load(model)
    rounds = read_data(data, null, loaded, part="test")[:queries]
    named = name or model_name(model)
    script = None
    if to == "lucene-expression":
        script = json.loads(export(loaded, to, data=rounds).content)["script"]
    found = asking.ask_scores(
        address, to, index, rounds, key=key, name=named, script=script, params=_params(params),
        headers=pushing.credentials(), timeout=timeout,
    )  # fmt: skip
    compared = asking.compare_scores(rounds, loaded.score_rounds(rounds), found, tolerance)
    if as_json:
        print_json({"to": to, "url": address, **compared.as_dict()})
        return 0 if compared.fits else 1
    click.echo(f"{compared.documents:,} documents of {compared.queries:,} queries at {address}")
    click.echo(f"largest difference: {compared.error:.2g} of the largest score; {compared.swapped:,} pairs swapped")
    if compared.fits:
        click.echo("The engine scores as the model does.")
        return 0
    if compared.missing:
        raise DataError(f"the engine did not return {compared.missing:,} documents: are all of them in {index}?")
    raise DataError(
        f"the engine does not score as the model does: {compared.worst}; are the features in the engine those of the "
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
