"""The metrics of lists as they are shown, for compiled passes.

Private. A pass asks once for each list what could be reached (`call_best`), and for each order of it what was
(`call_measure`). Both are called by their addresses, so that they are compiled once for all passes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import float64, int64, void

from ranktron.kernels.calls import address_of, caller
from ranktron.kernels.jit import jit
from ranktron.metrics.dispatch import NDCG, first_outside, metric_address, value
from ranktron.metrics.gain import dcg, ideal_dcg
from ranktron.metrics.metric import Metric
from ranktron.types import Floats, Integers

_FEW = 32  # up to this many positions only the first documents are sorted


@jit
def _best(labels: Floats, choices: Floats) -> Floats:
    """The ideal DCG of each NDCG; NaN if a label is out of range."""
    best = np.zeros(choices.shape[0])
    for c in range(choices.shape[0]):
        if first_outside(labels, choices[c, 6]) >= 0:
            best[c] = np.nan
        elif choices[c, 0] == NDCG:
            k, gain, discount = int(choices[c, 1]), int(choices[c, 2]), int(choices[c, 3])
            best[c] = ideal_dcg(labels, k, gain, discount)
    return best


@jit
def _measure(order: Integers, labels: Floats, choices: Floats, best: Floats, values: Floats) -> None:
    """Every metric of an order, of which the first `depth_of(choices)` documents are enough; NaN where it has none."""
    ranked = np.empty(order.shape[0])
    for place in range(order.shape[0]):
        ranked[place] = labels[order[place]]
    for c in range(choices.shape[0]):
        k, gain, discount = int(choices[c, 1]), int(choices[c, 2]), int(choices[c, 3])
        empty, short, kernel = choices[c, 4], int(choices[c, 5]), int(choices[c, 7])
        if best[c] != best[c]:
            values[c] = np.nan
        elif kernel != 0:
            values[c] = value(kernel, ranked, k, gain, discount, empty, short)
        else:
            values[c] = dcg(ranked, k, gain, discount, short) / best[c] if best[c] > 0.0 else empty


_BEST = float64[::1](float64[::1], float64[:, ::1])
_MEASURE = void(int64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])
call_best, call_measure = caller(_BEST), caller(_MEASURE)


def measuring() -> tuple[int, int]:
    """The addresses for `call_best` and `call_measure`."""
    return address_of(_best, _BEST), address_of(_measure, _MEASURE)


def metric_numbers(metrics: Sequence[Metric]) -> Floats:
    """Metrics as rows of numbers for kernels: their arguments, and an address unless NDCG's code says it all.

    >>> metric_numbers([Metric("ndcg", 10)])[:, [1, 7]]
    array([[10.,  0.]])
    """
    rows = []
    for each in metrics:
        code, k, *_ = each.arguments
        own = code == NDCG and 0 < k <= _FEW
        rows.append((*each.arguments, 0 if own else metric_address(code)))
    return np.array(rows, float).reshape(len(metrics), 8)


@jit
def depth_of(choices: Floats, m: int) -> int:
    """How many documents of an order of m the metrics need.

    >>> depth_of(metric_numbers([Metric("ndcg", 3), Metric("ndcg", 5)]), 100)
    5
    """
    deepest = 0
    for c in range(choices.shape[0]):
        depth = int(choices[c, 1]) if choices[c, 7] == 0.0 else m
        deepest = depth if depth > deepest else deepest
    return deepest if deepest < m else m
