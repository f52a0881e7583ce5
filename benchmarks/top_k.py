"""RTop-kF on one thread: rounds a second, sampling and propensities included, and how a round grows with its list."""

import time
from math import log2
from pathlib import Path

import numpy as np

from ranktron import read
from ranktron.learners import TopK, online_listnet, top_k_ranker
from ranktron.learners.top_k_theory import regret_bound, theorem_settings
from ranktron.loop import play
from ranktron.report.figures import curves
from ranktron.rounds import Rounds
from ranktron.steps import Constant, InversePower
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared
from ranktron.top_k_simulations import (
    HORIZONS,
    Indistinguishable,
    Pool,
    average_so_far,
    exponent,
    full_feedback,
    impossibility,
    midpoint,
    random_ndcg,
    regret,
    rtop_1f,
    trial,
)

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
            for _ in play(learner, rounds, learner.hears):
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
    "greedy, recommended steps": lambda d, seed: top_k_ranker(d, explore=1e-12),
    "greedy, paper's steps": lambda d, seed: top_k_ranker(d, setting="paper", explore=1e-12),
}
PAPER = {
    "paper: ranksvm, k = 2": lambda d, seed: top_k_ranker(d, setting="paper", seed=seed),
    "paper: squared, k = 1": lambda d, seed: top_k_ranker(d, "squared", 1, "paper", seed=seed),
    "paper: kl as printed, k = 1": lambda d, seed: top_k_ranker(d, "kl", 1, "paper", seed=seed),
    "paper: kl, scores in full, k = 1": lambda d, seed: as_in_the_paper(d, KL(), 1, 0.1, seed),
    "paper: smooth-dcg, k = 1": lambda d, seed: top_k_ranker(d, "smooth-dcg", 1, "paper", seed=seed),
    "paper: smooth-dcg, sign as printed": lambda d, seed: as_in_the_paper(d, SmoothDCG(printed=True), 1, 0.3, seed),
}
RECOMMENDED = {
    f"recommended: {name}, k = 2": lambda d, seed, name=name: top_k_ranker(d, name, seed=seed)
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


CONVEX = {"squared": Squared(), "ranksvm": PairwiseHinge(), "kl": KL(), "kl as printed": KL(printed=True)}


def regret_table(path, horizons=HORIZONS, seeds=5):
    """Regret with the theorem's own exploration and step: its exponent, and a picture of regret over T^(2/3)."""
    pool, lines = Pool(), {}
    print("| surrogate | exponent | 95 % interval | regret at the longest horizon | its bound |\n|---|---|---|---|---|")
    for name, surrogate in CONVEX.items():
        regrets = np.array([[regret(surrogate, pool, T, seed) for T in horizons] for seed in range(seeds)])
        slope, low, high = exponent(horizons, regrets)
        T = horizons[-1]
        bound = regret_bound(surrogate, pool.limits, T, *theorem_settings(surrogate, pool.limits, T))
        at_the_end = regrets[:, -1].mean()
        print(f"| {name} | {slope:.3f} | {low:.3f} to {high:.3f} | {at_the_end:,.0f} | {bound:,.0f} |", flush=True)
        lines[name] = (horizons, regrets.mean(axis=0) / np.array(horizons) ** (2 / 3))
    curves(
        path,
        lines,
        {},
        title="Regret over T^(2/3), with the theorem's own exploration and step",
        x="rounds T",
        y="regret / T^(2/3)",
        log=True,
    )


def impossibility_picture(path, T=20_000, seeds=5):
    """Regret on the worse of two distributions that the first label cannot tell apart."""
    players = {
        "RTop-1F": lambda seed: rtop_1f(T, seed),
        "knows both distributions": lambda seed: midpoint,
        "all labels revealed": lambda seed: full_feedback,
    }
    at = np.arange(100, T + 1, 100)
    lines = {}
    for name, player in players.items():
        regrets = impossibility(player, T, range(seeds))
        lines[name] = (at, regrets[at - 1])
        print(f"{name}: {regrets[-1] / T:.4f} a round, {regrets[-1] - regrets[T // 2 - 1]:.1f} in the second half")
    lines["the least there is with the first label (0.0187 T)"] = (at, Indistinguishable().unavoidable * at)
    curves(path, lines, {}, title="The calibrated loss, with the label of the first document", x="rounds", y="regret")


def figure_1(path, folder, rounds=ROUNDS):
    """The figure of the paper on other data: mean NDCG@10 of all that was shown so far, on the queries of one fold."""
    train = folds(folder)[0][0]
    chosen = {**BASELINES, **PAPER, **RECOMMENDED}
    names = [
        "ListNet, all labels",
        "recommended: ranksvm, k = 2",
        "paper: ranksvm, k = 2",
        "paper: kl as printed, k = 1",
        "paper: squared, k = 1",
        "paper: smooth-dcg, k = 1",
    ]
    lines = {name: average_so_far(chosen[name](train.n_features, 0), train, rounds, 0) for name in names}
    levels = {"random": random_ndcg(train)}
    title = f"Mean NDCG@10 of all rankings shown so far, {Path(folder).name}"
    curves(path, lines, levels, title=title, x="rounds", y="NDCG@10", log=True)


if __name__ == "__main__":
    for result in run():
        print({key: round(value, 7) if isinstance(value, float) else value for key, value in result.items()})
