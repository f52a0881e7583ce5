"""Weights of users' own beside weights for everybody, of users who are alike and of users whose tastes differ.

python -m benchmarks.own_weights [SEEDS] prints two tables: users whose weights differ by a stated length, and viewers
of films, as in collections of ratings: few genres each, and few users who give most of the feedback. It takes a minute
for each seed.
"""

import sys

import numpy as np

from ranktron import Feedback, metric
from ranktron.learners import pdgd_ranker
from ranktron.learners.per_user import PerUser

LISTED, SHOWN = 15, 10
APART = (0.0, 0.5, 1.0, 2.0)
FEEDBACKS = (20, 100)
RANKERS = {
    "everybody's": lambda width, seed: pdgd_ranker(width, eta=0.1, seed=seed),
    "own": lambda width, seed: PerUser(pdgd_ranker(width, eta=0.1, seed=seed)),
}


class Tastes:
    """Users with weights of unit length: common ones, and their own that differ at random, times `apart`."""

    width, bounds = 8, (0.8, 1.5)

    def __init__(self, apart, rng, users=50):
        common = rng.normal(size=self.width)
        found = common / np.linalg.norm(common) + apart * rng.normal(size=(users, self.width)) / np.sqrt(self.width)
        self.truth = found / np.linalg.norm(found, axis=1)[:, None]
        self.activity = np.full(users, 1.0 / users)

    def page(self, rng):
        return rng.normal(size=(LISTED, self.width)).astype(np.float32)


class Viewers(Tastes):
    """Viewers of films: 18 genres, quality, popularity and age; each likes three genres and dislikes two.

    The n-th most active of 500 users comes in proportion to 1/n. `apart` is how much genres count beside quality.
    """

    width, bounds = 21, (0.8, 1.5)

    def __init__(self, apart, rng, users=500):
        self.truth = np.zeros((users, self.width))
        for own in self.truth:
            likes = rng.permutation(18)[:5]
            own[likes] = apart * np.array([1.0, 1.0, 1.0, -1.0, -1.0])
        self.truth[:, 18:] = 0.7, 0.3, 0.1
        self.activity = 1.0 / np.arange(1, users + 1)
        self.activity /= self.activity.sum()

    def page(self, rng):
        X = rng.normal(size=(LISTED, self.width)).astype(np.float32)
        X[:, :18] = rng.random((LISTED, 18)) < 2.0 / 18.0
        return X


def play(learner, world, feedbacks, rng):
    """NDCG@10 of all pages that were shown, and of what users are served in the end, drawn as they come."""
    judged, shown = metric("ndcg@10"), []

    def page(user):
        X = world.page(rng)
        utility = X @ world.truth[user]
        return X, utility, sum((utility > bound).astype(float) for bound in world.bounds)

    for number in range(len(world.truth) * feedbacks):
        user = int(rng.choice(len(world.truth), p=world.activity))
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
    for user in rng.choice(len(world.truth), 500, p=world.activity).tolist():
        X, _, grades = page(user)
        if grades.any():
            served.append(judged(grades[np.argsort(-learner.of(f"u{user}").scores(X))]))
    return np.mean(shown), np.mean(served)


def table(make_world, apart, feedbacks, seeds):
    print(f"| {make_world.__name__.lower()} | feedbacks a user | everybody's: shown | served | own: shown | served |")
    print("|---|---|---|---|---|---|")
    for strength in apart:
        for count in feedbacks:
            cells = []
            for make in RANKERS.values():
                runs = []
                for seed in range(seeds):
                    world = make_world(strength, np.random.default_rng((seed, 0)))
                    learner = make(world.width, seed)
                    runs.append(play(learner, world, count, np.random.default_rng((seed, 1))))
                cells += [f"{value:.3f}" for value in np.mean(runs, axis=0)]
            print(f"| {strength:g} | {count} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    table(Tastes, APART, FEEDBACKS, seeds)
    table(Viewers, (0.0, 0.5, 1.0), (20,), seeds)
