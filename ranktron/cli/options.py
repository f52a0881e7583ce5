"""What several commands take: their common options, and the files that they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ranktron.cli.output import working
from ranktron.data.choices import IMPUTATIONS
from ranktron.errors import DataError
from ranktron.training.algorithms import algorithm

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.metrics import Metric
    from ranktron.training.model import Model

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(exists=True)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object for machines instead of a table.")


def metrics_option(default: str) -> Callable[[F], F]:
    """The option --metrics: names separated by commas."""

    def parse(_context: click.Context, _option: click.Parameter, text: str) -> list[Metric]:
        from ranktron.metrics import metric

        try:
            return [metric(name) for name in text.split(",") if name.strip()]
        except DataError as error:
            raise click.BadParameter(str(error)) from None

    help_text = "Metrics, separated by commas; a convention may follow a colon, as in ndcg@10:letor."
    return click.option("--metrics", default=default, show_default=True, callback=parse, help=help_text)


def as_metric(_context: click.Context, _option: click.Parameter, text: str) -> Metric:
    """A metric by its name; a name that does not exist is a fault of the command line."""
    from ranktron.metrics import metric

    try:
        return metric(text)
    except DataError as error:
        raise click.BadParameter(str(error)) from None


def _as_recipe(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """The text of a feature map; one that does not exist is a fault of the command line."""
    if text is not None:
        from ranktron.data.maps import as_map

        try:
            as_map(text)
        except DataError as error:
            raise click.BadParameter(str(error)) from None
    return text


map_option = click.option(
    "--map",
    "recipe",
    metavar="MAP",
    default=None,
    callback=_as_recipe,
    help="Feature map, kept in the model: bins:N, bins-linear:N, rff:N, nystroem:N or products:N.",
)

null_option = click.option(
    "--null",
    type=click.Choice(["error", "zero", "min", "mean"]),
    default=None,
    help="What a NULL value in the data stands for.  [default: what --nan says, or the model; otherwise error]",
)

nan_option = click.option(
    "--nan",
    type=click.Choice(IMPUTATIONS),
    default=None,
    help="What stands for a missing value (NULL, NaN), learnt on the training data, kept in the model: the feature's "
    "mean, 0, or the mean and a further feature that says so.  [default: error]",
)


def read(path: str, null: str | None = None, like: Model | Rounds | None = None) -> Rounds:
    """Reads data; with a model or other data, as wide as those and with the same features."""
    from ranktron.data.io import read as read_rounds

    with working(f"reading {path}"):
        return read_rounds(path, null=null or null_for(like), **_features_of(like))


def read_documents(path: str, null: str | None, model: Model) -> Rounds:
    """Reads data to be scored, which need not have labels."""
    from ranktron.data.io import read_documents as read_rounds

    with working(f"reading {path}"):
        return read_rounds(path, null=null or null_for(model), **_features_of(model))


def null_for(like: Model | Rounds | None, nan: str | None = None) -> str:
    """What a NULL is where --null does not say: missing to a model that fills it in, otherwise an error."""
    fills_in = getattr(like, "imputer", None) is not None or (nan or "error") != "error"
    return "nan" if fills_in else "error"


def _features_of(like: Model | Rounds | None) -> dict[str, Any]:
    if like is None:
        return {}
    return {"n_features": like.n_features, "first_index": like.first_index, "feature_names": like.feature_names}


def keep_inputs(out: str, *inputs: str | None) -> None:
    """Refuses to write over a file that is read."""
    for path in inputs:
        if path and os.path.exists(out) and os.path.samefile(out, path):
            raise click.UsageError(f"{out} is an input and would be overwritten: write to another file")


def parse_settings(name: str, settings: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """The parameters of an algorithm that texts like eta=0.1 set."""
    known = {p.name: p for p in algorithm(name).parameters}
    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in known:
            raise click.UsageError(
                f"{option} {setting}: {name} has the parameters {', '.join(known)}, given as --set KEY=VALUE"
            )
        try:
            parameters[key] = known[key].parse(value)
        except DataError as error:
            raise click.UsageError(f"{option} {setting}: {error}") from None
    return parameters
