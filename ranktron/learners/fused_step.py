"""The update of one round as a single kernel, for surrogates and mistake rules that declare a fused form.

Private. It calls the same kernels as the surrogates and mistake rules, in the same order, so that weights are equal to
the bit (which tests check); a round then takes one call of compiled code instead of four.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float64, int64

from ranktron.kernels.addresses import array_at, find_address
from ranktron.kernels.calls import address_of, caller
from ranktron.kernels.copying import copy_into
from ranktron.kernels.dense import is_full
from ranktron.kernels.dispatch import FeatureArrays, dot_rows, sgd_step, slice_rows
from ranktron.kernels.grades import best_below, extremes, grades_seen
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow
from ranktron.kernels.sorting import argsort_descending, ideal_order
from ranktron.learners.mistakes import misordered_grades, misordered_list
from ranktron.metrics.shown import call_best, call_measure, depth_of
from ranktron.surrogates.fused_forms import LISTNET_LOSS, MEAN_HINGE_LOSS, SLAM_LOSS, WORST_PAIR_LOSS, FusedForm
from ranktron.surrogates.listnet import listnet
from ranktron.surrogates.pairwise_hinge import summed_hinge
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


class KernelSpec(NamedTuple):
    """A spec as kernels take it: the addresses of the loss and of what it prepares, whether it needs grades and the
    extreme scores of each grade, and so on.

    An address of 0 says that nothing is prepared.
    """

    loss: int
    prepare: int
    graded: bool
    extremes: bool
    binary: bool
    k: int
    margin: float
    fraction: float
    mistakes_only: bool
    mistake_k: int


@jit
def _slam_loss(
    labels: Floats, scores: Floats, documents: Integers, starts: Integers, v: Floats, lowest: Integers,
    below: Integers, margin: float, fraction: float, gradient: Floats,
) -> float:  # fmt: skip
    ideal = ideal_order(scores, documents, starts, v.shape[0])
    return slam_at(scores, documents, starts, below, ideal, v, margin, fraction, gradient)


@jit
def _worst_pair_loss(
    labels: Floats, scores: Floats, documents: Integers, starts: Integers, v: Floats, lowest: Integers,
    below: Integers, margin: float, fraction: float, gradient: Floats,
) -> float:  # fmt: skip
    return worst_pair_at(scores, lowest, below, margin, gradient)


@jit
def _listnet_loss(
    labels: Floats, scores: Floats, documents: Integers, starts: Integers, v: Floats, lowest: Integers,
    below: Integers, margin: float, fraction: float, gradient: Floats,
) -> float:  # fmt: skip
    return listnet(scores, labels, gradient)


@jit
def _mean_hinge_loss(
    labels: Floats, scores: Floats, documents: Integers, starts: Integers, v: Floats, lowest: Integers,
    below: Integers, margin: float, fraction: float, gradient: Floats,
) -> float:  # fmt: skip
    loss, pairs = summed_hinge(scores, documents, starts, margin, gradient)
    if pairs == 0.0:
        return 0.0
    for i in range(scores.shape[0]):
        gradient[i] /= pairs
    return float(loss / pairs)


@jit
def _slam_weights(starts: Integers, values: Floats, binary: bool, k: int) -> Floats:
    return slam_weights(starts, values, AP if binary else NDCG, k)


_FLOATS, _INTEGERS = float64[::1], int64[::1]
_LOSS = float64(_FLOATS, _FLOATS, _INTEGERS, _INTEGERS, _FLOATS, _INTEGERS, _INTEGERS, float64, float64, _FLOATS)
_PREPARE = _FLOATS(_INTEGERS, _FLOATS, boolean, int64)
_call_loss, _call_prepare = caller(_LOSS), caller(_PREPARE)
_LOSSES = {
    SLAM_LOSS: _slam_loss,
    WORST_PAIR_LOSS: _worst_pair_loss,
    LISTNET_LOSS: _listnet_loss,
    MEAN_HINGE_LOSS: _mean_hinge_loss,
}


def spec_numbers(spec: FusedSpec) -> Floats:
    """A spec as an array for kernels, which is several times faster to pass than a tuple; compiles its loss."""
    loss = address_of(_LOSSES[spec.loss], _LOSS)
    prepare = address_of(_slam_weights, _PREPARE) if spec.loss == SLAM_LOSS else 0
    graded = spec.loss != LISTNET_LOSS or spec.mistakes_only
    extreme = spec.loss in (SLAM_LOSS, WORST_PAIR_LOSS) or (spec.mistakes_only and spec.mistake_k > 0)
    return np.array([loss, prepare, graded, extreme, *spec[1:]], float)


@jit
def as_spec(numbers: Floats) -> KernelSpec:
    """The spec from its numbers."""
    n = numbers
    return KernelSpec(
        int(n[0]), int(n[1]), n[2] != 0.0, n[3] != 0.0, n[4] != 0.0, int(n[5]), n[6], n[7], n[8] != 0.0,
        int(n[9]),
    )  # fmt: skip


@jit
def label_plan(labels: Floats, spec: KernelSpec) -> tuple[Integers, Integers, Floats]:
    """What depends on the labels alone: the documents by grade, and the weights of SLAM."""
    if not spec.graded:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    documents, starts, values = grades_seen(labels, spec.binary)
    if spec.prepare == 0:
        return documents, starts, values
    return documents, starts, _call_prepare(spec.prepare, starts, values, spec.binary, spec.k)


@jit
def fused_step(
    X: FeatureArrays, items: Integers, labels: Floats, scores: Floats, spec: KernelSpec,
    plan: tuple[Integers, Integers, Floats], eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, gradient: Floats, direction: Floats, ahead: int,
) -> float:  # fmt: skip
    """Learns from the labels of all documents of a query: the loss, or NaN if scores or weights overflow.

    The next query is as many rows `ahead` in memory, 0 if that is not known.
    """
    documents, starts, v = plan
    lowest = below = starts
    if spec.extremes:
        lowest, highest = extremes(scores, documents, starts)
        below = best_below(scores, highest)
        if spec.mistakes_only and not misordered_grades(scores, documents, starts, lowest, below, spec.mistake_k):
            return 0.0
    elif spec.mistakes_only and not misordered_list(scores, documents, starts):
        return 0.0
    loss: float = _call_loss(
        spec.loss, labels, scores, documents, starts, v, lowest, below, spec.margin, spec.fraction, gradient
    )
    taken = sgd_step(X, items, gradient, loss, eta, t, w, lagged_sum, sums, direction, ahead)
    return loss if taken else np.nan


@jit
def fused_round(
    X: FeatureArrays, m: int, scores: Floats, items: Integers, labels: Floats, numbers: Floats, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, ahead: int,
) -> float:  # fmt: skip
    """The same for one round with its feedback; NaN, without any change, if the feedback is not on all documents."""
    if scores.shape[0] != m or not is_full(items, labels, m):
        return np.nan
    spec = as_spec(numbers)
    plan = label_plan(labels, spec)
    return fused_step(
        X, items, labels, scores, spec, plan, eta, t, w, lagged_sum, sums, np.empty(m), direction, ahead,
    )  # fmt: skip


# where `locate_arrays` puts what
_WIDTH, _SUMS_LONG, _NUMBERS_LONG, _METRICS, _CHOICES_WIDE = range(5)
_W, _LAGGED_SUM, _SUMS, _DIRECTION, _NUMBERS, _CHOICES, _VALUES, _BEST, _MEASURE = range(5, 14)


def locate_arrays(
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, numbers: Floats, choices: Floats, values: Floats,
    best: int, measure: int,
) -> Integers | None:  # fmt: skip
    """Sizes and addresses of the arrays of a learner and its metrics, and of kernels, for `fused_turn`.

    None if one of them has gaps or another type. They have to be kept as long as their addresses are used.
    """
    addresses = [find_address(array) for array in (w, lagged_sum, sums, direction, numbers, choices, values)]
    if not all(addresses) or not w.shape == lagged_sum.shape == direction.shape:
        return None
    return np.array([len(w), len(sums), len(numbers), *choices.shape, *addresses, best, measure])


@jit
def fused_turn(
    X: FeatureArrays, labels: Floats, first: int, last: int, located: Integers, eta: float, played: int,
    order: Integers, scores: Floats,
) -> float:  # fmt: skip
    """A whole round with all its labels: ranks the rows from `first` to `last`, measures what is shown, and learns.

    `located` is what `locate_arrays` returns, `played` the number of rounds before this one. Fills `order`, `scores`
    and the values of the metrics. NaN, without any change of weights, if the round has to be refused.
    """
    X, labels, located, order, scores = borrow(X), borrow(labels), borrow(located), borrow(order), borrow(scores)
    rows, own, m = slice_rows(X, first, last), labels[first:last], last - first
    w, lagged_sum = array_at(located[_W], located[_WIDTH]), array_at(located[_LAGGED_SUM], located[_WIDTH])
    sums, direction = array_at(located[_SUMS], located[_SUMS_LONG]), array_at(located[_DIRECTION], located[_WIDTH])
    numbers = array_at(located[_NUMBERS], located[_NUMBERS_LONG])
    choices = array_at(located[_CHOICES], (located[_METRICS], located[_CHOICES_WIDE]))
    values = array_at(located[_VALUES], located[_METRICS])
    copy_into(scores, dot_rows(rows, w))
    copy_into(order, argsort_descending(scores))
    if choices.shape[0] > 0:
        seen = order[: depth_of(choices, m)]
        call_measure(located[_MEASURE], seen, own, choices, call_best(located[_BEST], own, choices), values)
        for value in values:
            if value != value:
                return np.nan
    return fused_round(
        rows, m, scores, np.arange(m), own, numbers, eta, played + 1.0, w, lagged_sum, sums, direction, m
    )
