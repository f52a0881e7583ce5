"""Scaling and step of `pdgd`: what is shown and what is served, before its defaults are chosen.

python -m benchmarks.pdgd_defaults DATA RESULTS [SEEDS]: DATA holds mq2008, ohsumed-letor3 and mslr-sample. Writes one
JSON line per run to the file RESULTS, goes on where it stopped, and prints the table.
"""

import json
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np
from scipy.stats import t

from benchmarks.online_clicks import USERS, answerable, endless, stored
from ranktron import evaluate, feedback, metric, read, synthetic
from ranktron.data.scaling import fit_scaler, scale
from ranktron.learners import pdgd_ranker
from ranktron.learners.loop import play

SETS = {"mq2008": (3, 5), "ohsumed-letor3": (3, 5), "mslr": (5, 2), "web": (5, 5)}  # the number of grades, and of folds
SCALES = ("none", "standard", "standard-query")
ETAS = (0.1, 0.03)
BASE = "none", 0.1  # what the paper has
IMPRESSIONS = 10_000


def fold_of(folder, data, fold):
    """Training and test queries, as they come; MSLR's two parts change places."""
    if data == "mslr":
        parts = ("valid", "test") if fold == 1 else ("test", "valid")
        return [answerable(read(folder / "mslr-sample" / f"{part}.txt.gz")) for part in parts]
    if data == "web":
        web = synthetic.WebSearch(seed=fold)
        return answerable(web.rounds(600)), answerable(web.rounds(300, skip=600))
    return [answerable(read(folder / data / f"Fold{fold}" / f"{part}.txt.gz")) for part in ("train", "test")]


def compare(train, test, user, seed):
    """For each step NDCG@10 of what was shown, on average, and of what is served in the end."""
    judged, found = metric("ndcg@10"), {}
    for eta in ETAS:
        learner = pdgd_ranker(train.n_features, eta=eta, seed=seed)
        turns = play(learner, islice(endless(train, seed), IMPRESSIONS), user, [judged])
        shown = float(np.mean([turn.values[0] for turn in turns]))
        found[str(eta)] = shown, evaluate(learner.predict(test.X), test, [judged]).means["ndcg@10"]
    return found


def run_all(folder, path, seeds):
    """Runs what is not in the file yet, and adds it, line by line."""
    done = {json.dumps(row["key"]) for row in stored(path)}
    for data, (grades, folds) in SETS.items():
        for fold, scaling in product(range(1, folds + 1), SCALES):
            keys = [[data, scaling, user, fold, seed] for seed in range(seeds) for user in USERS]
            keys = [key for key in keys if json.dumps(key) not in done]
            if not keys:
                continue
            train, test = fold_of(folder, data, fold)
            if scaling != "none":
                scaler = fit_scaler(scaling, train)
                train, test = scale(train, scaler), scale(test, scaler)
            for key in keys:
                number = 10 * fold + key[4]
                found = compare(train, test, feedback.cascade(key[2], grades, seed=number), number)
                with path.open("a") as file:
                    file.write(json.dumps({"key": key, "found": found}) + "\n")


def values_of(rows, data, users, scaling, eta):
    """Runs × (shown, served), in the order of users, folds and seeds."""
    chosen = [row for row in rows if row["key"][:2] == [data, scaling] and row["key"][2] in users]
    return np.array([row["found"][str(eta)] for row in sorted(chosen, key=lambda row: row["key"])])


def interval(values):
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.4f} ± {half:.4f}"


def table(rows):
    """Means over runs; differences are paired, with their 95 % interval over runs."""
    print("| data | user | scaling | eta | runs | shown | minus the paper's | served | minus the paper's |")
    print("|---|---|---|---|---|---|---|---|---|")
    groups = [*((user,) for user in USERS), USERS]
    for data, users, (scaling, eta) in product(SETS, groups, product(SCALES, ETAS)):
        values, base = (values_of(rows, data, users, *variant) for variant in ((scaling, eta), BASE))
        cells = [data, "all" if len(users) > 1 else users[0], scaling, str(eta), str(len(values))]
        for part in (0, 1):
            away = "" if (scaling, eta) == BASE else interval(values[:, part] - base[:, part])
            cells += [f"{values[:, part].mean():.4f}", away]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    results = Path(sys.argv[2])
    run_all(Path(sys.argv[1]), results, int(sys.argv[3]) if len(sys.argv) > 3 else 5)
    table(stored(results))
