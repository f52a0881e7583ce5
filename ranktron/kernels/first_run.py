"""Compiles the kernels of a command's first run on several processors.

numba compiles one function at a time in a process, and keeps it in a cache on disk. `first_run.json` lists the kernels
that each algorithm compiles, with the types of their arguments and the kernels that they call. While some are not in
the cache, this process and a few others compile them, callees first; what is missing in the list, or what another
process failed to compile, is compiled where it is used, as ever. The file is written by `python tests/first_run.py`.
A kernel is compiled in another way for those that call it (`kernels/linking.py`): its line then begins with "called".
"""

from __future__ import annotations

import gc
import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import Any

LIST = Path(__file__).with_name("first_run.json")
_PACKAGE = "ranktron"
_CALLED = "called "
_MOST = 4  # processes for one algorithm: more would wait for each other
_WORTH = 8  # kernels for each further process: it takes the time of some to start
_PATIENCE = 60.0  # seconds without any news from other processes


def kernels_to_compile(groups: Iterable[str]) -> dict[str, set[str]]:
    """The kernels of some groups that are not in the cache, each with those of them that it calls.

    Empty if there is no cache to fill, or no second processor.

    Parameters
    ----------
    groups : iterable of str
        Names of algorithms, or "reading" for that of LETOR text.
    """
    listed = json.loads(LIST.read_text())
    roots = [root for group in groups for root in listed["groups"].get(group, ())]
    if _processors() < 2 or all(map(_is_compiled, roots)):
        return {}
    calls: dict[str, set[str]] = {}
    waiting = roots
    while waiting:
        kernel = waiting.pop()
        if kernel not in calls and not _is_compiled(kernel):
            calls[kernel] = {_CALLED + called for called in listed["kernels"].get(kernel.removeprefix(_CALLED), ())}
            waiting += calls[kernel]
    return {kernel: called & calls.keys() for kernel, called in calls.items()}


def compile_together(calls: Mapping[str, set[str]], processes: int | None = None) -> None:
    """Compiles kernels in this process and in others, each after those that it calls.

    Parameters
    ----------
    calls : mapping
        Kernels, each with those that have to be compiled before, as `kernels_to_compile` returns them.
    processes : int, optional
        At most so many, this one included; by default one for each processor, up to 4.
    """
    schedule, workers, threads = _Schedule(calls), [], []
    collects = gc.isenabled()
    gc.disable()  # numba makes millions of small objects, and looking for cycles among them takes a tenth of the time
    path = os.pathsep.join([str(LIST.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        for _ in range(min(processes or min(_processors(), _MOST), 1 + len(calls) // _WORTH) - 1):
            with suppress(OSError):
                workers.append(
                    subprocess.Popen(
                        [sys.executable, "-m", __name__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PYTHONPATH": path},
                    )
                )  # fmt: skip
        threads += [Thread(target=_let_compile, args=(worker, schedule), daemon=True) for worker in workers]
        for thread in threads:
            thread.start()
        while (kernel := schedule.take()) is not None:
            _compile(kernel)
            schedule.finish(kernel)
    finally:
        if collects:
            gc.freeze()  # to look for garbage in what compiling has left would take a twentieth of its time again
            gc.enable()
        schedule.stop()
        for worker in workers:
            worker.kill()
        for thread in threads:
            thread.join()
        for worker in workers:
            with suppress(OSError), worker:  # closes its pipes
                pass


class _Schedule:
    """Kernels that are left, and for each the ones to be compiled before; shared by threads."""

    def __init__(self, calls: Mapping[str, set[str]]) -> None:
        self._before = {kernel: set(called) for kernel, called in calls.items()}
        self._taken: set[str] = set()
        self._news = Condition()
        # Those with the longest chain of callers come first. (`calls` has no cycles: kernels do not call themselves.)
        self._height = dict.fromkeys(calls, 0)
        for _ in calls:
            for kernel, called in calls.items():
                for each in called:
                    self._height[each] = max(self._height[each], self._height[kernel] + 1)

    def take(self) -> str | None:
        """A kernel to compile, as soon as there is one; None if all are compiled."""
        with self._news:
            while self._before:
                ready = [each for each, before in self._before.items() if not before and each not in self._taken]
                if ready:
                    chosen = max(ready, key=self._height.__getitem__)
                    self._taken.add(chosen)
                    return chosen
                if not self._news.wait(_PATIENCE):
                    break
            return None

    def finish(self, kernel: str) -> None:
        with self._news:
            self._before.pop(kernel, None)
            for before in self._before.values():
                before.discard(kernel)
            self._news.notify_all()

    def stop(self) -> None:
        with self._news:
            self._before.clear()
            self._news.notify_all()

    def give_back(self, kernel: str) -> None:
        with self._news:
            self._taken.discard(kernel)
            self._news.notify_all()


def _let_compile(worker: subprocess.Popen[str], schedule: _Schedule) -> None:
    """Has another process compile, until there is nothing left or it has died."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    while (kernel := schedule.take()) is not None:
        try:
            worker.stdin.write(f"{kernel}\n")
            worker.stdin.flush()
            answered = worker.stdout.readline() != ""
        except (OSError, ValueError):
            answered = False
        if not answered:
            schedule.give_back(kernel)
            return
        schedule.finish(kernel)


def _find(kernel: str) -> Any:
    """The function of a line of the list, "kernels.sorting.argsort_top(float64[::1], int64)"; None if there is none."""
    module, _, name = kernel.removeprefix(_CALLED).partition("(")[0].rpartition(".")
    try:
        function = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name, None)
    except ImportError:
        return None
    if not kernel.startswith(_CALLED) or not hasattr(function, "compile"):  # else numba is switched off
        return function
    from ranktron.kernels.linking import callee

    return callee(function)


def _compile(kernel: str) -> None:
    from numba.core import sigutils

    parse: Any = sigutils.normalize_signature
    # Whatever is wrong shows where the kernel is used, with a better message.
    with suppress(Exception):
        _find(kernel).compile(parse(kernel[kernel.index("(") :])[0])


def _is_compiled(kernel: str) -> bool:
    """Whether the cache has code of a kernel that is newer than its source, or cannot have any."""
    function = _find(kernel)
    folder = getattr(getattr(function, "stats", None), "cache_path", None)
    if folder is None:
        return True
    index = Path(folder) / f"{function._cache._impl.filename_base}.nbi"
    with suppress(OSError):
        return index.stat().st_mtime >= os.stat(inspect.getfile(function.py_func)).st_mtime
    return False


def _processors() -> int:
    if not sys.executable or hasattr(sys, "frozen"):
        return 1  # Python inside another program: no process of its own can be started
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _answer() -> None:
    """A process that compiles what it is told to."""
    gc.disable()
    for line in sys.stdin:
        _compile(line.strip())
        print(flush=True)


if __name__ == "__main__":
    _answer()
