"""What shards cost and gain: quality of mixed shards, threads, and bytes of a local cluster.

    python -m benchmarks.scaling quality [DATA]     ten paired seeds; DATA is a folder with mq2008/Fold1 and so on
    python -m benchmarks.scaling threads            2 jobs against 1 on 6,000 lists of 120 x 136
    python -m benchmarks.scaling stream             files in parts against memory

The step of every learner and number of shards is chosen on validation queries; what is printed is on test queries.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from ranktron.data.io import read, write
from ranktron.data.io.parts import divide_files
from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners.schedule import Fit, Schedule
from ranktron.metrics import evaluate
from ranktron.training.algorithms import algorithm
from ranktron.training.distributed import inspect_parts, train_parts
from ranktron.training.fit import play_schedule, train
from ranktron.training.mixing import MixedPass, run_in
from ranktron.training.parts import LocalWorkers
from ranktron.training.passes import Division

SEEDS, EPOCHS = 10, 3
STEPS = {
    "slam": (0.01, 0.1, 1.0, 10.0),
    "hinge": (0.01, 0.1, 1.0, 10.0),
    "listnet": (0.03, 0.3, 3.0, 30.0),
    "minimax": (1.0,),
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


def quality(folder=None):
    print(f"NDCG@10 after {EPOCHS} passes, averaged weights; difference from one learner, {SEEDS} paired seeds")
    for name in ("web", "separable", *(["MQ2008"] if folder else [])):
        found = {}
        for seed in range(SEEDS):
            train_lists, valid, test = data_of(name, seed, folder)
            scaler = fit_scaler("standard", train_lists)
            train_lists, valid, test = (scale(each, scaler) for each in (train_lists, valid, test))
            for kind, steps in STEPS.items():
                for way, (shards, sequential) in WAYS.items():
                    learners = [learn(kind, eta, train_lists, shards, sequential, seed) for eta in steps]
                    best = max(learners, key=lambda learner: ndcg(learner, valid))
                    found.setdefault((kind, way), []).append(ndcg(best, test))
        for (kind, way), values in found.items():
            apart = np.array(values) - np.array(found[kind, "1"])
            error = apart.std(ddof=1) / len(apart) ** 0.5
            print(
                f"| {name} | {kind} | {way} | {np.mean(values):.4f} | {apart.mean():+.4f} ± {error:.4f} |", flush=True
            )


def threads():
    lists = WebSearch().rounds(6000)
    for kind in ("hinge", "slam"):
        times = {}
        for _ in range(3):
            for jobs in (1, 2):
                began = time.perf_counter()
                train(kind, {"average": True}, lists, Schedule(3), jobs=jobs)
                times.setdefault(jobs, []).append(time.perf_counter() - began)
        one, two = (min(times[jobs]) for jobs in (1, 2))
        cores, load = os.cpu_count(), os.getloadavg()[0]
        print(f"| {kind} | {one:.2f} s | {two:.2f} s | {one / two:.2f} | {cores} cores, load {load:.1f} |", flush=True)


def stream():
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as executor:
        lists = WebSearch().rounds(6000)
        write(lists, Path(folder, "all.rounds"))
        for what in ("memory", "parts"):
            began = time.perf_counter()
            if what == "memory":
                train("hinge", {"average": True}, lists, Schedule(3), scaling="standard")
                del lists
            else:
                data = inspect_parts(divide_files(Path(folder, "all.rounds")), LocalWorkers(executor))
                train_parts("hinge", {"average": True}, data, Schedule(3), mode="sequential", scaling="standard")
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
            print(f"| {what} | {time.perf_counter() - began:.2f} s | {memory:.0f} MB at most so far |", flush=True)


if __name__ == "__main__":
    {"quality": quality, "threads": threads, "stream": stream}[sys.argv[1]](*sys.argv[2:])
