"""Solr's LTR module: a LinearModel for the model store.

The rules, from the module's classes LinearModel, StandardNormalizer and MinMaxNormalizer: every listed feature has a
weight; a normaliser is applied to each feature's value, (x − avg) / std or (x − min) / (max − min), without clamping;
the score is the sum of products, one after the other, all in 32-bit floats; there is no constant. A feature that a
document does not have counts as its default, 0, before it is normalised.

`scores` follows these rules; Solr itself is not tested, since no package registry has a build of it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ranktron.export.engine import as_json, dot32, shortest_single
from ranktron.export.ranker import LinearRanker
from ranktron.types import Floats, Integers, Matrix

_LTR = "org.apache.solr.ltr"


class Solr:
    """A model for the model store of a Solr collection."""

    keeps_constant = False
    scales_lists = False
    handles_missing = False
    lucene = True
    double = False

    def why_folded(self, ranker: LinearRanker) -> str:
        return why_not_single(ranker)

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return []

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        features = [
            {"name": feature, **_norm(ranker.scaling, shift, divisor)}
            for feature, shift, divisor in zip(ranker.names, ranker.shift, ranker.divisor, strict=True)
        ]
        weights = {feature: shortest_single(w) for feature, w in zip(ranker.names, ranker.weights, strict=True)}
        model = {"class": f"{_LTR}.model.LinearModel", "name": name, "store": store or "_DEFAULT_"}
        return as_json({**model, "features": features, "params": {"weights": weights}})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        model = json.loads(file)
        weights = model["params"]["weights"]
        columns = [_normalise(feature, X[:, names.index(feature["name"])]) for feature in model["features"]]
        return dot32(columns, [weights[feature["name"]] for feature in model["features"]])


def _norm(scaling: str, shift: float, divisor: float) -> dict[str, Any]:
    if scaling == "none":
        return {}
    if scaling == "standard":
        kind, params = "StandardNormalizer", {"avg": shortest_single(shift), "std": shortest_single(divisor)}
    else:
        kind, params = "MinMaxNormalizer", {"min": shortest_single(shift), "max": shortest_single(shift + divisor)}
    return {"norm": {"class": f"{_LTR}.norm.{kind}", "params": {key: str(value) for key, value in params.items()}}}


def _normalise(feature: dict[str, Any], column: Matrix) -> Matrix:
    if "norm" not in feature:
        return column
    params = {key: np.float32(value) for key, value in feature["norm"]["params"].items()}
    if feature["norm"]["class"].endswith("StandardNormalizer"):
        return (column - params["avg"]) / params["std"]
    return (column - params["min"]) / (params["max"] - params["min"])


def why_not_single(ranker: LinearRanker) -> str:
    """Why 32-bit normalizers cannot represent the scaling (a range that rounds to 0), or ""."""
    low, high = ranker.shift.astype(np.float32), (ranker.shift + ranker.divisor).astype(np.float32)
    empty = high <= low if ranker.scaling == "minmax" else ranker.divisor.astype(np.float32) <= 0.0
    if ranker.scaling in ("standard", "minmax") and empty.any():
        return f"the range of feature {ranker.names[int(np.argmax(empty))]} vanishes in 32-bit floats"
    return ""
