"""Reading and writing LETOR text, against XGBoost's own loader: time, and anonymous memory at the peak.

    python benchmarks/reading.py [DIRECTORY]

The large file has 718,727 documents of 136 features in 6,000 lists, the shape of one fold of MSLR-WEB10K: 0.9 GB of
text. The small ones have 60,000 documents, and numbers that are written in different ways.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from ranktron.data import io

DOCUMENTS, QUERIES, FEATURES, DISTINCT = 718_727, 6_000, 136, 4_000
SMALL = 60_000
RUNS = 3
FORMS = {"6 digits": "%.6g", "9 digits": "%.9g", "17 digits": "%.17g", "exponents": "%.6e"}


def generate(path, documents=DOCUMENTS, queries=QUERIES, seed=0):
    """Writes the file: some thousand distinct documents in the scales of real features, under ever new labels."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-2, 4, FEATURES)
    values = rng.gamma(0.7, 1.0, (DISTINCT, FEATURES)) * scales
    values[rng.random(values.shape) < 0.187] = 0.0
    whole = rng.random(FEATURES) < 0.45
    signs = np.where(rng.random(FEATURES) < 0.12, -1, 1)
    tails = [
        " ".join(
            f"{j + 1}:{int(v) if whole[j] or v == 0 else format(signs[j] * v, '.6f').rstrip('0').rstrip('.')}"
            for j, v in enumerate(row)
        ).encode()
        for row in values
    ]
    sizes = rng.multinomial(documents - queries, np.full(queries, 1 / queries)) + 1
    labels = rng.choice(5, documents, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype("S1").tolist()
    which = rng.integers(0, DISTINCT, documents).tolist()
    start = 0
    with open(path, "wb") as file:
        for query, size in enumerate(sizes.tolist()):
            rows = slice(start, start + size)
            lines = [
                b"%s qid:%d %s \n" % (y, query * 15 + 1, tails[k])
                for y, k in zip(labels[rows], which[rows], strict=True)
            ]
            file.write(b"".join(lines))
            start += size


def write_numbers(path, form, documents=SMALL, seed=0):
    """Writes a file whose numbers all have one form, in lists of 120."""
    rng = np.random.default_rng(seed)
    values = rng.gamma(0.7, 1.0, (DISTINCT, FEATURES)) * 10.0 ** rng.uniform(-2, 4, FEATURES)
    values[rng.random(values.shape) < 0.187] = 0.0
    line = " ".join(f"{j + 1}:{form}" for j in range(FEATURES))
    tails = [(line % tuple(row)).encode() for row in values.tolist()]
    which = rng.integers(0, DISTINCT, documents).tolist()
    with open(path, "wb") as file:
        file.writelines(b"%d qid:%d %s\n" % (i % 5, i // 120, tails[k]) for i, k in enumerate(which))


PEAK = """
import sys, threading
from ranktron import io

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

def last(rounds):
    for round in rounds:
        pass
    return round

how = io.read if sys.argv[3] == "read" else lambda path: last(io.stream(path))
how(sys.argv[1])
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
found = how(sys.argv[2])
done.set()
watcher.join()
print(max(peak[0], anonymous()) - before, found.X.nbytes + found.labels.nbytes)
"""


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def row(what, ours, peer, bar, holds):
    ratio = None if peer is None else peer / ours
    return {"what": what, "ours": ours, "peer": peer, "ratio": ratio, "bar": bar, "holds": holds(ratio)}


def by_turns(*calls):
    """The least time of each call, which returns how much it read; by turns, so that all meet the same machine."""
    best = [float("inf")] * len(calls)
    for _ in range(RUNS):
        counts = set()
        for at, call in enumerate(calls):
            took, count = seconds(call)
            best[at] = min(best[at], took)
            counts.add(count)
        assert len(counts) == 1, "they did not read the same"
    return best


def against_xgboost(path):
    import xgboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return by_turns(lambda: len(io.read(path).X), lambda: xgboost.DMatrix(f"{path}?format=libsvm").num_row())


def memory(small, path, how="read"):
    """Anonymous memory at the peak of a read in a process of its own, and the bytes of the arrays."""
    done = subprocess.run([sys.executable, "-c", PEAK, small, path, how], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


def count_lines(path):
    """Decompresses a file."""
    lines = 0
    with gzip.open(path) as file:
        while block := file.read(1 << 22):
            lines += block.count(b"\n")
    return lines


def rows_of_forms(folder):
    """How numbers are written; then compressed, and written again."""
    text, squeezed, again = folder / "numbers.txt", folder / "numbers.txt.gz", folder / "again.txt"
    for form, spelled in reversed(FORMS.items()):  # the last one, of 6 digits, is used below
        write_numbers(text, spelled)
        yield row(
            f"reading {SMALL:,} documents, numbers of {form}: seconds, against XGBoost",
            *against_xgboost(text),
            "at least 3 times faster than XGBoost's loader (ratio >= 3)",
            lambda ratio: ratio >= 3.0,
        )
    with open(text, "rb") as source, gzip.open(squeezed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 22)
    yield row(
        "reading the same, 6 digits, from .gz: seconds, against Python's gzip without parsing",
        *by_turns(lambda: len(io.read(squeezed).X), lambda: count_lines(squeezed)),
        "at most 1.08 times the decompressing (ratio >= 0.925)",
        lambda ratio: ratio >= 0.925,
    )
    rounds = io.read(text)
    (took,) = by_turns(lambda: io.write(rounds, again))
    yield row("writing the same as LETOR text: seconds", took, None, "at most 1 s", lambda _: took <= 1.0)


def rows_in(folder):
    path, small, store = folder / "large.txt", folder / "small.txt", folder / "large.rounds"
    generate(path)
    generate(small, documents=500, queries=10)
    io.read(small)
    size = path.stat().st_size / 1e6
    ours, theirs = against_xgboost(path)
    yield row(
        f"reading {size:.0f} MB of LETOR text: seconds, against XGBoost",
        ours,
        theirs,
        "at least 2.5 times faster than XGBoost's loader (ratio >= 2.5)",
        lambda ratio: ratio >= 2.5,
    )
    if sys.platform == "linux":
        peak, arrays = memory(small, path)
        yield row(
            "anonymous memory at the peak of that: bytes, against the bytes of the arrays",
            peak,
            arrays,
            "at most 1.6 times the arrays (ratio >= 0.625)",
            lambda ratio: ratio >= 1 / 1.6,
        )
    rounds = io.read(path)
    took, _ = seconds(lambda: io.write(rounds, store))
    yield row("writing the store: seconds", took, None, "", lambda _: True)
    took = min(seconds(lambda: io.read(store))[0] for _ in range(RUNS))
    yield row("opening the store: seconds", took, None, "under 0.05", lambda _: took < 0.05)
    assert sum(1 for _ in io.stream(path)) == len(rounds)
    yield row(
        "streaming the text: seconds, against reading it",
        *by_turns(lambda: sum(1 for _ in io.stream(path)), lambda: len(io.read(path))),
        "at most 1.5 times (ratio >= 0.667)",
        lambda ratio: ratio >= 1 / 1.5,
    )
    if sys.platform == "linux":
        peak, _ = memory(small, path, "stream")
        yield row("anonymous memory at the peak of that: bytes", peak, None, "at most 100 MB", lambda _: peak <= 100e6)
    yield from rows_of_forms(folder)


def run(folder=None):
    if folder is not None:
        return list(rows_in(Path(folder)))
    with tempfile.TemporaryDirectory() as made:
        return list(rows_in(Path(made)))


if __name__ == "__main__":
    for result in run(*sys.argv[1:2]):
        beside = "" if result["peer"] is None else f"  peer {result['peer']:.4g}  ratio {result['ratio']:.2f}"
        print(f"{result['what']}: ours {result['ours']:.4g}{beside}  {result['bar']}")
