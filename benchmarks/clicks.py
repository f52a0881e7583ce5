"""Learning from clicks on one thread: impressions a second, the user's clicks included.

python -m benchmarks.clicks DATA [SEEDS]: DATA holds mq2008. Compares learners under three simulated users and prints a
table; some minutes a seed.
"""

import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

from ranktron import Feedback, evaluate, feedback, metric, read
from ranktron.data.rounds import Rounds
from ranktron.learners import hinge_perceptron, online_listnet, pdgd_ranker, top_k_ranker
from ranktron.learners.loop import play

IMPRESSIONS, AFTER = 10_000, (1_000, 10_000)
REPEATS = 200


def speed():
    """The shortest of several runs, in seconds of the processor: the machine may have other things to do."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300 * 100, 50)).astype(np.float32)
    rounds = list(Rounds.from_arrays(X, rng.integers(3, size=len(X)), group=[100] * 300))
    for name in ("perfect", "navigational", "informational"):
        learner, user, times = pdgd_ranker(50), feedback.cascade(name, 3), []
        for _ in range(REPEATS + 1):
            start = time.process_time()
            for _ in play(learner, rounds, user):
                pass
            times.append((time.process_time() - start) / len(rounds))
        ours = 1.0 / min(times[1:])
        yield {
            "what": f"pdgd, {name} user, lists of 100 x 50, ten shown: impressions a second",
            "ours": ours,
            "peer": None,
            "ratio": None,
            "bar": "at least 50,000 impressions a second",
            "holds": ours >= 50_000,
        }


def run():
    return list(speed())


def examined(user):
    """The same user, of whom only the documents down to one below the last click are taken as seen."""

    def answer(round, ranking):
        items, clicks = user(round, ranking)
        seen = int(np.flatnonzero(clicks).max(initial=-2)) + 2
        return Feedback(items[:seen], clicks[:seen])

    return answer


def whole(user):
    return user


LEARNERS = {
    "pdgd": (lambda d, s: pdgd_ranker(d, seed=s), whole),
    "pdgd, averaged": (lambda d, s: pdgd_ranker(d, seed=s, average=True), whole),
    "topk, clicks as labels": (lambda d, s: top_k_ranker(d, k=10, seed=s), whole),
    "listnet, greedy, averaged": (lambda d, s: online_listnet(d, average=True), examined),
    "hinge, greedy, averaged": (lambda d, s: hinge_perceptron(d, average=True), examined),
}


def endless(rounds, seed):
    rng = np.random.default_rng(seed)
    while True:
        yield rounds[int(rng.integers(len(rounds)))]


def race(train, test, user, seed):
    """For each learner NDCG@10 of what it serves after so many impressions, and the mean of what it showed."""
    judged = metric("ndcg@10")
    found = {}
    for name, (make, view) in LEARNERS.items():
        learner, shown, row = make(train.n_features, seed), [], []
        stream = islice(endless(train, seed), IMPRESSIONS)
        for turn in play(learner, stream, view(feedback.cascade(user, 3, seed=seed)), [judged]):
            shown.append(turn.values[0])
            if len(shown) in AFTER:
                row.append(evaluate(learner.predict(test.X), test, [judged]).means["ndcg@10"])
        found[name] = [*row, float(np.mean(shown))]
    return found


def answerable(rounds):
    """The queries that have a relevant document: the others have the same NDCG whatever is shown."""
    kept = [round for round in rounds if (round.labels > 0).any()]
    X, labels = (np.concatenate([getattr(round, part) for round in kept]) for part in ("X", "labels"))
    return Rounds.from_arrays(X, labels, group=[len(round.labels) for round in kept])


def table(folder, seeds):
    """Means over five folds and the seeds; differences are paired by fold and seed, with 95 % normal intervals."""
    parts = ("train", "test")
    folds = [[answerable(read(Path(folder) / f"Fold{i}" / f"{p}.txt.gz")) for p in parts] for i in range(1, 6)]
    print("| user | learner | served, 1,000 | served, 10,000 | shown | served, 10,000: minus pdgd |")
    print("|---|---|---|---|---|---|")
    for user in ("perfect", "navigational", "informational"):
        runs = [race(*fold, user, 10 * i + seed) for i, fold in enumerate(folds) for seed in range(seeds)]
        for name in LEARNERS:
            values = np.array([run[name] for run in runs])
            apart = values[:, 1] - np.array([run["pdgd"][1] for run in runs])
            error = 1.96 * apart.std(ddof=1) / np.sqrt(len(apart))
            cells = " | ".join(f"{value:.4f}" for value in values.mean(axis=0))
            print(f"| {user} | {name} | {cells} | {apart.mean():+.4f} ± {error:.4f} |", flush=True)


if __name__ == "__main__":
    table(Path(sys.argv[1]) / "mq2008", int(sys.argv[2]) if len(sys.argv) > 2 else 2)
