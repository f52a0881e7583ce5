"""`tune` and the recommended rankers beside tuned trees: LightGBM, XGBoost and CatBoost, all chosen in the same way.

`python -m benchmarks.trees DATA OUT [--seeds 3] [ROW...]` measures what the file OUT does not hold yet (of ROW... only
rows, or "set|row", that begin so) and writes docs/results/trees.json, from which docs/quality.md takes its table. It
can be stopped at any time: the same command goes on where it was. `--summary` measures nothing.

LETOR's sets have their own five folds, of which the training and the validation part are queries to learn from; MSLR's
and Yandex's samples are divided into five by query; of each simulation 400 queries are to learn from and 200 to report
on. Trees are chosen among `SETTINGS`, and among numbers of trees, on three folds of the queries to learn from (of more
than 300, a third is held out once), then grown on all of them. `tune` chooses on folds of its own.
"""

import argparse
import json
import sys
import warnings
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.defaults import MINUTES, SETS, divided, joined, tuned, values
from ranktron import read
from ranktron.learners.parameters import PRESETS
from ranktron.learners.schedule import Schedule
from ranktron.metrics.significance import CORRECTIONS
from ranktron.training.algorithms import ALGORITHMS, find_preset
from ranktron.training.fit import TrainingPlan, train

NUMBERS = (20, 50, 100, 200, 300)
SETTINGS = {
    "LightGBM": [
        {"num_leaves": leaves, "learning_rate": rate, "min_child_samples": least}
        for leaves, rate, least in product((7, 31), (0.03, 0.1), (5, 50))
    ],
    "XGBoost": [
        {"max_depth": depth, "learning_rate": rate, "min_child_weight": least}
        for depth, rate, least in product((3, 6), (0.03, 0.1), (1, 10))
    ],
    "CatBoost": [{"learning_rate": rate} for rate in (0.03, 0.1)],  # ten times as slow as the others
}
LETOR = {"OHSUMED 3.0": "ohsumed-letor3", "OHSUMED 2.0": "ohsumed-letor2", "MQ2008": "mq2008"}
FOLDS = 5
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "trees.json"


# --- the sets


def _folds_of_letor(folder):
    for number in range(1, FOLDS + 1):
        parts = [read(folder / f"Fold{number}" / f"{part}.txt.gz") for part in ("train", "vali", "test")]
        yield joined(parts[:2]), parts[2]


def _folds_of(lists):
    cut = np.array_split(np.random.default_rng(99).permutation(len(lists)), FOLDS)
    for number in range(FOLDS):
        rest = np.concatenate(cut[:number] + cut[number + 1 :])
        yield lists[np.sort(rest)], lists[np.sort(cut[number])]


@cache
def folds(name, data):
    """Pairs of queries to learn from and queries to report on."""
    if name in LETOR:
        return list(_folds_of_letor(data / LETOR[name]))
    if name == "MSLR":
        return list(_folds_of(joined([read(data / "mslr-sample" / f"{part}.txt.gz") for part in ("valid", "test")])))
    if name == "Yandex":
        return list(_folds_of(read(data / "yandex-imat2009-sample" / "learn.txt.gz")))
    return [SETS[name](data)]


COLUMNS = [*LETOR, "MSLR", "Yandex", "web", "decisive"]


# --- the rows


def _lightgbm(part, setting, seed):
    from lightgbm import LGBMRanker

    ranker = LGBMRanker(n_estimators=NUMBERS[-1], n_jobs=1, random_state=seed, verbosity=-1, **setting)
    ranker.fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return lambda lists, number: ranker.predict(lists.X, num_iteration=number)


def _xgboost(part, setting, seed):
    from xgboost import XGBRanker

    ranker = XGBRanker(n_estimators=NUMBERS[-1], n_jobs=1, random_state=seed, **setting)
    ranker.fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return lambda lists, number: ranker.predict(lists.X, iteration_range=(0, number))


def _catboost(part, setting, seed):
    from catboost import CatBoostRanker

    quiet = {"verbose": False, "allow_writing_files": False, "thread_count": 1}
    ranker = CatBoostRanker(iterations=NUMBERS[-1], random_seed=seed, **quiet, **setting)
    ranker.fit(part.X, part.labels, group_id=np.repeat(np.arange(len(part)), np.diff(part.offsets)))
    return lambda lists, number: ranker.predict(lists.X, ntree_end=number)


GROW = {"LightGBM": _lightgbm, "XGBoost": _xgboost, "CatBoost": _catboost}


def tuned_trees(name, part, test, seed):
    found = {}
    for learnt, valid in divided(part):
        for at, setting in enumerate(SETTINGS[name]):
            score = GROW[name](learnt, setting, seed)
            for number in NUMBERS:
                found.setdefault((at, number), []).append(values(score(valid, number), valid).mean())
    at, number = max(found, key=lambda key: np.mean(found[key]))
    score = GROW[name](part, SETTINGS[name][at], seed)
    return values(score(test, number), test), json.dumps({**SETTINGS[name][at], "trees": number, "tried": len(found)})


def recommended(name, scale, part, test, seed):
    given = ALGORITHMS[name].preset(PRESETS[0])
    schedule = Schedule(find_preset(name, PRESETS[0])["n_epochs"], seed)
    return values(train(TrainingPlan(name, given, schedule, scaling=scale), part).model.score_rounds(test), test), ""


ROWS = {
    f"`tune`, {MINUTES:g} minutes": tuned,
    '`OnlineListNet(scale="standard-query")`': partial(recommended, "listnet", "standard-query"),
    '`SmoothRank(scale="standard-query")`': partial(recommended, "smoothrank", "standard-query"),
    "`HingePerceptron()`": partial(recommended, "hinge", "standard"),
    "`RankBoost()`": partial(recommended, "rankboost", None),
    **{f"{name}, tuned": partial(tuned_trees, name) for name in SETTINGS},
}
OURS = next(iter(ROWS))
ONCE = ("`RankBoost()`", *(f"{name}, tuned" for name in SETTINGS))  # nothing in them is drawn by chance


def measure_all(data, out, seeds, wanted):
    cells = json.loads(out.read_text()) if out.exists() else {}
    for seed, (row, measure), column in product(range(seeds), ROWS.items(), COLUMNS):
        key = f"{column}|{row}|{seed}"
        if key in cells or not (row.startswith(wanted) or key.startswith(wanted)) or (seed and row in ONCE):
            continue
        began = process_time()
        found = [measure(*pair, seed) for pair in folds(column, data)]
        per_query = np.concatenate([each for each, _ in found])
        cells[key] = {
            "values": per_query.tolist(),
            "seconds": (process_time() - began) / len(found),
            "chosen": [chosen for _, chosen in found],
        }
        whole = out.with_suffix(".part")
        whole.write_text(json.dumps(cells))
        whole.replace(out)  # a file that is interrupted while it is written would be lost
        print(f"{key}: {per_query.mean():.4f} {cells[key]['seconds']:.1f} s", file=sys.stderr, flush=True)
    return cells


# --- what the page shows


def per_query(cells, column, row, seeds=100):
    """The values of the queries, averaged over the seeds, and the cells that were averaged."""
    own = [cells[key] for seed in range(seeds) if (key := f"{column}|{row}|{seed}") in cells]
    return (np.mean([cell["values"] for cell in own], axis=0), own) if own else (None, [])


def paired(difference):
    """Mean, half of the 95 % interval, and the p-value of a paired t-test."""
    from scipy.stats import t, ttest_1samp

    half = t.ppf(0.975, len(difference) - 1) * difference.std(ddof=1) / np.sqrt(len(difference))
    return float(difference.mean()), float(half), float(ttest_1samp(difference, 0.0).pvalue)


def summary(cells):
    """Means of all rows, and `tune` minus each kind of trees: for each set, with Holm's correction, and pooled."""
    rows, ahead = {}, {}
    for row in ROWS:
        rows[row] = {}
        for column in COLUMNS:
            found, own = per_query(cells, column, row)
            if found is not None:
                seconds = round(float(np.median([cell["seconds"] for cell in own])), 3)
                rows[row][column] = {"mean": round(float(found.mean()), 4), "seeds": len(own), "seconds": seconds}
    for row in (f"{name}, tuned" for name in SETTINGS):
        pairs = {c: (per_query(cells, c, OURS)[0], per_query(cells, c, row)[0]) for c in COLUMNS}
        found = {c: paired(a - b) for c, (a, b) in pairs.items() if a is not None and b is not None}
        if not found:
            continue
        corrected = CORRECTIONS["holm"](np.array([p for _, _, p in found.values()]))
        # every set counts the same; the interval of the mean of independent means
        pooled = float(np.mean([mean for mean, _, _ in found.values()]))
        half = float(np.sqrt(np.sum([h**2 for _, h, _ in found.values()]))) / len(found)
        ahead[row] = {
            "sets": {
                c: {"difference": round(m, 4), "half": round(h, 4), "p": round(float(p), 4)}
                for (c, (m, h, _)), p in zip(found.items(), corrected, strict=True)
            },
            "pooled": [round(pooled, 4), round(half, 4)],
        }
    queries = {c: len(v) for c in COLUMNS if (v := per_query(cells, c, OURS)[0]) is not None}
    variants = {f"{name}, tuned": len(settings) * len(NUMBERS) for name, settings in SETTINGS.items()}
    return {"queries": queries, "rows": rows, "ahead": ahead, "variants": variants}


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("rows", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--summary", action="store_true", help="write the results of what OUT holds")
    given = parser.parse_intermixed_args()
    cells = measure_all(given.data, given.out, 0 if given.summary else given.seeds, tuple(given.rows))
    RESULTS.write_text(json.dumps(summary(cells), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
