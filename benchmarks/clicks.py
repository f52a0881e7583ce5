"""Learning from clicks on one thread: impressions a second, the user's clicks included."""

import time

import numpy as np

from ranktron import feedback
from ranktron.data.rounds import Rounds
from ranktron.learners import pdgd_ranker
from ranktron.learners.loop import play

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
