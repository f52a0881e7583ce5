"""Computes cells: on all cores, one thread each, and never twice."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import NamedTuple

from reproduction.harness.cache import CellCache, Kept
from reproduction.harness.experiment import Cell

Watch = Callable[[float], None]
"""Is told the cost of each cell that is done."""

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Failed(NamedTuple):
    """A cell that could not be computed, and why."""

    why: str


class CellJob(NamedTuple):
    """A cell, the key under which it is kept, and the folder of its data."""

    key: str
    cell: Cell
    folder: Path | None


def compute(cell: Cell, folder: Path | None) -> tuple[str, float] | Failed:
    """Computes one cell, here and now: (its result as JSON, seconds of processor time)."""
    module, _, name = cell.function.partition(":")
    where = {} if folder is None else {"folder": str(folder)}
    began = process_time()
    try:
        result = getattr(import_module(module), name)(**cell.arguments, **where, seed=cell.seed)
        return json.dumps(result, allow_nan=False), process_time() - began
    except Exception as error:  # whatever goes wrong in one cell must not take the others with it
        return Failed(f"{name}, seed {cell.seed}: {type(error).__name__}: {' '.join(str(error).split())}")


def run_cells(
    jobs: Iterable[CellJob], store: CellCache, workers: int | Executor | None = None, watch: Watch | None = None
) -> dict[str, Kept | Failed]:
    """Computes what is not kept already, the longest first; what is done stays done when it is interrupted.

    `workers` is the number of processes, by default one for each core that this process may use; with 0 everything is
    computed right here. It may also be an executor that others have made, such as that of a Dask cluster.
    """
    found: dict[str, Kept | Failed] = {}
    missing: dict[str, CellJob] = {}
    for job in jobs:
        if job.key in found or job.key in missing:
            continue
        kept = store.get(job.key)
        if kept is None:
            missing[job.key] = job
        else:
            found[job.key] = kept
            _tell(watch, job.cell)
    ordered = sorted(missing.values(), key=lambda job: -job.cell.cost)
    if isinstance(workers, Executor):
        computed = _by(workers, ordered)
    else:
        computed = _here(ordered) if workers == 0 else _in_processes(ordered, workers)
    for job, outcome in computed:
        found[job.key] = outcome if isinstance(outcome, Failed) else store.put(job.key, job.cell, *outcome)
        _tell(watch, job.cell)
    return found


def _tell(watch: Watch | None, cell: Cell) -> None:
    if watch is not None:
        watch(cell.cost)


Outcomes = Iterator[tuple[CellJob, tuple[str, float] | Failed]]


def _here(jobs: Sequence[CellJob]) -> Outcomes:
    for job in jobs:
        yield job, compute(job.cell, job.folder)


def _by(executor: Executor, jobs: Sequence[CellJob]) -> Outcomes:
    futures = {executor.submit(compute, job.cell, job.folder): job for job in jobs}
    for future in as_completed(futures):
        error = future.exception()  # a process that was killed, for want of memory perhaps
        yield futures[future], future.result() if error is None else Failed(f"a worker ended: {error}")


def _in_processes(jobs: Sequence[CellJob], workers: int | None) -> Outcomes:
    if not jobs:
        return
    before = set(multiprocessing.active_children())
    with _environment(dict.fromkeys(_ONE_THREAD, "1")):
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(workers or _cores(), len(jobs)), context, initializer=_settle_in)
        try:
            yield from _by(pool, jobs)
        except BaseException:
            # Ctrl-C: whoever waits for a cell that takes a minute more would press it again.
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _settle_in() -> None:
    """Ctrl-C reaches all processes of a terminal: the parent alone decides what it means, and takes us along."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()


def _leave_with_the_parent() -> None:
    """A parent that was killed cannot stop its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
