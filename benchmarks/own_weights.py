"""Weights of users' own beside weights for everybody, of users who are alike and of users whose tastes differ.

python -m benchmarks.own_weights [SEEDS] prints a table. It takes half a minute for each seed.
"""

import sys

import numpy as np

from ranktron import Feedback, metric
from ranktron.learners import pdgd_ranker
from ranktron.learners.per_user import PerUser

USERS, WIDTH, LISTED, SHOWN = 50, 8, 15, 10
APART = (0.0, 0.5, 1.0, 2.0)
FEEDBACKS = (20, 100)
RANKERS = {
    "everybody's": lambda seed: pdgd_ranker(WIDTH, seed=seed),
    "own": lambda seed: PerUser(pdgd_ranker(WIDTH, seed=seed)),
}


def tastes(apart, rng):
    """Unit vectors: a common one, and for each user one that differs from it at random, times `apart`."""
    common = rng.normal(size=WIDTH)
    found = common / np.linalg.norm(common) + apart * rng.normal(size=(USERS, WIDTH)) / np.sqrt(WIDTH)
    return found / np.linalg.norm(found, axis=1)[:, None]


def play(learner, truth, feedbacks, rng):
    """NDCG@10 of all pages that were shown, and of what each user is served in the end."""
    judged, shown = metric("ndcg@10"), []

    def page(user):
        X = rng.normal(size=(LISTED, WIDTH)).astype(np.float32)
        utility = X @ truth[user]
        return X, utility, (utility > 0.8).astype(float) + (utility > 1.5)

    for number in range(USERS * feedbacks):
        user = int(rng.integers(USERS))
        X, utility, grades = page(user)
        me = learner.of(f"u{user}")
        ranking = me.rank(X, number)
        items = ranking.order[:SHOWN]
        seen = rng.random(SHOWN) < np.arange(1, SHOWN + 1) ** -0.5
        clicks = seen & (rng.random(SHOWN) < 0.9 / (1.0 + np.exp(-2.0 * utility[items])))
        me.learn(X, ranking, Feedback(items, clicks.astype(float)))
        if grades.any():
            shown.append(judged(grades[ranking.order]))
    served = []
    for user in np.repeat(np.arange(USERS), 10).tolist():
        X, _, grades = page(user)
        if grades.any():
            served.append(judged(grades[np.argsort(-learner.of(f"u{user}").scores(X))]))
    return np.mean(shown), np.mean(served)


def table(seeds):
    print("| tastes apart by | feedbacks of each user | everybody's: shown | served | own: shown | served |")
    print("|---|---|---|---|---|---|")
    for apart in APART:
        for feedbacks in FEEDBACKS:
            cells = []
            for make in RANKERS.values():
                runs = []
                for seed in range(seeds):
                    truth = tastes(apart, np.random.default_rng((seed, 0)))
                    runs.append(play(make(seed), truth, feedbacks, np.random.default_rng((seed, 1))))
                cells += [f"{value:.3f}" for value in np.mean(runs, axis=0)]
            print(f"| {apart:g} | {feedbacks} | {' | '.join(cells)} |")


if __name__ == "__main__":
    table(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
