"""Options that several commands share, and reading the files that they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ranktron.cli.output import show_activity
from ranktron.data.option_names import FORMATS, IMPUTATIONS, SCALINGS
from ranktron.defaults import PRESETS, RECOMMENDED, RENAMED, find_preset
from ranktron.errors import DataError
from ranktron.training.algorithms import TRAINING, algorithm

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.metrics import Metric
    from ranktron.training.model import Model

F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(exists=True, allow_dash=True)
OUT = click.Path(allow_dash=True)


class _Picture(click.Path):
    """A picture to write: what cannot be drawn is refused before the work, not after it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if not path.lower().endswith((".png", ".svg", ".pdf")):
            self.fail(f"{path} must end with .png, .svg or .pdf", param, ctx)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            self.fail(f"{path} cannot be written: there is no folder {folder}", param, ctx)
        return path


PICTURE = _Picture()
_READING, _SAID = "ranktron.reading", "ranktron.said"
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Machine-readable output: one JSON object instead of a table."
)


def metrics_option(default: str) -> Callable[[F], F]:
    """The option --metrics: names separated by commas."""

    def parse(_context: click.Context, _option: click.Parameter, text: str) -> list[Metric]:
        from ranktron.metrics import metric

        try:
            return [metric(name) for name in text.split(",") if name.strip()]
        except DataError as error:
            raise click.BadParameter(str(error)) from None

    help_text = "Comma-separated metrics, each with an optional convention, as in ndcg@10:letor."
    return click.option("--metrics", default=default, show_default=True, callback=parse, help=help_text)


def as_metric(_context: click.Context, _option: click.Parameter, text: str) -> Metric:
    """A metric by its name; an unknown name is a usage error (exit code 2)."""
    from ranktron.metrics import metric

    try:
        return metric(text)
    except DataError as error:
        raise click.BadParameter(str(error)) from None


def _as_recipe(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    """The name of a feature map; an unknown one is a usage error (exit code 2)."""
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
    help="Feature map, saved with the model: bins:N, bins-linear:N, rff:N, nystroem:N, products:N or leaves:N.",
)

_LONGER = [f"{values['n_epochs']} for {name}" for name, values in RECOMMENDED.items() if "n_epochs" in values]
_PASSES = ", ".join([str(TRAINING[0].default), *_LONGER])
epochs_option = click.option(
    "--epochs",
    default=None,
    type=click.IntRange(1),
    help=f"{TRAINING[0].help.capitalize()}.  [default: the preset's, {_PASSES}]",
)

preset_option = click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default=None,
    help="Where parameters, scaling and passes that are not given come from; paper: as printed, features unscaled.  "
    f"[default: {PRESETS[0]}]",
)

scale_option = click.option(
    "--scale",
    type=click.Choice(SCALINGS),
    default=None,
    help="Feature scaling; auto: within each query (standard-query), with a map or sparse features over all queries "
    "(standard).  [default: auto]",
)

null_option = click.option(
    "--null",
    type=click.Choice(["error", "zero", "min", "mean"]),
    default=None,
    help="How to read NULL: as an error, as 0, or as the smallest or mean value of the feature within the query.  "
    "[default: left to --nan or to the model, otherwise error]",
)

nan_option = click.option(
    "--nan",
    type=click.Choice(IMPUTATIONS),
    default=None,
    help="How the model treats missing values (NULL, NaN): refuse them, or replace them by the feature's mean in the "
    "training data, by 0, or by the mean with an additional feature that marks them.  [default: error]",
)


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Stores an option of `read_data` in the context, so that commands need not pass it on."""
    context.meta.setdefault(_READING, {})[option.name] = value


def _reading_option(*names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, callback=_remember, **settings)


_LABEL = _reading_option("--label", metavar="COLUMN", help="Column with the label.  [default: found by its name]")
_QUERY = _reading_option("--query", metavar="COLUMN", help="Column with the query id.  [default: found by its name]")
_DOC = _reading_option("--doc", metavar="COLUMN", help="Column with the document id.  [default: found by its name]")
_FEATURES = _reading_option("--features", metavar="A,B,...", help="Columns to use as features.  [default: all others]")
_DROP = _reading_option("--drop", metavar="A,B,...", help="Columns to ignore.")
_JUDGMENTS = _reading_option(
    "--judgments",
    type=click.Path(exists=True),
    help="File with relevance judgments, used as labels.",
)
_INPUT_FORMAT = _reading_option(
    "--input-format",
    "format",
    type=click.Choice(FORMATS),
    help="Format of the data.  [default: recognised by content and name]",
)
strict_option = _reading_option(
    "--strict", is_flag=True, help="Fail, instead of warning, if the data have fewer or more features than the model."
)


def table_options(command: F) -> F:
    """The options of every command that reads data: the roles of columns, and the format."""
    return _LABEL(_QUERY(_DOC(_FEATURES(_DROP(_JUDGMENTS(_INPUT_FORMAT(command)))))))


def scoring_options(command: F) -> F:
    """The same for commands that take the features from the model and use --features for something else."""
    return _LABEL(_QUERY(_DOC(_DROP(_INPUT_FORMAT(command)))))


def read_data(
    path: str, null: str | None = None, like: Model | Rounds | None = None, part: str | None = None
) -> Rounds:
    """Reads data, with the features of `like` if it is given.

    Of a folder with train, vali and test files, `part` is read.
    """
    from ranktron.data.io import read as read_rounds

    path = _find_part(path, part)
    options = reading_options()
    with show_activity(f"reading {path}"):
        rounds = read_rounds(path, null=null or null_for(like), like=like, **options)
    if part != "train":  # training itself warns
        _say_if_scattered(path, rounds)
    elif not options.get("features"):  # those that were named are never questioned
        from ranktron.data.query_warnings import warn_of_labels

        warn_of_labels(rounds.X, rounds.labels, rounds.feature_names or range(1, rounds.n_features + 1))
    return rounds


def _say_if_scattered(path: str, rounds: Rounds) -> None:
    """Reports that rows of a query were not adjacent: two concatenated files may use one id for different queries."""
    from ranktron.data.io.grouping import repeated_documents, scattered_queries

    context = click.get_current_context(silent=True)
    said = set() if context is None else context.meta.setdefault(_SAID, set())
    if path in said:
        return  # a command reads it once for each model
    said.add(path)
    scattered = scattered_queries(rounds)
    if scattered:
        twice = repeated_documents(rounds)
        more = f"; {twice:,} documents occur more than once: was the file appended to itself?" if twice else ""
        what = f"the rows of {scattered:,} of {len(rounds):,} queries were not adjacent and have been grouped"
        click.echo(f"{path}: {what}{more}", err=True)


def read_documents(path: str, null: str | None, model: Model) -> Rounds:
    """Reads data to be scored; labels are optional."""
    from ranktron.data.io import read_documents as read_rounds

    path = _find_part(path, "test")
    with show_activity(f"reading {path}"):
        options = {name: value for name, value in reading_options().items() if name != "judgments"}
        return read_rounds(path, null=null or null_for(model), like=model, **options)


def null_for(like: Model | Rounds | None, nan: str | None = None) -> str:
    """The default of --null: "nan" for a model that imputes missing values, otherwise an error."""
    fills_in = getattr(like, "imputer", None) is not None or (nan or "error") != "error"
    return "nan" if fills_in else "error"


def reading_options() -> dict[str, Any]:
    """The options of `ranktron.read` that the command line gave."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(_READING, {}))


def _find_part(path: str, part: str | None) -> str:
    """The file of one part in a folder with train, vali and test files; any other path unchanged."""
    from ranktron.data.io.files import fold_parts

    found = fold_parts(path) if path != "-" else {}
    if not found or part is None:
        return path
    if part not in found:
        raise DataError(f"{path}: there is no {part} file in this folder, only {', '.join(map(str, found.values()))}")
    others = ", ".join(str(file) for name, file in found.items() if name != part)
    click.echo(f"{path}: reading {found[part]} (not {others})", err=True)
    return str(found[part])


def keep_inputs(out: str, *inputs: str | None) -> None:
    """Refuses to overwrite an input, to write two things to standard output, or where nothing can be written."""
    context = click.get_current_context(silent=True)
    if out == "-" and context is not None and context.params.get("as_json"):
        raise click.UsageError("--json and - both write to standard output: name a file to write")
    for path in inputs:
        if path and out != "-" and os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise click.UsageError(f"{out} is an input and would be overwritten: write to another file")
    folder = os.path.dirname(os.path.abspath(out))
    if out != "-" and not os.path.isdir(folder):
        raise DataError(f"{out} cannot be written: there is no folder {folder}")


def with_preset(
    name: str, preset: str | None, parameters: dict[str, Any], scale: str | None, epochs: int | None
) -> tuple[dict[str, Any], str | None, int]:
    """Parameters, scaling and number of passes: those that are given, and those that a preset has for the others."""
    word = preset or PRESETS[0]
    values = find_preset(name, word)
    own = {**algorithm(name).preset(word), **parameters}
    scale = scale or values["scale"]
    return own, "auto-lists" if scale == "auto" else scale, epochs or values["n_epochs"]


def parse_settings(name: str, settings: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Parses parameters of an algorithm given as KEY=VALUE, such as eta=0.1."""
    known = {p.name: p for p in algorithm(name).parameters}
    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = RENAMED.get(name, {}).get(key, key)
        if not equals or key not in known:
            raise click.UsageError(
                f"{option} {setting}: the parameters of {name} are {', '.join(known)}, given as --set KEY=VALUE"
            )
        try:
            parameters[key] = known[key].parse(value)
        except DataError as error:
            raise click.UsageError(f"{option} {setting}: {error}") from None
    return parameters
