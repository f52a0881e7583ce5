"""Scikit-learn's metrics for tied scores. `ends` has, for each position, the end of its run of equal scores.

DCG is averaged over all orders of a run (McSherry and Najork, Computing Information Retrieval Performance Measures
Efficiently in the Presence of Tied Scores, 2008); AP counts a run at the precision at its end; a tied pair counts half.
"""

from typing import Any

from ranktron.kernels.jit import jit
from ranktron.metrics.binary import count_relevant
from ranktron.metrics.compiled import MetricCode, MetricRecords
from ranktron.metrics.gain import compute_gain, cut_off, discount_at, ideal_dcg
from ranktron.types import Floats, Integers


@jit
def tied_dcg(labels: Floats, ends: Integers, k: int, gain: int, discount: int) -> float:
    """DCG@k averaged over all orders of equal scores."""
    m = labels.shape[0]
    depth = cut_off(k, m)
    total = 0.0
    i = 0
    while i < depth:
        worth = 0.0
        weight = 0.0
        for j in range(i, ends[i]):
            worth += compute_gain(labels[j], gain)
            if j < depth:
                weight += discount_at(j, discount)
        total += worth * weight / (ends[i] - i)
        i = ends[i]
    return total


@jit
def tied_average_precision(labels: Floats, ends: Integers, empty: float) -> float:
    """AP in which the documents of a run of equal scores are retrieved together."""
    hits = 0
    total = 0.0
    i = 0
    while i < labels.shape[0]:
        found = count_relevant(labels[i : ends[i]], ends[i] - i)
        hits += found
        total += found * hits / ends[i]
        i = ends[i]
    return total / hits if hits else empty


@jit
def tied_auc(labels: Floats, ends: Integers, empty: float) -> float:
    """AUC in which a pair with equal scores counts half."""
    relevant = count_relevant(labels, labels.shape[0])
    others = labels.shape[0] - relevant
    if relevant == 0:
        return empty
    wrong = 0.0
    above = 0
    i = 0
    while i < labels.shape[0]:
        found = count_relevant(labels[i : ends[i]], ends[i] - i)
        missed = ends[i] - i - found
        wrong += found * (above + 0.5 * missed)
        above += missed
        i = ends[i]
    return 1.0 - wrong / (relevant * others) if others else 1.0


@jit
def tied_value(labels: Floats, ends: Integers, metric: Any) -> float:
    """The value of a metric for the labels of one query in ranked order, with ties."""
    if metric["code"] == MetricCode.map:
        return tied_average_precision(labels, ends, metric["empty"])
    if metric["code"] == MetricCode.auc:
        return tied_auc(labels, ends, metric["empty"])
    total = tied_dcg(labels, ends, metric["k"], metric["gain"], metric["discount"])
    if metric["code"] == MetricCode.dcg:
        return total
    best = ideal_dcg(labels, metric["k"], metric["gain"], metric["discount"])
    return total / best if best > 0.0 else metric["empty"]


@jit
def tied_values(labels: Floats, ends: Integers, offsets: Integers, metrics: MetricRecords, out: Floats) -> None:
    """Every metric of every query."""
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        local = ends[start:stop] - start
        for row in range(metrics.shape[0]):
            out[row, q] = tied_value(labels[start:stop], local, metrics[row])
