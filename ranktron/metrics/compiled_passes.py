"""The metrics of lists as they are shown, for compiled passes.

`compute_ideals` computes the ideal DCG once per list; `measure` evaluates one ranking of it. Both write into the
records.
"""

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.metrics.dispatch import MetricCode, MetricRecords, first_outside, metric_value
from ranktron.metrics.gain import dcg, ideal_dcg
from ranktron.types import Floats, Integers

_FEW = 32  # up to this many positions only the first documents are sorted


@jit
def depth_of(metrics: MetricRecords, m: int) -> int:
    """How many documents of an order of m the metrics need.

    >>> from ranktron.metrics.dispatch import metric_records
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
