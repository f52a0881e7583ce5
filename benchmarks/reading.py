"""Reading LETOR text against XGBoost's own loader: time, and anonymous memory at the peak.

    python benchmarks/reading.py [DIRECTORY]

The file has 718,727 documents of 136 features in 6,000 lists, the shape of one fold of MSLR-WEB10K: 0.9 GB of text.
"""

import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from ranktron.data import io

DOCUMENTS, QUERIES, FEATURES, DISTINCT = 718_727, 6_000, 136, 4_000
RUNS = 3


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


PEAK = """
import sys, threading
from ranktron import io

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

io.read(sys.argv[1])
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
rounds = io.read(sys.argv[2])
done.set()
watcher.join()
print(max(peak[0], anonymous()) - before, rounds.X.nbytes + rounds.labels.nbytes + rounds.offsets.nbytes)
"""


def seconds(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def row(what, ours, peer, bar, holds):
    ratio = None if peer is None else peer / ours
    return {"what": what, "ours": ours, "peer": peer, "ratio": ratio, "bar": bar, "holds": holds(ratio)}


def against_xgboost(path):
    """Reads by turns, so that both meet the same machine; the best time of each."""
    import xgboost

    ours, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(RUNS):
            took, rounds = seconds(lambda: io.read(path))
            ours.append(took)
            shape = rounds.X.shape
            del rounds
            took, matrix = seconds(lambda: xgboost.DMatrix(f"{path}?format=libsvm"))
            theirs.append(took)
            assert matrix.num_row() == shape[0]
            del matrix
    return min(ours), min(theirs)


def memory(small, path):
    """Anonymous memory at the peak of a read in a process of its own, and the bytes of the arrays."""
    done = subprocess.run([sys.executable, "-c", PEAK, small, path], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


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
    took, count = seconds(lambda: sum(1 for _ in io.stream(path)))
    assert count == len(rounds)
    yield row("streaming the text: seconds", took, None, "", lambda _: True)


def run(folder=None):
    if folder is not None:
        return list(rows_in(Path(folder)))
    with tempfile.TemporaryDirectory() as made:
        return list(rows_in(Path(made)))


if __name__ == "__main__":
    for result in run(*sys.argv[1:2]):
        beside = "" if result["peer"] is None else f"  peer {result['peer']:.4g}  ratio {result['ratio']:.2f}"
        print(f"{result['what']}: ours {result['ours']:.4g}{beside}  {result['bar']}")
