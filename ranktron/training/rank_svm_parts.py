"""RankSVM on parts: values, gradients and Hessian products of all parts are added up, and one machine descends.

    f(w) = ½ |w|² + Σ_p c_p (f_p(w) − ½ |w|²)

f_p is the objective of part p by itself, and c_p its share of all queries (or pairs, if every pair counts the same).
It is the objective of one machine; only the order of the sums differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.grades import pair_weights
from ranktron.learners.batch.rank_svm import Objective, RankSVMSolution, minimise_objective
from ranktron.types import Floats

Each = Callable[..., list[Any]]
"""Calls a function of each part's queries, as the learner takes them, and returns the results in order."""


def count_pairs(rounds: Rounds) -> tuple[float, float]:
    """How many queries have pairs, and how many pairs there are."""
    counts = pair_weights(rounds.labels, rounds.offsets, np.ones(len(rounds.labels)))
    return float(np.count_nonzero(counts)), float(counts.sum())


def value_and_gradient(rounds: Rounds, C: float, balance: str, w: Floats) -> tuple[float, Floats]:
    """The loss of a part without the regulariser, and its gradient."""
    objective = Objective(rounds, C, balance)
    return objective.value(w) - 0.5 * float(w @ w), objective.gradient(w) - w


def hessian_product(rounds: Rounds, C: float, balance: str, w: Floats, v: Floats) -> Floats:
    """The Hessian of the loss of a part, applied to v."""
    product: Floats = Objective(rounds, C, balance).curvature(w, v) - v
    return product


@dataclass(frozen=True, eq=False)
class PartsObjective:
    """The objective of RankSVM with the squared hinge on all parts.

    Parameters
    ----------
    each : callable
        Calls a function of each part, where the part is.
    shares : array
        The share of each part in all queries, or pairs.
    C : float
        The weight of the mean loss.
    balance : {"query", "pair"}
        What counts the same.
    """

    each: Each
    shares: Floats
    C: float
    balance: str
    _last: list[Any] = field(default_factory=lambda: [None, None, None], repr=False)

    def _at(self, w: Floats) -> None:
        if self._last[0] is not None and np.array_equal(self._last[0], w):
            return
        value, gradient = 0.5 * float(w @ w), w.copy()
        for share, (loss, slope) in zip(
            self.shares, self.each(value_and_gradient, self.C, self.balance, w), strict=True
        ):
            value, gradient = value + float(share) * loss, gradient + share * slope
        self._last[:] = [w.copy(), value, gradient]

    def value(self, w: Floats) -> float:
        """The objective."""
        self._at(w)
        return float(self._last[1])

    def gradient(self, w: Floats) -> Floats:
        """Its gradient."""
        self._at(w)
        gradient: Floats = self._last[2]
        return gradient

    def curvature(self, w: Floats, v: Floats) -> Floats:
        """The Hessian at w applied to v."""
        total = v.copy()
        for share, product in zip(self.shares, self.each(hessian_product, self.C, self.balance, w, v), strict=True):
            total = total + share * product
        return total


def solve_parts(
    each: Each, n_features: int, parameters: dict[str, Any], stop: Callable[[], bool] = lambda: False
) -> RankSVMSolution:
    """Minimises the objective of all parts.

    >>> from ranktron.data.synthetic import WebSearch
    >>> lists = WebSearch(features=5, documents=8).rounds(40)
    >>> halves = [lists[:15], lists[15:]]
    >>> each = lambda function, *arguments: [function(half, *arguments) for half in halves]
    >>> parameters = {"C": 1.0, "loss": "squared", "balance": "query", "tol": 1e-8, "max_iter": 100}
    >>> from ranktron.learners.batch.rank_svm import minimise
    >>> bool(np.abs(solve_parts(each, 5, parameters).w - minimise(lists, tol=1e-8).w).max() < 1e-8)
    True
    """
    if parameters["loss"] != "squared":
        raise DataError("on parts RankSVM is solved with loss=squared: the corner of the plain hinge needs one machine")
    counts = np.array(each(count_pairs))
    own = counts[:, 1 if parameters["balance"] == "pair" else 0]
    shares = own / (own.sum() or 1.0)
    objective = PartsObjective(each, shares, parameters["C"], parameters["balance"])
    return minimise_objective(objective, np.zeros(n_features), parameters["tol"], parameters["max_iter"], stop)
