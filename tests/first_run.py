"""Writes ranktron/kernels/first_run.json: what the first run of each algorithm compiles, with an empty cache.

`python tests/first_run.py` takes some minutes; run it after kernels were added, renamed, or given other arguments.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ranktron.kernels.first_run import LIST
from ranktron.training.algorithms import ALGORITHMS


def record(out, arguments):
    """Runs a command and notes every kernel that is compiled: whether from Python, and the kernels that it calls."""
    from numba.core import event

    import ranktron.kernels.jit as jit
    from ranktron.kernels import first_run

    let_call, stack, calls, roots, made = jit._let_kernels_call, [None], {}, set(), []

    def note_calls(kernel):
        let_call(kernel)
        made.append(kernel)
        resolve = kernel.get_call_template

        def template(args, kws):
            found = resolve(args, kws)
            called = line(kernel, found[2])
            if None not in (called, stack[-1]):
                calls.setdefault(stack[-1], set()).add(called)
            return found

        kernel.get_call_template = template

    class Listener(event.Listener):
        def on_start(self, event):
            kernel = event.data["dispatcher"]
            started = line(kernel, event.data["args"]) if kernel.stats.cache_path else None
            if started is not None:
                calls.setdefault(started, set())
                roots.update([started] if stack == [None] else [])
            stack.append(started or stack[-1])

        def on_end(self, event):
            stack.pop()

    jit._let_kernels_call = note_calls  # before any kernel is made
    first_run.compile_together = lambda *_: None  # what other processes compile would not be seen here
    event.register("numba:compile", Listener())
    from ranktron.cli import main

    try:
        main(arguments)
    except SystemExit:
        for kernel in made:  # what came from the cache of an algorithm before
            roots.update(filter(None, (line(kernel, arguments) for arguments in kernel.stats.cache_hits)))
        kernels = {kernel: sorted(called) for kernel, called in calls.items()}
        Path(out).write_text(json.dumps({"roots": sorted(roots), "kernels": kernels}))
        raise


def line(kernel, arguments):
    """A kernel and the types of its arguments, as numba reads them; None if one has no such form."""
    from numba.core.sigutils import normalize_signature

    types = f"({''.join(f'{spell(each)}, ' for each in arguments).removesuffix(' ')})"
    try:
        if normalize_signature(types)[0] != tuple(arguments):
            return None
    except Exception:
        return None
    return f"{kernel.py_func.__module__.removeprefix('ranktron.')}.{kernel.py_func.__name__}{types}"


def spell(type_):
    from numba import types

    if isinstance(type_, types.Array):
        if type_.layout == "C" and type_.mutable:
            return f"{spell(type_.dtype)}[{':, ' * (type_.ndim - 1)}::1]"
        return f"Array({spell(type_.dtype)}, {type_.ndim}, {type_.layout!r}, {not type_.mutable})"
    if type(type_) in (types.Tuple, types.UniTuple):
        return f"Tuple(({''.join(f'{spell(each)}, ' for each in type_)}))"
    return "boolean" if type_ == types.boolean else repr(type_)


def main():
    groups, kernels = {"reading": set()}, {}
    with tempfile.TemporaryDirectory() as made:
        text = Path(made) / "lists.txt"
        command = [sys.executable, "-m", "ranktron", "simulate", "web", text, "--queries", "12"]
        subprocess.run(command, check=True, capture_output=True)
        for name in ALGORITHMS:
            out, model = Path(made) / f"{name}.json", Path(made) / f"{name}.model"
            command = [sys.executable, __file__, out, "train", text, "--algo", name, "--model", model]
            env = {**os.environ, "NUMBA_CACHE_DIR": str(Path(made) / "cache")}
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)
            found = json.loads(out.read_text())
            reading = {root for root in found["roots"] if root.startswith("data.io.")} - {
                called for calls in found["kernels"].values() for called in calls
            }
            groups["reading"] |= reading
            groups[name] = set(found["roots"]) - reading
            for kernel, called in found["kernels"].items():
                kernels[kernel] = sorted({*called, *kernels.get(kernel, ())})
            print(name, len(found["kernels"]), flush=True)
    groups = {name: sorted(roots) for name, roots in groups.items()}
    listed = {"groups": groups, "kernels": dict(sorted(kernels.items()))}
    LIST.write_text(json.dumps(listed, indent=1) + "\n")


if __name__ == "__main__":
    record(sys.argv[1], sys.argv[2:]) if sys.argv[1:] else main()
