"""Products of two features: a linear ranker becomes a quadratic function of the most informative ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.maps.protocols import check_input, sample_documents
from ranktron.data.maps.strengths import curve_weight, strengths
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix
from ranktron.types.validation import check_count

SAMPLE = 100_000
REACH = 2.0
"""Features are clipped at this many standard deviations, so that a long tail does not dominate the products."""


@jit
def _products(X: Matrix, chosen: Integers, shift: Floats, divisor: Floats, weight: float, mapped: Matrix) -> None:
    d, n = X.shape[1], chosen.shape[0]
    z, factor = np.empty(n), weight * np.sqrt(2.0 * d / (n * (n + 1)))
    for i in range(X.shape[0]):
        for j in range(d):
            mapped[i, j] = X[i, j]
        for a in range(n):
            z[a] = min(max((X[i, chosen[a]] - shift[a]) / divisor[a], -REACH), REACH)
        at = d
        for a in range(n):
            for b in range(a + 1):
                mapped[i, at] = factor * z[a] * z[b]
                at += 1


@dataclass(frozen=True)
class Products:
    """Adds the products of every two of the most informative features, including squares.

        c √(2d / (n (n + 1))) z_a z_b

    The most informative features are those whose bins explain most of the labels' variance. Before they are multiplied
    they are standardised and clipped at 2 standard deviations. With the factor all products together have about c times
    the length of a standardised row.

    Parameters
    ----------
    features : int >= 1
        n, the number of features to multiply: n (n + 1) / 2 products.
    weight : float >= 0
        c, the length of the nonlinear part relative to that of a row; 0: queries / (queries + 1000).

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0, 5], [1, 5], [2, 5], [3, 5]], [1, 0, 0, 1])
    >>> fitted = Products(1, weight=1.0).fit(rounds)
    >>> fitted.chosen.tolist(), fitted(rounds.X).astype(float).round(2).tolist()
    ([0], [[0.0, 5.0, 2.55], [1.0, 5.0, 0.28], [2.0, 5.0, 0.28], [3.0, 5.0, 2.55]])
    """

    features: int = 50
    weight: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.features, "the number of features to multiply", 1)

    def fit(self, rounds: Rounds) -> FittedProducts:
        sample = sample_documents(rounds, SAMPLE)
        order = np.argsort(-strengths(rounds), kind="stable")
        chosen = np.sort(order[: self.features]).astype(np.int64)
        selected = sample[:, chosen].astype(np.float64)
        deviation = selected.std(axis=0)
        divisor, weight = np.where(deviation > 0.0, deviation, 1.0), curve_weight(self.weight, rounds)
        return FittedProducts(self.features, rounds.n_features, chosen, selected.mean(axis=0), divisor, weight)


@dataclass(frozen=True, eq=False)
class FittedProducts:
    """Fitted products: which features are multiplied, and how they are scaled before."""

    count: int
    n_inputs: int
    chosen: Integers
    shift: Floats
    divisor: Floats
    weight: float

    @property
    def name(self) -> str:
        return f"products:{self.count}"

    @property
    def n_outputs(self) -> int:
        n = len(self.chosen)
        return self.n_inputs + n * (n + 1) // 2

    def __call__(self, X: Matrix) -> Matrix:
        X = check_input(X, self.n_inputs)
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        _products(X, self.chosen, self.shift, self.divisor, self.weight, mapped)
        return mapped

    def state(self) -> dict[str, Any]:
        kept = {"chosen": self.chosen, "shift": self.shift, "divisor": self.divisor}
        return {"count": self.count, "n_inputs": self.n_inputs, "weight": self.weight, **kept}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedProducts:
        chosen = np.array(state["chosen"], np.int64)
        shift, divisor = (np.array(state[key], np.float64) for key in ("shift", "divisor"))
        n_inputs = int(state["n_inputs"])
        there = ((chosen >= 0) & (chosen < n_inputs)).all()
        if not shift.shape == divisor.shape == chosen.shape or chosen.ndim != 1 or not there:
            raise DataError("the model holds products that do not fit together")
        return cls(int(state["count"]), n_inputs, chosen, shift, divisor, float(state["weight"]))
