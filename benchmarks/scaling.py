"""What shards cost and gain: quality of mixed shards, files larger than memory, and growth.

    python -m benchmarks.scaling quality --data DATA    ten paired seeds; DATA is a folder with mq2008/Fold1 and so on
    python -m benchmarks.scaling survivors --data DATA  committees from the survivors of shards, with OHSUMED
    python -m benchmarks.scaling stream                 a store larger than the memory for it, against memory
    python -m benchmarks.scaling growth                 time and bytes against parts, shards and features
    python -m benchmarks.scaling network                what a mix of 1 to 1,000 shards costs a cluster by itself

`--lists` sets the size, `--seeds` the number of seeds, `--only web,MQ2008` and `--learners hinge` a selection. The step
of every learner and number of shards is chosen on validation queries; what is printed is on test queries. `quality`,
`survivors` and `network` write what they find to docs/results/scaling.json, from which
`python -m pytest tests/test_docs.py --write-docs` makes tables and picture; the first two go on where they stopped. A
cluster beside XGBoost and LightGBM: `python -m benchmarks.scaling_cluster`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import pickle
import tempfile
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ranktron.dask.mixed_pass import MIXES, MixedPass, play_pieces
from ranktron.dask.tasks import CACHE, play_parts
from ranktron.dask.training import inspect_parts, train_parts
from ranktron.data.io import read, write
from ranktron.data.io.parts import divide_files
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners.schedule import Fit, Schedule
from ranktron.metrics import evaluate
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import TrainingPlan, play_schedule, train
from ranktron.training.shards import Division
from ranktron.training.workers import LocalWorkers

EPOCHS = 3
STEPS = {
    "slam": (0.01, 0.1, 1.0, 10.0),
    "hinge": (0.01, 0.1, 1.0, 10.0),
    "listnet": (0.03, 0.3, 3.0, 30.0),
    "minimax": (1.0,),
    "predtron": (0.01, 0.1, 1.0, 10.0),
}
WAYS = {
    "1": (1, 0),
    "2": (2, 0),
    "4": (4, 0),
    "8": (8, 1),
    "16": (16, 1),
    "64": (64, 1),
    "16, all passes mixed": (16, 0),
}
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "scaling.json"


class Here(Executor):
    """Runs every task at once: quality does not depend on who runs it."""

    def submit(self, function, /, *arguments, **named):
        future = Future()
        future.set_result(function(*arguments, **named))
        return future


def data_of(name, seed, folder):
    if name == "web":
        lists = WebSearch(documents=30, seed=seed).rounds(2000)
    elif name == "separable":
        lists = Separable(documents=20, features=40, margin=0.05, seed=seed).rounds(2000)
    else:
        set_name, features = {"MQ2008": ("mq2008", 46), "OHSUMED": ("ohsumed-letor3", 45)}[name]
        fold = Path(folder, set_name, f"Fold{seed % 5 + 1}")
        parts = [next(fold.glob(f"{part}*")) for part in ("train", "vali", "test")]
        return [read(part, n_features=features, first_index=1) for part in parts]
    return lists[:1000], lists[1000:1400], lists[1400:]


def ndcg(learner, lists):
    return evaluate(lists, learner.predict(lists.X), "ndcg@10").means["ndcg@10"]


def learn(name, eta, lists, shards, sequential, seed):
    parameters = {"eta": eta, "average": True} | ({"fraction": 0.7} if name == "slam" else {})
    make = partial(algorithm(name).learner, lists.n_features, parameters)
    learner, fit = make(), Fit(lists, Schedule(EPOCHS, seed))
    if shards == 1:
        play_schedule(learner, fit)
    else:
        parts = tuple(np.diff(np.arange(shards + 1) * len(lists) // shards).tolist())
        division = Division(parts, shards, MIXES, sequential)
        pieces = [lists[a:b] for a, b in itertools.pairwise(division.offsets.tolist())]

        def run(shard, state, played, following, metrics):
            return Here().submit(play_pieces, make, state, played, pieces.__getitem__, metrics)

        play_schedule(learner, fit, (), MixedPass(division, run))
    return learner


def load_results():
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def keep_results(what, found):
    RESULTS.write_text(json.dumps(load_results() | {what: found}, indent=1) + "\n", encoding="utf-8")


def compare_ways(what, options, names, kinds, run):
    """The values of each way on the test queries of each seed; what is known already is not computed again."""
    found = load_results().get(what, {})
    for name in names:
        for seed in range(options.seeds):
            missing = [kind for kind in kinds if len(found.get(name, {}).get(kind, {}).get("1", [])) <= seed]
            lists = data_of(name, seed, options.data) if missing else ()
            for kind in missing:
                for way, value in run(kind, lists, seed):
                    found.setdefault(name, {}).setdefault(kind, {}).setdefault(way, []).append(value)
            keep_results(what, found)
        for kind in kinds:
            for way, values in found[name][kind].items():
                apart = np.array(values) - np.array(found[name][kind]["1"])
                error = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else float("nan")
                row = f"| {name} | {kind} | {way} | {np.mean(values):.4f} | {apart.mean():+.4f} ± {error:.4f} |"
                print(row, flush=True)


def quality(options):
    print(f"NDCG@10 after {EPOCHS} passes, averaged weights; difference from one learner, {options.seeds} paired seeds")

    def run(kind, lists, seed):
        scaler = fit_scaler("standard", lists[0])
        train_lists, valid, test = (scale(each, scaler) for each in lists)
        for way, (shards, sequential) in WAYS.items():
            if shards <= len(train_lists) // 15:  # fewer queries a shard are no shards that anybody has
                learners = [learn(kind, eta, train_lists, shards, sequential, seed) for eta in STEPS[kind]]
                best = max(learners, key=lambda learner: ndcg(learner, valid))
                yield way, ndcg(best, test)

    names = options.only or ("web", "separable", *(["MQ2008"] if options.data else []))
    compare_ways("quality", options, names, [kind for kind in STEPS if kind in (options.learners or STEPS)], run)


def survivors(options):
    """Pairwise perceptrons and committees: one machine beside one perceptron for each shard."""
    print(f"NDCG@10 after the best of 10 passes by validation queries, {options.seeds} paired seeds")

    def run(kind, lists, seed):
        train_lists, valid, test = lists
        for shards in (1, 4, 16):
            borders = np.arange(shards + 1) * len(train_lists) // shards
            parts = [train_lists[a:b] for a, b in itertools.pairwise(borders.tolist())]
            data = inspect_parts(parts, LocalWorkers(Here()), shards=shards)
            plan = TrainingPlan(kind, schedule=Schedule(10, seed), scaling="standard")
            trained = train_parts(plan, data, shards=shards, valid=valid)
            values = evaluate(test, trained.model.score_rounds(test), "ndcg@10")
            yield str(shards), values.means["ndcg@10"]

    names = options.only or ("web", *(["MQ2008", "OHSUMED"] if options.data else []))
    compare_ways("survivors", options, names, options.learners or ("pairwise", "committee"), run)


def stream(options):
    """In processes of their own, so that the peak of one is not that of the other."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "all.rounds")
        lists = WebSearch().rounds(options.lists or 20000)
        small = str(Path(folder, "small.rounds"))
        write(lists, path)
        write(lists[:50], small)
        size, rounds = lists.X.nbytes, len(lists)
        del lists
        print(f"{rounds:,} lists, {size / 1e9:.2f} GB; {EPOCHS} passes; in parts a third of it may be kept in memory")
        speeds = {}
        for what in ("memory", "parts"):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                seconds, peak = alone.submit(measure_store, str(path), small, what, size // 3).result()
            speeds[what] = EPOCHS * rounds / seconds
            print(f"| {what} | {seconds:.2f} s | {speeds[what]:,.0f} lists a second | peak {peak:.2f} GB |", flush=True)
        print(f"parts reach {speeds['parts'] / speeds['memory']:.0%} of the speed in memory")


def measure_store(path, small, what, limit):
    _train_store(small, what, limit)  # compiles
    began = time.perf_counter()
    _train_store(path, what, limit)
    seconds = time.perf_counter() - began
    with open("/proc/self/status") as file:  # ru_maxrss would be that of the process that started this one, too
        return seconds, next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1e6


def _train_store(path, what, limit):
    if what == "memory":
        train(TrainingPlan("hinge", {"average": True}, Schedule(EPOCHS), scaling="standard"), read(path))
        return
    CACHE.clear()
    CACHE.limit = limit
    with ThreadPoolExecutor(2) as executor:
        data = inspect_parts(divide_files(path), LocalWorkers(executor))
        plan = TrainingPlan("hinge", {"average": True}, Schedule(EPOCHS), scaling="standard")
        train_parts(plan, data, mode="sequential")


def _without_data(argument):
    if isinstance(argument, list):
        return [_without_data(each) for each in argument]
    return None if isinstance(argument, Future | Rounds) else argument


class Counting(LocalWorkers):
    """Workers in threads; what would be sent is counted as pickled."""

    sent = 0

    def submit(self, function, /, *arguments, home):
        Counting.sent += len(pickle.dumps([_without_data(each) for each in arguments]))
        future = super().submit(function, *arguments, home=home)
        Counting.sent += len(pickle.dumps(future.result())) if function.__name__ in RETURNED else 0
        return future


RETURNED = ("play_parts", "sum_weights", "image_of", "sum_losses", "sum_part", "square_part")


def growth(options):
    """One row for each setting: bytes of two passes as pickled, beside 2 x shards x mixes x vectors x features x 8."""
    lists = options.lists or 2000
    print("| parts | shards | features | time | bytes sent and received | predicted |")
    for parts, shards, features in ((4, 4, 136), (16, 4, 136), (16, 16, 136), (64, 16, 136), (16, 16, 1000)):
        data = WebSearch(features=features, documents=20).rounds(lists)
        pieces = [data[a : a + lists // parts] for a in range(0, lists, lists // parts)]
        with ThreadPoolExecutor(os.cpu_count()) as executor:
            found = inspect_parts(pieces, Counting(executor), shards=shards)
            Counting.sent, began = 0, time.perf_counter()
            train_parts(TrainingPlan("hinge", {"average": True}, Schedule(2, 0)), found, shards=shards)
            seconds = time.perf_counter() - began
        mixed = 2 if shards <= 4 else 1
        predicted = 2 * shards * 10 * 2 * features * 8 * mixed + (2 - mixed) * 2 * parts * 2 * features * 8
        predicted += 2 * 8 * 2 * lists  # the order of the queries, there; their losses, back
        print(f"| {parts} | {shards} | {features} | {seconds:.2f} s | {Counting.sent:,} | {predicted:,} |", flush=True)


def network(options):
    """Mixes of shards that have nothing to play, on a cluster of two processes: what is left is sending and waiting."""
    import psutil
    from distributed import Client, LocalCluster

    from ranktron.dask import Cluster

    lists, found = WebSearch(features=136, documents=20).rounds(50), []
    print(f"a mix of hinge with 136 features, mean of 3; load {os.getloadavg()[0]:.1f}")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        workers = Cluster(client)
        model = train(TrainingPlan("hinge", {"average": True}, scaling="standard"), lists).model
        empty, learner = replace(model, state={}, record={}), model.learner()
        for shards in (1, 4, 16, 64, 256, 1000):
            for repetition in (False, True):  # the first one connects and compiles
                before, began = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, time.perf_counter()
                used = time.process_time()
                for _ in range(3 if repetition else 1):
                    state, nothing = learner.state(), (empty, learner.state(), [], ())
                    futures = [workers.submit(play_parts, "", [], None, *nothing, home=k) for k in range(shards)]
                    learner.restore(learner.mix(state, [each.result().state for each in futures], np.ones(shards)))
            seconds, processor = (time.perf_counter() - began) / 3, (time.process_time() - used) / 3
            sent = (psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before) / 3
            row = {"seconds": round(seconds, 5), "processor": round(processor, 5), "bytes": round(sent)}
            found.append({"shards": shards, **row})
            print(f"| {shards} | {row} | {2 * shards * 2 * 136 * 8:,} bytes predicted |", flush=True)
    keep_results("network", found)


def chosen(text):
    return tuple(text.split(","))


COMMANDS = {each.__name__: each for each in (quality, survivors, stream, growth, network)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(COMMANDS))
    parser.add_argument("--data")
    parser.add_argument("--lists", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", type=chosen)
    parser.add_argument("--learners", type=chosen)
    asked = parser.parse_args()
    COMMANDS[asked.what](asked)
