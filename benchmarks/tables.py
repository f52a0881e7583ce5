"""Reading CSV against polars, pandas and pyarrow: from the file to labels, query ids and a matrix of 32-bit numbers.

    python -m benchmarks.tables [DOCUMENTS]

All read the same file by turns, so that they meet the same machine. The time of all processor cores is printed beside
the clock: on a busy machine it is the steadier of the two. Ranktron also checks every value and groups rows by query.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FEATURES, RUNS = 136, 5
NAMES = [f"f{j}" for j in range(FEATURES)]


def generate(path, documents, seed=0):
    rng = np.random.default_rng(seed)
    values = np.round(rng.gamma(0.7, 1.0, (documents, FEATURES)), 6)
    values[rng.random(values.shape) < 0.2] = 0.0
    labels, queries = rng.integers(0, 5, documents), np.sort(rng.integers(0, documents // 100 + 1, documents))
    with open(path, "w") as file:
        file.write(",".join(["label", "qid", *NAMES]) + "\n")
        for label, query, row in zip(labels.tolist(), queries.tolist(), values.tolist(), strict=True):
            file.write(f"{label},q{query}," + ",".join(map(str, row)) + "\n")


def ranktron_reads(path):
    from ranktron import read

    rounds = read(path)
    return rounds.X, rounds.labels


def polars_reads(path):
    import polars

    frame = polars.read_csv(path)
    frame["qid"].to_list()
    return frame.select(NAMES).cast(polars.Float32).to_numpy(order="c"), frame["label"].to_numpy()


def pandas_reads(path):
    import pandas

    frame = pandas.read_csv(path)
    frame["qid"].tolist()
    return frame[NAMES].to_numpy(np.float32), frame["label"].to_numpy()


def pyarrow_reads(path):
    from pyarrow import csv

    table = csv.read_csv(path)
    table["qid"].to_pylist()
    X = np.empty((table.num_rows, FEATURES), np.float32)
    for j, name in enumerate(NAMES):
        X[:, j] = table[name].to_numpy()
    return X, table["label"].to_numpy()


READERS = {"ranktron": ranktron_reads, "polars": polars_reads, "pandas": pandas_reads, "pyarrow": pyarrow_reads}


def measure(path, runs=RUNS):
    """{reader: (least seconds on the clock, least seconds of all cores)}, and a check that all read the same."""
    clock = {name: [] for name in READERS}
    cores = {name: [] for name in READERS}
    first = None
    for _ in range(runs + 1):  # the first one compiles and fills the cache of the disk
        for name, reads in READERS.items():
            began, worked = time.perf_counter(), time.process_time()
            X, labels = reads(path)
            clock[name].append(time.perf_counter() - began)
            cores[name].append(time.process_time() - worked)
            first = (X, labels) if first is None else first
            assert np.array_equal(X, first[0])
            assert np.array_equal(labels, first[1])
    return {name: (min(clock[name][1:]), min(cores[name][1:])) for name in READERS}


def main():
    documents = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        generate(path, documents)
        size = path.stat().st_size / 1e6
        print(f"{documents:,} documents, {FEATURES} features, {size:.0f} MB; best of {RUNS}, by turns")
        found = measure(path)
        for name, (seconds, worked) in found.items():
            ratio = worked / found["ranktron"][1]
            print(
                f"{name:<10} {seconds:6.2f} s on the clock, {worked:6.2f} s of all cores, {ratio:5.2f} times ranktron's"
            )


if __name__ == "__main__":
    main()
