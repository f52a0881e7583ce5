"""A local cluster of two workers, from files to a model: ours beside xgboost.dask and lightgbm.dask on the same parts.

    python -m benchmarks.scaling_cluster                        6 GB of features, workers of 2 GB each
    python -m benchmarks.scaling_cluster --gigabytes 0.2        a quick look

Each trainer has a cluster of its own. Peak memory is that of both workers together, bytes are all that passed through
the loopback interface meanwhile, NDCG@10 is on lists that nobody was trained on. Trees and linear models are not the
same family of functions: the table says what each costs and reaches. What exceeds the memory of workers is an error.
"""

from __future__ import annotations

import argparse
import itertools
import os
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas
import psutil
from distributed import Client, LocalCluster

import ranktron
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import evaluate

FEATURES, LISTS_IN_PART, TEST = 136, 1000, 1000
COLUMNS = [f"f{j}" for j in range(FEATURES)]


def write_parts(folder, gigabytes):
    """Parquet files of whole queries, about 65 MB of features each; the first lists of the stream are for the test."""
    stream = iter(WebSearch(features=FEATURES))
    test = list(itertools.islice(stream, TEST))
    parts = max(2, round(gigabytes * 1e9 / (4 * FEATURES * 120 * LISTS_IN_PART)))
    for k in range(parts):
        lists = list(itertools.islice(stream, LISTS_IN_PART))
        frame = pandas.DataFrame(np.concatenate([each.X for each in lists]), columns=COLUMNS)
        frame["label"] = np.concatenate([each.labels for each in lists])
        frame["qid"] = np.repeat(np.arange(len(lists)) + k * LISTS_IN_PART, [len(each.labels) for each in lists])
        frame.to_parquet(Path(folder, f"part-{k:04}.parquet"), index=False)
    X, labels = (np.concatenate([getattr(each, name) for each in test]) for name in ("X", "labels"))
    return parts, ranktron.Rounds.from_arrays(X, labels, group=[len(each.labels) for each in test])


class Meter:
    """The most memory that some processes had together, and the bytes of the loopback interface."""

    def __init__(self, pids):
        self.processes = [psutil.Process(pid) for pid in pids]
        self.peak, self.over = 0, threading.Event()

    def watch(self):
        while not self.over.wait(0.1):
            try:
                self.peak = max(self.peak, sum(each.memory_info().rss for each in self.processes))
            except psutil.NoSuchProcess:
                return


def loopback():
    return psutil.net_io_counters(pernic=True)["lo"].bytes_sent


@contextmanager
def measured(options, row):
    """A cluster of two workers; fills what training on it took."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=options.memory, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        meter = Meter(client.run(os.getpid).values())
        thread = threading.Thread(target=meter.watch)
        thread.start()
        before, began = loopback(), time.perf_counter()
        try:
            yield client
        finally:
            row["seconds"], row["bytes"] = time.perf_counter() - began, loopback() - before
            meter.over.set()
            thread.join()
            row["peak"] = meter.peak


def ours(kind, mode, parameters):
    def fit(client, folder, test):
        from ranktron.dask import Cluster
        from ranktron.dask.training import inspect_parts, train_parts
        from ranktron.data.io.parts import divide_files
        from ranktron.learners.schedule import Schedule
        from ranktron.training.fit import TrainingPlan

        data = inspect_parts(divide_files(f"{folder}/part-*.parquet"), Cluster(client), shards=2)
        plan = TrainingPlan(kind, parameters, Schedule(3), scaling=None if kind == "rankboost" else "standard")
        model = train_parts(plan, data, mode=mode, shards=2).model
        return lambda: model.score_rounds(ranktron.Rounds.from_arrays(
            pandas.DataFrame(test.X, columns=COLUMNS), test.labels, group=np.diff(test.offsets)))  # fmt: skip

    return fit


def frames(folder):
    import dask.dataframe

    return dask.dataframe.read_parquet(f"{folder}/part-*.parquet", split_row_groups=False, aggregate_files=False)


def boosted(**parameters):
    def fit(client, folder, test):
        from xgboost.dask import DaskXGBRanker

        data = frames(folder)
        ranker = DaskXGBRanker(objective="rank:ndcg", n_estimators=50, **parameters)
        ranker.client = client
        ranker.fit(data[COLUMNS], data["label"], qid=data["qid"])
        booster = ranker.get_booster()
        return lambda: booster.inplace_predict(pandas.DataFrame(test.X, columns=COLUMNS))

    return fit


def light(client, folder, test):
    from lightgbm.dask import DaskLGBMRanker

    data = frames(folder).persist()
    group = data["qid"].map_partitions(lambda q: q.groupby(q, sort=False).size(), meta=("qid", "int64"))
    ranker = DaskLGBMRanker(client=client, n_estimators=50, num_leaves=31, verbosity=-1)
    ranker.fit(data[COLUMNS], data["label"], group=group)
    local = ranker.to_local()
    return lambda: local.predict(pandas.DataFrame(test.X, columns=COLUMNS))


TRAINERS = {
    "ranktron hinge, mixed": ours("hinge", "mix", {"average": True}),
    "ranktron hinge, one after the other": ours("hinge", "sequential", {"average": True}),
    "ranktron rankboost, 50 thresholds": ours("rankboost", "mix", {"n_rounds": 50}),
    "xgboost.dask, linear": boosted(booster="gblinear"),
    "xgboost.dask, 50 trees": boosted(tree_method="hist"),
    "lightgbm.dask, 50 trees": light,
}


def cut_queries(options, folder):
    """How many queries the borders of partitions cut if rows are divided evenly, and how many of these we join."""
    import dask.dataframe

    from ranktron.dask import DaskRanker

    frame = pandas.read_parquet(next(iter(sorted(Path(folder).glob("part-*.parquet")))))
    divided = dask.dataframe.from_pandas(frame, npartitions=7, sort=False)
    ids = divided["qid"].map_partitions(lambda q: pandas.Series(q.unique()), meta=("qid", "int64")).compute()
    with measured(options, {}) as client:
        ranker = DaskRanker(ranktron.HingePerceptron(), client=client).fit(divided, "label")
    print(
        f"rows in 7 even partitions: {int(ids.duplicated().sum())} queries cut, {ranker.joined_queries_} joined by us"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--memory", default="2GB", help="the memory limit of a worker")
    parser.add_argument("--only", help="part of a trainer's name")
    parser.add_argument("--folder", help="where to write the parts, on a disk that is large enough")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        parts, test = write_parts(folder, options.gigabytes)
        print(f"{parts} files of {LISTS_IN_PART:,} lists; 2 workers of {options.memory}", flush=True)
        print("| trainer | from files to model | peak of both workers | bytes over the network | NDCG@10 |")
        for name, fit in TRAINERS.items():
            if options.only and options.only not in name:
                continue
            row = {}
            try:
                with measured(options, row) as client:
                    predict = fit(client, folder, test)
                value = f"{evaluate(test, predict(), 'ndcg@10').means['ndcg@10']:.4f}"
            except Exception as error:  # what a trainer cannot do is a result, too
                value = f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
            cost = f"{row['seconds']:.1f} s | {row['peak'] / 1e9:.2f} GB | {row['bytes'] / 1e6:,.1f} MB"
            print(f"| {name} | {cost} | {value} |", flush=True)
        cut_queries(options, folder)


if __name__ == "__main__":
    main()
