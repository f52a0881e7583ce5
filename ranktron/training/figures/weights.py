"""The weights of a linear model, for scaled and for raw features, and how much they still changed at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktron.data.scaling import Global
from ranktron.learners.schedule import Spread
from ranktron.training.algorithms import FIXED, stored_algorithm
from ranktron.training.model import Model
from ranktron.types import Floats


@dataclass(frozen=True, eq=False)
class Weights:
    """One weight per feature; `spread` and `raw` may be None, and `note` gives the reason.

    >>> model = Model("linear", {}, {"coef": np.array([2.0]), "constant": 0.0}, 1, feature_names=("age",),
    ...               scaler=Global("standard", np.array([40.0]), np.array([10.0])))
    >>> weights = model_weights(model)
    >>> weights.raw, weights.strongest()
    (array([0.2]), [0])
    """

    names: tuple[str, ...]
    scaled: Floats
    raw: Floats | None
    spread: Floats | None
    snapshots: int
    note: str

    def strongest(self) -> list[int]:
        """The features by the size of their weights, largest first."""
        order: list[int] = np.argsort(-np.abs(self.scaled), kind="stable").tolist()
        return order


def model_weights(model: Model) -> Weights:
    """The weights of a linear model; an error for other models."""
    coef = model.coef
    raw = None if model.by_list else coef / model.scaler.divisor if isinstance(model.scaler, Global) else coef
    spread = Spread.of(model.record)
    deviation = spread.deviation
    if deviation is not None and deviation.shape != coef.shape:
        deviation = None
    return Weights(model.filled_names, coef, raw, deviation, spread.snapshots, _note(model, spread, deviation))


def _note(model: Model, spread: Spread, deviation: Floats | None) -> str:
    if deviation is None:
        if model.kind == FIXED.name or stored_algorithm(model.kind).solution:
            return f"a {model.kind} model is solved or fixed, not streamed: its weights have no spread over training"
        return "no spread over training: ranktron train and fit record it, from the 36th round on"
    rounds = model.learner().rounds
    late = rounds > spread.rounds * 1.125  # the next snapshot was due
    words = f"about the last half of {spread.rounds if late else rounds:,} queries"
    if rounds > spread.rounds:
        words += f"; the last snapshot of the weights was taken after {spread.rounds:,}"
    words = f"spread of each weight over the last part of training ({words})"
    return f"{words}; it has learnt from {rounds - spread.rounds:,} more queries since" if late else words
