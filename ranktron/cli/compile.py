"""`ranktron compile`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, print_table, show_activity
from ranktron.errors import RanktronError
from ranktron.kernels.first_run import compile_together, kernels_to_compile
from ranktron.training.algorithms import ALGORITHMS


@click.command()
@click.option(
    "--algo",
    "algorithms",
    multiple=True,
    type=click.Choice(list(ALGORITHMS)),
    help="An algorithm.  [default: all of them]",
)
@click.option("--service", is_flag=True, help="What the service needs, too.  [default: if no --algo is given]")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes that compile at the same time.  [default: one per processor]"
)
@as_json
def compile(algorithms: tuple[str, ...], service: bool, jobs: int | None, as_json: bool) -> None:
    """Compile now what the first runs would compile: for images, CI, and those who do not like to wait.

    Reading, training and evaluating are tried on a few small lists, each algorithm in a process of its own, and so is
    a ranking of the service; the compiled code is kept beside the package, or in a folder of the user where that cannot
    be written.

    Example: ranktron compile --algo hinge --algo topk
    """
    started = time.perf_counter()
    chosen, jobs = algorithms or tuple(ALGORITHMS), jobs or os.cpu_count() or 1
    with TemporaryDirectory() as folder, show_activity(f"compiling {', '.join(chosen)}"):
        compile_together(kernels_to_compile(["reading", *chosen]), jobs)
        tasks = list(_tasks(chosen, Path(folder)))
        if service or (not algorithms and find_spec("uvicorn") is not None):
            code = "from ranktron.service.http.listening import compile_kernels as run; run()"
            tasks.append(("service", ["-c", code]))
        with ThreadPoolExecutor(jobs) as pool:
            seconds = dict(zip((name for name, _ in tasks), pool.map(_run, (task for _, task in tasks)), strict=True))
    total = time.perf_counter() - started
    if as_json:
        print_json({"seconds": total, "tasks": seconds})
        return
    rows = [(name, f"{each:.1f}") for name, each in seconds.items()]
    print_table(f"compiled in {total:.1f} s", ["what", "seconds"], rows)


def _tasks(algorithms: Sequence[str], folder: Path) -> Iterator[tuple[str, list[str]]]:
    """What Python is to run: commands as a user would give them."""
    from ranktron.data.io import write
    from ranktron.data.synthetic import Separable

    lists = Separable(features=5).rounds(12)
    text, store = folder / "lists.txt", folder / "lists.rounds"
    write(lists, text)
    write(lists, store)
    command = ["-m", "ranktron"]
    yield "reading", [*command, "info", str(text)]
    for name in algorithms:
        # The text is left to the first task: whoever reads the store compiles no reader.
        yield name, [*command, "train", str(store), "--algo", name, "--model", str(folder / f"{name}.model")]


def _run(arguments: Sequence[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RanktronError(f"python {' '.join(arguments)}: {done.stderr.strip()}")
    return time.perf_counter() - started
