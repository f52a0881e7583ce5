"""What some linear learners are made of, as numbers: all of a round's learning is then one kernel.

Private. The kernel composes the very kernels that the surrogates and the rules of mistakes call, in the same order, so
that the weights are the same to the bit (a test says so); a round then costs one visit to machine code instead of four.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property

import numpy as np

from ranktron.kernels import descend, grades, is_full, kernel
from ranktron.mistakes import Misordered, MisorderedBinary, misordered_grades
from ranktron.surrogates import SLAM, ListNet, WorstPair
from ranktron.surrogates.listnet import listnet
from ranktron.surrogates.slam import AP, binary_grades, ideal_order, slam_at, slam_plan
from ranktron.surrogates.worst_pair import worst_pair
from ranktron.types import Floats, Integers, Matrix, Mistake, Surrogate

_SLAM, _WORST_PAIR, _LISTNET = 0, 1, 2


@dataclass(frozen=True)
class Recipe:
    """A surrogate and a rule of mistakes as numbers."""

    kind: int
    measure: int = 0
    k: int = 0
    margin: float = 1.0
    fraction: float = 0.0
    driven: bool = False
    rule_k: int = 0
    rule_binary: bool = False

    @cached_property
    def numbers(self) -> Floats:
        return np.array(astuple(self), float)


def recipe(surrogate: Surrogate, mistake: Mistake | None) -> Recipe | None:
    """The recipe of a surrogate and a rule; None for those that are not known here."""
    if mistake is None:
        rule: tuple[bool, int, bool] = (False, 0, False)
    elif type(mistake) is Misordered:
        rule = (True, mistake.k, False)
    elif type(mistake) is MisorderedBinary:
        rule = (True, 0, True)
    else:
        return None
    s = surrogate
    if type(s) is SLAM and (s.binarise or s.code == 0):
        return Recipe(_SLAM, s.code, s.k, s.margin, s.fraction, *rule)
    if type(s) is WorstPair:
        return Recipe(_WORST_PAIR, 0, 0, s.margin, 0.0, *rule)
    return Recipe(_LISTNET, 0, 0, 1.0, 0.0, *rule) if type(s) is ListNet else None


@kernel
def plan_of(labels: Floats, recipe: Floats) -> tuple[Integers, int, Integers, int, Integers, Integers, Floats]:
    """All that depends on the labels alone: grades for the rule of mistakes, grades and plan for SLAM."""
    kind, measure, k, _, _, driven, _, rule_binary = recipe
    codes, count = np.empty(0, np.int64), 0
    if kind == _LISTNET and driven == 0.0:
        return codes, count, codes, count, codes, codes, np.empty(0)
    rule_codes, rule_count = binary_grades(labels) if rule_binary != 0.0 else grades(labels)
    codes, count = (rule_codes, rule_count) if (measure == AP) == (rule_binary != 0.0) else binary_grades(labels)
    if kind != _SLAM:
        return rule_codes, rule_count, codes, count, codes, codes, np.empty(0)
    candidates, above, v = slam_plan(labels, codes, count, int(measure), int(k))
    return rule_codes, rule_count, codes, count, candidates, above, v


@kernel
def loss_planned(
    labels: Floats, scores: Floats, recipe: Floats,
    plan: tuple[Integers, int, Integers, int, Integers, Integers, Floats], gradient: Floats,
) -> float:  # fmt: skip
    """The loss of a whole list, with its gradient; -1 where there is nothing to learn."""
    kind, _, _, margin, fraction, driven, rule_k, _ = recipe
    rule_codes, rule_count, codes, count, candidates, above, v = plan
    if driven != 0.0 and not misordered_grades(scores, rule_codes, rule_count, int(rule_k)):
        return -1.0
    if kind == _SLAM:
        ideal = ideal_order(scores, codes, candidates, above, v.shape[0])
        return slam_at(scores, codes, count, ideal, v, margin, fraction, gradient)
    if kind == _WORST_PAIR:
        return worst_pair(scores, labels, margin, gradient)
    return listnet(scores, labels, gradient)


@kernel
def learn_planned(
    X: Matrix, items: Integers, labels: Floats, scores: Floats, recipe: Floats,
    plan: tuple[Integers, int, Integers, int, Integers, Integers, Floats], eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, gradient: Floats, direction: Floats,
) -> float:  # fmt: skip
    """Learns from the labels of a whole list: the loss, or NaN where scores or weights overflow."""
    loss = loss_planned(labels, scores, recipe, plan, gradient)
    if loss < 0.0:
        return 0.0
    return loss if descend(X, items, gradient, loss, eta, t, w, lag, sums, direction) else np.nan


@kernel
def learn_full(
    X: Matrix, scores: Floats, items: Integers, labels: Floats, recipe: Floats, eta: float, t: float,
    w: Floats, lag: Floats, sums: Floats, direction: Floats,
) -> float:  # fmt: skip
    """The same for one round as it comes; NaN, and nothing changed, where the feedback is not on the whole list."""
    m = X.shape[0]
    if scores.shape[0] != m or not is_full(items, labels, m):
        return np.nan
    plan = plan_of(labels, recipe)
    return learn_planned(X, items, labels, scores, recipe, plan, eta, t, w, lag, sums, np.empty(m), direction)
