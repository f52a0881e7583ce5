"""How informative each feature is about the labels, and the weight of a map's nonlinear part."""

from __future__ import annotations

import numpy as np

from ranktron.data.maps.bins import Bins
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Floats

GROUPS = 8
PART = 8192
ENOUGH = 1000
"""The number of lists with which the nonlinear part of a row weighs half as much as the linear one."""


def strengths(rounds: Rounds) -> Floats:
    """The strength of each feature: the share of the labels' variance within queries between its bins.

    Unlike a correlation, it recognises a feature whose high and low values are both good.

    >>> rounds = Rounds.from_arrays([[0, 5], [1, 5], [2, 5], [3, 5]], [1, 0, 0, 1])
    >>> strengths(rounds).tolist()
    [1.0, 0.0]
    """
    lengths = np.diff(rounds.offsets)
    residuals = rounds.labels - np.repeat(np.add.reduceat(rounds.labels, rounds.offsets[:-1]) / lengths, lengths)
    total = float(residuals @ residuals)
    fitted = Bins(GROUPS).fit(rounds)
    sums, counts = np.zeros(fitted.n_outputs), np.zeros(fitted.n_outputs)
    for start in range(0, len(residuals), PART):
        part = slice(start, start + PART)
        columns = fitted(rounds.X[part]).columns
        sums += np.bincount(columns, np.repeat(residuals[part], rounds.n_features), fitted.n_outputs)
        counts += np.bincount(columns, minlength=fitted.n_outputs)
    between = sums**2 / np.maximum(counts, 1)
    found: Floats = np.add.reduceat(between, fitted.firsts[:-1])
    return found / total if total > 0.0 else np.zeros(rounds.n_features)


def strength_shares(rounds: Rounds) -> Floats:
    """The strengths divided by their sum; equal for all if no feature is informative.

    >>> rounds = Rounds.from_arrays([[0, 5], [1, 5], [2, 5], [3, 5]], [1, 0, 0, 1])
    >>> strength_shares(rounds).tolist(), strength_shares(Rounds.from_arrays([[1, 5], [2, 6]], [1, 1])).tolist()
    ([1.0, 0.0], [0.5, 0.5])
    """
    found = strengths(rounds)
    total = float(found.sum())
    return found / total if total > 0.0 else np.full(rounds.n_features, 1.0 / rounds.n_features)


def curve_weight(weight: float, rounds: Rounds) -> float:
    """The length of the nonlinear part relative to the linear one: `weight`, or queries / (queries + 1000) if it is 0.

    On few queries the nonlinear part fits mostly noise: on sixty, a weight of 1 makes rankings worse.

    >>> rounds = Rounds.from_arrays(np.ones((250, 1)), np.ones(250), group=[1] * 250)
    >>> curve_weight(0.0, rounds), curve_weight(0.5, rounds)
    (0.2, 0.5)
    """
    if not 0.0 <= weight < float("inf"):
        raise DataError(f"weight must be a positive number, or 0 to take it from the number of lists, not {weight}")
    return weight or len(rounds) / (len(rounds) + ENOUGH)
