"""Every learner as printed, at its defaults and at the best of a grid; `tune`; trees; the best single feature.

`python -m benchmarks.defaults DATA OUT [--seeds 5] [ROW...]` measures what the file OUT does not hold yet (of ROW...
only rows, or "set|row", that begin so), and writes docs/results/defaults.json, from which docs/quality.md is made. It
can be stopped at any time: the same command goes on where it was. All rows are measured with the first seed before any
with the second; what has no seed (solvers, trees, the single feature) is measured once. `--summary` measures nothing.

DATA is a folder as RANKTRON_DATA has it. Each set is divided once into queries to learn from and queries to report on;
grids are chosen on parts of the former. A star marks the same set with each feature multiplied by a factor of its own
between e^-8 and e^8. Without a busy neighbour a seed takes about an hour and a half of one core.
"""

import argparse
import json
import sys
import warnings
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.maps import Decisive
from ranktron import DataError, Evaluation, Rounds, evaluate, metric, read
from ranktron.data.scaling import LISTS
from ranktron.data.synthetic import WebSearch
from ranktron.learners.parameters import PRESETS
from ranktron.learners.schedule import Schedule
from ranktron.metrics.significance import CORRECTIONS, t_test
from ranktron.training.algorithms import ALGORITHMS, find_preset
from ranktron.training.baselines import best_feature
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.tune import Candidate, Family, tune_rounds

NDCG = metric("ndcg@10")
MINUTES = 2.0
GRIDS = {
    "hinge": {"eta": (0.01, 0.1, 1.0), "average": (False, True)},
    "listnet": {"eta": (0.01, 0.03, 0.1, 0.3), "average": (False, True)},
    "slam": {"eta": (0.1, 0.3, 1.0), "fraction": (0.0, 0.7), "step": ("constant", "sqrt"), "average": (False, True)},
    "minimax": {"average": (False, True)},
    "topk": {"eta": (0.0, 0.01), "shortlist": (0, 10)},
    "pdgd": {"eta": (0.03, 0.1, 1.0), "average": (False, True)},
    "predtron": {"representation": ("-i^1.1", "discount"), "eta": (0.01, 0.1), "average": (False, True)},
    "pairwise": {"output": ("last", "average")},
    "committee": {"size": (10, 30)},
    "ranksvm": {"C": (0.01, 0.1, 1.0, 10.0)},
    "smoothrank": {"C": (3.0, 10.0, 30.0, 100.0)},
    "rankmm": {"C": (0.1, 1.0, 10.0), "max_seconds": (20.0,)},
    "rankboost": {"n_rounds": (100, 300)},
}
SCALES = (None, "standard", "minmax")
PLAYED_AT_ONCE = ("hinge", "listnet", "slam", "minimax")
SOLVED = ("ranksvm", "rankmm", "rankboost")
TIMED = ("default", "command", "printed", "LightGBM", "XGBoost", "CatBoost")
MOST_SEEDS = 100
FEW = 300  # queries: of more, a third validates once; fewer are divided into three folds
RESULTS = Path(__file__).parent.parent / "docs" / "results" / "defaults.json"


def joined(parts):
    X, labels = np.concatenate([p.X for p in parts]), np.concatenate([p.labels for p in parts])
    return Rounds.from_arrays(X, labels, group=np.concatenate([np.diff(p.offsets) for p in parts]))


def letor(folder):
    train_part, valid, test = (read(folder / "Fold1" / f"{part}.txt.gz") for part in ("train", "vali", "test"))
    return joined([train_part, valid]), test


def yandex_parts(data):
    lists = read(data / "yandex-imat2009-sample" / "learn.txt.gz")
    order = np.random.default_rng(99).permutation(len(lists))
    return lists[np.sort(order[:78])], lists[np.sort(order[78:])]


def simulated(simulation):
    return simulation.rounds(400), simulation.rounds(200, skip=400)


SETS = {
    "OHSUMED 3.0": lambda data: letor(data / "ohsumed-letor3"),
    "MQ2008": lambda data: letor(data / "mq2008"),
    "MSLR": lambda data: tuple(read(data / "mslr-sample" / f"{part}.txt.gz") for part in ("valid", "test")),
    "Yandex": yandex_parts,
    "web": lambda _: simulated(WebSearch(seed=5)),
    "decisive": lambda _: simulated(Decisive(seed=5)),
}
COLUMNS = [*SETS, *(f"{name}*" for name in SETS)]


@cache
def parts_of(name, data):
    """The queries to learn from and those to report on."""
    if not name.endswith("*"):
        return SETS[name](data)
    parts = parts_of(name[:-1], data)
    factors = np.exp(np.random.default_rng(5).uniform(-8.0, 8.0, parts[0].n_features)).astype(np.float32)
    return tuple(replace(part, X=np.ascontiguousarray(part.X * factors)) for part in parts)


def values(scores, test):
    return evaluate(test, np.asarray(scores, float), [NDCG]).per_query["ndcg@10"]


def trained_values(name, parameters, scale, passes, part, test, seed):
    """NDCG@10 of each test query; the lowest possible where training is refused (numbers that overflow, for one)."""
    given = {**ALGORITHMS[name].complete(parameters), **({"seed": seed} if name in ("topk", "pdgd") else {})}
    try:
        model = train(TrainingPlan(name, given, Schedule(passes, seed), scaling=scale), part).model
        return values(model.score_rounds(test), test)
    except DataError:
        return np.zeros(len(test))


# --- the rows


def single_feature(part, test, _seed):
    feature = best_feature(part, [NDCG])
    return values(feature.sign * test.X[:, feature.column].astype(float), test), ""


def preset(name, word, part, test, seed, lists="auto"):
    """A preset; `lists` is what `auto` means, which to a command is another thing than to an estimator."""
    own = find_preset(name, word)
    scale = lists if own["scale"] == "auto" else own["scale"]
    return trained_values(name, ALGORITHMS[name].preset(word), scale, own["n_epochs"], part, test, seed), ""


def variants_of(name, queries):
    """What a grid has for a learner: parameters, scaling, passes."""
    points = [dict(zip(GRIDS[name], point, strict=True)) for point in product(*GRIDS[name].values())]
    scales = (None,) if name == "rankboost" else SCALES
    most = name == "topk" or (name in PLAYED_AT_ONCE and queries <= FEW)
    passes = (1,) if name in SOLVED else (3, 10, 30) if most else (3, 10)
    return [Candidate(name, tuple(p.items()), scale, None, n) for scale in scales for p in points for n in passes]


def divided(part):
    cut = np.array_split(np.random.default_rng(0).permutation(len(part)), 3)
    pairs = [(np.concatenate(cut[:i] + cut[i + 1 :]), cut[i]) for i in range(3)]
    return [(part[np.sort(a)], part[np.sort(b)]) for a, b in (pairs if len(part) <= FEW else pairs[:1])]


def means_on(part, valid, variants, seed):
    """The mean of each variant on the validation queries."""
    if variants[0].learner not in PLAYED_AT_ONCE:
        for one in variants:
            found = trained_values(one.learner, one.parameters, one.scale, one.epochs, part, valid, seed)
            yield one, found.mean()
        return
    for scale in dict.fromkeys(one.scale for one in variants):
        family = Family(tuple(one for one in variants if one.scale == scale))
        try:
            for one, scores in family.scores(part, valid, seed, "error"):
                yield one, values(scores, valid).mean()
        except DataError:  # numbers overflow: what is not measured is not chosen
            pass


def best_of_grid(name, part, test, seed):
    variants = variants_of(name, len(part))
    folds = divided(part)
    found = {one: [] for one in variants}
    for fold in folds:
        for one, mean in means_on(*fold, variants, seed):
            found[one].append(mean)
    best = max(variants, key=lambda one: np.mean(found[one]) if len(found[one]) == len(folds) else -1.0)
    chosen = trained_values(name, best.parameters, best.scale, best.epochs, part, test, seed)
    return chosen, f"{best}; {len(variants)} variants"


def tuned(part, test, seed):
    found = tune_rounds(part, minutes=MINUTES, seed=seed)
    first = found.table[0]
    what = {key: first[key] for key in ("learner", "parameters", "scale", "map", "epochs")}
    what |= {"tried": len(found.table), "stopped": found.stopped}
    return values(found.model.score_rounds(test), test), json.dumps(what)


def lightgbm(part, test, _seed):
    from lightgbm import LGBMRanker

    ranker = LGBMRanker(verbose=-1, n_jobs=1)
    ranker.fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return values(ranker.predict(test.X), test), ""


def xgboost(part, test, _seed):
    from xgboost import XGBRanker

    ranker = XGBRanker(n_jobs=1).fit(part.X, np.round(part.labels).astype(int), group=np.diff(part.offsets))
    return values(ranker.predict(test.X), test), ""


def catboost(part, test, _seed):
    from catboost import CatBoostRanker

    ranker = CatBoostRanker(thread_count=1, verbose=False, allow_writing_files=False, random_seed=0)
    ranker.fit(part.X, part.labels, group_id=np.repeat(np.arange(len(part)), np.diff(part.offsets)))
    return values(ranker.predict(test.X), test), ""


ROWS = {
    "best single feature": single_feature,
    "LightGBM, default": lightgbm,
    "XGBoost, default": xgboost,
    **{f"default {name}": partial(preset, name, PRESETS[0]) for name in GRIDS},
    **{f"command {name}": partial(preset, name, PRESETS[0], lists=LISTS) for name in GRIDS},
    **{f"printed {name}": partial(preset, name, "paper") for name in GRIDS},
    "tune": tuned,
    **{f"grid {name}": partial(best_of_grid, name) for name in GRIDS},
    "CatBoost, default": catboost,
}


def per_query(cells, column):
    """For each row the values of its queries, averaged over the seeds, and all cells that were averaged."""
    found = {}
    for row in ROWS:
        own = [cells[key] for seed in range(MOST_SEEDS) if (key := f"{column}|{row}|{seed}") in cells]
        if own:
            found[row] = np.mean([cell["values"] for cell in own], axis=0), own
    return found


def summary(cells):
    """What the page shows: for each set and row the mean, the seconds, and how far it is behind the best row."""
    found = {}
    for column in COLUMNS:
        measured = per_query(cells, column)
        one = {row: values for row, (values, _) in measured.items()}
        best = max(one, key=lambda row: one[row].mean())
        others = [row for row in one if row != best]
        p = dict(zip(others, CORRECTIONS["holm"](np.array([_p(one[best], one[row]) for row in others])), strict=True))
        found[column] = {
            "queries": len(one[best]),
            "rows": {
                row: {
                    "mean": round(float(one[row].mean()), 4),
                    "seeds": len(own),
                    "spread": round(float(np.std([np.mean(cell["values"]) for cell in own])), 4),
                    "seconds": round(own[0]["seconds"], 3),
                    "behind": bool(p.get(row, 1.0) < 0.05),
                    "chosen": own[0]["chosen"],
                }
                for row, (_, own) in measured.items()
            },
            "below_grid": {n: _paired(one[f"grid {n}"] - one[f"default {n}"]) for n in GRIDS if f"grid {n}" in one},
            "tune_ahead": {
                row: _paired(one["tune"] - one[row])
                for row in one
                if "tune" in one and (row.endswith(", default") or row.startswith("best single"))
            },
        }
    return found


def _p(a, b):
    made = [Evaluation({"ndcg@10": v.mean()}, {"ndcg@10": v}, np.arange(len(v)), 0) for v in (a, b)]
    return t_test(*made, "ndcg@10")


def _paired(difference):
    half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
    return [round(float(difference.mean()), 4), round(float(half), 4)]


def seeded(row):
    return row == "tune" or row.partition(" ")[2] in set(GRIDS) - set(SOLVED)


def measure_all(data, out, seeds, wanted):
    cells = json.loads(out.read_text()) if out.exists() else {}
    for seed, (row, measure), column in product(range(seeds), ROWS.items(), COLUMNS):
        key = f"{column}|{row}|{seed}"
        asked = row.startswith(wanted) or key.startswith(wanted)
        if key in cells or not asked or (seed and not seeded(row)):
            continue
        parts = parts_of(column, data)
        if column == COLUMNS[0] and row.startswith(TIMED):
            measure(parts[0][:12], parts[1][:2], seed)  # compiles what is compiled
        began = process_time()
        found, chosen = measure(*parts, seed)
        cells[key] = {"values": found.tolist(), "seconds": process_time() - began, "chosen": chosen}
        whole = out.with_suffix(".part")
        whole.write_text(json.dumps(cells))
        whole.replace(out)  # a file that is interrupted while it is written would be lost
        print(f"{key}: {found.mean():.4f} {cells[key]['seconds']:.1f} s {chosen}", file=sys.stderr, flush=True)
    return cells


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("rows", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--summary", action="store_true", help="write the results of what OUT holds")
    given = parser.parse_intermixed_args()
    seeds = 0 if given.summary else min(given.seeds, MOST_SEEDS)
    cells = measure_all(given.data, given.out, seeds, tuple(given.rows))
    RESULTS.write_text(json.dumps(summary(cells), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
