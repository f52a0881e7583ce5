"""Plain JSON: names, weights, normalisation and constant, for other programs.

score = constant + Σ weight · (value − shift) / divisor over the features; a missing value is 0. In
version 2, written for models with an imputer, a missing value is replaced by `missing`, and adds `adds_if_missing`.
"""

from __future__ import annotations

import json

import numpy as np

from ranktron.export.engine import as_json
from ranktron.export.ranker import LinearRanker
from ranktron.types import Floats, Integers, Matrix


class PlainJson:
    """A JSON file for other programs."""

    keeps_constant = True
    scales_lists = False
    handles_missing = True
    lucene = False
    double = True

    def why_folded(self, ranker: LinearRanker) -> str:
        return ""

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return []

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        numbers = zip(ranker.names, ranker.weights, ranker.shift, ranker.divisor, strict=True)
        plain = ranker.scaling == "none"
        features = [
            {"name": feature, "weight": float(w), **({} if plain else {"shift": float(a), "divisor": float(b)})}
            for feature, w, a, b in numbers
        ]
        missing, version = ranker.missing(), 1
        if missing is not None:
            version = 2
            for feature, fill, lack in zip(features, *missing, strict=True):
                feature |= {"missing": float(fill), "adds_if_missing": float(lack)}
        return as_json({"format": "ranktron-linear", "version": version, "name": name, "constant": ranker.constant}
                       | {"features": features})  # fmt: skip

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        content = json.loads(file)
        total = np.full(len(X), content["constant"], float)
        for feature in content["features"]:
            column = X[:, names.index(feature["name"])].astype(float)
            lacks = np.isnan(column)
            column[lacks] = feature.get("missing", 0.0)
            total[lacks] += feature.get("adds_if_missing", 0.0)
            total += feature["weight"] * (column - feature.get("shift", 0.0)) / feature.get("divisor", 1.0)
        return total
