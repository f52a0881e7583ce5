"""What a price of exploration does: to the lists that are shown, and to what is learnt from the clicks on them.

python -m benchmarks.exploration_price DATA RESULTS [SEEDS]: DATA holds mq2008 and ohsumed-letor3. Writes one JSON line
per run to the file RESULTS, goes on where it stopped, and prints the table.
"""

import json
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np

from benchmarks.online_clicks import SETS, endless, fold_of, stored
from ranktron import evaluate, feedback, metric
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners import pdgd_ranker, top_k_ranker

IMPRESSIONS = 10_000
USERS = ("navigational", "informational")
PRICES = (0.0, 0.02, 0.05, 0.1, 0.2, 1.0)
LEARNERS = {
    "pdgd": lambda d, s, price: pdgd_ranker(d, seed=s, exploration_price=price),
    "topk": lambda d, s, price: top_k_ranker(
        d, k=10, preset="recommended", explore=1.0, floor=0.0, seed=s, exploration_price=price
    ),
}


def measure(train, test, user, learner, seed):
    """NDCG@10 of what was shown, in all and at first, of the worst percent of lists, and of what is served in the end.

    How far a list falls is measured by NDCG@10 against the list by score of the same moment.
    """
    judged = metric("ndcg@10")
    shown, falls = [], []
    for number, query in enumerate(islice(endless(train, seed), IMPRESSIONS)):
        ranking = learner.rank(query.X, number)
        shown.append(judged.shown(query.labels, ranking.order))
        falls.append(judged.shown(query.labels, argsort_descending(ranking.scores)) - shown[-1])
        learner.learn(query.X, ranking, user(query, ranking))
    return {
        "shown": float(np.mean(shown)),
        "first": float(np.mean(shown[:1000])),
        "fall": float(np.mean(falls)),
        "worst": float(np.quantile(falls, 0.99)),
        "served": evaluate(test, learner.predict(test.X), [judged]).means["ndcg@10"],
    }


def run_all(folder, path, seeds):
    """Runs what is not in the file yet, and adds it, line by line."""
    done = {json.dumps(row["key"]) for row in stored(path)}
    for seed, data, fold in product(range(seeds), SETS, range(1, 6)):
        train, test = fold_of(folder, data, fold)
        for user, name, price in product(USERS, LEARNERS, PRICES):
            key = [data, user, name, price, fold, seed]
            if json.dumps(key) in done:
                continue
            number = 10 * fold + seed
            clicks = feedback.cascade(user, SETS[data], seed=number)
            found = measure(train, test, clicks, LEARNERS[name](train.n_features, number, price), number)
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "found": found}) + "\n")


def table(rows):
    """Means over runs, and the paired difference from the learner without a price with its 95 % interval."""
    print("| data | learner | price | shown | mean fall | worst 1 % | served |")
    print("|---|---|---|---|---|---|---|")
    for data, name, price in product(SETS, LEARNERS, PRICES):
        runs, free = (runs_of(rows, data, name, each) for each in (price, 1.0))
        fall, worst = runs["fall"].mean(), runs["worst"].mean()
        shown, served = (compare(runs[what], free[what]) for what in ("shown", "served"))
        print(f"| {data} | {name} | {price:g} | {shown} | {round(fall, 4) + 0.0:.4f} | {worst:.3f} | {served} |")


def runs_of(rows, data, name, price):
    chosen = [row for row in rows if [row["key"][0], *row["key"][2:4]] == [data, name, price]]
    chosen.sort(key=lambda row: row["key"])
    return {what: np.array([row["found"][what] for row in chosen]) for what in chosen[0]["found"]}


def compare(values, free):
    apart = values - free
    if not apart.any():
        return f"{values.mean():.4f}"
    return f"{values.mean():.4f} ({apart.mean():+.4f} ± {1.96 * apart.std(ddof=1) / np.sqrt(len(apart)):.4f})"


if __name__ == "__main__":
    results = Path(sys.argv[2])
    run_all(Path(sys.argv[1]), results, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    table(stored(results))
