"""Compiled metrics: the value of one query for `play`, of many queries for `evaluate`, and of each round of a pass.

In a pass, `compute_ideals` computes the ideal DCG once per list, and `measure` evaluates one ranking of it. Both write
into the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit
from ranktron.metrics.binary import (
    average_precision,
    bpref,
    precision,
    r_precision,
    rank_efficiency,
    recall,
    reciprocal_rank,
)
from ranktron.metrics.gain import dcg, err, ideal_dcg, ndcg
from ranktron.metrics.pairs import inversions, tau
from ranktron.types import Floats, Integers

if TYPE_CHECKING:
    from ranktron.metrics.metric import Metric

MetricRecords = npt.NDArray[Any]
"""Metrics for kernels: records of `METRIC`."""

_FEW = 32  # up to this many positions only the first documents are sorted

METRIC = np.dtype(
    [
        ("code", "i8"),  # a `MetricCode`
        ("k", "i8"),  # how many positions count, 0: all
        ("gain", "i8"),  # index in `conventions.GAINS`
        ("discount", "i8"),  # index in `conventions.DISCOUNTS`
        ("short", "i8"),  # index in `conventions.SHORT`
        ("empty", "f8"),  # the value of a query without relevant documents
        ("highest", "f8"),  # the highest label for which the metric is defined
        ("ideal", "f8"),  # for compiled passes: the highest DCG of the list at hand, where that is needed
        ("value", "f8"),  # for compiled passes: the value of the ranking at hand
    ]
)


class MetricCode(IntEnum):
    """The metrics by their names in `MEASURES`; `metric_value` has the kernel of each."""

    ndcg = 0
    dcg = 1
    map = 2
    mrr = 3
    err = 4
    p = 5
    recall = 6
    rprec = 7
    bpref = 8
    rankeff = 9
    auc = 9
    inversions = 10
    tau = 11


def metric_records(metrics: Sequence[Metric]) -> MetricRecords:
    """Metrics for kernels.

    >>> from ranktron.metrics.metric import Metric
    >>> metric_records([Metric("ndcg", 10), Metric("map")])["k"]
    array([10,  0])
    """
    return np.concatenate([np.zeros(0, METRIC), *[each.record for each in metrics]])


@jit
def metric_value(labels: Floats, metric: Any) -> float:
    """The value of a metric for the labels of one query in ranked order."""
    if metric["code"] == MetricCode.ndcg:
        return ndcg(labels, metric["k"], metric["gain"], metric["discount"], metric["empty"], metric["short"])
    if metric["code"] == MetricCode.dcg:
        return dcg(labels, metric["k"], metric["gain"], metric["discount"], metric["short"])
    if metric["code"] == MetricCode.map:
        return average_precision(labels, metric["empty"])
    if metric["code"] == MetricCode.mrr:
        return reciprocal_rank(labels, metric["empty"])
    if metric["code"] == MetricCode.err:
        return err(labels, metric["k"], metric["empty"])
    if metric["code"] == MetricCode.p:
        return precision(labels, metric["k"], metric["empty"], metric["short"])
    if metric["code"] == MetricCode.recall:
        return recall(labels, metric["k"], metric["empty"], metric["short"])
    if metric["code"] == MetricCode.rprec:
        return r_precision(labels, metric["empty"])
    if metric["code"] == MetricCode.bpref:
        return bpref(labels, metric["empty"])
    if metric["code"] == MetricCode.rankeff:
        return rank_efficiency(labels, metric["empty"])
    if metric["code"] == MetricCode.inversions:
        return inversions(labels)
    return tau(labels, metric["empty"])


@jit
def first_outside(labels: Floats, limit: float) -> int:
    """Finds the first label that is not a number from 0 to `limit`, -1 if there is none."""
    outside = 0
    for i in range(labels.shape[0]):
        outside += not (0.0 <= labels[i] <= limit)
    if outside:
        for i in range(labels.shape[0]):
            if not (0.0 <= labels[i] <= limit):
                return i
    return -1


@jit
def checked_value(labels: Floats, metric: MetricRecords) -> float:
    """The value of one metric for the ranked labels of a query, NaN if a label is out of range."""
    if first_outside(labels, metric[0]["highest"]) >= 0:
        return np.nan
    return float(metric_value(labels, metric[0]))


@jit
def shown_value(labels: Floats, order: Integers, metric: MetricRecords) -> float:
    """The same for labels in input order, shown in the given `order`."""
    ranked = np.empty(order.shape[0])
    for place in range(order.shape[0]):
        there = 0 <= order[place] < labels.shape[0]
        ranked[place] = labels[order[place]] if there else np.nan
    return checked_value(ranked, metric)


@jit
def values(labels: Floats, offsets: Integers, metrics: MetricRecords, out: Floats) -> None:
    """Every metric of every query, from its ranked labels."""
    for q in range(offsets.shape[0] - 1):
        ranked = labels[offsets[q] : offsets[q + 1]]
        for row in range(metrics.shape[0]):
            out[row, q] = metric_value(ranked, metrics[row])


@jit
def depth_of(metrics: MetricRecords, m: int) -> int:
    """How many documents of an order of m the metrics need.

    >>> from ranktron.metrics.compiled import metric_records
    >>> from ranktron.metrics.metric import Metric
    >>> depth_of(metric_records([Metric("ndcg", 3), Metric("ndcg", 5)]), 100)
    5
    """
    deepest = 0
    for c in range(metrics.shape[0]):
        few = metrics[c]["code"] == MetricCode.ndcg and 0 < metrics[c]["k"] <= _FEW
        depth = metrics[c]["k"] if few else m
        deepest = depth if depth > deepest else deepest
    return deepest if deepest < m else m


@jit
def compute_ideals(labels: Floats, metrics: MetricRecords) -> None:
    """Fills the ideal DCG of each NDCG; NaN for a metric that is not defined for a label."""
    for c in range(metrics.shape[0]):
        metric = metrics[c]
        metric["ideal"] = 0.0
        if first_outside(labels, metric["highest"]) >= 0:
            metric["ideal"] = np.nan
        elif metric["code"] == MetricCode.ndcg:
            metric["ideal"] = ideal_dcg(labels, metric["k"], metric["gain"], metric["discount"])


@jit
def measure(order: Integers, labels: Floats, metrics: MetricRecords) -> None:
    """Fills the values of an order, of which the first `depth_of(metrics)` documents are enough."""
    ranked = np.empty(order.shape[0])
    for place in range(order.shape[0]):
        ranked[place] = labels[order[place]]
    for c in range(metrics.shape[0]):
        metric = metrics[c]
        ideal = metric["ideal"]
        if ideal != ideal:
            metric["value"] = np.nan
        elif metric["code"] != MetricCode.ndcg:
            metric["value"] = metric_value(ranked, metric)
        elif ideal > 0.0:
            metric["value"] = dcg(ranked, metric["k"], metric["gain"], metric["discount"], metric["short"]) / ideal
        else:
            metric["value"] = metric["empty"]
