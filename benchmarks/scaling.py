"""What shards cost and gain: quality of mixed shards, threads, files larger than memory, and growth.

    python -m benchmarks.scaling quality --data DATA    ten paired seeds; DATA is a folder with mq2008/Fold1 and so on
    python -m benchmarks.scaling threads                1 to all cores on 6,000 lists of 120 x 136
    python -m benchmarks.scaling stream                 a store larger than the memory for it, against memory
    python -m benchmarks.scaling growth                 time and bytes against parts, shards and features

`--lists` sets the size, `--seeds` the number of seeds, `--only web,MQ2008` and `--learners hinge` a selection. The step
of every learner and number of shards is chosen on validation queries; what is printed is on test queries. A cluster
beside XGBoost and LightGBM: `python -m benchmarks.scaling_cluster`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pickle
import tempfile
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from ranktron.data.io import read, write
from ranktron.data.io.parts import divide_files
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners.schedule import Fit, Schedule
from ranktron.metrics import evaluate
from ranktron.training.algorithms import algorithm
from ranktron.training.distributed import inspect_parts, train_parts
from ranktron.training.fit import play_schedule, train
from ranktron.training.mixing import MixedPass, run_in
from ranktron.training.parts import LocalWorkers, set_cache_limit
from ranktron.training.passes import Division

EPOCHS = 3
STEPS = {
    "slam": (0.01, 0.1, 1.0, 10.0),
    "hinge": (0.01, 0.1, 1.0, 10.0),
    "listnet": (0.03, 0.3, 3.0, 30.0),
    "minimax": (1.0,),
    "predtron": (0.01, 0.1, 1.0, 10.0),
}
WAYS = {"1": (1, 0), "4": (4, 0), "16, all passes mixed": (16, 0), "16": (16, 1)}


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
        fold = Path(folder, "mq2008", f"Fold{seed % 5 + 1}")
        parts = [next(fold.glob(f"{part}*")) for part in ("train", "vali", "test")]
        return [read(part, n_features=46, first_index=1) for part in parts]
    return lists[:1000], lists[1000:1400], lists[1400:]


def ndcg(learner, lists):
    return evaluate(learner.predict(lists.X), lists, "ndcg@10").means["ndcg@10"]


def learn(name, eta, lists, shards, sequential, seed):
    parameters = {"eta": eta, "average": True} | ({"fraction": 0.7} if name == "slam" else {})
    make = partial(algorithm(name).learner, lists.n_features, parameters)
    learner, fit = make(), Fit(lists, Schedule(EPOCHS, seed))
    if shards == 1:
        play_schedule(learner, fit)
    else:
        parts = tuple(np.diff(np.arange(shards + 1) * len(lists) // shards).tolist())
        division = Division(parts, shards, sequential=sequential)
        play_schedule(learner, fit, (), MixedPass(division, run_in(Here(), make, lists, division)))
    return learner


def quality(options):
    print(f"NDCG@10 after {EPOCHS} passes, averaged weights; difference from one learner, {options.seeds} paired seeds")
    names = options.only or ("web", "separable", *(["MQ2008"] if options.data else []))
    kinds = {kind: steps for kind, steps in STEPS.items() if kind in (options.learners or STEPS)}
    for name in names:
        found = {}
        for seed in range(options.seeds):
            train_lists, valid, test = data_of(name, seed, options.data)
            scaler = fit_scaler("standard", train_lists)
            train_lists, valid, test = (scale(each, scaler) for each in (train_lists, valid, test))
            for kind, steps in kinds.items():
                for way, (shards, sequential) in WAYS.items():
                    learners = [learn(kind, eta, train_lists, shards, sequential, seed) for eta in steps]
                    best = max(learners, key=lambda learner: ndcg(learner, valid))
                    found.setdefault((kind, way), []).append(ndcg(best, test))
        for (kind, way), values in found.items():
            apart = np.array(values) - np.array(found[kind, "1"])
            error = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else float("nan")
            row = f"| {name} | {kind} | {way} | {np.mean(values):.4f} | {apart.mean():+.4f} ± {error:.4f} |"
            print(row, flush=True)


def threads(options):
    lists = WebSearch().rounds(options.lists or 6000)
    valid = WebSearch().rounds(500, skip=len(lists))
    cores = os.cpu_count() or 1
    counts = [jobs for jobs in (1, 2, 4, 8, 16, 32) if jobs <= max(cores, 2)]
    print(f"{len(lists):,} lists, 3 passes, best of 3; {cores} cores, load {os.getloadavg()[0]:.1f}")
    for kind in options.learners or ("hinge", "slam"):
        times, quality_of = {}, {}
        train(kind, {"average": True}, lists[:100], Schedule(1), jobs=2)  # compiles
        for _ in range(3):
            for jobs in counts:
                began = time.perf_counter()
                model = train(kind, {"average": True}, lists, Schedule(3), jobs=jobs).model
                times.setdefault(jobs, []).append(time.perf_counter() - began)
                quality_of[jobs] = evaluate(model.score_rounds(valid), valid, "ndcg@10").means["ndcg@10"]
        for jobs in counts:
            best = min(times[jobs])
            gain = min(times[1]) / best
            print(f"| {kind} | {jobs} jobs | {best:.2f} s | {gain:.2f} | NDCG@10 {quality_of[jobs]:.4f} |", flush=True)


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
        train("hinge", {"average": True}, read(path), Schedule(EPOCHS), scaling="standard")
        return
    set_cache_limit(limit)
    with ThreadPoolExecutor(2) as executor:
        data = inspect_parts(divide_files(path), LocalWorkers(executor))
        train_parts("hinge", {"average": True}, data, Schedule(EPOCHS), mode="sequential", scaling="standard")


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
            train_parts("hinge", {"average": True}, found, Schedule(2, 0), shards=shards)
            seconds = time.perf_counter() - began
        mixed = 2 if shards <= 4 else 1
        predicted = 2 * shards * 10 * 2 * features * 8 * mixed + (2 - mixed) * 2 * parts * 2 * features * 8
        predicted += 2 * 8 * 2 * lists  # the order of the queries, there; their losses, back
        print(f"| {parts} | {shards} | {features} | {seconds:.2f} s | {Counting.sent:,} | {predicted:,} |", flush=True)


def chosen(text):
    return tuple(text.split(","))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["quality", "threads", "stream", "growth"])
    parser.add_argument("--data")
    parser.add_argument("--lists", type=int)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", type=chosen)
    parser.add_argument("--learners", type=chosen)
    asked = parser.parse_args()
    {"quality": quality, "threads": threads, "stream": stream, "growth": growth}[asked.what](asked)
