"""`ranktron compile`."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, print_table, show_activity
from ranktron.errors import RanktronError
from ranktron.processes import process_environment, ranktron_command
from ranktron.training.algorithms import ALGORITHMS


@click.command()
@click.option(
    "--algo",
    "algorithms",
    multiple=True,
    type=click.Choice(list(ALGORITHMS)),
    help="An algorithm to compile.  [default: all of them]",
)
@click.option("--service", is_flag=True, help="The service as well.  [default: if no --algo is given]")
@click.option("--jobs", type=click.IntRange(1), help="Parallel processes.  [default: one per processor]")
@as_json
def compile(algorithms: tuple[str, ...], service: bool, jobs: int | None, as_json: bool) -> None:
    """Compile what first runs would compile, for example in a container image.

    Reads, trains and evaluates on a few small lists, each algorithm in a process of its own, and makes a ranking of the
    service. The compiled code is stored beside the package, or in a folder of the user if that cannot be written.

    Example: ranktron compile --algo hinge --algo topk
    """
    started = time.perf_counter()
    chosen, jobs = algorithms or tuple(ALGORITHMS), jobs or os.cpu_count() or 1
    with TemporaryDirectory() as folder, show_activity(f"compiling {', '.join(chosen)}"):
        with ThreadPoolExecutor(jobs) as pool:
            running = {name: pool.submit(_seconds, _run, task) for name, task in _tasks(chosen, Path(folder))}
            if service or (not algorithms and find_spec("uvicorn") is not None):
                from ranktron.service.listening import compile_kernels

                running["service"] = pool.submit(_seconds, compile_kernels)
        seconds = {name: task.result() for name, task in running.items()}
    total = time.perf_counter() - started
    if as_json:
        print_json({"seconds": total, "tasks": seconds})
        return
    rows = [(name, f"{each:.1f}") for name, each in seconds.items()]
    print_table(f"compiled in {total:.1f} s", ["what", "seconds"], rows)


def _tasks(algorithms: Sequence[str], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Commands as a user would give them."""
    from ranktron.data.io import write
    from ranktron.data.synthetic import Separable

    lists = Separable(features=5).rounds(12)
    text, store = folder / "lists.txt", folder / "lists.rounds"
    write(lists, text)
    write(lists, store)
    yield "reading", ["info", str(text)]
    for name in algorithms:
        # Only the first task reads text, so that the others do not compile the reader.
        yield name, ["train", str(store), "--algo", name, "--model", str(folder / f"{name}.model")]


def _run(arguments: Sequence[str]) -> None:
    command = ranktron_command(*arguments)
    done = subprocess.run(command, capture_output=True, text=True, env=process_environment())
    if done.returncode:
        raise RanktronError(f"ranktron {' '.join(arguments)}: {done.stderr.strip()}")


def _seconds(function: Callable[..., None], *arguments: Any) -> float:
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started
