"""What a user waits for at the command line: the first command after installation, each further algorithm, and again.

63 simulated lists of 152 documents with 45 features, as a fold of OHSUMED has. Seconds on the clock, of whole programs
with an empty cache of compiled kernels, and then with that of the commands before. The peer is the time that Python
takes to import numba and scipy, which every command that trains has to do. Kernels are compiled in one process: this is
simple, and takes the first command twice as long as several processes did.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ranktron.data import io
from ranktron.data.synthetic import WebSearch

FIRST, FURTHER, AGAIN = 7.0, 3.0, 0.8


def seconds(command, cache):
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
    return time.perf_counter() - began


def row(what, took, imports, goal=None):
    bar = "" if goal is None else f"at most {goal:g} s"
    holds = None if goal is None else took <= goal
    return {
        "what": f"{what}: seconds", "ours": took, "peer": imports, "ratio": imports / took, "bar": bar, "holds": holds,
    }  # fmt: skip


def rows_in(folder):
    ranktron, cache = [sys.executable, "-m", "ranktron"], folder / "cache"
    lists = WebSearch(documents=152, features=45).rounds(63)
    text, csv, store, large = (folder / name for name in ("lists.txt", "lists.csv", "lists.rounds", "large.txt"))
    for path in (text, csv, store):
        io.write(lists, path)
    io.write(WebSearch(documents=152, features=45).rounds(200), large)
    model = ["--model", str(folder / "my.model")]
    imports = min(seconds([sys.executable, "-c", "import numba, scipy.sparse"], cache) for _ in range(3))
    yield row(
        "train --algo hinge, nothing compiled", seconds([*ranktron, "train", text, *model], cache), imports, FIRST
    )
    for name in ("slam", "minimax", "topk", "rankmm", "predtron", "rankboost"):
        took = seconds([*ranktron, "train", text, "--algo", name, *model], cache)
        yield row(f"train --algo {name}, after that", took, imports, FURTHER)
    took = seconds([*ranktron, "train", store, *model], cache)
    yield row("train from a store, after that", took, imports, FURTHER)
    firsts = {
        "train from CSV": ["train", csv, *model],
        "evaluate": ["evaluate", folder / "my.model", text],
        "cv": ["cv", text],
        "sweep": ["sweep", text, "--set", "eta=0.1,1"],
    }
    for number, (what, command) in enumerate(firsts.items()):
        took = seconds([*ranktron, *command], folder / f"cache{number}")
        yield row(f"{what}, nothing compiled", took, imports, FIRST)
    again = {
        "train --algo hinge, again": ["train", text, *model],
        "evaluate, again": ["evaluate", folder / "my.model", text],
        "info on 10 MB of text, again": ["info", large],
        "--help": ["--help"],
    }
    for what, command in again.items():
        took = min(seconds([*ranktron, *command], cache) for _ in range(4))
        yield row(what, took, imports, AGAIN)


def run():
    with tempfile.TemporaryDirectory() as made:
        return list(rows_in(Path(made)))


if __name__ == "__main__":
    for result in run():
        print(f"{result['what']}: {result['ours']:.2f} (imports {result['peer']:.2f})  {result['bar']}")
