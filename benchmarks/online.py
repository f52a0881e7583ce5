"""One online pass over 6,000 lists of some 120 documents with 136 features, one thread: rounds a second, and ratios.

The limit is a single compiled loop that only scores, in float32. A ratio below 1 says how far from that limit we are;
against river (one linear regression step per document, pointwise) it says how many times faster a round is. Times are
those of the processor, the least of several.

Where the time of a fused round goes, in microseconds, on a machine whose limit is 1.6; each part is what a pass gains
without it and all after it, in brackets with lists that are in the cache:

- scoring 1.8 (0.9), in 64 bits;
- NDCG@10 0.6 (0.4) for selecting and ordering ten documents, and 0.3 (0.1) for the ideal DCG, which reads the labels;
- documents by grade 0.4 (0.3), best and worst score of each grade 0.2 (SLAM and minimax), whether there is a mistake
  0.1;
- the loss: SLAM 0.5 with the ideal order, minimax 0.1, ListNet 0.4 for exponentials, hinge 0.8 for all pairs;
- the step: 0.2 to 0.4 for the rows of a few documents, 1.1 for all rows (ListNet and hinge).

2 times the limit leave 1.4 for everything but scoring. With everything in the cache, SLAM takes 2.9, minimax 2.3,
ListNet 2.9 and hinge 3.7: reading from memory would have to be hidden altogether. Where all rows are added up, half of
the next list is fetched meanwhile, a row with every two that are added, which takes 10 % from the rounds of ListNet
and hinge. To fetch before NDCG@10 is computed, all of the list, its first lines or some of each page, gains nothing.
To fetch an eighth after each phase of a round makes SLAM and minimax 8 % faster and ListNet and hinge 10 % slower.
Working space on the stack instead of allocated gains nothing, because the compiler then has to expect that arrays
overlap. Adding rows and scoring are within 1.5 times of what converting their numbers to 64 bits takes. Less needs
sums in another order or of another rounding.

64 learners at once share the reading of features and the grades, no more: the scores of a learner take 0.6 in a matrix
product, which is as fast as the processor multiplies, its own NDCG@10 0.4, mistakes, loss and step 1.3 in the cache. A
quarter of a pass alone would be 1.1.

`play` makes a `Turn` with ranking and feedback: 2.1 more than a fused round. Even if nothing were ranked or learnt,
Python's own work would take 0.7 times the limit (new arrays, slices of labels, named tuples), and to call a compiled
function 0.3 times: to take an array from Python costs 0.05, a record 0.1, and more if it is in no cache. The rest is
ordering all documents, where a pass orders ten, and memory: each list pushes Python's objects out of the nearest cache.
Predtron solves an assignment problem for each list (0.3 milliseconds); the pairwise perceptron judges each of 4,400
pairs by the weights at that time (0.25).

`fit` on arrays, on a machine whose limit is 1.8: 1.6 to see whether each number is finite, which reads all of them
once more; 4.2 for the pass, without a metric, and 0.4 more because its order is shuffled, so that each list begins
where memory was not read before; 1.1 for labels, query ids and what is warned of.
"""

import time

import numpy as np

from ranktron import SLAMPerceptron, metric, play, play_many
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.jit import jit_dot
from ranktron.learners import feedback, hinge_perceptron, minimax_perceptron, online_listnet, slam_perceptron
from ranktron.learners.fused import play_pass
from ranktron.learners.schedule import Fit, Schedule, Validation
from ranktron.training.algorithms import ALGORITHMS
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


def best_of(call, repeats=5):
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()  # one thread: other work on the machine does not count
        call()
        times.append(time.process_time() - start)
    return min(times)


def river_seconds(lists):
    """Seconds per round of river's linear regression, learning document by document."""
    from river import linear_model, optim

    names = [str(j) for j in range(lists.n_features)]
    documents = [
        (dict(zip(names, x, strict=True)), y) for x, y in zip(lists.X.tolist(), lists.labels.tolist(), strict=True)
    ]
    model = linear_model.LinearRegression(optim.SGD(1e-4))
    start = time.process_time()
    for x, y in documents:
        model.predict_one(x)
        model.learn_one(x, y)
    return (time.process_time() - start) / len(lists)


def limit_row(what, seconds, limit, times=None, queries=QUERIES):
    """One row; `seconds` are those of `queries` rounds, `limit` those of QUERIES. Without `times` there is no goal."""
    own, least = seconds / queries, limit / QUERIES
    goal = "" if times is None else f"at most {times:g} times the limit's time; "
    return {
        "what": f"{what}: rounds a second, against the limit",
        "ours": 1.0 / own,
        "peer": 1.0 / least,
        "ratio": least / own,
        "bar": f"{goal}it is {own / least:.1f} times",
        "holds": None if times is None else own / least <= times,
    }


def of_algorithm(name):
    """Plays some rounds as `train --algo name` does, with default parameters, one by one."""

    def play_all(lists):
        learner = ALGORITHMS[name].learner(lists.n_features, {})
        return [0 for _ in play(learner, lists, learner.simulated_feedback, [NDCG])]

    return play_all


def run():
    lists = WebSearch().rounds(QUERIES)
    scores = np.empty(len(lists.X), np.float32)
    weights = np.ones(lists.n_features, np.float32)
    limit = best_of(lambda: score_all(lists.X, weights, scores), 9)
    rows = []
    makers = {
        "SLAM": slam_perceptron,
        "minimax": minimax_perceptron,
        "ListNet": online_listnet,
        "hinge": hinge_perceptron,
    }
    for name, make in makers.items():
        plain = best_of(lambda make=make: [0 for _ in play(make(136), lists, feedback.full, [NDCG])])
        rows.append(limit_row(f"play, {name}, NDCG@10 every round", plain, limit, 4.0))
        if name == "SLAM":
            one = plain
    held_out = lists[:600]

    def fit(make):
        train_run(make(136), Fit(lists, Schedule(1), validation=Validation(held_out, NDCG)))

    def fused(make):
        learner = make(136)
        play_pass(learner, lists, np.arange(QUERIES), (NDCG,))

    def fused_top_k():
        learner = ALGORITHMS["topk"].learner(136, {})
        learner.compiled_pass(lists)(lists, np.arange(QUERIES), (NDCG,))

    some, qid = lists[: QUERIES // 2], np.repeat(np.arange(QUERIES // 2), np.diff(lists.offsets[: QUERIES // 2 + 1]))
    ranker = SLAMPerceptron(n_epochs=1, preset="paper")
    arrays = best_of(lambda: ranker.fit(some.X, some.labels, qid=qid))
    rows.append(limit_row("fit(X, y, qid), SLAM as in the paper, one pass", arrays, limit, 4.0, QUERIES // 2))
    rows.append(limit_row("fit, SLAM, held-out evaluation included", best_of(lambda: fit(slam_perceptron)), limit, 8.0))
    for name, make in makers.items():
        seconds = best_of(lambda make=make: fused(make))
        goal = 3.0 if name == "hinge" else 2.0
        rows.append(limit_row(f"fused pass, {name}, NDCG@10 every round", seconds, limit, goal))
        if name == "SLAM":
            alone = seconds
    top_k = limit_row("fused pass, top-k, NDCG@10 every round", best_of(fused_top_k), limit)
    rows.append(top_k | {"bar": "at least 100,000; " + top_k["bar"], "holds": top_k["ours"] >= 100_000})
    for name, queries in (("topk", QUERIES), ("predtron", SOME), ("pairwise", SOME)):
        some = lists[:queries]
        seconds = best_of(lambda name=name, some=some: of_algorithm(name)(some), 2)
        rows.append(limit_row(f"play, {name}, NDCG@10 every round", seconds, limit, None, queries))
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
                "bar": "less than a quarter (ratio > 4)",
                "holds": single / QUERIES / many > 4.0,
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
