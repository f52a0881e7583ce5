"""RTop-kF on one thread: rounds a second, sampling and propensities included, and how a round grows with its list."""

import time
from math import log2
from pathlib import Path

import numpy as np

from ranktron import read
from ranktron.data.rounds import Rounds
from ranktron.learners import TopK, online_listnet, top_k_ranker
from ranktron.learners.loop import play
from ranktron.learners.steps import Constant, InversePower
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared
from reproduction.theory.top_k_games import random_ndcg, trial

FEATURES, REPEATS = 50, 5
SURROGATES = {
    "ranksvm, k = 2": (PairwiseHinge(), 2),
    "ranksvm, k = 10": (PairwiseHinge(), 10),
    "squared, k = 1": (Squared(), 1),
    "kl, k = 1": (KL(), 1),
    "smooth-dcg, k = 1": (SmoothDCG(), 1),
}


def lists(queries, documents, features=FEATURES):
    rng = np.random.default_rng(0)
    n = queries * documents
    X = rng.normal(size=(n, features)).astype(np.float32)
    return list(Rounds.from_arrays(X, rng.integers(3, size=n), group=[documents] * queries))


def seconds_a_round(learner, rounds, passes=1):
    """The shortest of several runs over all rounds, the first of them not counted."""
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        for _ in range(passes):
            for _ in play(learner, rounds, learner.simulated_feedback):
                pass
        times.append((time.perf_counter() - start) / (passes * len(rounds)))
    return min(times[1:])


def learner_of(surrogate, k, features=FEATURES, gamma=None):
    explore = InversePower(0.5, 1 / 3) if gamma is None else Constant(gamma)
    return TopK(features, surrogate, k, explore, InversePower(0.01, 2 / 3), radius=1.0)


def speed():
    rounds = lists(300, 100)
    peer = 1.0 / seconds_a_round(online_listnet(FEATURES), rounds, 5)
    for name, (surrogate, k) in SURROGATES.items():
        for explored, gamma in (("", None), (", every round explores", 1.0)):
            ours = 1.0 / seconds_a_round(learner_of(surrogate, k, gamma=gamma), rounds, 5)
            yield {
                "what": f"{name}, lists of 100 x 50{explored}: rounds a second, beside ListNet with all labels",
                "ours": ours,
                "peer": peer,
                "ratio": ours / peer,
                "bar": "at least 30,000 rounds a second",
                "holds": ours >= 30_000,
            }


def growth():
    """Seconds of a round over m log m, which should not grow: caches are left behind on the way to 100,000."""
    base = None
    for m in (10, 100, 1_000, 10_000, 100_000):
        seconds = seconds_a_round(learner_of(PairwiseHinge(), 2, 10, 1.0), lists(max(3, 3_000 // m), m, 10))
        unit = seconds / (m * log2(m))
        base = unit if m == 1_000 else base
        yield {
            "what": f"ranksvm, every round explores, lists of {m:,} x 10: seconds a round",
            "ours": seconds,
            "peer": None,
            "ratio": None if base is None else base / unit,
            "bar": "" if base is None else "at most 3 times the m log m of a list of 1,000 (ratio >= 0.33)",
            "holds": base is None or base / unit >= 1 / 3,
        }


def run():
    return [*speed(), *growth()]


ROUNDS, SEEDS = 100_000, 3
BASELINES = {
    "ListNet, all labels": lambda d, seed: online_listnet(d, 0.1),
    "greedy, recommended steps": lambda d, seed: top_k_ranker(d, preset="recommended", explore=1e-12, floor=0.0),
    "greedy, paper's steps": lambda d, seed: top_k_ranker(d, explore=1e-12),
}
PAPER = {
    "paper: ranksvm, k = 2": lambda d, seed: top_k_ranker(d, seed=seed),
    "paper: squared, k = 1": lambda d, seed: top_k_ranker(d, "squared", 1, "paper", seed=seed),
    "paper: kl as printed, k = 1": lambda d, seed: top_k_ranker(d, "kl", 1, "paper", seed=seed),
    "paper: kl, scores in full, k = 1": lambda d, seed: as_in_the_paper(d, KL(), 1, 0.1, seed),
    "paper: smooth-dcg, k = 1": lambda d, seed: top_k_ranker(d, "smooth-dcg", 1, "paper", seed=seed),
    "paper: smooth-dcg, sign as printed": lambda d, seed: as_in_the_paper(d, SmoothDCG(printed=True), 1, 0.3, seed),
}
RECOMMENDED = {
    f"recommended: {name}, k = 2": lambda d, seed, name=name: top_k_ranker(
        d, name, 2, "recommended", 1.0, floor=0.0, seed=seed
    )
    for name in ("ranksvm", "squared", "kl", "smooth-dcg")
}


def as_in_the_paper(d, surrogate, k, radius, seed):
    return TopK(d, surrogate, k, InversePower(0.1, 1 / 3), InversePower(0.01, 2 / 3), radius=radius, seed=seed)


def folds(folder):
    """The five folds of a data set in LETOR's layout: (train, held-out, test)."""
    parts = ("train", "vali", "test")
    return [tuple(read(Path(folder) / f"Fold{i}" / f"{part}.txt.gz") for part in parts) for i in range(1, 6)]


def table(folder, learners, rounds=ROUNDS, seeds=SEEDS):
    """Mean test NDCG@10 over folds and seeds, and the share of full feedback's gain over random that is kept."""
    data = folds(folder)
    chance = np.mean([random_ndcg(test) for _, _, test in data])
    print(
        "| learner | last weights | served weights | shown | gain kept | spread over seeds |\n|---|---|---|---|---|---|"
    )
    full = None
    for name, make in learners.items():
        runs = np.array(
            [
                [
                    trial(make(train.n_features, 10 * i + s), train, test, rounds, s)
                    for i, (train, _, test) in enumerate(data)
                ]
                for s in range(seeds)
            ]
        )
        last, served, shown = runs.mean(axis=(0, 1))
        full = served if full is None else full
        spread = (runs[:, :, 1].mean(axis=1) - chance).std() / (full - chance)
        kept = (served - chance) / (full - chance)
        print(f"| {name} | {last:.4f} | {served:.4f} | {shown:.4f} | {kept:.0%} | {spread:.0%} |", flush=True)
    print(f"| random | {chance:.4f} | {chance:.4f} | {chance:.4f} | 0% | |", flush=True)


if __name__ == "__main__":
    for result in run():
        print({key: round(value, 7) if isinstance(value, float) else value for key, value in result.items()})
