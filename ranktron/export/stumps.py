"""Export of sums of thresholded features (RankBoost) as small trees, for engines that support trees."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.scaling import Global, PerQuery
from ranktron.errors import DataError
from ranktron.export.engine import as_json, shortest_single
from ranktron.export.onnx import onnx_file, onnx_scores
from ranktron.export.vespa import feature_expressions, format_number, profile_text, rank_features, remarks_on
from ranktron.export.vespa_profile import Profile
from ranktron.learners.batch.rank_boost import Stumps
from ranktron.training.model import Model
from ranktron.types import Floats, Integers, Matrix

Singles = npt.NDArray[np.float32]
_SLACK = np.float32(1e-6)


@dataclass(frozen=True, eq=False)
class StumpRanker:
    """Scores Σ_t α_t [x_{f_t} > θ_t] + constant of raw features; each θ is a 32-bit float.

    >>> StumpRanker(("a",), np.array([0, 0]), np.array([0.5, 1.5], np.float32), np.array([-1.0, 2.0]), 0.0).lowest()
    -1.0
    """

    names: tuple[str, ...]
    features: Integers
    thresholds: Singles
    alphas: Floats
    constant: float
    scaling: str = "none"

    @property
    def terms(self) -> int:
        return len(self.alphas)

    def magnitude(self, X: Matrix) -> Floats:
        """The sum of the absolute terms of each score, to which rounding errors are proportional."""
        return np.full(len(X), float(np.abs(self.alphas).sum()) + abs(self.constant))

    def lowest(self) -> float:
        """The lowest possible score."""
        total = self.constant
        for feature in np.unique(self.features):
            rows = np.flatnonzero(self.features == feature)
            steps = self.alphas[rows[np.argsort(self.thresholds[rows])]]
            total += min(0.0, float(np.cumsum(steps).min()))
        return total


def stump_ranker(model: Model, lifted: bool) -> StumpRanker:
    """The stumps of a boosted model for raw features; `lifted` adds a constant that makes all scores non-negative."""
    learner = model.learner()
    if not isinstance(learner, Stumps) or isinstance(model.scaler, PerQuery):
        raise DataError("only stumps whose features are not scaled within each list can become trees")
    thresholds = unscale_thresholds(model, learner.features, learner.thresholds)
    sums: dict[tuple[int, float], float] = {}
    for feature, threshold, alpha in zip(learner.features, thresholds, learner.alphas, strict=True):
        stump = (int(feature), float(threshold))
        sums[stump] = sums.get(stump, 0.0) + float(alpha)
    stumps = sorted(sums)
    features, singles = np.array([f for f, _ in stumps], np.int64), np.array([t for _, t in stumps], np.float32)
    ranker = StumpRanker(model.names, features, singles, np.array([sums[stump] for stump in stumps], float), 0.0)
    lift = max(0.0, -ranker.lowest()) if lifted else 0.0
    return StumpRanker(model.names, features, singles, ranker.alphas, lift)


def unscale_thresholds(model: Model, features: Integers, thresholds: Floats) -> Singles:
    """The largest 32-bit value of each feature that, after scaling, is not above the threshold."""
    scaler = model.scaler
    shift = scaler.shift[features] if isinstance(scaler, Global) else np.zeros(len(features))
    divisor = scaler.divisor[features] if isinstance(scaler, Global) else np.ones(len(features))
    # Scaling is monotonic: a binary search over all 32-bit floats finds the value.
    low, high = np.full(len(features), -0x7F7FFFFF), np.full(len(features), 0x7F7FFFFF)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        scaled = ((_float_at(middle).astype(float) - shift) / divisor).astype(np.float32)
        below = scaled.astype(float) <= thresholds
        low, high = np.where(below, middle, low), np.where(below, high, middle - 1)
    return _float_at(low)


def _float_at(ordinals: Integers) -> Singles:
    """The 32-bit floats by their ordinal: 0 at 0, the smallest positive one at 1, the largest negative one at −1."""
    bits = np.where(ordinals < 0, 0x80000000 - ordinals, ordinals).astype(np.uint32)
    return bits.view(np.float32)


class SolrTrees:
    """A MultipleAdditiveTreesModel: x <= threshold + 1e-6 goes left; float sums of weight × leaf."""

    scales_lists = False
    handles_missing = False
    lucene = True
    double = False

    def remarks(self, ranker: StumpRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: StumpRanker, name: str, store: str | None) -> bytes:
        trees: list[dict[str, Any]] = [{"weight": "1", "root": {"value": str(shortest_single(ranker.constant))}}]
        for feature, threshold, alpha in zip(ranker.features, ranker.thresholds, ranker.alphas, strict=True):
            split = {"feature": ranker.names[feature], "threshold": str(shortest_single(_before_slack(threshold)))}
            leaves = {"left": {"value": "0"}, "right": {"value": "1"}}
            trees.append({"weight": str(shortest_single(alpha)), "root": {**split, **leaves}})
        kind = "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
        features = [{"name": feature} for feature in ranker.names]
        head = {"class": kind, "name": name, "store": store or "_DEFAULT_", "features": features}
        return as_json({**head, "params": {"trees": trees}})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        total = np.zeros(len(X), np.float32)
        for tree in json.loads(file)["params"]["trees"]:
            total += np.float32(tree["weight"]) * _solr_leaf(tree["root"], names, X)
        return total.astype(float)


def _solr_leaf(node: dict[str, Any], names: tuple[str, ...], X: Matrix) -> Singles:
    if "feature" not in node:
        return np.full(len(X), np.float32(node["value"]))
    left = X[:, names.index(node["feature"])] <= np.float32(node["threshold"]) + _SLACK
    return np.where(left, _solr_leaf(node["left"], names, X), _solr_leaf(node["right"], names, X))


def _before_slack(threshold: np.float32) -> float:
    """The number closest to the threshold once Solr adds its tolerance of 1e-6."""
    start = threshold - _SLACK
    neighbours = [start, np.nextafter(start, np.float32(np.inf)), np.nextafter(start, np.float32(-np.inf))]
    return float(min(neighbours, key=lambda value: abs(float(value + _SLACK) - float(threshold))))


class PluginTrees:
    """An xgboost+json model of the LTR plugin: x < split_condition goes to `yes`; float sums of the leaves."""

    scales_lists = False
    handles_missing = False
    lucene = True
    double = False

    def remarks(self, ranker: StumpRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: StumpRanker, name: str, store: str | None) -> bytes:
        trees: list[dict[str, Any]] = [{"nodeid": 0, "leaf": shortest_single(ranker.constant)}]
        for feature, threshold, alpha in zip(ranker.features, ranker.thresholds, ranker.alphas, strict=True):
            above = np.nextafter(threshold, np.float32(np.inf))
            split = {
                "split": ranker.names[feature],
                "split_condition": shortest_single(float(above)),
                "yes": 1,
                "no": 2,
            }
            leaves = [{"nodeid": 1, "leaf": 0.0}, {"nodeid": 2, "leaf": shortest_single(alpha)}]
            trees.append({"nodeid": 0, "depth": 0, **split, "missing": 1, "children": leaves})
        return as_json({"model": {"name": name, "model": {"type": "model/xgboost+json", "definition": trees}}})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        total = np.zeros(len(X), np.float32)
        for tree in json.loads(file)["model"]["model"]["definition"]:
            total += _plugin_leaf(tree, names, X)
        return total.astype(float)


def _plugin_leaf(node: dict[str, Any], names: tuple[str, ...], X: Matrix) -> Singles:
    if "leaf" in node:
        return np.full(len(X), np.float32(node["leaf"]))
    if node["split"] not in names:
        raise DataError(f"Unknown feature [{node['split']}]")
    yes = np.float32(node["split_condition"]) > X[:, names.index(node["split"])]
    return np.where(yes, *(_plugin_leaf(child, names, X) for child in node["children"]))


class VespaTrees:
    """A rank profile that is a sum of `if (feature > threshold, step, 0)`."""

    scales_lists = False
    handles_missing = False
    lucene = False
    double = True

    def remarks(self, ranker: StumpRanker) -> list[str]:
        return _remarks(ranker) + remarks_on(ranker.names)

    def write(self, ranker: StumpRanker, name: str, store: str | None) -> bytes:
        features = feature_expressions(ranker.names)
        steps = zip(ranker.features, ranker.thresholds, ranker.alphas, strict=True)
        terms = [
            f"if ({features[f]} > {format_number(t, brackets=True)}, {format_number(a, brackets=True)}, 0)"
            for f, t, a in steps
        ]
        return profile_text(name, ranker.names, [], [format_number(ranker.constant), *terms], globally=False)

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        return Profile.of(file.decode()).scores(rank_features(names, X), offsets)


class OnnxTrees:
    """A graph that compares columns with thresholds and sums the steps of those above."""

    scales_lists = False
    handles_missing = False
    lucene = False
    double = False

    def remarks(self, ranker: StumpRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: StumpRanker, name: str, store: str | None) -> bytes:
        arrays = {"columns": ranker.features, "thresholds": ranker.thresholds, "weights": ranker.alphas}
        arrays["constant"] = np.array(ranker.constant)
        steps = [
            ("Gather", ["features", "columns"], "values", {"axis": 1}),
            ("Greater", ["values", "thresholds"], "above", {}),
            ("Cast", ["above"], "taken", {"to": 1}),
            ("MatMul", ["taken", "weights"], "sums", {}),
            ("Add", ["sums", "constant"], "scores", {}),
        ]
        return onnx_file(name, ranker.names, arrays, steps)

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        return onnx_scores(file, X)


class JsonTrees:
    """Plain JSON: score = constant + the sum of `adds` over the steps whose feature is greater than `above`."""

    scales_lists = False
    handles_missing = False
    lucene = False
    double = True

    def remarks(self, ranker: StumpRanker) -> list[str]:
        return _remarks(ranker)

    def write(self, ranker: StumpRanker, name: str, store: str | None) -> bytes:
        numbers = zip(ranker.features, ranker.thresholds, ranker.alphas, strict=True)
        steps = [{"feature": ranker.names[f], "above": float(t), "adds": float(a)} for f, t, a in numbers]
        head = {"format": "ranktron-steps", "version": 1, "name": name, "constant": ranker.constant}
        return as_json({**head, "steps": steps})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        content = json.loads(file)
        total = np.full(len(X), content["constant"], float)
        for step in content["steps"]:
            total += np.where(X[:, names.index(step["feature"])] > step["above"], step["adds"], 0.0)
        return total


def _remarks(ranker: StumpRanker) -> list[str]:
    lift = f", plus a constant of {ranker.constant:g} that makes all scores non-negative" if ranker.constant else ""
    return [f"{ranker.terms:,} thresholded features become as many small trees over raw features{lift}"]
