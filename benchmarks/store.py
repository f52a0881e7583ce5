"""The store in one process, lists of 100 documents x 50 features, clicks (`pdgd`), beside the learner and SQLite alone.

The learner's own time is that of `rank` without a store. A commit is one row of as many bytes as a ranking and its
feedback take, in a database of its own in the same folder, flushed as ours is. Wall time, medians, unless it says
processor time; a busy machine counts the other way round for short times, so trust the ratios.
"""

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import ranktron

DOCUMENTS, FEATURES = 100, 50
NAMES = [f"f{j}" for j in range(FEATURES)]
IDS = [f"d{i}" for i in range(DOCUMENTS)]
FEEDBACKS = 100_000  # behind the snapshot of which a store is opened

OPEN = """
import sys, time
import ranktron.store.store
began = time.process_time()
with ranktron.open(sys.argv[1]) as store:
    took = time.process_time() - began
    print(took, store.ranker("shop").version)
"""
FIRST = """
import sys
import ranktron
with ranktron.open(sys.argv[1]) as store:
    shop = store.ranker("shop", features=["a", "b"])
    shop.feedback(shop.rank({"x": [1.0, 2.0], "y": [2.0, 1.0]}).id, clicked=["x"])
"""


def row(what, ours, peer, bar, holds, ratio=None):
    ratio = (peer / ours if peer else None) if ratio is None else ratio
    return {"what": what, "ours": ours, "peer": peer, "ratio": ratio, "bar": bar, "holds": holds}


def times(act, arguments):
    """Seconds of each call."""
    took = []
    for argument in arguments:
        began = time.perf_counter()
        act(argument)
        took.append(time.perf_counter() - began)
    return took


class Peer:
    """SQLite alone, set up as the store has it."""

    def __init__(self, folder):
        self.connection = sqlite3.connect(folder / "peer.sqlite", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE rows (key INTEGER PRIMARY KEY, body BLOB NOT NULL)")

    def commit(self, body):
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("INSERT INTO rows (body) VALUES (?)", (body,))
        self.connection.execute("COMMIT")


def ranked(folder):
    rng = np.random.default_rng(0)
    lists = [rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32) for _ in range(100)]
    by_name = [{id: dict(zip(NAMES, x, strict=True)) for id, x in zip(IDS, X.tolist(), strict=True)} for X in lists]
    with ranktron.open(folder / "shop", durability="batch") as store:
        shop = store.ranker("shop", features=NAMES, scale="none")
        learner, turns = shop.model.learner(), range(2_000)
        shop.feedback(shop.rank(lists[0], IDS).id, clicked=IDS[:0])
        own = statistics.median(times(lambda i: learner.rank(lists[i % 100], i), turns))
        took = statistics.median(times(lambda i: shop.rank(lists[i % 100], IDS), turns))
        more = took - own
        yield row("rank an array: seconds, beside the learner's own", took, own, "at most 60e-6 more", more <= 60e-6)
        dicts = statistics.median(times(lambda i: shop.rank(by_name[i % 100]), range(300)))
        yield row("rank dicts by name: seconds, beside the learner's own", dicts, own, "", None)
        shown = [shop.rank(lists[i % 100], IDS) for i in turns]
        store.flush()
        batch = statistics.median(times(lambda ranking: shop.feedback(ranking.id, clicked=ranking.items[:1]), shown))
        yield row("feedback, durability batch: seconds", batch, None, "at most 100e-6", batch <= 100e-6)


def on_disk(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32)
    with ranktron.open(folder / "disk") as store:
        shop = store.ranker("shop", features=NAMES, scale="none")

        def learn(_number):
            ranking = shop.rank(X, IDS)
            began = time.perf_counter()
            shop.feedback(ranking.id, clicked=IDS[:0])
            return time.perf_counter() - began

        learn(0)
        journal, alone = store._engine.journal, Peer(folder)
        size = sum(journal.look_up(f"SELECT avg(length(body)) FROM {table}")[0][0] for table in ("rounds", "entries"))
        pairs = [(learn(number), times(alone.commit, [bytes(int(size))])[0]) for number in range(600)]  # by turns
        alone.connection.close()
        ours, peers = zip(*pairs[100:], strict=True)
        took, peer = statistics.median(ours), statistics.median(peers)
        yield row(
            "feedback on disk: seconds, beside one SQLite commit", took, peer, "at most twice", took <= 2.0 * peer
        )
        before, began, turns = journal._commits, time.perf_counter(), 50

        def work():
            for _ in range(turns):
                shop.feedback(shop.rank(X, IDS).id, clicked=IDS[:0])

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        each = (time.perf_counter() - began) / (8 * turns)
        shared = 8 * turns / (journal._commits - before)
        yield row("eight threads rank and give feedback: feedbacks a commit", shared, 1.0, "shared", shared > 1, shared)
        yield row("eight threads: seconds a ranking with its feedback, beside one SQLite commit", each, peer, "", None)


def opened(folder, count=FEEDBACKS):
    rng = np.random.default_rng(0)
    lists = rng.normal(size=(50, 20, 10)).astype(np.float32)
    with ranktron.open(folder / "large", durability="batch") as store:
        shop = store.ranker("shop", features=NAMES[:10], scale="none")
        for number in range(count):
            ranking = shop.rank(lists[number % 50], IDS[:20])
            while True:
                try:
                    shop.feedback(ranking.id, clicked=ranking.items[:1])
                    break
                except ranktron.store.RequestError:  # too many wait for the disk
                    store.flush()
    told = [run_python(OPEN, folder / "large").split() for _ in range(3)]
    assert {version for _, version in told} == {str(count)}
    took = min(float(seconds) for seconds, _ in told)
    yield row(
        f"open with a snapshot of {count:,} feedbacks: seconds of processor time",
        took,
        None,
        "at most 1",
        took <= 1.0,
    )


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def first(folder):
    run_python(FIRST, folder / "warm")  # compiles
    ours = times(lambda number: run_python(FIRST, folder / f"first{number}"), range(5))
    peers = times(lambda number: run_python("import numba"), range(5))
    took = min(ours)
    yield row(
        "import, open, first feedback, all compiled: seconds, beside `import numba`",
        took,
        min(peers),
        "at most .5",
        took <= 0.5,
    )


def run():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        return [result for part in (ranked, on_disk, first, opened) for result in part(folder)]


if __name__ == "__main__":
    for result in run():
        print(f"{result['what']}: {result['ours']:.6g} (peer {result['peer'] or 0:.6g})  {result['bar']}")
