"""Ranktron: online and large-margin learning to rank.

Everything public is a name of this module and is imported on first use, so that `import ranktron` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ranktron.errors import DataError, MissingExtra, RankingWarning, RanktronError
from ranktron.training.algorithms import ALGORITHMS

__version__ = "0.3.0.dev0"

# Where each public name is defined.
_HOMES = {
    "Rounds": "ranktron.data.rounds",
    "Round": "ranktron.types",
    "Ranking": "ranktron.types",
    "Feedback": "ranktron.types",
    "Turn": "ranktron.types",
    "Impression": "ranktron.types",
    "Impressions": "ranktron.data.impressions",
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
    "linear_start": "ranktron.training.starting",
    "start_on_top": "ranktron.training.starting",
    "LinearStart": "ranktron.training.starting",
    "tune": "ranktron.training.tune",
    "Client": "ranktron.service.client",
    "ServiceError": "ranktron.service.client",
    "open": "ranktron.store.store",
    "Store": "ranktron.store.store",
    "Sparse": "ranktron.kernels.csr_rows",
    **{algorithm.estimator: "ranktron.estimators" for algorithm in ALGORITHMS.values()},
    "PredtronClassifier": "ranktron.estimators",
    "PredtronOrdinal": "ranktron.estimators",
    "PredtronMultilabel": "ranktron.estimators",
    "PredtronLabelRanker": "ranktron.estimators",
}
# Modules that are public under a short name, as in `ranktron.feedback.top(5)`.
_MODULES = {
    "clicks": "ranktron.learners.clicks",
    "dask": "ranktron.dask",
    "feedback": "ranktron.learners.feedback",
    "interleaving": "ranktron.metrics.interleaving",
    "io": "ranktron.data.io",
    "learners": "ranktron.learners",
    "maps": "ranktron.data.maps",
    "metrics": "ranktron.metrics",
    "mistakes": "ranktron.learners.mistakes",
    "mlflow": "ranktron.export.mlflow",
    "off_policy": "ranktron.metrics.off_policy",
    "predtron": "ranktron.learners.predtron",
    "steps": "ranktron.learners.steps",
    "store": "ranktron.store",
    "streams": "ranktron.data.streams",
    "surrogates": "ranktron.surrogates",
    "synthetic": "ranktron.data.synthetic",
}

__all__ = ["DataError", "MissingExtra", "RankingWarning", "RanktronError", "__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(_MODULES[name])
    raise AttributeError(f"module 'ranktron' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
