"""The linear ranker that is exported: weights of named features, their normalisation, and a constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ranktron.data.scaling import Global, PerQuery, Running
from ranktron.errors import DataError
from ranktron.export.engine import Engine
from ranktron.training.model import Model
from ranktron.types import Floats, Matrix

VOTES = {"pairwise": ("output", "voted"), "committee": ("combine", "borda")}


@dataclass(frozen=True, eq=False)
class LinearRanker:
    """Scores Σ_j w_j (x_j − shift_j) / divisor_j + constant; with `scaling` minmax-query, x_j is scaled in each list.

    With `fill`, a missing x_j is replaced by fill_j and adds missing_offset_j to the score.

    >>> ranker = LinearRanker(("a",), np.array([2.0]), np.array([1.0]), np.array([4.0]), "standard", 0.5)
    >>> folded = ranker.folded()
    >>> folded.weights, folded.constant
    (array([0.5]), 0.0)
    """

    names: tuple[str, ...]
    weights: Floats
    shift: Floats
    divisor: Floats
    scaling: str
    constant: float
    fill: Floats | None = None
    missing_offset: Floats | None = None

    @property
    def terms(self) -> int:
        return len(self.weights) * (1 if self.fill is None else 2)

    def missing(self) -> tuple[Floats, Floats] | None:
        """`fill` and `missing_offset`; None if values must not be missing."""
        return None if self.fill is None or self.missing_offset is None else (self.fill, self.missing_offset)

    @property
    def reads_zeros(self) -> bool:
        """Whether a missing value is the same as 0, as it is in engines without missing values."""
        return self.fill is None or not (self.fill.any() or np.any(self.missing_offset))

    def folded(self) -> LinearRanker:
        """The same scores for raw features: the normalisation is folded into the weights and the constant."""
        weights = self.weights / self.divisor
        constant = self.constant - float(weights @ self.shift)
        blank, ones = np.zeros(len(weights)), np.ones(len(weights))
        return replace(self, weights=weights, shift=blank, divisor=ones, scaling="none", constant=constant)

    def without_constant(self) -> LinearRanker:
        """The same ranking without the constant, which is the same for all documents."""
        return replace(self, constant=0.0)

    def with_one(self, name: str, weight: float) -> LinearRanker:
        """The ranker with an additional feature that is 1 for every document, whose weight is the constant."""
        if name in self.names:
            raise DataError(f"{name!r} is a feature of the model: name another one that is 1 for every document")
        return replace(
            self,
            names=(*self.names, name),
            weights=np.append(self.weights, weight),
            shift=np.append(self.shift, 0.0),
            divisor=np.append(self.divisor, 1.0),
            constant=0.0,
            fill=None if self.fill is None else np.append(self.fill, 0.0),
            missing_offset=None if self.missing_offset is None else np.append(self.missing_offset, 0.0),
        )

    def magnitude(self, X: Matrix) -> Floats:
        """The sum of the absolute terms of each score, to which rounding errors are proportional."""
        if self.scaling == "minmax-query":
            return np.full(len(X), float(np.abs(self.weights).sum()) + abs(self.constant))
        X = X if self.fill is None else np.where(np.isnan(X), self.fill, X)
        terms: Floats = (np.abs(X) + np.abs(self.shift)) @ np.abs(self.weights / self.divisor)
        offsets = 0.0 if self.missing_offset is None else float(np.abs(self.missing_offset).sum())
        return terms + abs(self.constant) + offsets

    def lowest(self, low: Floats, high: Floats) -> float:
        """The lowest score for features within these ranges."""
        edges = [self.weights * (edge - self.shift) / self.divisor for edge in (low, high)]
        return float(np.minimum(*edges).sum()) + self.constant


class LinearEngine(Engine[LinearRanker], Protocol):
    """A target for linear rankers; `why_folded` is the reason why it cannot represent the scaling, or ""."""

    @property
    def keeps_constant(self) -> bool: ...

    def why_folded(self, ranker: LinearRanker, /) -> str: ...


def linear_ranker(model: Model) -> LinearRanker:
    """A linear model's ranker; other models are refused, with the reason and an alternative."""
    if model.kind in VOTES and model.by_list and not isinstance(model.scaler, PerQuery):
        raise DataError(
            f"a {model.kind} model whose members vote is not linear: its score depends on the whole list, which search "
            "engines do not see; export the average of its members instead (--average, or model.export(average=True))"
        )
    try:
        weights = model.coef
    except DataError:
        raise DataError(
            f"a {model.kind} model has no weights to export: search engines support linear models and trees; train a "
            "linear algorithm (slam, listnet, ranksvm, ...), or serve this model with ranktron serve"
        ) from None
    d = model.n_filled
    scaler = model.scaler
    shift, divisor = (scaler.shift, scaler.divisor) if isinstance(scaler, Global) else (np.zeros(d), np.ones(d))
    by_divisor = isinstance(scaler, Running) or (scaler is not None and scaler.name == "range")
    scaling = "none" if scaler is None else "standard" if by_divisor else scaler.name
    constant = model.learner().constant
    weights = np.array(weights, float)
    if model.imputer is None:
        return LinearRanker(model.names, weights, shift, divisor, scaling, constant)
    d = model.n_features  # further weights are of missing-value indicators; their scaling is folded into the offset
    missing_offset = np.zeros(d)
    missing_offset[model.imputer.indicators] = weights[d:] / divisor[d:]
    constant -= float(np.sum(weights[d:] * shift[d:] / divisor[d:]))
    of_features = weights[:d], shift[:d], divisor[:d]
    return LinearRanker(model.names, *of_features, scaling, constant, model.imputer.fill, missing_offset)


def check_plain(model: Model) -> None:
    """Refuses a model with a feature map."""
    if model.map is not None:
        raise DataError(
            "this model uses a feature map, which search engines cannot compute: train without --map to export it, "
            "export bins and bins-linear to lucene-expression, or serve the model with ranktron serve"
        )


def average_members(model: Model) -> Model:
    """The model with the average of its members instead of their vote."""
    if model.kind not in VOTES or model.parameters.get(VOTES[model.kind][0]) != VOTES[model.kind][1]:
        raise DataError(f"the members of this {model.kind} model do not vote: export it without --average")
    return replace(model, parameters={**model.parameters, VOTES[model.kind][0]: "average"})


def rename_features(model: Model, names: Sequence[str]) -> Model:
    """The model with other names for its features."""
    names = tuple(name.strip() for name in names)
    if len(names) != model.n_features:
        raise DataError(f"the model has {model.n_features} features, but there are {len(names)} names")
    if "" in names or len(set(names)) < len(names):
        raise DataError("the names of features must be unique and not empty")
    return replace(model, feature_names=names)
