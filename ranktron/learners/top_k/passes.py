"""Passes of `TopK` in one compiled loop, for the pairwise hinge and a matrix of features.

Private. It calls the same kernels as `play` in the same order, so that weights are equal to the bit (which tests
check), but without the overhead of Python in each round.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float32, float64, int64, types

from ranktron.data.rounds import Rounds
from ranktron.kernels.calls import address_of, caller
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.fused import step_sizes
from ranktron.learners.loop import play
from ranktron.learners.top_k.exploration import price_address, rank_pairs, restrict_exploration
from ranktron.learners.top_k.learner import TopK, learn_top_pairs
from ranktron.metrics import Metric
from ranktron.metrics.shown import call_best, call_measure, measuring, metric_numbers
from ranktron.surrogates.pairwise_hinge import PairwiseHinge
from ranktron.types import Floats, Integers, Matrix

# Called by their addresses, they are compiled once for this pass and for `play`, and beside each other.
_RANKED = types.Tuple((float64[::1], int64[::1], boolean, float64[:, ::1]))  # type: ignore[no-untyped-call]
_RANK = _RANKED(float32[:, ::1], float64[::1], int64, int64, float64, int64, int64, float64, int64)
_LEARN = float64(
    float32[:, ::1], int64[::1], float64[::1], float64[:, ::1], int64, int64[::1], float64[::1], float64, float64,
    float64, float64, float64, float64, boolean, float64, float64[::1], float64[::1], float64[::1],
)  # fmt: skip
_CUT = int64(float64[::1], int64, int64, float64, int64)
_call_rank, _call_cut, _call_learn = caller(_RANK), caller(_CUT), caller(_LEARN)


@jit
def _cut(scores: Floats, k: int, n: int, price: float, afford: int) -> int:
    """The shortlist that a price leaves."""
    return restrict_exploration(scores, argsort_descending(scores), 0.0, k, n, price, afford)[1]


@jit
def _pass(
    rank: int, afford: int, cut: int, learn: int, X: Matrix, labels: Floats, offsets: Integers, queries: Integers,
    gammas: Floats, etas: Floats, rounds: int, seed: int, most: int, shortlist: int, strict: bool, price: float,
    highest: float, answered: float, share: float, floor: float, margin: float, radius: float, adaptive: bool,
    late: bool, w: Floats, total: Floats, squares: Floats, lost: Floats, choices: Floats, losses: Floats,
    values: Floats, best: int, measure: int,
) -> int:  # fmt: skip
    """Plays the queries one after the other; returns how many, fewer than all before one that may be refused."""
    for q in range(queries.shape[0]):
        a, b = offsets[queries[q]], offsets[queries[q] + 1]
        rows, own = X[a:b], labels[a:b]
        m = own.shape[0]
        if m == 0 or (strict and m < max(most, 2)):
            return q
        k = most if most < m else m
        n = max(k, shortlist) if 0 < shortlist < m else m
        p = gammas[q]  # of a pair to be seen: see `TopK.shortfall_of`
        for i in range(2):
            p *= answered * max(k - i, 0) / max(n - i, 1)
        scores, order, _, propensities = _call_rank(rank, rows, w, seed, rounds + q, gammas[q], k, n, price, afford)
        call_measure(measure, order, own, choices, call_best(best, own, choices), values[q])
        for c in range(choices.shape[0]):
            if values[q, c] != values[q, c]:
                return q
        if afford != 0:
            n = _call_cut(cut, scores, k, n, price, afford)
        received = np.empty(k)
        for place in range(k):
            received[place] = own[order[place]]
        losses[q] = _call_learn(
            learn, rows, order, scores, propensities, n, order[:k], received, highest, share, floor, margin, etas[q],
            radius, adaptive, rounds + q + 1.0 if late else 1.0, w, total, squares,
        )  # fmt: skip
        if losses[q] != losses[q]:
            return q
        if floor > 0.0:
            lost[0] += 1.0 - p / max(p, floor)
    return int(queries.shape[0])


def play_top_k(learner: TopK, rounds: Rounds, queries: Integers, metrics: tuple[Metric, ...]) -> tuple[Floats, Floats]:
    """Plays some queries with the labels of the first k documents: (the loss of each, its metrics)."""
    losses, values, start = np.empty(len(queries)), np.empty((len(queries), len(metrics))), 0
    hinge, afford = learner.surrogate, price_address(learner.exploration_price)
    assert isinstance(hinge, PairwiseHinge)
    while start < len(queries):
        rest, lost = queries[start:], np.array([learner.lost])
        done = _pass(
            address_of(rank_pairs, _RANK), afford, address_of(_cut, _CUT) if afford else 0,
            address_of(learn_top_pairs, _LEARN), rounds.X, rounds.labels,
            rounds.offsets, rest, step_sizes(learner.explore, learner.rounds, len(rest)),
            step_sizes(learner.step, learner.rounds, len(rest)), learner.rounds, learner.seed, learner.k,
            learner.shortlist, learner.strict, learner.exploration_price, learner.highest, learner.answered,
            learner.answered**hinge.coordinates, learner.floor, hinge.margin, learner.radius, learner.adaptive,
            learner.late, learner.w, learner.total, learner.squares, lost, metric_numbers(metrics),
            losses[start:], values[start:], *measuring(),
        )  # fmt: skip
        learner.rounds += done
        learner.lost = float(lost[0])
        start += done
        if start < len(queries):  # an unusual query: what is wrong with it, if anything, is said round by round
            for turn in play(learner, [rounds[int(queries[start])]], learner.simulated_feedback, metrics):
                losses[start], values[start] = turn.loss, turn.values
            start += 1
    return losses, values
