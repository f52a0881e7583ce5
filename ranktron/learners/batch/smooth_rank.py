"""SmoothRank: NDCG itself, made smooth, is maximised around the weights of ListNet.

    f(w) = ½ |w − w₀|² − C Σ_q c_q NDCG_σ(X_q w)
    NDCG_σ(s) = Σ_{j ≤ k} D(j) Σ_i g_i h_ij,    h_ij = exp(−(s_i − s_(j))²/σ) / Σ_l exp(−(s_l − s_(j))²/σ)

s_(j) is the score of the document in place j, g_i = (2^y_i − 1)/(DCG@k of the best order), D(j) = 1/log2(1 + j), and
c_q = v_q/Σ v over the queries of more than one grade; v_q is the weight of a query, by default 1. As σ falls to 0,
h_ij becomes 1 for the document in place j and 0 for the others, and NDCG_σ becomes NDCG@k. f is minimised for wide σ
first, then from there for narrower ones (Chapelle and Wu, Gradient Descent Optimization of Smoothed Information
Retrieval Metrics, 2010). f has many local optima, so that the start matters: the paper starts from a regression on the
grades, we from the averaged weights of online ListNet, scaled so that scores spread by 1 (the unit of σ) in a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import linear_scores
from ranktron.kernels.dispatch import linear_direction
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import allocate
from ranktron.kernels.sorting import argsort_top
from ranktron.learners.algorithms.listnet import online_listnet
from ranktron.learners.fused import play_pass
from ranktron.learners.parameters import ALGORITHMS
from ranktron.learners.schedule import Fit
from ranktron.metrics.gain import exponential_gains, log_discounts
from ranktron.types import Floats, Integers, State
from ranktron.types.validation import check_count

SMOOTHINGS = (4.0, 2.0, 1.0, 0.5, 0.25)
"""σ, from one solution to the next; scores spread by 1."""

_PRINTED = ALGORITHMS["smoothrank"].preset("paper")


@jit
def _smooth_ndcg(
    scores: Floats, gains: Floats, offsets: Integers, discounts: Floats, smoothing: float, weights: Floats,
    gradient: Floats,
) -> float:  # fmt: skip
    """Sums the weighted smooth NDCG of all queries and fills its gradient in the scores.

    The order is taken as given: who stands in place j changes only where two scores are equal, and there h is the same.
    """
    total = 0.0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        for i in range(start, stop):
            gradient[i] = 0.0
        if weights[q] == 0.0:
            continue
        top = argsort_top(scores[start:stop], discounts.shape[0])
        near = allocate(stop - start)
        for place in range(min(discounts.shape[0], stop - start)):
            at = start + top[place]
            mass, mean = 0.0, 0.0
            for i in range(start, stop):
                distance = scores[i] - scores[at]
                near[i - start] = np.exp(-distance * distance / smoothing)
                mass += near[i - start]
                mean += near[i - start] * gains[i]
            mean /= mass
            value = weights[q] * discounts[place]
            total += value * mean
            for i in range(start, stop):
                pull = value * near[i - start] / mass * (gains[i] - mean) * (scores[i] - scores[at]) * -2.0 / smoothing
                gradient[i] += pull
                gradient[at] -= pull
    return total


@dataclass(frozen=True, eq=False)
class SmoothNDCG:
    """The mean smooth NDCG@k of some queries as a function of the weights, with its gradient.

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0], [3.0]], [0, 1])
    >>> round(SmoothNDCG(lists, k=1)(np.array([5.0]), smoothing=0.1)[0], 6)
    1.0
    """

    rounds: Rounds
    k: int = 10
    list_weights: Floats | None = None

    @cached_property
    def discounts(self) -> Floats:
        """1/log2(1 + j) of the places that count."""
        return log_discounts(self.k)

    @cached_property
    def gains(self) -> Floats:
        """The gain of each document, divided by the DCG@k of the best order of its list; all 0 if that is 0."""
        gains = exponential_gains(self.rounds.labels)
        for start, stop in zip(self.rounds.offsets[:-1], self.rounds.offsets[1:], strict=True):
            best = -np.sort(-gains[start:stop])[: self.k]
            gains[start:stop] /= float(best @ self.discounts[: len(best)]) or 1.0
        return gains

    @cached_property
    def weights(self) -> Floats:
        """The share of each query in the mean; 0 for queries of one grade, whose NDCG is the same in any order."""
        labels, starts = self.rounds.labels, self.rounds.offsets[:-1]
        differ = np.maximum.reduceat(labels, starts) > np.minimum.reduceat(labels, starts)
        v = np.where(differ, 1.0 if self.list_weights is None else self.list_weights, 0.0)
        shares: Floats = v / (float(v.sum()) or 1.0)
        return shares

    def __call__(self, w: Floats, smoothing: float) -> tuple[float, Floats]:
        scores, gradient = linear_scores(self.rounds.X, w), np.empty(len(self.rounds.labels))
        value = _smooth_ndcg(scores, self.gains, self.rounds.offsets, self.discounts, smoothing, self.weights, gradient)
        return value, linear_direction(self.rounds.X, gradient)


def spread_within(rounds: Rounds, scores: Floats) -> float:
    """The standard deviation of scores within their lists, over all documents.

    >>> spread_within(Rounds.from_arrays([[1.0], [3.0], [7.0]], [0, 1, 0], group=[2, 1]), np.array([1.0, 3.0, 7.0]))
    0.816496580927726
    """
    sizes = np.diff(rounds.offsets)
    means = np.add.reduceat(scores, rounds.offsets[:-1]) / sizes
    return float(np.sqrt(np.mean((scores - np.repeat(means, sizes)) ** 2)))


def maximise(
    objective: SmoothNDCG,
    start: Floats,
    C: float = _PRINTED["C"],
    max_iter: int = _PRINTED["max_iter"],
    stop: Callable[[], bool] = lambda: False,
) -> Floats:
    """The weights near `start` that maximise the smooth NDCG, for ever less smoothing.

    Parameters
    ----------
    objective : SmoothNDCG
        What is maximised.
    start : array
        The weights to begin with, and not to go far from.
    C : float
        The weight of the mean NDCG against half of the squared distance from the start.
    max_iter : int
        The largest number of iterations for each smoothing.
    stop : callable
        Asked after each iteration whether to end early.

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = maximise(SmoothNDCG(lists), np.array([1.0, 0.0]))
    >>> bool(w[1] > w[0])
    True
    """
    from scipy.optimize import minimize

    def callback(intermediate_result: object) -> None:
        if stop():
            raise StopIteration

    def loss(moved: Floats, smoothing: float) -> tuple[float, Floats]:
        value, gradient = objective(start + moved, smoothing)
        return 0.5 * float(moved @ moved) - C * value, moved - C * gradient

    moved = np.zeros_like(start)
    for smoothing in SMOOTHINGS:
        if stop():
            break
        moved = minimize(
            loss, moved, (smoothing,), jac=True, method="L-BFGS-B", callback=callback, options={"maxiter": max_iter}
        ).x
    found: Floats = start + moved
    return found


def _play_listnet(fit: Fit) -> Floats:
    """The weights of ListNet with its recommended steps, after the passes of the schedule."""
    listnet = online_listnet(fit.rounds.n_features, **ALGORITHMS["listnet"].preset("recommended"))
    for epoch in range(fit.schedule.epochs):
        if fit.interrupted:
            break
        play_pass(listnet, fit.rounds, fit.epoch_order(epoch), ())
        fit.advance(fit.length(epoch))
    return listnet.coef


def fit_smooth_rank(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Plays ListNet as the schedule says, or takes the weights of a model to continue; then maximises from there."""
    fit.refuse_document_weights()
    k = check_count(parameters["k"], "k", 1)
    rounds, history = fit.rounds, fit.history
    with fit.running():
        start = np.array(fit.start["coef"]) if fit.start else _play_listnet(fit)
        start /= spread_within(rounds, linear_scores(rounds.X, start)) or 1.0
        objective = SmoothNDCG(rounds, k, fit.weights)
        w = maximise(objective, start, parameters["C"], parameters["max_iter"], lambda: fit.interrupted)
    history.epoch, history.rounds = history.epoch + 1, len(rounds)
    history.remarks["queries of one grade"] = int(np.count_nonzero(objective.weights == 0.0))
    state = {"coef": w, "constant": 0.0}
    fit.evaluate(lambda valid: linear_scores(valid.X, w), lambda: state)
    return state
