"""Rankers whose score is a sum of one curve per raw feature: linear models, bins, bins-linear and stumps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranktron.data.maps.bins import FittedBins
from ranktron.data.maps.linear_bins import FittedLinearBins
from ranktron.data.maps.protocols import Shape
from ranktron.data.scaling import Global
from ranktron.errors import DataError
from ranktron.export.ranker import linear_ranker
from ranktron.export.stumps import stump_ranker, unscale_thresholds
from ranktron.training.model import Model
from ranktron.types import Floats, Matrix


class Curve(NamedTuple):
    """A feature's contribution to a score: at[i] + slopes[i] · (x − origins[i]), where i thresholds are below x.

    >>> curve = Curve(np.array([2.0]), np.array([1.0, 5.0]), np.array([0.0, 3.0]), np.array([0.0, 2.0]))
    >>> curve(np.array([2.0, 4.0], np.float32))
    array([ 1., 11.])
    """

    thresholds: Floats
    at: Floats
    slopes: Floats
    origins: Floats

    def __call__(self, x: Matrix) -> Floats:
        piece = np.searchsorted(self.thresholds, x, side="left")
        values: Floats = self.at[piece] + self.slopes[piece] * (x.astype(float) - self.origins[piece])
        return values


@dataclass(frozen=True, eq=False)
class CurveRanker:
    """Scores Σ_j curve_j(x_j) + constant of raw features; features without a curve add nothing.

    `shift` is the model's scaling shift: the model's own scores include its rounding to 32-bit floats.
    """

    names: tuple[str, ...]
    curves: dict[int, Curve]
    constant: float
    shift: Floats

    @property
    def terms(self) -> int:
        return len(self.curves)

    def magnitude(self, X: Matrix) -> Floats:
        """The size of the terms of each score, to which rounding errors are proportional."""
        total = np.full(len(X), abs(self.constant))
        for j, curve in self.curves.items():
            steepest = float(np.abs(curve.slopes).max())
            total += float(np.abs(curve.at).max()) + steepest * (np.abs(X[:, j]) + abs(self.shift[j]))
        return total

    def lowest(self, low: Floats, high: Floats) -> float:
        """The lowest score for features within these ranges."""
        total = self.constant
        for j, curve in self.curves.items():
            edges = curve.thresholds[(curve.thresholds > low[j]) & (curve.thresholds < high[j])]
            after = np.nextafter(edges.astype(np.float32), np.float32(np.inf))
            places = np.concatenate([[low[j], high[j]], edges, after]).astype(np.float32)
            total += float(curve(places).min())
        return total


def curve_ranker(model: Model) -> CurveRanker:
    """The curves of a model; refuses models that are not sums of curves, with the reason and an alternative."""
    d = model.n_features
    scaler = model.scaler
    shift, divisor = (scaler.shift, scaler.divisor) if isinstance(scaler, Global) else (np.zeros(d), np.ones(d))
    if model.map is None and model.kind != "rankboost":
        linear = linear_ranker(model).folded()
        lines = {j: _line(w) for j, w in enumerate(linear.weights.tolist()) if w != 0.0}
        return CurveRanker(model.names, lines, linear.constant, shift)
    if model.map is None:
        return CurveRanker(model.names, _stump_curves(model), 0.0, shift)
    if model.kind == "rankboost" or not isinstance(model.map, FittedBins | FittedLinearBins):
        raise DataError(
            f"this {model.kind} model uses the feature map {model.map.name}, which is not a sum of curves: expressions "
            "support linear models with bins or bins-linear; train with one of them, or serve this model with "
            "ranktron serve"
        )
    curves = {}
    for j in range(d):
        shape = model.map.shape(j, model.weights)
        if shape.values.any():
            curves[j] = _steps(model, j, shape) if shape.steps else _pieces(shape, shift[j], divisor[j])
    return CurveRanker(model.names, curves, model.learner().constant, shift)


def _line(weight: float) -> Curve:
    return Curve(np.empty(0), np.zeros(1), np.array([weight]), np.zeros(1))


def _steps(model: Model, feature: int, shape: Shape) -> Curve:
    """A step function: its values change where a scaled feature, as a 32-bit float, reaches an edge."""
    below = np.nextafter(shape.places.astype(np.float32), np.float32(-np.inf)).astype(float)
    thresholds = unscale_thresholds(model, np.full(len(below), feature), below).astype(float)
    flat = np.zeros(len(shape.values))
    return _merged(Curve(thresholds, np.array(shape.values, float), flat, flat))


def _pieces(shape: Shape, shift: float, divisor: float) -> Curve:
    """A piecewise linear function, constant outside of its knots."""
    knots, values = shift + divisor * shape.places, np.array(shape.values, float)
    distinct = np.append(True, np.diff(knots) > 0.0)
    knots, values = knots[distinct], values[distinct]  # a constant feature has equal knots
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(knots), [0.0]])
    return _merged(Curve(knots, np.append(values[:1], values), slopes, np.append(knots[:1], knots)))


def _stump_curves(model: Model) -> dict[int, Curve]:
    stumps = stump_ranker(model, lifted=False)
    curves = {}
    for j in np.unique(stumps.features).tolist():
        rows = np.flatnonzero(stumps.features == j)
        values = np.append(0.0, np.cumsum(stumps.alphas[rows]))
        curves[j] = _merged(Curve(stumps.thresholds[rows].astype(float), values, 0.0 * values, 0.0 * values))
    return curves


def _merged(curve: Curve) -> Curve:
    """The same curve without thresholds at which nothing changes."""
    flat = (curve.slopes[1:] == 0.0) & (curve.slopes[:-1] == 0.0)
    changes = ~(flat & (np.diff(curve.at) == 0.0))
    pieces = np.append(True, changes)
    return Curve(curve.thresholds[changes], curve.at[pieces], curve.slopes[pieces], curve.origins[pieces])
