"""Ranktron: online and large-margin learning to rank.

Everything public is a name of this module and is imported on first use, so that `import ranktron` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktron.training.algorithms import ALGORITHMS
from ranktron.errors import DataError, MissingExtra, RanktronError

__version__ = "0.1.0"

_HOMES = {
    "Rounds": "ranktron.data.rounds",
    "Round": "ranktron.types",
    "Ranking": "ranktron.types",
    "Feedback": "ranktron.types",
    "Turn": "ranktron.types",
    "read": "ranktron.data.io",
    "stream": "ranktron.data.io",
    "metric": "ranktron.metrics",
    "Metric": "ranktron.metrics",
    "evaluate": "ranktron.metrics",
    "compare": "ranktron.metrics",
    "Evaluation": "ranktron.metrics",
    "play": "ranktron.learners.loop",
    "play_many": "ranktron.learners.fused",
    "Model": "ranktron.training.model",
    "load": "ranktron.training.model",
    "Client": "ranktron.service.client",
    "ServiceError": "ranktron.service.client",
    "Sparse": "ranktron.kernels.csr_rows",
    **{algorithm.estimator: "ranktron.estimators" for algorithm in ALGORITHMS.values()},
    "PredtronClassifier": "ranktron.estimators",
    "PredtronOrdinal": "ranktron.estimators",
    "PredtronMultilabel": "ranktron.estimators",
    "PredtronLabelRanker": "ranktron.estimators",
}
_ROOMS = (
    "feedback",
    "io",
    "learners",
    "maps",
    "metrics",
    "mistakes",
    "predtron",
    "simulate",
    "steps",
    "streams",
    "surrogates",
)

__all__ = ["DataError", "MissingExtra", "RanktronError", "__version__", *_HOMES, *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"ranktron.{name}")
    raise AttributeError(f"module 'ranktron' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
