"""Ranking problems: predictions are permutations, labels are relevance vectors, losses depend on positions.

A permutation is given by the positions of the documents, σ(i) from 0, and represented as f(σ)/Z with a strictly
decreasing f, so that pred sorts the scores. The same problem is used for subset ranking (a weight vector, t = X w) and
multilabel ranking (a weight matrix, t = W x).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import copy_into
from ranktron.kernels.sorting import argsort_ascending, argsort_descending
from ranktron.learners.predtron.positions import PlaceLoss, Places
from ranktron.types import Floats, Integers


@jit
def _places(order: Integers) -> Integers:
    places = np.empty(order.shape[0], np.int64)
    for place in range(order.shape[0]):
        places[order[place]] = place
    return places


def _worst_order(scores: Floats, gains: Floats) -> Integers:
    """The order by score; equal scores by ascending gain."""
    first = argsort_ascending(gains)
    order: Integers = first[argsort_descending(scores[first])]
    return order


def _best_order(scores: Floats, gains: Floats, discounts: Floats) -> Integers:
    """The order without loss that is closest to the scores: by gain, and by score where the loss leaves it open."""
    by_score = argsort_descending(scores)
    return _follow_scores(by_score, by_score[argsort_ascending(-gains[by_score])], discounts)


@jit
def _follow_scores(by_score: Integers, by_gain: Integers, discounts: Floats) -> Integers:
    """An order by gain, with the documents at places of one discount by score."""
    m, start = by_score.shape[0], 0
    # of the places of one discount: the first, and the next that is free
    first, free = np.empty(m, np.int64), np.empty(m, np.int64)
    for place in range(m):
        if discounts[place] != discounts[start]:
            start = place
        first[by_gain[place]], free[place] = start, place
    order = np.empty(m, np.int64)
    for place in range(m):
        document = by_score[place]
        order[free[first[document]]] = document
        free[first[document]] += 1
    return order


@jit
def _place_loss(places: Integers, gains: Floats, upwards: Floats, discounts: Floats, best: float) -> float:
    """1 − Σ F D / N as a sum of nonnegative terms, so that small losses are not lost in rounding errors.

    `upwards` are the gains in ascending order.
    """
    m = places.shape[0]
    shown = np.empty(m)
    for i in range(m):
        shown[places[i]] = gains[i]
    missing, total = 0.0, 0.0
    for place in range(m):
        missing += upwards[m - 1 - place] - shown[place]
        below = discounts[place + 1] if place + 1 < m else 0.0
        total += max(missing, 0.0) * (discounts[place] - below)
    return total / best


@jit
def _sorted_by_gap(scores: Floats, gains: Floats, best: float, norm: float) -> Integers:
    """Lemma 3 if f is the discount: the assignment is a sort of t_i/Z − F_i/N."""
    keys = np.empty(scores.shape[0])
    for i in range(scores.shape[0]):
        keys[i] = scores[i] / norm - gains[i] / best
    return _places(argsort_ascending(-keys))


@jit
def _one_step_off(scores: Floats, gains: Floats, discounts: Floats, f: Floats) -> Integers:
    """The best order with a loss if sorting by score has none.

    A document from the first j positions is exchanged with one of lower gain from below: it goes to position j + 1,
    the other to position j, and those in between move up or down.
    """
    order = argsort_descending(scores)
    m = order.shape[0]
    cheapest, best_i, best_j, best_k = np.inf, -1, -1, -1
    for j in range(m - 1):
        if discounts[j] == discounts[j + 1]:
            continue
        highest_gain = -1.0
        for i in range(j, -1, -1):
            if gains[order[i]] <= highest_gain:
                continue
            highest_gain = gains[order[i]]
            k = j + 1
            while k < m and not gains[order[k]] < highest_gain:
                k += 1
            if k < m:
                cost = _moving_cost(scores, order, f, i, j, k)
                if cost < cheapest:
                    cheapest, best_i, best_j, best_k = cost, i, j, k
    return _move_documents(order, best_i, best_j, best_k)


@jit
def _move_documents(order: Integers, i: int, j: int, k: int) -> Integers:
    """Moves the document at position i to j + 1 and the one at k to j; empty if there is nothing to move."""
    if i < 0:
        return order[:0]
    moved = order.copy()
    copy_into(moved[i:j], order[i + 1 : j + 1])
    moved[j] = order[k]
    moved[j + 1] = order[i]
    copy_into(moved[j + 2 : k + 1], order[j + 1 : k])
    return moved


@jit
def _moving_cost(scores: Floats, order: Integers, f: Floats, i: int, j: int, k: int) -> float:
    cost = scores[order[i]] * (f[i] - f[j + 1]) + scores[order[k]] * (f[k] - f[j])
    for place in range(i + 1, j + 1):
        cost += scores[order[place]] * (f[place] - f[place - 1])
    for place in range(j + 1, k):
        cost += scores[order[place]] * (f[place] - f[place + 1])
    return float(cost)


def solve_assignment(scores: Floats, charges: Floats, f: Floats, discounts: Floats) -> Integers:
    """Solves the assignment of Lemma 3, max_σ Σ_i t_i f(σ(i)) − q_i D(σ(i)), for any f and D; returns positions.

    Adding a constant to a position does not change the optimal σ, but with the right constants (the prices of the
    positions, the dual variables) the solver has little to search. They come from the assignment of every fourth
    document.

    >>> solve_assignment(np.array([2.0, 1.0]), np.array([0.5, 0.0]), np.array([-1.0, -2.0]), np.array([1.0, 0.6]))
    array([0, 1])
    """
    from scipy.optimize import linear_sum_assignment  # takes 0.4 s to import

    worth = np.outer(scores, f) - np.outer(charges, discounts)  # Lemma 3
    if len(scores) >= 4 * _STRIDE:
        worth -= _prices(scores, charges, f, discounts)
    # scipy's solver is a shortest augmenting path algorithm (Jonker and Volgenant, 1987; Crouse, 2016).
    places: Integers = linear_sum_assignment(worth, maximize=True)[1].astype(np.int64, copy=False)
    return places


_STRIDE = 4


def _prices(scores: Floats, charges: Floats, f: Floats, discounts: Floats) -> Floats:
    """Prices: the cumulative sum of what moving down one position costs the document at each position."""
    sample = np.lexsort((scores, charges))[_STRIDE // 2 :: _STRIDE]
    at = np.arange(len(sample)) * _STRIDE + _STRIDE // 2
    standing = sample[np.argsort(solve_assignment(scores[sample], charges[sample], f[at], discounts[at]))]
    between = np.arange(len(scores) - 1) + 0.5
    t, q = (np.interp(between, at, values[standing]) for values in (scores, charges))
    return np.concatenate(([0.0], np.cumsum(t * np.diff(f) - q * np.diff(discounts))))


@dataclass(frozen=True)
class Permutations:
    """Ranking of any number of documents with a loss of positions.

    Scores are compared as float32, as everywhere where they decide an order.

    Parameters
    ----------
    measure : PlaceLoss
        The loss.
    representation : Places
        The representation of positions.
    documents, highest : int
        The largest number of documents and the highest grade (integers), which the theoretical step needs: what exceeds
        them is refused. 0: not declared.
    follow_scores : bool
        Whether σ_y follows the scores where the loss leaves the order open; otherwise the order of the input.

    Examples
    --------
    >>> problem = Permutations(PlaceLoss("ndcg"), Places("-i"))
    >>> problem.pred(np.array([0.5, 2.0, 1.0]))
    array([2, 0, 1])
    >>> round(problem.loss(np.array([1, 0]), np.array([1.0, 0.0])), 4)
    0.3691
    """

    measure: PlaceLoss = PlaceLoss("ndcg")  # noqa: RUF009 (it is frozen)
    representation: Places = Places("-i^1.1")  # noqa: RUF009 (it is frozen)
    documents: int = 0
    highest: int = 0
    follow_scores: bool = True

    @property
    def smallest(self) -> float:
        if not (self.documents and self.highest):
            raise DataError("the smallest loss depends on the longest list and the highest grade: declare both")
        return self.measure.smallest(self.documents, self.highest)

    @property
    def largest(self) -> float:
        return 1.0

    def check(self, label: Any) -> Floats:
        labels = np.asarray(label)
        if labels.ndim != 1 or labels.dtype.kind not in "biuf":
            raise DataError(f"a label of this problem is one relevance per document, not {label!r}")
        labels = labels.astype(float, copy=False)
        if first_non_finite(labels) >= 0 or (labels < 0.0).any():
            raise DataError("relevance must be finite and >= 0")
        if self.documents and len(labels) > self.documents:
            raise DataError(f"lists of at most {self.documents} documents were declared, this one has {len(labels)}")
        odd = next((y for y in labels if y > self.highest or y % 1.0 != 0.0), None) if self.highest else None
        if odd is not None:
            raise DataError(f"grades were declared to be 0 to {self.highest}, this list has {odd:g}")
        return labels

    def loss(self, prediction: Integers, label: Floats) -> float:
        gains, discounts, best = self.measure.weights(label)
        return float(_place_loss(prediction, gains, np.sort(gains), discounts, best)) if best else 0.0

    def rep(self, prediction: Integers) -> Floats:
        vector: Floats = self.representation(len(prediction))[prediction]
        return vector

    def pred(self, scores: Floats, label: Floats | None = None) -> Integers:
        if label is None:
            return _places(argsort_descending(scores))
        return _places(_worst_order(scores, self.measure.gain(label)))

    def augmented(self, scores: Floats, label: Floats) -> Integers:
        gains, discounts, best = self.measure.weights(label)
        if best == 0.0:
            return _places(argsort_descending(scores))
        f = self.representation(len(scores))
        if self.measure.name == "ndcg" and self.representation.name == "discount":
            return _sorted_by_gap(scores, gains, best, discounts[0] / f[0])
        return solve_assignment(scores, gains / best, f, discounts)

    def correct(self, scores: Floats, label: Floats) -> Integers:
        if not self.follow_scores:
            scores = -np.arange(len(label), dtype=float)
        return _places(_best_order(scores, self.measure.gain(label), self.measure.discount(len(label))))

    def rival(self, scores: Floats, label: Floats) -> Integers | None:
        shown = self.pred(scores, label)
        if self.loss(shown, label) > 0.0:
            return shown
        f, discounts = self.representation(len(label)), self.measure.discount(len(label))
        order = _one_step_off(scores, self.measure.gain(label), discounts, f)
        return _places(order) if len(order) else None
