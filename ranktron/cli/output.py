"""What commands print: tables, machine-readable JSON, and progress on terminals."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click


def print_json(content: Mapping[str, Any]) -> None:
    """Prints one JSON object on standard output, with numbers at full precision."""
    click.echo(json.dumps(content, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], out: str | None = None) -> None:
    """Prints a table; on standard error if `out` says that a file goes to standard output."""
    from rich.console import Console

    Console(highlight=False, stderr=out == "-").print(table(title, columns, rows))


def print_written(out: str, message: str) -> None:
    """Reports a written file; on standard error if the file itself went to standard output."""
    click.echo(f"{'standard output' if out == '-' else out}: {message}", err=out == "-")


def print_widest(tables: Sequence[Any], out: str | None = None) -> None:
    """Prints the first of several versions of a table, from wide to narrow, that fits the terminal; else the last.

    It goes to standard error if `out` says that a file goes to standard output.
    """
    from rich.console import Console

    console = Console(highlight=False, stderr=out == "-")
    free = console.options.update(width=1000)
    fitting = (each for each in tables if console.measure(each, options=free).maximum <= console.width)
    console.print(next(fitting, tables[-1]))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Any:
    """A table to be printed or shown live: text is left-aligned, numbers are right-aligned."""
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
def show_activity(what: str) -> Iterator[None]:
    """Shows a spinner on a terminal, for work whose progress cannot be counted."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


def compile_on_first_run(groups: Iterable[str]) -> bool:
    """Compiles the kernels of algorithms, or of "reading", on all processors; False if they were compiled already."""
    from ranktron.kernels.first_run import compile_together, kernels_to_compile

    missing = kernels_to_compile(groups)
    if missing:
        with show_activity(f"compiling {len(missing)} functions, on the first run only"):
            compile_together(missing)
    return bool(missing)


@contextmanager
def show_log() -> Iterator[None]:
    """Shows the library's log messages on standard error, such as the memory that a solver will need."""

    class Echo(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            click.echo(record.getMessage(), err=True)

    log, echo = logging.getLogger("ranktron"), Echo()
    level = log.level
    log.addHandler(echo)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(echo)
        log.setLevel(level)


@contextmanager
def show_progress(what: str, total: int) -> Iterator[Callable[..., None] | None]:
    """Shows a progress bar on a terminal: yields a function of the number of steps and a text to show; else None."""
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
        done = shown = 0

        def step(count: int = 1, now: str = "") -> None:
            nonlocal done, shown
            done += count
            if now:
                progress.update(task, description=f"{what}: {now}")
            if done - shown >= every:
                shown = done
                progress.update(task, completed=done)

        yield step
