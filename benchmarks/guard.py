"""How many bad rankings are shown until the guard acts, against no guard: reversed labels, a broken feature, a drift.

python -m benchmarks.guard: prints the table of docs/is-it-better.md; some minutes. A ranker (topk, k = 5) learns from
users who look less and less at lower places, and click what they like. After 2,000 of them its version is kept as the
incumbent; after 3,000 more something breaks. A ranking is bad if its expected reward (one over the rank of the first
click) is below that of the incumbent's on the same list by more than the tolerance.
"""

import numpy as np

from ranktron.learners import top_k_ranker
from ranktron.store.experiments.arms import assigned_arm, user_key
from ranktron.store.experiments.messages import ArmDefinition, ExperimentDefinition, GuardDefinition
from ranktron.store.experiments.tally import Tally
from ranktron.types import Feedback

K, DOCUMENTS, FEATURES = 5, 12, 6
TAUGHT, GOOD, BAD = 2_000, 3_000, 10_000
TOLERANCE, RUN_LENGTH, RUNS = 0.03, 100_000.0, 5
PLACES = 1.0 / np.arange(1.0, K + 1.0)  # how likely a user is to look there, and what a first click there is worth
TASTE = np.array([1.0, 0.8, 0.5, 0.0, 0.0, 0.0])
TROUBLES = {
    "reversed labels": "clicks are told as no clicks, and the other way round",
    "a broken feature": "the most important one has the wrong sign for 5,000 users, for both arms; then it is repaired",
    "a slow drift": "ever more of the feedback is reversed, all of it after 5,000 users",
    "users change": "they like the opposite; the ranker follows, the incumbent does not",
    "nothing": "",
}


class World:
    """Lists, users, and what goes wrong with them; `since` counts users from the break on."""

    def __init__(self, trouble, seed):
        self.trouble, self.since = trouble, -1
        self.rng = np.random.default_rng((seed, 1))

    def draw(self):
        """The features of a list."""
        return self.rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32)

    def served(self, X):
        """The features that the rankers are given."""
        wrong = self.trouble == "a broken feature" and 0 <= self.since < 5_000
        return X * np.array([-1, 1, 1, 1, 1, 1], np.float32) if wrong else X

    def chances(self, X, order):
        """How likely a click is at each place."""
        taste = -TASTE if self.trouble == "users change" and self.since >= 0 else TASTE
        return PLACES / (1.0 + np.exp(-2.0 * (X[order[:K]] @ taste - 1.0)))

    def clicks(self, chances):
        return (self.rng.random(K) < chances).astype(float)

    def told(self, clicks):
        """The labels that the ranker receives for some clicks."""
        share = {"reversed labels": 1.0, "a slow drift": min(self.since / 5_000, 1.0)}.get(self.trouble, 0.0)
        return 1.0 - clicks if self.since >= 0 and self.rng.random() < share else clicks


def expected_reward(chances):
    """Of one over the rank of the first click."""
    none_above = np.append(1.0, np.cumprod(1.0 - chances))[:-1]
    return float((none_above * chances) @ PLACES)


def first_click(clicks):
    clicked = np.flatnonzero(clicks)
    return float(PLACES[clicked[0]]) if len(clicked) else 0.0


def simulate(trouble, share, seed, guarded=True):
    """Bad rankings and reward lost after the break, and after how many users the guard acted; None if it did not."""
    world, learner, number = (
        World(trouble, seed),
        top_k_ranker(FEATURES, k=K, preset="recommended", explore=1.0, floor=0.0, seed=seed),
        0,
    )

    def show(X):
        nonlocal number
        given = world.served(X)
        ranking = learner.rank(given, number)
        chances = world.chances(X, ranking.order)
        clicks = world.clicks(chances)
        learner.learn(given, ranking, Feedback(ranking.order[:K], world.told(clicks)))
        number += 1
        return chances, clicks

    for _ in range(TAUGHT):
        show(world.draw())
    incumbent, shares = learner.w.copy(), (share, 1.0 - share)
    arms = (ArmDefinition("shop", 1), ArmDefinition("shop"))
    guard = GuardDefinition(TOLERANCE, RUN_LENGTH)
    tally = Tally(ExperimentDefinition(arms, shares=shares, seed=seed, guard=guard))
    bad, lost = 0, 0.0
    for user in range(GOOD + BAD):
        world.since = user - GOOD
        X, arm = world.draw(), assigned_arm(user_key(seed, str(user)), shares) if guarded else 1
        best = world.chances(X, np.argsort(-(world.served(X) @ incumbent), kind="stable"))
        chances, clicks = show(X) if arm else (best, world.clicks(best))
        if user >= GOOD:
            short = expected_reward(best) - expected_reward(chances)
            bad, lost = bad + (short > TOLERANCE), lost + short
        if guarded:
            tally.add(arm, [first_click(clicks)])
            if tally.alarm is not None:
                return bad, lost, user - GOOD
    return bad, lost, None


def main():
    print("| what breaks | incumbent's share | acted in | users until then | bad rankings | reward lost |")
    print("|---|---|---|---|---|---|")
    for trouble in TROUBLES:
        for share in (None, 0.1, 0.5):
            runs = [simulate(trouble, share or 0.5, seed, share is not None) for seed in range(RUNS)]
            bad, lost = (np.median([run[i] for run in runs]) for i in (0, 1))
            times = [run[2] for run in runs if run[2] is not None]
            acted = "no guard" if share is None else f"{len(times)} of {RUNS}"
            until = f"{np.median(times):,.0f}" if times else "–"
            cells = [trouble, "–" if share is None else f"{share:.0%}", acted, until, f"{bad:,.0f}", f"{lost:,.1f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
