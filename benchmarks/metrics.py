"""NDCG@10 and MAP over 6,000 lists of 120 documents: ours, LightGBM's C++ and ranx, one thread each, in one run."""

import time
import warnings

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.metrics import evaluate, metric

QUERIES, DOCUMENTS, REPEATS = 6_000, 120, 7


def best_of(call, repeats=REPEATS):
    """The shortest of several runs, the first of them not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def lists():
    rng = np.random.default_rng(0)
    n = QUERIES * DOCUMENTS
    labels = rng.choice(5, n, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)
    scores = (labels + rng.normal(0.0, 2.0, n)).astype(np.float32).astype(float)
    return scores, Rounds.from_arrays(np.zeros((n, 1)), labels, group=[DOCUMENTS] * QUERIES)


def lightgbm_call(scores, rounds):
    """An untrained booster has the initial scores, so that evaluating it is its metrics and nothing else."""
    import lightgbm

    quiet = {"verbosity": -1, "num_threads": 1, "min_data_in_bin": 1}
    feature = np.arange(len(scores), dtype=float)[:, None] % 100
    group = np.diff(rounds.offsets)
    data = lightgbm.Dataset(feature, rounds.labels, group=group, init_score=scores, params=quiet)
    boosters = [
        lightgbm.Booster({"objective": "none", "metric": name, "eval_at": [depth], **quiet}, data)
        for name, depth in (("ndcg", 10), ("map", DOCUMENTS))
    ]
    return lambda: {name: value for booster in boosters for _, name, value, _ in booster.eval_train()}


def ranx_call(scores, rounds):
    import numba
    import ranx

    numba.set_num_threads(1)
    names = [f"d{i}" for i in range(DOCUMENTS)]
    qrels, run = {}, {}
    for q, start in enumerate(rounds.offsets[:-1]):
        part = slice(start, start + DOCUMENTS)
        qrels[f"q{q}"] = dict(zip(names, rounds.labels[part].astype(int).tolist(), strict=True))
        run[f"q{q}"] = dict(zip(names, scores[part].tolist(), strict=True))
    qrels, run = ranx.Qrels(qrels), ranx.Run(run)
    return lambda: ranx.evaluate(qrels, run, ["ndcg_burges@10", "map"])


def row(what, ours, peer, bar, holds):
    return {"what": what, "ours": ours, "peer": peer, "ratio": peer / ours, "bar": bar, "holds": holds(peer / ours)}


def run():
    scores, rounds = lists()
    asked = ["ndcg@10:lightgbm", "map:lightgbm"]
    ours = best_of(lambda: evaluate(rounds, scores, asked))
    means = evaluate(rounds, scores, asked).means
    call = lightgbm_call(scores, rounds)
    theirs = call()
    assert abs(theirs["ndcg@10"] - means[asked[0]]) < 1e-6
    assert abs(theirs[f"map@{DOCUMENTS}"] - means[asked[1]]) < 1e-6
    rows = [
        row(
            "ndcg@10 + map, 6,000 lists of 120: seconds, against LightGBM's C++",
            ours,
            best_of(call),
            "at most 1.5 times LightGBM's time (ratio >= 0.67)",
            lambda ratio: ratio >= 1 / 1.5,
        )
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranx = best_of(ranx_call(scores, rounds), 3)
    rows.append(
        row(
            "ndcg@10 + map, 6,000 lists of 120: seconds, against ranx, warm",
            ours,
            ranx,
            "at least 5 times faster than ranx (ratio >= 5)",
            lambda ratio: ratio >= 5.0,
        )
    )
    one = metric("ndcg@10")
    shown = rounds.labels[:DOCUMENTS].copy()
    loop = best_of(lambda: [one(shown) for _ in range(10_000)], 3) / 10_000
    rows.append(
        {"what": "ndcg@10 of one shown list of 120: seconds", "ours": loop, "peer": None, "ratio": None, "bar": ""}
    )
    return rows


if __name__ == "__main__":
    for result in run():
        beside = "" if result["peer"] is None else f"  peer {result['peer']:.3g}  ratio {result['ratio']:.2f}"
        print(f"{result['what']}: ours {result['ours']:.3g}{beside}  {result['bar']}")
