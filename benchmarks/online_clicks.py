"""Learners that show rankings and learn from the clicks on them, side by side: what is shown, and what is served.

python -m benchmarks.online_clicks DATA RESULTS [SEEDS]: DATA holds mq2008 and ohsumed-letor3. Writes one JSON line per
run to the file RESULTS, goes on where it stopped, prints the table and draws docs/pictures/clicks-served.svg and
clicks-shown.svg.
"""

import json
import sys
from itertools import islice, product
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel

from benchmarks.click_logs import holm
from ranktron import Feedback, evaluate, feedback, metric, read, synthetic
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.learners import hinge_perceptron, online_listnet, pdgd_ranker, top_k_ranker
from ranktron.learners.loop import play
from ranktron.training.figures.plots import panels

AFTER = (100, 300, 1_000, 3_000, 10_000)
JUDGED = (1_000, 10_000)
USERS = ("perfect", "navigational", "informational")
SETS = {"mq2008": 3, "ohsumed-letor3": 3, "web": 5}  # and the number of grades
PICTURES = Path(__file__).parent.parent / "docs" / "pictures"


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
    "topk, clicks as labels": (
        lambda d, s: top_k_ranker(d, k=10, preset="recommended", explore=1.0, floor=0.0, seed=s),
        whole,
    ),
    "listnet, greedy, averaged": (lambda d, s: online_listnet(d, average=True), examined),
    "hinge, greedy, averaged": (lambda d, s: hinge_perceptron(d, average=True), examined),
}


def answerable(rounds):
    """The queries that have a relevant document: the others have the same NDCG whatever is shown."""
    kept = [round for round in rounds if (round.labels > 0).any()]
    X, labels = (np.concatenate([getattr(round, part) for round in kept]) for part in ("X", "labels"))
    return Rounds.from_arrays(X, labels, group=[len(round.labels) for round in kept])


def fold_of(folder, data, fold):
    """Training and test queries; those of the simulation are standardised as its training queries say."""
    if data != "web":
        return [answerable(read(folder / data / f"Fold{fold}" / f"{part}.txt.gz")) for part in ("train", "test")]
    web = synthetic.WebSearch(seed=fold)
    train, test = answerable(web.rounds(600)), answerable(web.rounds(300, skip=600))
    scaler = fit_scaler("standard", train)
    return [scale(train, scaler), scale(test, scaler)]


def endless(rounds, seed):
    rng = np.random.default_rng(seed)
    while True:
        yield rounds[int(rng.integers(len(rounds)))]


def race(train, test, user, seed):
    """For each learner NDCG@10 of what it serves after so many impressions, and of what it showed until then."""
    judged, found = metric("ndcg@10"), {}
    for name, (make, view) in LEARNERS.items():
        learner, shown, served = make(train.n_features, seed), [], []
        for turn in play(learner, islice(endless(train, seed), AFTER[-1]), view(user), [judged]):
            shown.append(turn.values[0])
            if len(shown) in AFTER:
                served.append(evaluate(test, learner.predict(test.X), [judged]).means["ndcg@10"])
        found[name] = {"served": served, "shown": [float(np.mean(shown[:n])) for n in AFTER]}
    return found


def run_all(folder, path, seeds):
    """Runs what is not in the file yet, and adds it, line by line."""
    done = {json.dumps(row["key"]) for row in stored(path)}
    for seed, data, fold in product(range(seeds), SETS, range(1, 6)):
        keys = [[data, user, fold, seed] for user in USERS]
        if all(json.dumps(key) in done for key in keys):
            continue
        train, test = fold_of(folder, data, fold)
        for key in keys:
            number = 10 * fold + seed
            found = race(train, test, feedback.cascade(key[1], SETS[data], seed=number), number)
            with path.open("a") as file:
                file.write(json.dumps({"key": key, "found": found}) + "\n")


def stored(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def values_of(rows, data, user, name, what):
    """Runs × impressions, in the order of folds and seeds."""
    chosen = sorted((row for row in rows if row["key"][:2] == [data, user]), key=lambda row: row["key"])
    return np.array([row["found"][name][what] for row in chosen])


def table(rows):
    """Means over folds and seeds; * where a paired t-test over runs with Holm's correction finds a difference."""
    cells = list(product(SETS, USERS, LEARNERS, JUDGED))
    served = {
        (*cell, n): values_of(rows, *cell, "served")[:, AFTER.index(n)] for *cell, n in cells
    }  # of data, user, learner, and impressions
    rivals = [cell for cell in cells if cell[2] != "pdgd"]
    peers = [served[data, user, "pdgd", n] for data, user, _, n in rivals]
    tests = [ttest_rel(served[cell], peer).pvalue for cell, peer in zip(rivals, peers, strict=True)]
    apart = {
        cell: f"{(served[cell] - peer).mean():+.4f}{'*' if p < 0.05 else ''}"
        for cell, peer, p in zip(rivals, peers, holm(np.array(tests)), strict=True)
    }
    print(f"{len(rivals)} comparisons, {len(peers[0])} runs each\n")
    print("| data | user | learner | served, 1,000 | minus pdgd | served, 10,000 | minus pdgd | shown |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in product(SETS, USERS, LEARNERS):
        means = [f"{served[*cell, n].mean():.4f} | {apart.get((*cell, n), '')}" for n in JUDGED]
        shown = values_of(rows, *cell, "shown")[:, -1].mean()
        print(f"| {' | '.join([*cell, *means])} | {shown:.4f} |")


def draw(rows, what, title):
    """A row per data set, a column per user."""
    grid = {
        f"{data}, {user}": {
            name: (AFTER, values_of(rows, data, user, name, what).mean(axis=0))
            for name in LEARNERS
            if what == "served" or name != "pdgd, averaged"  # which shows what pdgd shows
        }
        for data, user in product(SETS, USERS)
    }
    panels(PICTURES / f"clicks-{what}.svg", grid, {}, len(USERS), title, "impressions", log=True)


if __name__ == "__main__":
    results = Path(sys.argv[2])
    run_all(Path(sys.argv[1]), results, int(sys.argv[3]) if len(sys.argv) > 3 else 10)
    found = stored(results)
    table(found)
    draw(found, "served", "NDCG@10 of what is served after so many impressions")
    draw(found, "shown", "Mean NDCG@10 of what users were shown until then")
