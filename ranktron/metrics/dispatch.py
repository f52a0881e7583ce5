"""Compiled metrics: the value of one query for `play`, and those of many queries for `evaluate`.

A metric is called by its address (`ranktron.kernels.calls`): only those that are used are compiled.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numba import float64, int64

from ranktron.kernels.calls import address_of, caller
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
from ranktron.metrics.gain import dcg, err, ndcg
from ranktron.metrics.pairs import inversions, tau
from ranktron.types import Floats, Integers

NDCG, DCG, AP, RR, ERR, P, RECALL, RPREC, BPREF, RANKEFF, INVERSIONS, TAU = range(12)

CODES: Mapping[str, int] = MappingProxyType(
    {
        "ndcg": NDCG,
        "dcg": DCG,
        "map": AP,
        "mrr": RR,
        "err": ERR,
        "p": P,
        "recall": RECALL,
        "rprec": RPREC,
        "bpref": BPREF,
        "rankeff": RANKEFF,
        "auc": RANKEFF,
        "inversions": INVERSIONS,
        "tau": TAU,
    }
)


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


# Every metric with the arguments of all of them, so that one caller serves them all.


@jit
def _ndcg(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return ndcg(labels, k, gain, discount, empty, short)


@jit
def _dcg(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return dcg(labels, k, gain, discount, short)


@jit
def _ap(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return average_precision(labels, empty)


@jit
def _rr(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return reciprocal_rank(labels, empty)


@jit
def _err(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return err(labels, k, empty)


@jit
def _p(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return precision(labels, k, empty, short)


@jit
def _recall(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return recall(labels, k, empty, short)


@jit
def _rprec(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return r_precision(labels, empty)


@jit
def _bpref(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return bpref(labels, empty)


@jit
def _rankeff(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return rank_efficiency(labels, empty)


@jit
def _inversions(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return inversions(labels)


@jit
def _tau(labels: Floats, k: int, gain: int, discount: int, empty: float, short: int) -> float:
    return tau(labels, empty)


_METRICS = (_ndcg, _dcg, _ap, _rr, _err, _p, _recall, _rprec, _bpref, _rankeff, _inversions, _tau)  # by code
_SIGNATURE = float64(float64[::1], int64, int64, int64, float64, int64)

value = caller(_SIGNATURE)
"""The value of the metric at an address for the labels of one query in ranked order, as a kernel calls it."""


def metric_address(code: int) -> int:
    """The address of a metric for `value`; it is compiled at first use."""
    return address_of(_METRICS[code], _SIGNATURE)


@jit
def checked_value(
    labels: Floats, kernel: int, k: int, gain: int, discount: int, empty: float, short: int, limit: float
) -> float:
    """The value of a metric for one query, NaN if a label is out of range."""
    if first_outside(labels, limit) >= 0:
        return np.nan
    found: float = value(kernel, labels, k, gain, discount, empty, short)
    return found


@jit
def shown_value(
    labels: Floats,
    order: Integers,
    kernel: int,
    k: int,
    gain: int,
    discount: int,
    empty: float,
    short: int,
    limit: float,
) -> float:
    """The same for labels in input order, shown in the given `order`."""
    ranked = np.empty(order.shape[0])
    for place in range(order.shape[0]):
        there = 0 <= order[place] < labels.shape[0]
        ranked[place] = labels[order[place]] if there else np.nan
    return checked_value(ranked, kernel, k, gain, discount, empty, short, limit)


@jit
def values(labels: Floats, offsets: Integers, choices: Integers, empty: Floats, out: Floats) -> None:
    """Every metric (a row of `choices`: address, k, gain, discount, short) of every query, from its ranked labels."""
    for q in range(offsets.shape[0] - 1):
        ranked = labels[offsets[q] : offsets[q + 1]]
        for row in range(choices.shape[0]):
            c = choices[row]
            out[row, q] = value(c[0], ranked, c[1], c[2], c[3], empty[row], c[4])
