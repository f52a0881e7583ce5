"""Many rounds of `TopK` in one compiled loop, for the pairwise hinge and a matrix of features.

Private. Whole passes over lists, and pending rounds whose feedback is all there, as in a replay. Both call the kernels
of `TopK` in the same order, so that weights are equal to the bit (which tests check), but without the overhead of
Python in each round.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from ranktron.data.rounds import Rounds
from ranktron.kernels.jit import jit
from ranktron.learners.base import BaseLearner
from ranktron.learners.fused import step_sizes
from ranktron.learners.loop import play
from ranktron.learners.top_k.kernels import TopKRecord, learn_list, learn_top, rank_pairs
from ranktron.learners.top_k.learner import TopK
from ranktron.metrics import Metric
from ranktron.metrics.compiled import MetricRecords, compute_ideals, measure, metric_records
from ranktron.types import Floats, Integers, Matrix


@jit
def _pass(
    learner: TopKRecord, vectors: Floats, seed: int, X: Matrix, labels: Floats, offsets: Integers, queries: Integers,
    gammas: Floats, etas: Floats, metrics: MetricRecords, losses: Floats, values: Floats,
) -> int:  # fmt: skip
    """Plays the queries one after the other; returns how many, fewer than all before one that may be refused."""
    for q in range(queries.shape[0]):
        a, b = offsets[queries[q]], offsets[queries[q] + 1]
        rows, own = X[a:b], labels[a:b]
        m = own.shape[0]
        if m == 0 or (learner[0]["require_full_lists"] and m < max(learner[0]["k"], 2)):
            return q
        scores, order, _, propensities = rank_pairs(learner, vectors, rows, seed, learner[0]["rounds"], gammas[q])
        k = propensities.shape[0]
        compute_ideals(own, metrics)
        measure(order, own, metrics)
        for c in range(metrics.shape[0]):
            values[q, c] = metrics[c]["value"]
            if values[q, c] != values[q, c]:
                return q
        received = np.empty(k)
        for place in range(k):
            received[place] = own[order[place]]
        losses[q] = learn_list(
            learner, vectors, rows, order, scores, propensities, order[:k], received, gammas[q], etas[q]
        )
        if losses[q] != losses[q]:
            return q
    return int(queries.shape[0])


def play_top_k(learner: TopK, rounds: Rounds, queries: Integers, metrics: tuple[Metric, ...]) -> tuple[Floats, Floats]:
    """Plays some queries with the labels of the first k documents: (the loss of each, its metrics)."""
    losses, values, start = np.empty(len(queries)), np.empty((len(queries), len(metrics))), 0
    while start < len(queries):
        rest, played = queries[start:], learner.rounds
        start += _pass(
            learner.record, learner.vectors, learner.seed, rounds.X, rounds.labels, rounds.offsets, rest,
            step_sizes(learner.explore, played, len(rest)), step_sizes(learner.step, played, len(rest)),
            metric_records(metrics), losses[start:], values[start:],
        )  # fmt: skip
        if start < len(queries):  # an unusual query: what is wrong with it, if anything, is said round by round
            for turn in play(learner, [rounds[int(queries[start])]], learner.simulated_feedback, metrics):
                losses[start], values[start] = turn.loss, turn.values
            start += 1
    return losses, values


class PendingBatch(NamedTuple):
    """Pending rounds of the same sizes and their feedback; the first axis counts the rounds, in the order to learn.

    `sizes` are the numbers of documents, `rows` those of the first k documents shown; `places` rise within a round.
    """

    numbers: list[int]
    sizes: list[int]
    rows: npt.NDArray[np.float32]
    shown: Floats
    propensities: Floats
    places: Integers
    labels: Floats


def can_learn_many(learner: BaseLearner) -> TypeGuard[TopK]:
    """Whether a learner's pending rounds can be learnt in one go; its rows must be a matrix, too."""
    return type(learner) is TopK and learner.compiled and not learner.require_full_lists


@jit
def _learn_all(
    learner: TopKRecord, vectors: Floats, rows: npt.NDArray[np.float32], shown: Floats, propensities: Floats,
    places: Integers, labels: Floats, sizes: Integers, gammas: Floats, etas: Floats, learnt: npt.NDArray[np.bool_],
) -> None:  # fmt: skip
    items = np.arange(shown.shape[1])
    for n in range(shown.shape[0]):
        loss = learn_top(
            learner, vectors, rows[n], items, shown[n], places[n], labels[n], propensities[n], sizes[n], gammas[n],
            etas[n],
        )  # fmt: skip
        learnt[n] = loss == loss


def learn_many(learner: TopK, batch: PendingBatch) -> npt.NDArray[np.bool_] | None:
    """Learns from many rounds, and says from which: not from those whose update would have overflowed.

    None, and nothing is learnt, where feedback is such that `learn_pending` has to look at it.
    """
    labels, places, k = batch.labels, batch.places, batch.shown.shape[1]
    fits = (labels >= 0.0).all() and (labels <= learner.max_label).all() and np.isfinite(labels).all()
    fits = fits and (places >= 0).all() and (places < k).all() and (np.diff(places) > 0).all()
    if not fits or k > learner.k or batch.propensities.shape[1:] != (k, k) or batch.rows.shape[1] != k:
        return None
    learnt = np.empty(len(batch.numbers), np.bool_)
    _learn_all(
        learner.record, learner.vectors, batch.rows, batch.shown, batch.propensities, places, labels,
        np.array(batch.sizes, np.int64), np.array([learner.explore(number) for number in batch.numbers], float),
        np.array([learner.step(number) for number in batch.numbers], float), learnt,
    )  # fmt: skip
    return learnt
