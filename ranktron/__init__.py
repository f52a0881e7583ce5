"""Ranktron: online and large-margin learning to rank.

Everything public is a name of this module and is imported on first use, so that `import ranktron` is quick.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ranktron.errors import DataError, MissingExtra, RankingWarning, RanktronError
from ranktron.training.algorithms import ALGORITHMS

__version__ = "0.2.0"

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
    "tune": "ranktron.training.tune",
    "Client": "ranktron.service.client",
    "ServiceError": "ranktron.service.client",
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
    "streams": "ranktron.data.streams",
    "surrogates": "ranktron.surrogates",
    "synthetic": "ranktron.data.synthetic",
}
# Modules of 0.1.0 and where they are now; what was below a package is below its new place. Until 0.3.
_MOVED = {
    "algorithms": "training.algorithms",
    "archive": "data.serialization",
    "arrays": "types.validation",
    "baselines": "training.baselines",
    "certificates": "papers.theory.certificates",
    "checks": "learners.checks",
    "client": "service.client",
    "datasets": "papers.datasets",
    "datasets.places": "papers.datasets.locations",
    "experiments": "papers",
    "experiments.curves": "papers.harness.curves",
    "experiments.data": "papers.harness.data",
    "experiments.experiment": "papers.harness.experiment",
    "experiments.keeping": "papers.harness.cache",
    "experiments.margins": "papers.harness.rank_mm_cells",
    "experiments.online": "papers.harness.online_cells",
    "experiments.rankmm": "papers.rank_mm",
    "experiments.reproducing": "papers.harness.reproduce",
    "experiments.running": "papers.harness.runner",
    "experiments.subset_ranking": "papers.harness.predtron_cells",
    "experiments.systems": "papers.harness.comparison_cells",
    "experiments.top_games": "papers.harness.top_k_cells",
    "experiments.topk": "papers.top_k",
    "experiments.verdicts": "papers.harness.verdicts",
    "experiments.walks": "papers.harness.pairwise_cells",
    "features": "kernels.dispatch",
    "feedback": "learners.feedback",
    "files": "data.files",
    "fused": "learners.fused",
    "grading": "kernels.grades",
    "interrupts": "learners.interrupts",
    "io": "data.io",
    "io.assembling": "data.io.grouping",
    "io.nulls": "data.io.missing",
    "io.opening": "data.io.files",
    "io.parquet": "data.io.tables",
    "io.problems": "data.io.parse_errors",
    "io.quick": "data.io.fast_path",
    "io.sources": "data.io.api",
    "io.symbols": "data.io.lexer",
    "io.words": "data.io.lexer",
    "learners.brief": "learners.pending_rounds",
    "learners.committee": "learners.pairwise.committee",
    "learners.fixed": "learners.fixed_scorer",
    "learners.kernel": "learners.kernelized.learner",
    "learners.kernel_budget": "learners.kernelized.budget",
    "learners.kernel_functions": "learners.kernelized.functions",
    "learners.kernel_pairs": "learners.kernelized.pairs",
    "learners.kernel_pool": "learners.kernelized.dual_history",
    "learners.kernel_removal": "learners.kernelized.removal",
    "learners.kernel_rows": "learners.kernelized.rows",
    "learners.kernel_support": "learners.kernelized.support",
    "learners.kernel_updates": "learners.kernelized.updates",
    "learners.pairwise_pairs": "learners.pairwise.pairs",
    "learners.pairwise_passes": "learners.pairwise.passes",
    "learners.pairwise_readouts": "learners.pairwise.outputs",
    "learners.pairwise_trail": "learners.pairwise.hypothesis_history",
    "learners.recipe": "learners.fused_step",
    "learners.top_k_descent": "learners.top_k.descent",
    "learners.top_k_estimator": "learners.top_k.estimator",
    "learners.top_k_exploration": "learners.top_k.exploration",
    "learners.top_k_refusals": "learners.top_k.refusals",
    "learners.top_k_settings": "learners.top_k.settings",
    "learners.top_k_theory": "papers.theory.top_k_bounds",
    "loop": "learners.loop",
    "maps": "data.maps",
    "metrics.ordering": "metrics.ties",
    "metrics.passes": "metrics.dispatch",
    "metrics.tied": "metrics.sklearn_ties",
    "mistakes": "learners.mistakes",
    "model": "training.model",
    "parameters": "training.parameters",
    "predtron": "learners.predtron",
    "predtron.bounds": "papers.theory.predtron_bounds",
    "predtron.places": "learners.predtron.positions",
    "predtron.simulations": "papers.theory.predtron_games",
    "protocol": "training.cross_validation",
    "report": "training.figures",
    "report.charts": "papers.report.charts",
    "report.explanation": "training.figures.explanation",
    "report.figures": "training.figures.curves",
    "report.page": "papers.report.page",
    "report.shapes": "training.figures.shapes",
    "report.weights": "training.figures.weights",
    "rounds": "data.rounds",
    "scaling": "data.scaling",
    "schedule": "learners.schedule",
    "service.demonstration": "service.demo.routes",
    "service.desk": "service.live_ranker",
    "service.entries": "service.journal_entries",
    "service.guard": "service.auth",
    "service.inventory": "service.demo.inventory",
    "service.log": "service.sqlite_journal",
    "service.office": "service.service",
    "service.open_round": "service.stored_round",
    "service.refusals": "service.errors",
    "service.restoring": "service.recovery",
    "service.running": "service.server",
    "service.search": "service.demo.search",
    "service.standard_library": "service.demo.standard_library",
    "service.tally": "service.stats",
    "service.writes": "service.sqlite_journal",
    "simulate": "data.synthetic",
    "solvers": "learners.batch",
    "solvers.grade_tree": "kernels.grades",
    "solvers.pegasos": "papers.theory.pegasos",
    "sparse": "kernels.csr_rows",
    "sparse_kernels": "kernels.csr",
    "spread": "learners.weight_spread",
    "steps": "learners.steps",
    "streams": "data.streams",
    "sweeping": "training.sweep",
    "theory": "papers.theory.bounds",
    "top_k_simulations": "papers.theory.top_k_games",
}

__all__ = ["DataError", "MissingExtra", "RankingWarning", "RanktronError", "__version__", *_HOMES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _MOVED:
        new = f"ranktron.{_MOVED[name]}"
        warnings.warn(f"ranktron.{name} has moved to {new}", DeprecationWarning, stacklevel=2)
        return import_module(new)
    raise AttributeError(f"module 'ranktron' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _MovedModules:
    """Finds a module of 0.1.0 at its new place and says where that is, in a DeprecationWarning.

    It asks before Python looks into folders: a module that is found below the folder of a moved package would
    otherwise be loaded a second time, under its old name.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = _new_place(name)
        return None if new is None else ModuleSpec(name, self, origin=new)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        old, new = module.__spec__.name, str(module.__spec__.origin)
        warnings.warn(f"{old} has moved to {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = import_module(new)  # what `import` then gives


def _new_place(name: str) -> str | None:
    """Where a module of 0.1.0 is now; None for those that are where they were."""
    package, _, old = name.partition(".")
    below: list[str] = []
    while package == "ranktron" and old:
        if old in _MOVED:
            return ".".join(["ranktron", _MOVED[old], *below])
        old, _, last = old.rpartition(".")
        below.insert(0, last)
    return None


sys.meta_path.insert(0, _MovedModules())
