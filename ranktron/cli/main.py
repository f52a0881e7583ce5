"""The entry point: finds the command and turns errors into one line and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from ranktron import __version__
from ranktron.errors import RankingWarning, RanktronError

# Each command is in the file of its name.
_COMMANDS = (
    "info",
    "convert",
    "simulate",
    "clicks",
    "train",
    "tune",
    "cv",
    "demo",
    "evaluate",
    "compare",
    "estimate",
    "rank",
    "explain",
    "export",
    "push",
    "verify",
    "sweep",
    "certify",
    "serve",
    "token",
    "compile",
    "ingest",
    "keys",
    "backup",
    "restore",
    "promote",
    "mcp",
)

# What other tools call them; suggested when a command does not exist.
ALIASES = {"predict": "rank", "score": "rank", "fit": "train", "eval": "evaluate", "test": "evaluate"}


class _Commands(click.Group):
    """Imports a command only when it is used, so that heavy imports do not delay the others."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"ranktron.cli.{name}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click; for a command that does not exist, the most similar one is suggested."""
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches  # slow, and only for an error

            near = [ALIASES[name]] if name in ALIASES else get_close_matches(name, _COMMANDS, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise click.UsageError(f"there is no command {name!r}: {meant}`ranktron --help` lists all", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ranktron")
def cli() -> None:
    """Online and large-margin learning to rank: train, evaluate, export and serve rankers.

    Start with `ranktron demo`, or with your own data:

    \b
      ranktron info train.txt
      ranktron train train.txt --valid vali.txt --model my.model
      ranktron evaluate my.model test.txt
    """


def main(arguments: Sequence[str] | None = None, command: click.Command = cli, program: str = "ranktron") -> None:
    """Runs the command line. Exit codes: 0 success, 1 an error in the data or the run, 2 an error in the arguments."""
    _collect_less_garbage()
    try:
        with _print_warnings():
            code = command.main(arguments, prog_name=program, standalone_mode=False)
    except click.UsageError as error:
        where = f" (see {program} {error.ctx.info_name} --help)" if error.ctx and error.ctx.parent else ""
        code = _complain(error.format_message() + where, 2)
    except click.ClickException as error:
        code = _complain(error.format_message(), error.exit_code)
    except RanktronError as error:
        code = _complain(str(error), 1)
    except click.Abort:
        code = _complain("interrupted", 1)
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does: flushing the rest at exit must not raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except MemoryError:
        code = _complain("out of memory: use fewer data, or a .rounds store, which `ranktron convert` writes", 1)
    sys.exit(code if isinstance(code, int) else 0)


def _collect_less_garbage() -> None:
    """Collects garbage a tenth as often, and not at exit.

    It takes a quarter of the time of a short command: the collector scans what was imported.
    """
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)


@contextmanager
def _print_warnings() -> Iterator[None]:
    """Prints each warning of the library once, as one line on standard error."""
    printed: set[str] = set()
    show_other = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
        if not issubclass(category, RankingWarning):
            show_other(message, category, *where, **how)
        elif str(message) not in printed:
            printed.add(str(message))
            click.echo(f"ranktron: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RankingWarning)
        warnings.showwarning = show
        yield


def _complain(message: str, code: int) -> int:
    click.echo(f"ranktron: {' '.join(message.split())}", err=True)
    return code
