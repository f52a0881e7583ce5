"""One online pass over 6,000 lists of some 120 documents with 136 features, one thread: rounds a second, and ratios.

The limit is a single compiled loop that only scores, in float32. A ratio below 1 says how far from that limit we are;
against river (one linear regression step per document, pointwise) it says how many times faster a round is.
"""

import time

import numpy as np

from ranktron import metric, play, play_many
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.jit import jit_dot
from ranktron.learners import feedback, minimax_perceptron, online_listnet, slam_perceptron
from ranktron.learners.fused import play_pass
from ranktron.learners.schedule import Fit, Schedule, Validation
from ranktron.training.fit import play_schedule as train_run

QUERIES, SOME = 6_000, 300
NDCG = metric("ndcg@10")


@jit_dot
def score_all(X, w, scores):
    for i in range(X.shape[0]):
        total = np.float32(0.0)
        for j in range(X.shape[1]):
            total += X[i, j] * w[j]
        scores[i] = total


def best_of(call, repeats=3):
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def river_seconds(lists):
    """Seconds per round of river's linear regression, learning document by document."""
    from river import linear_model, optim

    names = [str(j) for j in range(lists.n_features)]
    documents = [
        (dict(zip(names, x, strict=True)), y) for x, y in zip(lists.X.tolist(), lists.labels.tolist(), strict=True)
    ]
    model = linear_model.LinearRegression(optim.SGD(1e-4))
    start = time.perf_counter()
    for x, y in documents:
        model.predict_one(x)
        model.learn_one(x, y)
    return (time.perf_counter() - start) / len(lists)


def limit_row(what, seconds, limit, times):
    ratio = seconds / limit
    return {
        "what": f"{what}: rounds a second, against the limit",
        "ours": QUERIES / seconds,
        "peer": QUERIES / limit,
        "ratio": limit / seconds,
        "bar": f"at most {times:g} times the limit's time; it is {ratio:.1f} times",
        "holds": ratio <= times,
    }


def run():
    lists = WebSearch().rounds(QUERIES)
    scores = np.empty(len(lists.X), np.float32)
    weights = np.ones(lists.n_features, np.float32)
    limit = best_of(lambda: score_all(lists.X, weights, scores))
    rows = []
    makers = {"SLAM": slam_perceptron, "minimax": minimax_perceptron, "ListNet": online_listnet}
    for name, make in makers.items():
        plain = best_of(lambda make=make: [0 for _ in play(make(136), lists, feedback.full, [NDCG])])
        rows.append(limit_row(f"play, {name}, NDCG@10 every round", plain, limit, 7.0))
        if name == "SLAM":
            one = plain
    held_out = lists[:600]

    def fit(make):
        train_run(make(136), Fit(lists, Schedule(1), validation=Validation(held_out, NDCG)))

    def fused(make):
        learner = make(136)
        play_pass(learner, lists, np.arange(QUERIES), (NDCG,))

    rows.append(limit_row("fit, SLAM, held-out evaluation included", best_of(lambda: fit(slam_perceptron)), limit, 8.0))
    for name, make in makers.items():
        seconds = best_of(lambda make=make: fused(make))
        rows.append(limit_row(f"fused pass, {name}, NDCG@10 every round", seconds, limit, 2.5))
        if name == "SLAM":
            alone = seconds
    part = lists[:SOME]
    learners = [slam_perceptron(136, eta=eta) for eta in np.geomspace(1e-3, 1.0, 64)]
    many = best_of(lambda: [0 for _ in play_many(learners, part, [NDCG])], 2) / SOME / 64
    for name, single in (("play", one), ("fused", alone)):
        rows.append(
            {
                "what": f"64 learners at once: seconds per learner and round, against single {name} passes",
                "ours": many,
                "peer": single / QUERIES,
                "ratio": single / QUERIES / many,
                "bar": "less than a quarter (ratio > 4)" if name == "play" else "",
                "holds": single / QUERIES / many > 4.0 if name == "play" else None,
            }
        )
    river = river_seconds(lists[:20])
    rows.append(
        {
            "what": "a round of play, SLAM: seconds, against river's linear regression",
            "ours": one / QUERIES,
            "peer": river,
            "ratio": river / (one / QUERIES),
            "bar": "at least 100 times river's rounds a second",
            "holds": river / (one / QUERIES) >= 100.0,
        }
    )
    return rows


if __name__ == "__main__":
    for row in run():
        print(f"{row['what']}: {row['ours']:.4g} / {row['peer']:.4g} = {row['ratio']:.3g}  {row['bar']}")
