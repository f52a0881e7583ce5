"""How time and memory grow: with queries, documents, features, grades, k, the budget, and along a stream.

    python -m benchmarks.growth [--quick]

Processor time of one thread, the least of three, of `play` with NDCG@10 every round. The exponent b of time ~ size^b is
fitted to the upper half of the sizes, where what does not grow counts least. It writes docs/growth.md and a picture.
"""

import argparse
import gc
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import feedback
from ranktron.learners.loop import play
from ranktron.metrics import metric
from ranktron.training.algorithms import algorithm

DOCS = Path(__file__).parent.parent / "docs"
NDCG = metric("ndcg@10")
ONLINE = ("slam", "minimax", "listnet", "hinge", "pairwise", "topk", "pdgd", "predtron")
ENTRIES = 50
QUADRATIC = {"pairwise": 3_000, "predtron": 3_000}
"""The longest lists for learners that look at every pair of documents: the step of their paper is made of pairs."""


def make_lists(queries, documents, features, grades=5, seed=0):
    """Lists of one length, whose labels follow a linear function with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * documents, features)).astype(np.float32)
    scores = X[:, :10].sum(axis=1) + rng.normal(size=len(X))
    labels = np.searchsorted(np.quantile(scores, np.arange(1, grades) / grades), scores).astype(float)
    return Rounds.from_arrays(X, labels, qid=np.repeat(np.arange(queries), documents))


def make_sparse(queries, documents, features, seed=0):
    """The same with some entries a row, in however many columns."""
    rng = np.random.default_rng(seed)
    n = queries * documents
    columns = np.sort(rng.integers(0, features, (n, ENTRIES)), axis=1).astype(np.int32)
    values = rng.normal(size=n * ENTRIES).astype(np.float32)
    X = Sparse(np.arange(0, n * ENTRIES + 1, ENTRIES), columns.ravel(), values, features)
    labels = rng.integers(0, 5, n).astype(float)
    offsets = np.arange(0, n + 1, documents)
    return Rounds(X, labels, offsets, np.arange(queries))


def heard_by(learner):
    """The labels that a learner asks for."""
    return feedback.top(learner.k) if hasattr(learner, "k") else feedback.full


def measure(name, lists, repeats=3, **parameters):
    """Seconds of a round, and the largest number of bytes that a pass had allocated at once."""
    make = algorithm(name)

    def one_pass(some):
        learner = make.learner(lists.n_features, make.complete(parameters))
        for _ in play(learner, some, heard_by(learner), [NDCG]):
            pass

    one_pass(lists[:1])
    times = []
    for _ in range(repeats):
        gc.collect()
        began = time.process_time()
        one_pass(lists)
        times.append(time.process_time() - began)
    tracemalloc.start()
    one_pass(lists)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(times) / len(lists), peak


def sizes(least, most, count):
    return [int(size) for size in np.unique(np.round(np.geomspace(least, most, count)))]


def exponent(points):
    """The slope of log(seconds) against log(size) over the upper half of the sizes."""
    upper = points[len(points) // 2 :]
    x, y = np.log([point[0] for point in upper]), np.log([point[1] for point in upper])
    return float(np.polyfit(x, y, 1)[0])


def curves(quick=False):
    """(what grows, learner) and its points (size, seconds of a round, bytes)."""
    most = 0.03 if quick else 1.0
    for name in ONLINE:
        points = []
        for m in sizes(10, QUADRATIC.get(name, 100_000) * most, 5 if quick else 9):
            lists = make_lists(max(2, min(200, 200_000 // m)), m, 20)
            points.append((m, *measure(name, lists)))
        yield "documents of a list", name, points
    for name in ONLINE:
        points = [(d, *measure(name, make_lists(60, 100, d))) for d in sizes(10, 3_000 * most, 6)]
        yield "features, dense", name, points
    for name in ("slam", "hinge", "listnet"):
        points = [(d, *measure(name, make_sparse(300, 100, d))) for d in sizes(1_000, 1_000_000 * most, 6)]
        yield f"features, sparse, {ENTRIES} entries a document", name, points
    for name in ("slam", "minimax", "hinge", "pairwise"):
        points = [(g, *measure(name, make_lists(100, 500, 20, grades=g))) for g in (2, 4, 8, 16, 32, 64, 128)]
        yield "grades", name, points
    lists = make_lists(100, 200, 20)
    yield "k labels a list", "topk", [(k, *measure("topk", lists, k=k)) for k in (2, 4, 8, 16, 32, 64)]
    lists = make_lists(100, 50, 20)
    lists = replace(
        lists, labels=np.random.default_rng(1).permutation(lists.labels)
    )  # never learnt: the budget is full
    points = [(b, *measure("kernel", lists, budget=b)) for b in (50, 100, 200, 400, 800)]
    yield "budget of documents", "kernel", points


def along_a_stream(quick=False):
    """Seconds of a round early and late in one stream, and the bytes that the learner allocated meanwhile."""
    lists = make_lists(500, 50, 20)
    passes = 4 if quick else 100
    for name in ONLINE:
        make = algorithm(name)
        learner, took = make.learner(20, make.complete({})), []
        tracemalloc.start()
        held = []
        for _ in range(passes):
            began = time.process_time()
            for _turn in play(learner, lists, heard_by(learner), [NDCG]):
                pass
            took.append((time.process_time() - began) / len(lists))
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        tenth = max(1, passes // 10)
        yield name, min(took[1 : tenth + 1]), min(took[-tenth:]), held[-1] - held[min(tenth, passes - 2)]


def micro(seconds):
    """Microseconds, for people."""
    return f"{seconds * 1e6:,.0f}" if seconds >= 1e-4 else f"{seconds * 1e6:.1f}"


def brief(number):
    """A number for an axis: 100,000 as 100 k."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def draw(found):
    """One panel for everything that grows, in logarithms."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullFormatter

    mpl.rcParams["svg.hashsalt"] = "growth"
    panels = list(dict.fromkeys(what for what, _, _ in found))
    colours = {name: f"C{number}" for number, name in enumerate(dict.fromkeys(name for _, name, _ in found))}
    figure, axes = pyplot.subplots(2, 3, figsize=(11, 8), layout="constrained")
    for panel, what in zip(axes.flat, panels, strict=True):
        for _, name, points in (row for row in found if row[0] == what):
            xs, ys, _ = np.array(points).T
            label = f"{name}, exponent {exponent(points):.2f}"
            panel.loglog(xs, ys * 1e6, marker="o", markersize=3, color=colours[name], label=label)
        panel.set_title(what, fontsize=10)
        panel.set_ylabel("microseconds a round", fontsize=9)
        panel.set_ylim(1.0, 1e6)  # the same for all: a curve that looks steep is steep
        if len(xs) and xs[-1] / xs[0] < 100:
            panel.set_xticks(xs)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: brief(value)))
            axis.set_minor_formatter(NullFormatter())
        panel.tick_params(labelsize=8)
        panel.grid(alpha=0.3)
        panel.legend(
            fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, frameon=False, columnspacing=0.8,
            handlelength=1.2,
        )  # fmt: skip
    figure.savefig(DOCS / "pictures" / "growth.svg", metadata={"Date": None})


PAGE = """# How it grows

Written by `python -m benchmarks.growth`: processor time of one thread for a round of `play` with NDCG@10, and the
exponent b of time ~ size^b, fitted to the larger half of the sizes. An exponent of 1 is a round whose time doubles with
its size. Documents of a list are sorted, which adds a logarithm; beside the rest it does not show.

![Time of a round against its size](pictures/growth.svg)

| what grows | learner | sizes | microseconds a round | exponent | peak, MB |
|---|---|---|---|---|---|
{rows}

A pairwise perceptron learns from every pair of a list, and Predtron compares every document with every position: both
grow with the square of the list, in memory too (the pairwise perceptron with a little more than that, once its pairs no
longer fit into the cache), and are for lists that people look at. A kernel learner compares every document with its
budget.

## Along a stream

Nothing grows with the stream: microseconds a round early and late in {rounds:,} rounds, and the bytes that were
allocated and not given back between them. (Counting bytes makes a round three to five times as slow as above.)

| learner | early | late | bytes kept |
|---|---|---|---|
{stream}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, no page: whether it runs")
    quick = parser.parse_args().quick
    found, rows, stream = [], [], []
    for what, name, points in curves(quick):
        found.append((what, name, points))
        (first, least, _), (last, most, peak) = points[0], points[-1]
        told = f"{first:,} to {last:,} | {micro(least)} to {micro(most)} | {exponent(points):.2f} | {peak / 1e6:.2f}"
        rows.append(f"| {what} | {name} | {told} |")
        print(rows[-1], flush=True)
    for name, early, late, kept in along_a_stream(quick):
        stream.append(f"| {name} | {micro(early)} | {micro(late)} | {kept:,} |")
        print(stream[-1], flush=True)
    if not quick:
        draw(found)
        page = PAGE.format(rows="\n".join(rows), stream="\n".join(stream), rounds=50_000)
        (DOCS / "growth.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
