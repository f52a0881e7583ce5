"""A ranker of clicks that starts from a click log, beside one that starts from nothing and one that stops learning.

python -m benchmarks.warm_starts DATA RESULTS [SEEDS]: DATA holds mq2008 and ohsumed-letor3. Writes one JSON line per
run to the file RESULTS, goes on where it stopped, prints the table and draws docs/pictures/warm-starts.svg.
"""

import json
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np

from benchmarks.online_clicks import PICTURES, SETS, USERS, answerable, endless, fold_of, stored
from ranktron import RankSVM, evaluate, feedback, linear_start, metric
from ranktron.data.rounds import Rounds
from ranktron.learners.loop import play
from ranktron.training.figures.plots import panels

AFTER = (0, 30, 100, 300, 1_000, 3_000)
LOGGED = 1_000  # impressions in the log
SHOWN = 10
LISTED = 20  # documents of a list
JUDGED = 5  # queries with labels, from which each of the rankers before was learnt
TRUST = 2.0
LENGTH = 4.0  # of the weights with which pdgd starts
KINDS = (
    "from nothing",
    "the log alone",
    "from the log",
    "from the log, its own length",
    f"from the log, trust {TRUST:g}",
)


def candidates(rounds, rng):
    """The lists with at most LISTED documents, drawn at random: what a first stage hands to a ranker.

    A log holds the first documents of a list alone, and says nothing of a hundred others.
    """
    kept = []
    for round in rounds:
        some = rng.permutation(len(round.labels))[:LISTED]
        kept.append(round._replace(X=round.X[some], labels=round.labels[some]))
    X, labels = (np.concatenate([getattr(round, part) for round in kept]) for part in ("X", "labels"))
    return answerable(Rounds.from_arrays(X, labels, group=[len(round.labels) for round in kept]))


def production(train, rng):
    """The weights of two rankers that took turns before: each learnt from the labels of a few queries."""
    few = rng.permutation(len(train))[: 2 * JUDGED].reshape(2, JUDGED)
    parts = [train[np.sort(each)] for each in few]
    rankers = [RankSVM(scale=None).fit(part.X, part.labels, group=np.diff(part.offsets)) for part in parts]
    return [ranker.model_.weights for ranker in rankers]


def logged(train, user, rng):
    """A click log of the two rankers: rows, clicks, and where each document stood, of which query."""
    rankers, rows = production(train, rng), []
    for number in range(LOGGED):
        query = int(rng.integers(len(train)))
        round = train[query]
        which = int(rng.integers(2))
        scores = round.X @ rankers[which]
        order = np.argsort(-scores)
        items, clicks = user(round, Shown(order))
        rows += [
            (number, query, int(item), place, click, which)
            for place, (item, click) in enumerate(zip(items, clicks, strict=True), 1)
        ]
    return np.array(rows)


class Shown:
    """A ranking, as far as users see it."""

    def __init__(self, order):
        self.order = order[:SHOWN]
        self.number = 0


def from_log(train, log):
    """RankSVM on the clicks of the log, with the examination that it estimates; None without a click."""
    X = np.concatenate([train[int(row[1])].X[[int(row[2])]] for row in log])
    impression, query, item, position, clicks, ranker = log.astype(int).T
    columns = {"position": position, "query": query, "item": item, "ranker": ranker}
    return RankSVM(scale=None, tol=1e-2).fit(X, clicks, qid=impression, **columns).model_


def curve(model, train, test, user, seed):
    """NDCG@10 of what is served after so many impressions, and of what was shown until then."""
    judged = metric("ndcg@10")
    learner, shown, served = model.learner(), [], []

    def serve():
        served.append(evaluate(learner.predict(test.X), test, [judged]).means["ndcg@10"])

    serve()
    for turn in play(learner, islice(endless(train, seed), AFTER[-1]), user, [judged]):
        shown.append(turn.values[0])
        if len(shown) in AFTER:
            serve()
    return {"served": served, "shown": [float(np.mean(shown[:n])) for n in AFTER[1:]]}


def race(train, test, kind, grades, seed):
    user = feedback.cascade(kind, grades, seed=seed)
    base = from_log(train, logged(train, user, np.random.default_rng((seed, 1))))
    d, judged = train.n_features, metric("ndcg@10")
    rng = np.random.default_rng((seed, 2))
    still = evaluate(base.predict(test.X), test, [judged]).means["ndcg@10"]
    queries = [train[int(rng.integers(len(train)))] for _ in range(300)]
    shown = np.mean([judged(round.labels[np.argsort(-(round.X @ base.weights))]) for round in queries])
    parameters = {"seed": seed}
    makes = {
        KINDS[0]: linear_start(np.zeros(d)).model("pdgd", parameters),
        KINDS[2]: linear_start(base).model("pdgd", parameters, length=LENGTH),
        KINDS[3]: linear_start(base).model("pdgd", parameters),
        KINDS[4]: linear_start(base).model("pdgd", parameters, length=LENGTH, trust=TRUST),
    }
    found = {name: curve(model, train, test, user, seed) for name, model in makes.items()}
    found[KINDS[1]] = {"served": [still] * len(AFTER), "shown": [float(shown)] * (len(AFTER) - 1)}
    return found | {"length": float(np.linalg.norm(base.weights))}


def run_all(folder, path, seeds):
    """Runs what is not in the file yet, and adds it, line by line."""
    done = {json.dumps(row["key"]) for row in stored(path)}
    for seed, data, fold in product(range(seeds), SETS, range(1, 6)):
        keys = [[data, user, fold, seed] for user in USERS]
        if all(json.dumps(key) in done for key in keys):
            continue
        train, test = (candidates(rounds, np.random.default_rng(fold)) for rounds in fold_of(folder, data, fold))
        for key in keys:
            found = race(train, test, key[1], SETS[data], 10 * fold + seed)
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "found": found}) + "\n")


def values_of(rows, data, user, name, what="served"):
    chosen = sorted((row for row in rows if row["key"][:2] == [data, user]), key=lambda row: row["key"])
    return np.array([row["found"][name][what] for row in chosen])


def table(rows):
    """Shown in the first 100 impressions / served after all of them, a column for each ranker."""
    print(f"| data | user | {' | '.join(KINDS)} |")
    print("|" + "---|" * (2 + len(KINDS)))
    for data, user in product(SETS, USERS):
        cells = []
        for name in KINDS:
            shown = values_of(rows, data, user, name, "shown").mean(axis=0)[AFTER.index(100) - 1]
            cells.append(f"{shown:.3f} / {values_of(rows, data, user, name).mean(axis=0)[-1]:.3f}")
        print(f"| {' | '.join([data, user, *cells])} |")


def draw(rows):
    """A row per data set, a column per user."""
    grid = {
        f"{data}, {user}": {
            name: (np.maximum(AFTER, 10), values_of(rows, data, user, name).mean(axis=0)) for name in KINDS
        }
        for data, user in product(SETS, USERS)
    }
    panels(
        PICTURES / "warm-starts.svg",
        grid,
        {},
        len(USERS),
        "NDCG@10 served after so many impressions",
        "impressions",
        log=True,
    )


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    results = stored(Path(sys.argv[2]))
    table(results)
    draw(results)
