"""The search for RTop-kF's recommended setting, on validation queries alone: every point of the grid, and its pictures.

python -m benchmarks.top_k_search DATA PICTURES: DATA holds ohsumed-letor3 and mq2008. Some minutes on two cores.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import product
from math import inf
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from ranktron import read
from ranktron.learners import TopK, online_listnet, top_k_ranker
from ranktron.learners.algorithms.topk import make_surrogate
from ranktron.learners.steps import Constant, InversePower
from ranktron.training.figures.plots import panels
from reproduction.theory.top_k_games import trial

ROUNDS, SEEDS, FOLDS = 30_000, 2, 5
SETS = {"OHSUMED": "ohsumed-letor3", "MQ2008": "mq2008"}
SHORTLISTS = {"all documents": 0, "the 10 best": 10, "the 30 best": 30, "the 50 best": 50}
EXPLORES = (0.1, 0.5, 1.0)
ETAS = (0.01, 0.03, 0.1, 0.3)
SURROGATES = ("ranksvm", "squared", "kl", "smooth-dcg")
RADII = (0.03, 0.1, 0.3, 1.0, 3.0)


@lru_cache(maxsize=2)
def parts(folder, fold):
    return tuple(read(Path(folder) / f"Fold{fold}" / f"{part}.txt.gz") for part in ("train", "vali"))


def adaptive(d, surrogate, explore, eta, shortlist, seed):
    steps = InversePower(explore, 1 / 3), Constant(eta)
    return TopK(d, make_surrogate(surrogate), 2, *steps, True, inf, shortlist, seed=seed, weighted_average=True)


def paper(d, surrogate, radius, seed):
    return top_k_ranker(d, surrogate, 2 if surrogate == "ranksvm" else 1, "paper", radius=radius, seed=seed)


MAKERS = {"adaptive": adaptive, "paper": paper, "full": lambda d, seed: online_listnet(d, 0.1)}


def cell(job):
    """Validation NDCG@10 of the served weights, for one fold and seed."""
    folder, fold, seed, maker, arguments = job
    train, held_out = parts(folder, fold)
    learner = MAKERS[maker](train.n_features, *arguments, seed=10 * fold + seed)
    return trial(learner, train, held_out, ROUNDS, seed).served


def points():
    yield ("full", ())
    for shortlist, explore, eta in product(SHORTLISTS.values(), EXPLORES, ETAS):
        yield ("adaptive", ("ranksvm", explore, eta, shortlist))
    for surrogate, eta in product(SURROGATES[1:], ETAS):
        yield ("adaptive", (surrogate, 1.0, eta, 30))
    for surrogate, radius in product(SURROGATES, RADII):
        yield ("paper", (surrogate, radius))


def search(data):
    """{data set: {point: mean over folds and seeds}}."""
    runs = [(fold, seed) for fold in range(1, FOLDS + 1) for seed in range(SEEDS)]
    found = {}
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name, folder in SETS.items():
            jobs = [(str(Path(data) / folder), *run, *point) for point in points() for run in runs]
            values = np.array(list(pool.map(cell, jobs, chunksize=10))).reshape(-1, len(runs)).mean(axis=1)
            found[name] = dict(zip(points(), values.tolist(), strict=True))
    return found


def draw(found, pictures):
    adaptive_panels = {
        f"{name}: among {among}": {
            f"γ = {g:g} t^(−1/3)": (ETAS, [at["adaptive", ("ranksvm", g, eta, shortlist)] for eta in ETAS])
            for g in EXPLORES
        }
        for name, at in found.items()
        for among, shortlist in SHORTLISTS.items()
    }
    levels = {f"{name}: among {among}": found[name]["full", ()] for name in found for among in SHORTLISTS}
    title = "RankSVM, k = 2, adaptive steps: validation NDCG@10 (dashed: all labels)"
    panels(Path(pictures) / "topk-search.svg", adaptive_panels, levels, 4, title, "step size η", log=True)
    others = {}
    for name, at in found.items():
        others[f"{name}: recommended"] = {
            s: (ETAS, [at["adaptive", (s, 1.0, eta, 30)] for eta in ETAS]) for s in SURROGATES
        }
        others[f"{name}: the paper's steps"] = {s: (RADII, [at["paper", (s, r)] for r in RADII]) for s in SURROGATES}
    levels = {panel: found[panel.partition(":")[0]]["full", ()] for panel in others}
    title = "Every loss: validation NDCG@10 (dashed: all labels)"
    panels(Path(pictures) / "topk-search-losses.svg", others, levels, 2, title, "step size η, or radius U", log=True)


if __name__ == "__main__":
    results = search(sys.argv[1])
    for name, at in results.items():
        for (maker, arguments), value in sorted(at.items(), key=lambda each: -each[1]):
            print(f"{name}  {value:.4f}  {maker} {arguments}")
    draw(results, sys.argv[2])
