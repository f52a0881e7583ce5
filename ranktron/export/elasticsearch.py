"""The Learning to Rank plugin of Elasticsearch and OpenSearch: the body of `_createmodel`.

The rules, the same in both plugins, from their LinearRankerParser, LinearRanker and feature normalisers: the
definition maps the names of the feature set to weights, a feature left out weighs 0 and an unknown one is an error;
normalisers are `standard`, (x − mean) / standard_deviation, and `min_max`, (x − minimum) / (maximum − minimum), with a
minimum that must not be negative, and without clamping; the score is the sum of products, one after the other, all in
32-bit floats; there is no constant. A feature that does not match a document counts as 0 before it is normalised.

`scores` follows these rules; the plugin itself is not tested, since no package registry has a build of it.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.export.engine import as_json, dot32, shortest_single
from ranktron.export.ranker import LinearRanker
from ranktron.export.solr import why_not_single
from ranktron.types import Floats, Integers, Matrix


class LearningToRankPlugin:
    """A model of the feature store, made from a feature set."""

    keeps_constant = False
    scales_lists = False
    handles_missing = False
    lucene = True
    double = False

    def why_folded(self, ranker: LinearRanker) -> str:
        if ranker.scaling == "minmax" and ranker.shift.min() < 0.0:
            at = int(np.argmin(ranker.shift))
            return f"min_max needs a minimum of at least 0, and that of {ranker.names[at]} is {ranker.shift[at]:g}"
        return why_not_single(ranker)

    def remarks(self, ranker: LinearRanker) -> list[str]:
        return []

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        definition = {feature: shortest_single(w) for feature, w in zip(ranker.names, ranker.weights, strict=True)}
        model: dict[str, Any] = {"type": "model/linear", "definition": definition}
        if ranker.scaling != "none":
            model["feature_normalizers"] = {
                feature: _normalizer(ranker.scaling, shift, divisor)
                for feature, shift, divisor in zip(ranker.names, ranker.shift, ranker.divisor, strict=True)
            }
        return as_json({"model": {"name": name, "model": model}})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        model = json.loads(file)["model"]["model"]
        normalizers, definition = model.get("feature_normalizers", {}), model["definition"]
        unknown = [name for name in [*definition, *normalizers] if name not in names]
        if unknown:
            raise DataError(f"Unknown feature [{unknown[0]}]")
        columns = [_normalise(normalizers.get(name), X[:, j]) for j, name in enumerate(names)]
        return dot32(columns, [definition.get(name, 0.0) for name in names])


def _normalizer(scaling: str, shift: float, divisor: float) -> dict[str, dict[str, float]]:
    if scaling == "standard":
        return {"standard": {"mean": shortest_single(shift), "standard_deviation": shortest_single(divisor)}}
    return {"min_max": {"minimum": shortest_single(shift), "maximum": shortest_single(shift + divisor)}}


def _normalise(normalizer: dict[str, dict[str, float]] | None, column: Matrix) -> Matrix:
    if normalizer is None:
        return column
    ((kind, numbers),) = normalizer.items()
    first, second = (np.float32(value) for value in numbers.values())
    if kind == "standard":
        if second <= 0.0:
            raise DataError("Standard deviation must be positive")
        return (column - first) / second
    if first < 0.0 or first >= second:
        raise DataError("minimum must be 0 or more, and less than the maximum")
    return (column - first) / (second - first)
