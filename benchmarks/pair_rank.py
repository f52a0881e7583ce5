"""PairRank beside `pdgd` and `topk`: what is shown and what is served; and its regret where its model is true.

python -m benchmarks.pair_rank DATA RESULTS [SEEDS]: DATA holds mq2008 and ohsumed-letor3. Writes one JSON line per run
to the file RESULTS, goes on where it stopped, prints the tables and draws docs/pictures/pairrank-shown.svg.

PairRank (Jia, Wang, Guo and Wang, WWW 2021): a logistic regression on pairs of documents of which one was clicked and
the other seen and not clicked. A pair is certain if its estimated difference is more than `alpha` standard deviations,
from the inverse of the observed Fisher matrix, away from 0. Documents are shown in the order of blocks between which
all pairs are certain, and each block is shuffled. As in the paper, no document is in more than one pair of a round,
unless "all pairs" says otherwise. With an alpha of 0 nothing is shuffled: the same regression, greedy.
"""

import json
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np
from numba import njit
from scipy.special import expit

from benchmarks.online_clicks import AFTER, PICTURES, SETS, USERS, endless, stored
from benchmarks.pdgd_defaults import fold_of, interval
from ranktron import evaluate, feedback, metric
from ranktron.data.scaling import PerQuery, scale
from ranktron.learners import pdgd_ranker, top_k_ranker
from ranktron.training.figures.plots import panels
from ranktron.types import Ranking

K = 10
REFITS = 1.25  # the regression is solved again when there are so many times as many pairs
HORIZON = 20_000  # of the simulation


@njit
def blocks(X, w, inverse, alpha):
    """Documents by score, and the number of the block of each place: pairs across blocks are all certain."""
    order = np.argsort(-(X @ w))
    rows = X[order]
    scores, half = rows @ w, rows @ inverse
    m = len(order)
    own = np.array([half[i] @ rows[i] for i in range(m)])
    products = half @ rows.T
    block, number, reach = np.zeros(m, np.int64), 0, 0
    for i in range(m):
        if i > reach:
            number += 1
        block[i] = number
        reach = max(reach, i)
        for j in range(m - 1, reach, -1):
            spread = max(own[i] + own[j] - 2.0 * products[i, j], 0.0)
            if scores[i] - scores[j] <= alpha * np.sqrt(spread):
                reach = j
                break
    return order, block


@njit
def step(x, w, inverse):
    """One pair whose first document was preferred: a Newton step, and its share of the Fisher matrix."""
    p = 1.0 / (1.0 + np.exp(-(x @ w)))
    v = inverse @ x
    information = p * (1.0 - p)
    inverse -= np.outer(v, v) * (information / (1.0 + information * (x @ v)))
    w += (inverse @ x) * (1.0 - p)


def objective(X, w, ridge):
    return np.logaddexp(0.0, -(X @ w)).sum() + 0.5 * ridge * w @ w


def solve(X, w, ridge):
    """The regression on all pairs, by damped Newton steps from where it is; and the inverse of its Fisher matrix."""
    for _ in range(50):
        p = expit(X @ w)
        gradient = X.T @ (1.0 - p) - ridge * w
        fisher = (X * (p * (1.0 - p))[:, None]).T @ X + ridge * np.eye(len(w))
        change, before = np.linalg.solve(fisher, gradient), objective(X, w, ridge)
        while objective(X, w + change, ridge) > before - 1e-4 * gradient @ change and np.abs(change).max() > 1e-8:
            change /= 2.0
        w = w + change
        if np.abs(change).max() < 1e-4:
            break
    return w, np.linalg.inv(fisher)


class PairRank:
    def __init__(self, n_features, alpha=1.0, ridge=1.0, seed=0, every_pair=False):
        self.alpha, self.ridge, self.every_pair = alpha, ridge, every_pair
        self.rng = np.random.default_rng(seed)
        self.w, self.inverse = np.zeros(n_features), np.eye(n_features) / ridge
        self.pairs, self.n_pairs, self.solved = np.zeros((1024, n_features)), 0, 64

    def rank(self, X, number):
        rows = np.asarray(X, float)
        order, block = blocks(rows, self.w, self.inverse, self.alpha)
        shuffled = np.lexsort((self.rng.random(len(order)), block))
        return Ranking(order[shuffled], rows @ self.w, number)

    def learn(self, X, ranking, answer):
        clicked = np.flatnonzero(answer.labels > 0)
        if not len(clicked):
            return
        skipped = np.setdiff1d(np.arange(min(clicked.max() + 2, len(answer.labels))), clicked)
        items, rows = np.asarray(answer.items), np.asarray(X, float)
        if self.every_pair:
            chosen = list(product(clicked, skipped))
        else:
            chosen = list(zip(self.rng.permutation(clicked), self.rng.permutation(skipped), strict=False))
        for i, j in chosen:
            self.add(rows[items[i]] - rows[items[j]])
        self.refit()

    def refit(self):
        if self.n_pairs > REFITS * self.solved:
            self.w, self.inverse = solve(self.pairs[: self.n_pairs], self.w, self.ridge)
            self.solved = self.n_pairs

    def add(self, difference):
        if self.n_pairs == len(self.pairs):
            self.pairs = np.concatenate([self.pairs, np.zeros_like(self.pairs)])
        self.pairs[self.n_pairs] = difference
        self.n_pairs += 1
        step(difference, self.w, self.inverse)

    def predict(self, X):
        return np.asarray(X, float) @ self.w


LEARNERS = {
    "pdgd": lambda d, s: pdgd_ranker(d, eta=0.03, seed=s),
    "topk, clicks as labels": lambda d, s: top_k_ranker(d, k=K, preset="recommended", explore=1.0, floor=0.0, seed=s),
    "logistic, greedy": lambda d, s: PairRank(d, 0.0, seed=s),
    "logistic, greedy, all pairs": lambda d, s: PairRank(d, 0.0, seed=s, every_pair=True),
    "pairrank, alpha 0.1": lambda d, s: PairRank(d, 0.1, seed=s),
    "pairrank, alpha 0.1, all pairs": lambda d, s: PairRank(d, 0.1, seed=s, every_pair=True),
    "pairrank, alpha 0.5": lambda d, s: PairRank(d, 0.5, seed=s),
    "pairrank, alpha 0.5, all pairs": lambda d, s: PairRank(d, 0.5, seed=s, every_pair=True),
}
DRAWN = (
    "pdgd",
    "topk, clicks as labels",
    "logistic, greedy, all pairs",
    "pairrank, alpha 0.1, all pairs",
    "pairrank, alpha 0.5, all pairs",
)


def race(train, test, user, learner, seed):
    """NDCG@10 of what the learner showed until so many impressions, on average, and of what it served then."""
    judged, shown, served = metric("ndcg@10"), [], []
    for number, query in enumerate(islice(endless(train, seed), AFTER[-1])):
        ranking = learner.rank(query.X, number)
        shown.append(judged.shown(query.labels, ranking.order))
        learner.learn(query.X, ranking, user(query, ranking))
        if len(shown) in AFTER:
            served.append(evaluate(learner.predict(test.X), test, [judged]).means["ndcg@10"])
    return {"served": served, "shown": [float(np.mean(shown[:n])) for n in AFTER]}


def run_all(folder, path, seeds):
    """Runs what is not in the file yet, and adds it, line by line."""
    done = {json.dumps(row["key"]) for row in stored(path)}
    for seed, fold, data in product(range(seeds), range(1, 6), SETS):
        keys = [[data, user, name, fold, seed] for user in USERS for name in LEARNERS]
        keys = [key for key in keys if json.dumps(key) not in done]
        if not keys:
            continue
        parts = fold_of(folder, data, fold)
        train, test = (scale(part, PerQuery(part.n_features, "standard-query")) for part in parts)
        for key in keys:
            number = 10 * fold + seed
            learner = LEARNERS[key[2]](train.n_features, number)
            found = race(train, test, feedback.cascade(key[1], SETS[data], seed=number), learner, number)
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "found": found}) + "\n")


def table(rows):
    """Means over runs; differences to `pdgd` are paired, with their 95 % interval over runs."""
    found = {(*row["key"],): row["found"] for row in rows}
    runs = sorted({key[3:] for key in found})
    print("| data | user | learner | runs | shown, 1,000 | shown, 10,000 | minus pdgd | served, 10,000 | minus pdgd |")
    print("|---|---|---|---|---|---|---|---|---|")
    for data, user, name in product(SETS, USERS, LEARNERS):
        both = [run for run in runs if (data, user, name, *run) in found and (data, user, "pdgd", *run) in found]
        if not both:
            continue
        cells = [data, user, name, str(len(both))]
        ours, base = ([found[data, user, each, *run] for run in both] for each in (name, "pdgd"))
        cells.append(f"{np.mean([one['shown'][AFTER.index(1000)] for one in ours]):.4f}")
        for what in ("shown", "served"):
            values, others = (np.array([one[what][-1] for one in each]) for each in (ours, base))
            away = "" if name == "pdgd" or len(both) < 2 else interval(values - others)
            cells += [f"{values.mean():.4f}", away]
        print(f"| {' | '.join(cells)} |")


def draw(rows):
    """The regret curves: what was shown until so many impressions, a row per data set, a column per user."""
    found = {(*row["key"],): row["found"]["shown"] for row in rows}
    grid = {}
    for data, user in product(SETS, USERS):
        lines = {}
        for name in DRAWN:
            curves = [curve for key, curve in found.items() if key[:3] == (data, user, name)]
            lines[name] = (AFTER, np.mean(curves, axis=0))
        grid[f"{data}, {user}"] = lines
    title = "Mean NDCG@10 of what users were shown until then"
    panels(PICTURES / "pairrank-shown.svg", grid, {}, len(USERS), title, "impressions", log=True)


def realisable(seed, learner, gap, features=10, documents=6):
    """Wrongly ordered pairs shown until so many rounds, where the model is true.

    The utilities of two documents of a list differ by at least `gap`. The user compares the documents at places 1 and
    2, 3 and 4, 5 and 6: the first of two is preferred with the logistic probability of their difference. Nothing is
    learnt but that.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=features)
    truth *= 2.0 / np.linalg.norm(truth)
    total, at, marks = 0, [], {int(HORIZON * 2.0**-i) for i in range(7)}
    for number in range(1, HORIZON + 1):
        X = rng.normal(size=(documents, features))
        while np.diff(np.sort(X @ truth)).min() < gap:
            X = rng.normal(size=(documents, features))
        ranking = learner.rank(X, number)
        utilities = (X @ truth)[ranking.order]
        total += int((utilities[:, None] < utilities[None, :])[np.triu_indices(documents, 1)].sum())
        for i in range(0, documents - 1, 2):
            first = rng.random() < 1.0 / (1.0 + np.exp(utilities[i + 1] - utilities[i]))
            one, other = ranking.order[i : i + 2] if first else ranking.order[i : i + 2][::-1]
            learner.add(X[one] - X[other])
        learner.refit()
        if number in marks:
            at.append((number, total))
    return at


if __name__ == "__main__":
    results = Path(sys.argv[2])
    run_all(Path(sys.argv[1]), results, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    table(stored(results))
    draw(stored(results))
    print("\n| gap | alpha | wrongly ordered pairs until round (mean of two seeds) | grows like |\n|---|---|---|---|")
    for gap, alpha in product((0.0, 0.2), (0.0, 0.5, 2.0)):
        runs = np.array([realisable(seed, PairRank(10, alpha, seed=seed), gap) for seed in range(2)])
        rounds, pairs = runs.mean(axis=0).T
        listed = ", ".join(f"{n:,.0f}: {total:,.0f}" for n, total in zip(rounds, pairs, strict=True))
        slope = np.polyfit(np.log(rounds[-4:]), np.log(pairs[-4:]), 1)[0]
        print(f"| {gap} | {alpha} | {listed} | T^{slope:.2f} |")
