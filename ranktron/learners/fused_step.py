"""The update of one round as a single kernel, for the surrogates and mistake rules listed here.

Private. It calls the same kernels as the surrogates and mistake rules, in the same order, so that weights are equal to
the bit (which tests check); a round then takes one call of compiled code instead of four. A surrogate is added by a
code, a row of `_SURROGATES` and a branch of `_loss`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.dense import is_full
from ranktron.kernels.dispatch import FeatureArrays, dot_rows, sgd_step, slice_rows
from ranktron.kernels.grades import best_below, extremes, grades_seen
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow, copy_into
from ranktron.kernels.sorting import argsort_descending, ideal_order
from ranktron.learners.mistakes import Misordered, MisorderedBinary, misordered_grades, misordered_list
from ranktron.metrics.compiled import MetricRecords, compute_ideals, depth_of, measure
from ranktron.surrogates import SLAM, ListNet, MeanPairwiseHinge, WorstPair
from ranktron.surrogates.listnet import listnet
from ranktron.surrogates.pairwise_hinge import summed_hinge
from ranktron.surrogates.slam import AP, NDCG, slam_at, slam_weights
from ranktron.surrogates.worst_pair import worst_pair_at
from ranktron.types import Floats, Integers, Mistake, Surrogate

SPEC = np.dtype(
    [
        ("loss", "i8"),  # one of the codes below
        ("k", "i8"),  # of the surrogate: how many positions count, 0: all
        ("mistake_k", "i8"),  # of the mistake rule
        ("margin", "f8"),
        ("fraction", "f8"),
        ("binary", "?"),  # whether every label above 0 is the same grade
        ("graded", "?"),  # whether the loss or the rule needs the documents by grade
        ("extremes", "?"),  # whether one of them needs the best and worst score of each grade
        ("mistakes_only", "?"),  # whether there is a mistake rule
    ]
)
Specs = npt.NDArray[Any]
"""Surrogates with their mistake rules for kernels: records of `SPEC`."""

Plan = tuple[Integers, Integers, Floats]
"""What depends on labels alone: the documents by grade, where grades start, and the weights of SLAM."""

_SLAM, _WORST_PAIR, _LISTNET, _MEAN_HINGE = range(4)


def _slam(surrogate: SLAM) -> dict[str, Any] | None:
    binary = surrogate.code == AP
    if binary and not surrogate.binarise:
        return None  # graded labels have to be refused first
    numbers = {"k": surrogate.k, "margin": surrogate.margin, "fraction": surrogate.fraction}
    return {"loss": _SLAM, "binary": binary, "graded": True, "extremes": True, **numbers}


def _worst_pair(surrogate: WorstPair) -> dict[str, Any]:
    return {"loss": _WORST_PAIR, "binary": False, "graded": True, "extremes": True, "margin": surrogate.margin}


def _listnet(surrogate: ListNet) -> dict[str, Any]:
    return {"loss": _LISTNET}  # grades are as in the mistake rule


def _mean_hinge(surrogate: MeanPairwiseHinge) -> dict[str, Any]:
    return {"loss": _MEAN_HINGE, "binary": False, "graded": True, "margin": surrogate.margin}


# By the method that computes them, which a subclass inherits unless it computes something else.
_SURROGATES: Mapping[Any, Callable[[Any], dict[str, Any] | None]] = {
    SLAM.__call__: _slam,
    WorstPair.__call__: _worst_pair,
    ListNet.__call__: _listnet,
    MeanPairwiseHinge.__call__: _mean_hinge,
}
_RULES: Mapping[Any, Callable[[Any], tuple[bool, int]]] = {
    Misordered.__call__: lambda rule: (False, rule.k),
    MisorderedBinary.__call__: lambda rule: (True, 0),
}


def fused_spec(surrogate: Surrogate, mistake: Mistake | None) -> Specs | None:
    """One record for a surrogate and a mistake rule that use the same grades; None if kernels do not know them."""
    form = _SURROGATES.get(type(surrogate).__call__, lambda _: None)(surrogate)
    if form is None:
        return None
    spec = np.zeros(1, SPEC)
    for name, value in form.items():
        spec[name] = value
    if mistake is not None:
        rule = _RULES.get(type(mistake).__call__)
        if rule is None:
            return None
        binary, k = rule(mistake)
        if form.get("binary", binary) != binary:
            return None
        spec["binary"], spec["mistake_k"], spec["mistakes_only"], spec["graded"] = binary, k, True, True
        spec["extremes"] |= k > 0
    return spec


@jit
def label_plan(labels: Floats, spec: Any) -> Plan:
    """What depends on the labels alone."""
    if not spec["graded"]:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    documents, starts, values = grades_seen(labels, spec["binary"])
    if spec["loss"] != _SLAM:
        return documents, starts, np.empty(0)
    return documents, starts, slam_weights(starts, values, AP if spec["binary"] else NDCG, spec["k"])


@jit
def _loss(
    spec: Any, labels: Floats, scores: Floats, plan: Plan, lowest: Integers, below: Integers, gradient: Floats
) -> float:
    """Fills the subgradient of the surrogate and returns its loss."""
    documents, starts, v = plan
    if spec["loss"] == _SLAM:
        ideal = ideal_order(scores, documents, starts, v.shape[0])
        return slam_at(scores, documents, starts, below, ideal, v, spec["margin"], spec["fraction"], gradient)
    if spec["loss"] == _WORST_PAIR:
        return worst_pair_at(scores, lowest, below, spec["margin"], gradient)
    if spec["loss"] == _LISTNET:
        return listnet(scores, labels, gradient)
    loss, pairs = summed_hinge(scores, documents, starts, spec["margin"], gradient)
    if pairs == 0.0:
        return 0.0
    for i in range(scores.shape[0]):
        gradient[i] /= pairs
    return float(loss / pairs)


@jit
def fused_step(
    X: FeatureArrays, items: Integers, labels: Floats, scores: Floats, spec: Any, plan: Plan, eta: float, t: float,
    vectors: Floats, sums: Floats, gradient: Floats, ahead: int,
) -> float:  # fmt: skip
    """Learns from the labels of all documents of a query: the loss, or NaN if scores or weights overflow.

    `vectors` and `sums` are those of `Linear`. The next query is as many rows `ahead` in memory, 0 if that is not
    known.
    """
    documents, starts, _ = plan
    lowest = below = starts
    if spec["extremes"]:
        lowest, highest = extremes(scores, documents, starts)
        below = best_below(scores, highest)
        if spec["mistakes_only"] and not misordered_grades(scores, documents, starts, lowest, below, spec["mistake_k"]):
            return 0.0
    elif spec["mistakes_only"] and not misordered_list(scores, documents, starts):
        return 0.0
    loss: float = _loss(spec, labels, scores, plan, lowest, below, gradient)
    w, lagged_sum, direction = vectors[0], vectors[1], vectors[2]
    taken = sgd_step(X, items, gradient, loss, eta, t, w, lagged_sum, sums, direction, ahead)
    return loss if taken else np.nan


@jit
def fused_round(
    X: FeatureArrays, m: int, scores: Floats, items: Integers, labels: Floats, specs: Specs, eta: float, t: float,
    vectors: Floats, sums: Floats, ahead: int,
) -> float:  # fmt: skip
    """The same for one round with its feedback; NaN, without any change, if the feedback is not on all documents."""
    if scores.shape[0] != m or not is_full(items, labels, m):
        return np.nan
    spec, vectors = specs[0], borrow(vectors)
    plan = label_plan(labels, spec)
    return fused_step(X, items, labels, scores, spec, plan, eta, t, vectors, sums, np.empty(m), ahead)


@jit
def fused_turn(
    X: FeatureArrays, labels: Floats, first: int, last: int, specs: Specs, metrics: MetricRecords, eta: float,
    played: int, vectors: Floats, sums: Floats, order: Integers, scores: Floats,
) -> float:  # fmt: skip
    """A whole round with all its labels: ranks the rows from `first` to `last`, measures what is shown, and learns.

    `played` is the number of rounds before this one. Fills `order`, `scores` and the values of the metrics. NaN,
    without any change of weights, if the round has to be refused.
    """
    X, labels, order, scores = borrow(X), borrow(labels), borrow(order), borrow(scores)
    vectors, sums, metrics = borrow(vectors), borrow(sums), borrow(metrics)
    rows, own, m = slice_rows(X, first, last), labels[first:last], last - first
    copy_into(scores, dot_rows(rows, vectors[0]))
    copy_into(order, argsort_descending(scores))
    if metrics.shape[0] > 0:
        compute_ideals(own, metrics)
        measure(order[: depth_of(metrics, m)], own, metrics)
        for c in range(metrics.shape[0]):
            if metrics[c]["value"] != metrics[c]["value"]:
                return np.nan
    return fused_round(rows, m, scores, np.arange(m), own, specs, eta, played + 1.0, vectors, sums, m)
