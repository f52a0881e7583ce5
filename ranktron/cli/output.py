"""What commands share: options, tables, JSON, progress."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.metrics import Metric
    from ranktron.training.model import Model
    from ranktron.data.rounds import Rounds

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
    default="error",
    show_default=True,
    help="What a NULL value in the data stands for.",
)


def read(path: str, null: str = "error", like: Model | Rounds | None = None) -> Rounds:
    """Reads data; with a model or other data, as wide as those and with the same features."""
    from ranktron.data.io import read as read_rounds

    with working(f"reading {path}"):
        return read_rounds(path, null=null, **_features_of(like))


def read_documents(path: str, null: str, model: Model) -> Rounds:
    """Reads data to be scored, which need not have labels."""
    from ranktron.data.io import read_documents as read_rounds

    with working(f"reading {path}"):
        return read_rounds(path, null=null, **_features_of(model))


def _features_of(like: Model | Rounds | None) -> dict[str, Any]:
    if like is None:
        return {}
    return {"n_features": like.n_features, "first_index": like.first_index, "feature_names": like.feature_names}


def keep_inputs(out: str, *inputs: str | None) -> None:
    """Refuses to write over a file that is read."""
    for path in inputs:
        if path and os.path.exists(out) and os.path.samefile(out, path):
            raise click.UsageError(f"{out} is an input and would be overwritten: write to another file")


def print_json(content: Mapping[str, Any]) -> None:
    """One JSON object on standard output, numbers to full precision."""
    click.echo(json.dumps(content, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table for eyes: text to the left, numbers to the right."""
    from rich.console import Console

    Console(highlight=False).print(table(title, columns, rows))


def print_widest(tables: Sequence[Any]) -> None:
    """Prints the first of several forms of a table, wide to narrow, that fits; the last one where none does."""
    from rich.console import Console

    console = Console(highlight=False)
    free = console.options.update(width=1000)
    fitting = (each for each in tables if console.measure(each, options=free).maximum <= console.width)
    console.print(next(fitting, tables[-1]))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """A table that can be printed or shown live."""
    from rich import box
    from rich.table import Table

    cells = [[cell if isinstance(cell, str) else _number(cell) for cell in row] for row in rows]
    shown = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    shown.show_header = any(columns)
    for j, name in enumerate(columns):
        is_text = all(_is_text(row[j]) for row in cells)
        shown.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for row in cells:
        shown.add_row(*row)
    return shown


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)


def _is_text(cell: str) -> bool:
    return cell.strip("+-±–,. %0123456789()×e") != ""


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows on a terminal that something is going on that cannot be counted."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def statements() -> Iterator[None]:
    """Shows on standard error what a run states about itself before it begins, such as the memory it will take."""

    class Echo(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(record.getMessage(), err=True)

    log, echo = logging.getLogger("ranktron"), Echo()
    before = log.level
    log.addHandler(echo)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(echo)
        log.setLevel(before)


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None] | None]:
    """A progress bar on a terminal: yields a function to call at each step, None where nobody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=total)
        every = max(1, total // 500)
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            if done % every == 0:
                progress.update(task, completed=done)

        yield step
