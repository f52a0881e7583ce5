"""Options that several commands share, and reading the files they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from warnings import catch_warnings, simplefilter

import click

from ranktron.cli.output import show_activity
from ranktron.data.option_names import FORMATS, IMPUTATIONS, SCALINGS
from ranktron.errors import DataError, RankingWarning
from ranktron.learners.parameters import PRESETS
from ranktron.training.algorithms import ALGORITHMS, TRAINING, algorithm, find_preset

if TYPE_CHECKING:
    from ranktron.data.io.formats import InputFile
    from ranktron.data.rounds import Rounds
    from ranktron.metrics import Metric
    from ranktron.training.fit import TrainingPlan
    from ranktron.training.model import Model

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

DATA = click.Path(exists=True, allow_dash=True)
OUT = click.Path(allow_dash=True)


class _Picture(click.Path):
    """A picture to write; a path that cannot be written is refused before the work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = str(super().convert(value, param, ctx))
        if not path.lower().endswith((".png", ".svg", ".pdf")):
            self.fail(f"{path} must end with .png, .svg or .pdf", param, ctx)
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            self.fail(f"{path} cannot be written: there is no folder {folder}", param, ctx)
        return path


PICTURE = _Picture()
# Keys of click context.
_READING, _REPORTED, _INPUTS, _LOG = "ranktron.reading", "ranktron.reported", "ranktron.inputs", "ranktron.log"
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


def _check_map(_context: click.Context, _option: click.Parameter, text: str | None) -> str | None:
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
    metavar="MAP",
    default=None,
    callback=_check_map,
    help="Feature map, saved with the model: bins:N, bins-linear:N, rff:N, nystroem:N, products:N or leaves:N.",
)

_LONGER = [f"{a.recommended['n_epochs']} for {name}" for name, a in ALGORITHMS.items() if "n_epochs" in a.recommended]
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
    help="Values of parameters, scaling and passes that are not set; paper: as printed, features unscaled.  "
    f"[default: {PRESETS[0]}]",
)

scale_option = click.option(
    "--scale",
    type=click.Choice(SCALINGS),
    default=None,
    help="Feature scaling; auto: within each query (standard-query), over all queries (standard) with a map, or by "
    "their ranges (range) for sparse features.  [default: auto]",
)

null_option = click.option(
    "--null",
    type=click.Choice(["error", "zero", "min", "mean"]),
    default=None,
    help="How to read NULL: as an error, as 0, or as the smallest or mean value of the feature within the query.  "
    "[default: as --nan or the model treats missing values, otherwise error]",
)

nan_option = click.option(
    "--nan",
    type=click.Choice(IMPUTATIONS),
    default=None,
    help="How the model treats missing values (NULL, NaN): refuse them, or replace them by the feature's mean in the "
    "training data, by 0, or by the mean with an additional feature that marks them.  [default: error]",
)


@dataclass(frozen=True)
class AlgorithmOptions:
    """The options that choose and set up an algorithm: --algo, --preset, --set, --epochs, --scale, --map, --nan."""

    algo: str | None
    preset: str | None
    settings: tuple[str, ...]
    epochs: int | None
    scale: str | None
    map: str | None
    nan: str | None

    def plan(self, name: str, settings: tuple[str, ...] | None = None) -> TrainingPlan:
        """The training plan of an algorithm: the values of the options, and of the preset for the others."""
        from ranktron.learners.schedule import Schedule
        from ranktron.training.fit import TrainingPlan

        preset = self.preset or PRESETS[0]
        values = find_preset(name, preset)
        parameters = parse_settings(name, self.settings if settings is None else settings)
        scale = self.scale or values["scale"]
        return TrainingPlan(
            name,
            {**algorithm(name).preset(preset), **parameters},
            Schedule(self.epochs or values["n_epochs"]),
            scaling="auto-lists" if scale == "auto" else scale,
            map=self.map,
            nan=self.nan or "error",
        )


def take_options(kind: type[T], options: dict[str, Any]) -> T:
    """Removes the options that are fields of a dataclass from those of a command, and returns them as the dataclass."""
    return kind(**{field.name: options.pop(field.name) for field in fields(kind)})  # type: ignore[arg-type]


def _store(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Stores an option of `read_data` in the context, so that commands need not pass it on."""
    context.meta.setdefault(_READING, {})[option.name] = value


def _reading_option(*names: str, **settings: Any) -> Callable[[F], F]:
    return click.option(*names, expose_value=False, callback=_store, **settings)


_LABEL = _reading_option("--label", metavar="COLUMN", help="Column with the label.  [default: found by its name]")
_QUERY = _reading_option("--query", metavar="COLUMN", help="Column with the query id.  [default: found by its name]")
_DOC = _reading_option("--doc", metavar="COLUMN", help="Column with the document id.  [default: found by its name]")
_FEATURES = _reading_option("--features", metavar="A,B,...", help="Columns to use as features.  [default: all others]")
_DROP = _reading_option("--drop", metavar="A,B,...", help="Columns to ignore.")
categorical_option = _reading_option(
    "--categorical",
    metavar="auto|A,B,...",
    help="Columns whose values are categories, each of which becomes a feature; auto: columns of text with few "
    "different values. Saved with the model.",
)
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


LOG_COLUMNS = {
    "impression": "Column with the impression: one page, shown once to one user.",
    "position": "Column with the position, from 1.",
    "click": "Column with the click: 1, 0, or any gain.",
    "query": "Column with the query of the impression.",
    "item": "Column with the document.",
    "ranker": "Column with the ranker that showed the page.",
    "exploration": "Column with the probability of showing the document at its position.",
    "propensity": "Column with the probability that a user sees the document there.",
}


def click_log_options(*roles: str) -> Callable[[F], F]:
    """The options of every command that reads a click log: what its columns hold."""

    def store(context: click.Context, option: click.Parameter, value: str | None) -> None:
        context.meta.setdefault(_LOG, {})[option.name] = value

    def decorate(command: F) -> F:
        for role in reversed(roles or LOG_COLUMNS):
            help_text = f"{LOG_COLUMNS[role]}  [default: found by its name]"
            option = click.option(f"--{role}", metavar="COLUMN", expose_value=False, callback=store, help=help_text)
            command = option(command)
        return command

    return decorate


def log_columns() -> dict[str, str]:
    """The columns of a click log that were named on the command line."""
    context = click.get_current_context(silent=True)
    named = {} if context is None else context.meta.get(_LOG, {})
    return {role: name for role, name in named.items() if name is not None}


def log_options() -> dict[str, Any]:
    """The options of `read_click_log` that were set on the command line."""
    options = {name: value for name, value in reading_options().items() if value is not None}
    for name, instead in {"label": "--click", "doc": "--item", "judgments": "--click"}.items():
        if name in options:
            raise click.UsageError(f"--{name} is not of click logs: see {instead}")
    columns = {"query": options["query"]} if "query" in options else {}
    return {name: options[name] for name in ("features", "drop", "format") if name in options} | columns | log_columns()


def read_clicks_as_labels(path: str, null: str | None, like: Model) -> Rounds:
    """Reads a click log whose lists are impressions and whose labels are clicks."""
    from ranktron.data.files import from_standard_input
    from ranktron.data.io import read
    from ranktron.data.io.click_logs import find_log_columns
    from ranktron.data.io.columns import as_columns

    options = log_options()
    chosen = as_columns(None, None, None, options.get("features"), options.get("drop"))
    with show_activity(f"reading {path}"), from_standard_input(path) as source:
        found = find_log_columns(source, needed=("impression", "click"), **options)
        others = [name for role, name in found.items() if role not in ("impression", "click", "item")]
        return read(
            source, label=found["click"], query=found["impression"], doc=found.get("item"), features=chosen.features,
            drop=None if chosen.features else [*chosen.drop, *others], format=options.get("format"),
            null=null or null_for(like), like=like,
        )  # fmt: skip


def log_table_options(command: F) -> F:
    """The options of a command that reads nothing but click logs: columns, features, and the format."""
    return click_log_options()(_FEATURES(_DROP(_INPUT_FORMAT(command))))


def table_options(command: F) -> F:
    """The options of every command that reads data: the roles of columns, and the format."""
    return _LABEL(_QUERY(_DOC(_FEATURES(_DROP(_JUDGMENTS(_INPUT_FORMAT(command)))))))


def scoring_options(command: F) -> F:
    """As `table_options`, for commands that take the features from the model."""
    return _LABEL(_QUERY(_DOC(_DROP(_INPUT_FORMAT(command)))))


def read_data(
    path: str, null: str | None = None, like: Model | Rounds | None = None, part: str | None = None, **changed: Any
) -> Rounds:
    """Reads data, with the features of `like` if it is given.

    Of a folder with train, vali and test files, `part` is read. `changed` options of `read` replace the command's.
    """
    from ranktron.data.io.api import read as read_rounds

    path = _find_part(path, part)
    options = reading_options() | changed
    with show_activity(f"reading {path}"):
        rounds = read_rounds(input_file(path), null=null or null_for(like), like=like, **options)
    _check_data(path, rounds, part)
    return rounds


def read_training_data(path: str, null: str | None = None, like: Model | None = None) -> Rounds:
    """Reads data to learn from; says which columns are what, and refuses data in which there is nothing to learn."""
    from ranktron.cli.data_checks import refuse_uninformative
    from ranktron.data.files import from_standard_input

    path = _find_part(path, "train")
    name = "standard input" if path == "-" else path
    with from_standard_input(path) as source:
        say_columns(name, str(source), like)
        rounds = read_data(str(source), null, like, part="train")
    refuse_uninformative(name, rounds, "there is nothing to learn")
    return rounds


def say_columns(name: str, path: str, like: Model | None = None) -> None:
    """Says which columns of a table are label, query and document; in other formats there is no choice."""
    from ranktron.cli.data_checks import report_columns
    from ranktron.data.io import read_roles

    options = reading_options()
    judgments = options.pop("judgments", None)
    with catch_warnings():
        simplefilter("ignore", RankingWarning)  # reading warns
        roles = read_roles(input_file(path), like=like, labelled=judgments is None, **options)
    if roles is not None:
        report_columns(name, roles, judgments)


def _check_data(path: str, rounds: Rounds, part: str | None) -> None:
    """Warns of what seems to be wrong with data that were read."""
    from ranktron.data.query_warnings import warn_label_features, warn_repeated_documents

    if part != "train":  # training itself warns
        _report_scattered(path, rounds)
        warn_repeated_documents(rounds)
    elif not reading_options().get("features"):  # features that the user named are not questioned
        warn_label_features(rounds.X, rounds.labels, rounds.feature_names or range(1, rounds.n_features + 1))


def _report_scattered(path: str, rounds: Rounds) -> None:
    """Reports once for each file that rows of a query were not adjacent: two concatenated files may share query ids."""
    from ranktron.data.io.grouping import repeated_documents, scattered_queries

    context = click.get_current_context(silent=True)
    reported = set() if context is None else context.meta.setdefault(_REPORTED, set())
    if path in reported:
        return
    reported.add(path)
    scattered = scattered_queries(rounds)
    if scattered:
        repeated = repeated_documents(rounds)
        more = f"; {repeated:,} documents occur more than once: was the file appended to itself?" if repeated else ""
        message = f"the rows of {scattered:,} of {len(rounds):,} queries were not adjacent and have been grouped"
        click.echo(f"{path}: {message}{more}", err=True)


def read_labels(path: str, null: str | None = None, part: str | None = None) -> Rounds:
    """Reads labels, query ids and document ids; the features of a table are left out, whatever they hold."""
    from ranktron.data.io.api import read_labels as read_rounds

    path = _find_part(path, part)
    with show_activity(f"reading {path}"):
        rounds = read_rounds(input_file(path), null=null or "nan", **reading_options())
    _report_scattered(path, rounds)
    return rounds


def read_documents(path: str, null: str | None, model: Model) -> Rounds:
    """Reads data to be scored; labels are optional."""
    from ranktron.data.io import read_documents as read_rounds

    path = _find_part(path, "test")
    with show_activity(f"reading {path}"):
        options = {name: value for name, value in reading_options().items() if name != "judgments"}
        return read_rounds(input_file(path), null=null or null_for(model), like=model, **options)


def input_file(path: str) -> str | InputFile:
    """A file with its format, detected once in a command; the path unchanged if it is no file that can be read."""
    from ranktron.data.io.formats import detect

    context = click.get_current_context(silent=True)
    inputs: dict[str, str | InputFile] = {} if context is None else context.meta.setdefault(_INPUTS, {})
    if path not in inputs:
        inputs[path] = path
        if os.path.isfile(path):
            with suppress(DataError, OSError):  # reading says what is wrong
                inputs[path] = detect(Path(path), reading_options().get("format"))
    return inputs[path]


def null_for(like: Model | Rounds | None, nan: str | None = None) -> str:
    """The default of --null: "nan" for a model that imputes missing values, otherwise an error."""
    imputes = getattr(like, "imputer", None) is not None or (nan or "error") != "error"
    return "nan" if imputes else "error"


def reading_options() -> dict[str, Any]:
    """The options of `ranktron.read` that were set on the command line."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(_READING, {}))


def _find_part(path: str, part: str | None) -> str:
    """The file of one part in a folder with train, vali and test files; any other path unchanged."""
    from ranktron.data.files import fold_parts

    files = fold_parts(path) if path != "-" else {}
    if not files or part is None:
        return path
    if part not in files:
        raise DataError(f"{path}: there is no {part} file in this folder, only {', '.join(map(str, files.values()))}")
    others = ", ".join(str(file) for name, file in files.items() if name != part)
    click.echo(f"{path}: reading {files[part]} (not {others})", err=True)
    return str(files[part])


def keep_inputs(out: str, *inputs: str | None) -> None:
    """Refuses to overwrite an input, to write twice to standard output, or to write to a folder that does not exist."""
    context = click.get_current_context(silent=True)
    if out == "-" and context is not None and context.params.get("as_json"):
        raise click.UsageError("--json and - both write to standard output: name a file to write")
    for path in inputs:
        if path and out != "-" and os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise click.UsageError(f"{out} is an input and would be overwritten: write to another file")
    folder = os.path.dirname(os.path.abspath(out))
    if out != "-" and not os.path.isdir(folder):
        raise DataError(f"{out} cannot be written: there is no folder {folder}")


def parse_settings(name: str, settings: tuple[str, ...], option: str = "--set") -> dict[str, Any]:
    """Parses parameters of an algorithm given as KEY=VALUE, such as eta=0.1."""
    known = {p.name: p for p in algorithm(name).parameters}
    parameters = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in known:
            raise click.UsageError(
                f"{option} {setting}: the parameters of {name} are {', '.join(known)}, given as --set KEY=VALUE"
            )
        try:
            parameters[key] = known[key].parse(value)
        except DataError as error:
            raise click.UsageError(f"{option} {setting}: {error}") from None
    return parameters
