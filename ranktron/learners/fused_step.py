"""The update of one round as a single kernel, for surrogates and mistake rules that declare a fused form.

Private. It calls the same kernels as the surrogates and mistake rules, in the same order, so that weights are equal to
the bit (which tests check); a round then takes one call of compiled code instead of four.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ranktron.kernels.dense import is_full
from ranktron.kernels.dispatch import FeatureArrays, sgd_step
from ranktron.kernels.grades import best_below, extremes, grades_seen
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import ideal_order
from ranktron.learners.mistakes import misordered_grades
from ranktron.surrogates.fused_forms import LISTNET_LOSS, MEAN_HINGE_LOSS, SLAM_LOSS, WORST_PAIR_LOSS, FusedForm
from ranktron.surrogates.listnet import listnet
from ranktron.surrogates.pairwise_hinge import mean_hinge_at
from ranktron.surrogates.slam import AP, NDCG, slam_at, slam_weights
from ranktron.surrogates.worst_pair import worst_pair_at
from ranktron.types import Floats, Integers, Mistake, Surrogate


class FusedSpec(NamedTuple):
    """The fused form of a surrogate with that of its mistake rule, as named fields for the kernels."""

    loss: int
    binary: bool
    k: int
    margin: float
    fraction: float
    mistakes_only: bool
    mistake_k: int


class Recipe:
    """The name of this class in pickles of 0.1.0; `Linear` replaces it by a `FusedSpec`. Until 0.3."""


def fused_spec(surrogate: Surrogate, mistake: Mistake | None) -> FusedSpec | None:
    """The spec of a surrogate and a mistake rule that use the same grades; None if one of them has no fused form."""
    form: FusedForm | None = _declaration(surrogate, "fused_form")
    if form is None:
        return None
    if mistake is None:
        return FusedSpec(form.loss, bool(form.binary), *form[2:], False, 0)
    rule: tuple[bool, int] | None = _declaration(mistake, "fused_rule")
    if rule is None or form.binary not in (None, rule[0]):
        return None
    return FusedSpec(form.loss, rule[0], *form[2:], True, rule[1])


def _declaration(thing: object, name: str) -> Any:
    """The declaration of a class itself, not inherited: a subclass may compute something else."""
    for cls in type(thing).__mro__:
        if name in vars(cls):
            return getattr(thing, name)
        if "__call__" in vars(cls):
            return None
    return None


@jit
def as_spec(numbers: Floats) -> FusedSpec:
    """The spec from an array of numbers: passing an array to a kernel is several times faster than passing a tuple."""
    loss, binary, k, margin, fraction, mistakes_only, mistake_k = numbers
    return FusedSpec(int(loss), binary != 0.0, int(k), margin, fraction, mistakes_only != 0.0, int(mistake_k))


@jit
def label_plan(labels: Floats, spec: FusedSpec) -> tuple[Integers, Integers, Floats]:
    """What depends on the labels alone: the documents by grade, and the weights of SLAM."""
    if spec.loss == LISTNET_LOSS and not spec.mistakes_only:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    documents, starts, values = grades_seen(labels, spec.binary)
    if spec.loss != SLAM_LOSS:
        return documents, starts, values
    return documents, starts, slam_weights(starts, values, AP if spec.binary else NDCG, spec.k)


@jit
def fused_loss(
    labels: Floats, scores: Floats, spec: FusedSpec, plan: tuple[Integers, Integers, Floats], gradient: Floats
) -> float:
    """The loss of all documents of a query, with its gradient; -1 if there is nothing to learn."""
    documents, starts, v = plan
    if starts.shape[0] == 0:
        return listnet(scores, labels, gradient)
    lowest, highest = extremes(scores, documents, starts)
    below = best_below(scores, highest)
    if spec.mistakes_only and not misordered_grades(scores, documents, starts, lowest, below, spec.mistake_k):
        return -1.0
    if spec.loss == SLAM_LOSS:
        ideal = ideal_order(scores, documents, starts, v.shape[0])
        return slam_at(scores, documents, starts, below, ideal, v, spec.margin, spec.fraction, gradient)
    if spec.loss == WORST_PAIR_LOSS:
        return worst_pair_at(scores, lowest, below, spec.margin, gradient)
    if spec.loss == MEAN_HINGE_LOSS:
        return mean_hinge_at(scores, documents, starts, spec.margin, gradient)
    return listnet(scores, labels, gradient)


@jit
def fused_step(
    X: FeatureArrays, items: Integers, labels: Floats, scores: Floats, spec: FusedSpec,
    plan: tuple[Integers, Integers, Floats], eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, gradient: Floats, direction: Floats,
) -> float:  # fmt: skip
    """Learns from the labels of all documents of a query: the loss, or NaN if scores or weights overflow."""
    loss = fused_loss(labels, scores, spec, plan, gradient)
    if loss < 0.0:
        return 0.0
    return loss if sgd_step(X, items, gradient, loss, eta, t, w, lagged_sum, sums, direction) else np.nan


@jit
def fused_round(
    X: FeatureArrays, m: int, scores: Floats, items: Integers, labels: Floats, numbers: Floats, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats,
) -> float:  # fmt: skip
    """The same for one round with its feedback; NaN, without any change, if the feedback is not on all documents."""
    if scores.shape[0] != m or not is_full(items, labels, m):
        return np.nan
    spec = as_spec(numbers)
    plan = label_plan(labels, spec)
    return fused_step(X, items, labels, scores, spec, plan, eta, t, w, lagged_sum, sums, np.empty(m), direction)
