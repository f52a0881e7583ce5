"""Every learner as printed, at its default and at the best of a grid, `tune`, trees and the best single feature.

`python -m benchmarks.defaults DATA [SECONDS]` prints a table in Markdown; DATA is a folder as RANKTRON_DATA has it.
Each set is divided once into queries to learn from and queries to report on. The grid is chosen on folds of the former.
A star marks the same set with each feature multiplied by a factor of its own between e^-8 and e^8.
"""

import gzip
import sys
import warnings
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.maps import Decisive
from ranktron import DataError, Rounds, evaluate, metric, read
from ranktron.data.synthetic import WebSearch
from ranktron.defaults import PRESETS, find_preset
from ranktron.learners.schedule import Schedule
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.baselines import best_feature
from ranktron.training.fit import train
from ranktron.training.tune import tune_rounds

NDCG = metric("ndcg@10")
GRIDS = {
    "hinge": {"eta": (0.01, 0.1, 1.0), "average": (False, True)},
    "listnet": {"eta": (0.01, 0.03, 0.1, 0.3), "average": (False, True)},
    "slam": {"eta": (0.1, 0.3, 1.0), "fraction": (0.0, 0.7), "average": (False, True)},
    "minimax": {"average": (False, True)},
    "topk": {"eta": (0.0, 0.01)},
    "pdgd": {"eta": (0.1, 1.0), "average": (False, True)},
    "predtron": {"representation": ("-i^1.1", "discount"), "average": (False, True)},
    "pairwise": {},
    "committee": {},
    "ranksvm": {"C": (0.01, 0.1, 1.0, 10.0)},
    "rankmm": {"C": (0.1, 1.0, 10.0), "max_seconds": (20.0,)},
    "rankboost": {},
}
SCALES = (None, "standard", "minmax")
FOLDS = 3


def joined(parts):
    X, labels = np.concatenate([p.X for p in parts]), np.concatenate([p.labels for p in parts])
    return Rounds.from_arrays(X, labels, group=np.concatenate([np.diff(p.offsets) for p in parts]))


def yandex(path):
    """The sample has its query ids in comments."""
    rows, labels, qids = [], [], []
    with gzip.open(path, "rt") as file:
        for line in file:
            body, _, qid = line.partition("#")
            label, *pairs = body.split()
            row = np.zeros(245, np.float32)
            for index, value in (pair.split(":") for pair in pairs):
                row[int(index) - 1] = float(value)
            rows.append(row)
            labels.append(float(label))
            qids.append(qid.strip())
    return Rounds.from_arrays(np.array(rows), np.array(labels), np.array(qids))


def sets(data):
    """For each set the queries to learn from and those to report on."""
    for name, folder in {"OHSUMED 3.0": "ohsumed-letor3", "MQ2008": "mq2008"}.items():
        train_part, valid, test = (read(data / folder / "Fold1" / f"{p}.txt.gz") for p in ("train", "vali", "test"))
        yield name, joined([train_part, valid]), test
    yield "MSLR", *(read(data / "mslr-sample" / f"{part}.txt.gz") for part in ("valid", "test"))
    lists = yandex(data / "yandex-imat2009-sample" / "learn.txt.gz")
    order = np.random.default_rng(99).permutation(len(lists))
    yield "Yandex", lists[np.sort(order[:78])], lists[np.sort(order[78:])]
    for name, simulation in {"web": WebSearch(seed=5), "decisive": Decisive(seed=5)}.items():
        yield name, simulation.rounds(400), simulation.rounds(200, skip=400)


def multiplied(*parts):
    factors = np.exp(np.random.default_rng(5).uniform(-8.0, 8.0, parts[0].n_features)).astype(np.float32)
    return [replace(part, X=np.ascontiguousarray(part.X * factors)) for part in parts]


def value(name, parameters, scale, epochs, part, test):
    try:
        model = train(name, parameters, part, Schedule(epochs), scaling=scale).model
    except DataError:  # numbers that overflow, for one
        return np.nan
    return evaluate(model.score_rounds(test), test, [NDCG]).means["ndcg@10"]


def best_of_grid(name, part, test):
    """What the mean over folds chooses, measured on the test queries, and the number of variants."""
    points = [dict(zip(GRIDS[name], values, strict=True)) for values in product(*GRIDS[name].values())]
    variants = list(product(points, SCALES))
    cut = np.array_split(np.random.default_rng(0).permutation(len(part)), FOLDS)
    folds = [(part[np.sort(np.concatenate(cut[:i] + cut[i + 1 :]))], part[np.sort(cut[i])]) for i in range(FOLDS)]
    means = [np.mean([value(name, point, scale, 10, *fold) for fold in folds]) for point, scale in variants]
    point, scale = variants[int(np.nanargmax(means))]
    return value(name, point, scale, 10, part, test), len(variants)


def trees(part, test):
    """Boosted trees with the defaults of their libraries."""
    labels, sizes = np.round(part.labels).astype(int), np.diff(part.offsets)
    found = {}
    if find_spec("lightgbm"):
        from lightgbm import LGBMRanker

        ranker = LGBMRanker(verbose=-1, n_jobs=1).fit(part.X, labels, group=sizes)
        found["LightGBM"] = ranker.predict(test.X)
    if find_spec("xgboost"):
        from xgboost import XGBRanker

        found["XGBoost"] = XGBRanker(n_jobs=1).fit(part.X, labels, group=sizes).predict(test.X)
    return {name: evaluate(scores.astype(float), test, [NDCG]).means["ndcg@10"] for name, scores in found.items()}


def column(part, test, minutes):
    """All rows of one set."""
    feature = best_feature(part, [NDCG])
    scores = feature.sign * test.X[:, feature.column].astype(float)
    found = {"best single feature": evaluate(scores, test, [NDCG]).means["ndcg@10"], **trees(part, test)}
    for name in GRIDS:
        for word in PRESETS:
            values = find_preset(name, word)
            own = ALGORITHMS[name].preset(word)
            found[f"{name}, {word}"] = value(name, own, values["scale"], values["n_epochs"], part, test)
        best, variants = best_of_grid(name, part, test)
        found[f"{name}, best of {variants}"] = best
    tuned = tune_rounds(part, minutes=minutes)
    found["tune"] = evaluate(tuned.model.score_rounds(test), test, [NDCG]).means["ndcg@10"]
    return found


def main(data, seconds=120.0):
    warnings.simplefilter("ignore")
    columns = {}
    for name, part, test in sets(Path(data)):
        columns[name] = column(part, test, seconds / 60.0)
        columns[f"{name}*"] = column(*multiplied(part, test), seconds / 60.0)
        print(f"{name}: done", file=sys.stderr, flush=True)
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for row in next(iter(columns.values())):
        print(f"| {row} | {' | '.join(f'{values[row]:.3f}' for values in columns.values())} |")


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
