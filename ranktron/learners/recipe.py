"""What some linear learners are made of, as numbers: all of a round's learning is then one kernel.

Private. The kernel composes the very kernels that the surrogates and the rules of mistakes call, in the same order, so
that the weights are the same to the bit (a test says so); a round then costs one visit to machine code instead of four.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from ranktron.kernels.dense import is_full
from ranktron.kernels.dispatch import Held, descend_along
from ranktron.kernels.grades import best_below, extremes, grades_seen
from ranktron.kernels.jit import kernel
from ranktron.kernels.sorting import ideal_order
from ranktron.learners.mistakes import Misordered, MisorderedBinary, misordered_grades
from ranktron.surrogates import SLAM, ListNet, WorstPair
from ranktron.surrogates.listnet import listnet
from ranktron.surrogates.slam import AP, NDCG, slam_at, slam_weights
from ranktron.surrogates.worst_pair import worst_pair_at
from ranktron.types import Floats, Integers, Mistake, Surrogate

_SLAM, _WORST_PAIR, _LISTNET = 0, 1, 2


@dataclass(frozen=True)
class Recipe:
    """A surrogate and a rule of mistakes as numbers; `binary` takes every label above 0 for the same grade."""

    kind: int
    binary: bool
    k: int
    margin: float
    fraction: float
    driven: bool
    rule_k: int

    @cached_property
    def numbers(self) -> Floats:
        return np.array(astuple(self), float)


def recipe(surrogate: Surrogate, mistake: Mistake | None) -> Recipe | None:
    """The recipe of a surrogate and a rule that see the same grades; None for what is not known here."""
    s = surrogate
    if type(s) is SLAM and (s.binarise or s.code != AP):
        kind, binary, k, margin, fraction = _SLAM, s.code == AP, s.k, s.margin, s.fraction
    elif type(s) is WorstPair:
        kind, binary, k, margin, fraction = _WORST_PAIR, False, 0, s.margin, 0.0
    elif type(s) is ListNet:
        kind, binary, k, margin, fraction = _LISTNET, type(mistake) is MisorderedBinary, 0, 1.0, 0.0
    else:
        return None
    if mistake is None:
        return Recipe(kind, binary, k, margin, fraction, False, 0)
    if type(mistake) is Misordered and not binary:
        return Recipe(kind, binary, k, margin, fraction, True, mistake.k)
    if type(mistake) is MisorderedBinary and binary:
        return Recipe(kind, binary, k, margin, fraction, True, 0)
    return None


@kernel
def plan_of(labels: Floats, recipe: Floats) -> tuple[Integers, Integers, Floats]:
    """All that depends on the labels alone: the documents by grade, and the weights of SLAM."""
    kind, binary, k, _, _, driven, _ = recipe
    if kind == _LISTNET and driven == 0.0:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    documents, starts, values = grades_seen(labels, binary != 0.0)
    if kind != _SLAM:
        return documents, starts, values
    return documents, starts, slam_weights(starts, values, AP if binary != 0.0 else NDCG, int(k))


@kernel
def loss_planned(
    labels: Floats, scores: Floats, recipe: Floats, plan: tuple[Integers, Integers, Floats], gradient: Floats
) -> float:
    """The loss of a whole list, with its gradient; -1 where there is nothing to learn."""
    kind, _, _, margin, fraction, driven, rule_k = recipe
    documents, starts, v = plan
    if starts.shape[0] == 0:
        return listnet(scores, labels, gradient)
    lowest, highest = extremes(scores, documents, starts)
    below = best_below(scores, highest)
    if driven != 0.0 and not misordered_grades(scores, documents, starts, lowest, below, int(rule_k)):
        return -1.0
    if kind == _SLAM:
        ideal = ideal_order(scores, documents, starts, v.shape[0])
        return slam_at(scores, documents, starts, below, ideal, v, margin, fraction, gradient)
    if kind == _WORST_PAIR:
        return worst_pair_at(scores, lowest, below, margin, gradient)
    return listnet(scores, labels, gradient)


@kernel
def learn_planned(
    X: Held, items: Integers, labels: Floats, scores: Floats, recipe: Floats,
    plan: tuple[Integers, Integers, Floats], eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, gradient: Floats, direction: Floats,
) -> float:  # fmt: skip
    """Learns from the labels of a whole list: the loss, or NaN where scores or weights overflow."""
    loss = loss_planned(labels, scores, recipe, plan, gradient)
    if loss < 0.0:
        return 0.0
    return loss if descend_along(X, items, gradient, loss, eta, t, w, lag, sums, direction) else np.nan


@kernel
def learn_full(
    X: Held, m: int, scores: Floats, items: Integers, labels: Floats, recipe: Floats, eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, direction: Floats,
) -> float:  # fmt: skip
    """The same for one round as it comes; NaN, and nothing changed, where the feedback is not on the whole list."""
    if scores.shape[0] != m or not is_full(items, labels, m):
        return np.nan
    plan = plan_of(labels, recipe)
    return learn_planned(X, items, labels, scores, recipe, plan, eta, t, w, lag, sums, np.empty(m), direction)
