"""Export of a model to a verified file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from ranktron.data.files import atomically
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.export.curves import CurveRanker, curve_ranker
from ranktron.export.engine import Engine
from ranktron.export.ranker import (
    LinearEngine,
    LinearRanker,
    average_members,
    check_plain,
    linear_ranker,
    rename_features,
)
from ranktron.export.stumps import StumpRanker, stump_ranker
from ranktron.export.targets import CURVES, LUCENE, TARGETS, TREES
from ranktron.export.verifying import Check, Sample, sample_rounds, verify_export
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

NORMALIZERS = ("native", "fold")
_AVERAGED = "it is the average of a voting model"


@dataclass(frozen=True)
class Export:
    """A file for an engine, with notes, warnings and the result of the check."""

    target: str
    name: str
    content: bytes
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    check: Check

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file, atomically."""
        with atomically(path) as file:
            file.write(self.content)


def export(
    model: Model,
    to: str,
    *,
    name: str = "ranktron",
    store: str | None = None,
    normalizers: str = "native",
    feature_names: Sequence[str] | None = None,
    data: Rounds | None = None,
    average: bool = False,
    one: str | None = None,
) -> Export:
    """Exports a model to an engine's format, and checks that the file ranks as the model does.

    Parameters
    ----------
    model : Model
        A linear model, or one of RankBoost; others are refused, with the reason and an alternative.
    to : str
        One of `TARGETS`.
    name, store : str
        The name of the model in the engine, and its store (Solr's feature store, the LTR plugin's store).
    normalizers : "native" or "fold"
        Export scaling as the engine's own normalizers, or fold it into the weights. It is folded, with a note, if the
        engine cannot represent it.
    feature_names : sequence of str, optional
        The names of the features in the engine, if they differ from the model's.
    data : Rounds, optional
        Data to verify the file with; by default, random documents in the range of the features.
    average : bool
        Export the average of a model whose members vote.
    one : str, optional
        A feature of the engine that is 1 for every document; its weight lifts all scores above 0.

    Examples
    --------
    >>> from ranktron.training.model import Model
    >>> state = {"coef": np.array([0.3, -0.1]), "constant": 0.0}
    >>> model = Model("linear", {}, state, 2, feature_names=("bm25", "age"))
    >>> exported = export(model, "solr", name="mine")
    >>> exported.check.swapped, exported.warnings[0].split(":")[0]
    (0, 'scores can be negative, down to -0.4, which Lucene refuses')
    """
    if to not in TARGETS:
        raise DataError(f"there is no target {to!r}; choose from {', '.join(TARGETS)}")
    if normalizers not in NORMALIZERS:
        raise DataError(f"normalizers must be {' or '.join(NORMALIZERS)}, not {normalizers!r}")
    if not re.fullmatch(r"[\w][\w.-]*", name, flags=re.ASCII):
        raise DataError(f"{name!r} cannot name a model: use letters, digits, _, . and -")
    model = average_members(model) if average else model
    model = model if feature_names is None else rename_features(model, feature_names)
    check_exportable(model, to)
    if to in CURVES:
        return _export_curves(model, to, name, store, sample_rounds(model, data), one, average)
    if model.kind == "rankboost":
        return _export_stumps(model, to, name, store, sample_rounds(model, data), one)
    whole, sample = linear_ranker(model), sample_rounds(model, data)
    engine: LinearEngine = _import_engine(TARGETS[to])
    ranker, notes = _fit_to_engine(engine, whole, normalizers)
    ranker = _lift_scores(engine, ranker, sample, one)
    content = engine.write(ranker, name, store)
    check = verify_export(engine, content, ranker, model, sample)
    warnings = _warnings(engine, whole, ranker, sample) + _describe_swaps(check, ranker.scaling == whole.scaling)
    notes = [_AVERAGED, *notes] if average else notes
    return Export(to, name, content, tuple(notes), tuple(warnings), check)


def check_exportable(model: Model, to: str) -> None:
    """Refuses a model that a target cannot compute, with the reason and an alternative; its state does not matter.

    Parameters
    ----------
    model : Model
        The model.
    to : str
        One of `TARGETS`.

    Examples
    --------
    >>> from ranktron.data.scaling import PerQuery
    >>> from ranktron.training.model import Model
    >>> model = Model("linear", {}, {"coef": np.array([0.3]), "constant": 0.0}, 1, scaler=PerQuery(1))
    >>> check_exportable(model, "vespa")
    >>> check_exportable(model, "solr")
    Traceback (most recent call last):
    ranktron.errors.DataError: this model scales features within each list, which solr cannot do: ...
    """
    scaling = "none" if model.scaler is None else model.scaler.name
    if to in CURVES:
        engine: Engine[Any] = _import_engine(TARGETS[to])
        _check_scaling(model, to, scaling, engine.scales_lists)
        _check_missing(to, model, engine.handles_missing, model.imputer is None or model.imputer.name == "zero")
        curve_ranker(model)
        return
    check_plain(model)
    if model.kind == "rankboost":
        if to not in TREES:
            raise DataError(f"{to} supports linear weights only, not thresholded features: export to vespa instead")
        engine = _import_engine(TREES[to])
        _check_scaling(model, to, scaling, engine.scales_lists)
        zeros = engine.lucene and model.imputer is not None and model.imputer.name == "zero"
        _check_missing(to, model, False, model.imputer is None or zeros)
        return
    linear, engine = linear_ranker(model), _import_engine(TARGETS[to])
    _check_scaling(model, to, linear.scaling, engine.scales_lists)
    _check_missing(to, model, engine.handles_missing, linear.reads_zeros)


def exportable_to(model: Model) -> tuple[str, ...]:
    """The targets that can compute a model.

    Parameters
    ----------
    model : Model
        The model, trained or not.

    Examples
    --------
    >>> from ranktron.data.scaling import PerQuery
    >>> from ranktron.training.model import Model
    >>> model = Model("linear", {}, {"coef": np.array([0.3]), "constant": 0.0}, 1, scaler=PerQuery(1))
    >>> exportable_to(model)
    ('vespa',)
    """
    targets = []
    for to in TARGETS:
        with suppress(DataError):
            check_exportable(model, to)
            targets.append(to)
    return tuple(targets)


def _export_stumps(model: Model, to: str, name: str, store: str | None, sample: Sample, one: str | None) -> Export:
    if one is not None:
        raise DataError("trees have a constant of their own: a feature that is always 1 is not needed")
    engine: Engine[StumpRanker] = _import_engine(TREES[to])
    ranker = stump_ranker(model, lifted=engine.lucene)
    content = engine.write(ranker, name, store)
    check = verify_export(engine, content, ranker, model, sample)
    warnings = _unreachable(model.names, sample) if engine.lucene else []
    return Export(to, name, content, tuple(engine.remarks(ranker)), (*warnings, *_describe_swaps(check, True)), check)


def _export_curves(
    model: Model, to: str, name: str, store: str | None, sample: Sample, one: str | None, average: bool
) -> Export:
    if one is not None:
        raise DataError("an expression has a constant of its own: a feature that is always 1 is not needed")
    engine: Engine[CurveRanker] = _import_engine(TARGETS[to])
    ranker = curve_ranker(model)
    content = engine.write(ranker, name, store)
    check = verify_export(engine, content, ranker, model, sample)
    warnings = _describe_swaps(check, True)
    lowest = ranker.lowest(sample.low, sample.high)
    if lowest < 0.0:
        warnings.insert(
            0,
            f"scores can be negative, down to {lowest:.4g}, which script_score refuses: sort by the script, or add a "
            "constant to its source",
        )
    return Export(to, name, content, (_AVERAGED,) if average else (), tuple(warnings), check)


def _check_scaling(model: Model, to: str, scaling: str, scales_lists: bool) -> None:
    if scaling not in ("standard-query", "minmax-query") or (scaling == "minmax-query" and scales_lists):
        return
    what = "standardises" if scaling == "standard-query" else "scales"
    algorithm = f"--algo {model.kind} " if model.kind in ALGORITHMS else ""
    raise DataError(
        f"this model {what} features within each list, which {to} cannot do: train one whose scaling engines have, "
        f"`ranktron train DATA {algorithm}--exportable --model FILE` (for vespa --scale minmax-query instead), or let "
        "`ranktron serve` answer"
    )


def _check_missing(to: str, model: Model, handles_missing: bool, reads_zeros: bool) -> None:
    if model.imputer is None or (reads_zeros and to in LUCENE):
        return
    if not handles_missing:
        raise DataError(
            f"this {model.kind} model fills in missing values (nan={model.imputer.name!r}), which {to} cannot do: "
            f"train it with --nan zero, since a missing feature is 0 in {', '.join(LUCENE)}, or export a linear model "
            "to vespa, onnx or json"
        )
    if model.by_list:
        raise DataError(
            f"this model fills in missing values and scales features within each list, which {to} cannot do together: "
            "train it with --scale standard or minmax instead"
        )


def _import_engine(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)()


def _fit_to_engine(engine: LinearEngine, ranker: LinearRanker, normalizers: str) -> tuple[LinearRanker, list[str]]:
    """The ranker in a form that the engine supports, and notes on the changes."""
    notes = []
    if ranker.scaling in ("standard", "minmax"):
        reason = engine.why_folded(ranker)
        if reason and normalizers == "native":
            notes.append(f"the scaling is folded into the weights: {reason}")
        if reason or normalizers == "fold":
            ranker = ranker.folded()
    if not engine.keeps_constant and ranker.constant:
        notes.append(f"the constant {ranker.constant:g} is left out: it is the same for every document")
        ranker = ranker.without_constant()
    return ranker, notes + engine.remarks(ranker)


def _lift_scores(engine: LinearEngine, ranker: LinearRanker, sample: Sample, one: str | None) -> LinearRanker:
    if one is None:
        return ranker
    if not engine.lucene:
        raise DataError("a feature that is always 1 is for solr, elasticsearch and opensearch: this target needs none")
    return ranker.with_one(one, max(0.0, -ranker.lowest(sample.low, sample.high)))


def _warnings(engine: LinearEngine, whole: LinearRanker, ranker: LinearRanker, sample: Sample) -> list[str]:
    warnings = []
    if engine.lucene:
        warnings += _negative(ranker, sample) + _unreachable(whole.names, sample)
    effects = whole.weights * whole.shift / whole.divisor
    if whole.scaling in ("standard", "minmax") and effects.any() and whole.fill is None:
        at = int(np.argmax(np.abs(effects)))
        warnings.append(
            "a feature that is missing at query time counts as 0 before it is normalised, not as its mean: missing "
            f"{whole.names[at]} moves a score by {-effects[at]:+.3g}; give such features a default in the engine"
        )
    return warnings


def _negative(ranker: LinearRanker, sample: Sample) -> list[str]:
    ones = np.ones(len(ranker.names) - len(sample.low))
    lowest = ranker.lowest(np.append(sample.low, ones), np.append(sample.high, ones))
    if lowest >= -1e-6 * max(1.0, float(np.abs(ranker.weights).max())):
        return []
    return [
        f"scores can be negative, down to {lowest:.4g}, which Lucene refuses: add a feature that is 1 for every "
        "document (a match_all query) and name it with --one: its weight lifts all scores"
    ]


def _unreachable(names: Sequence[str], sample: Sample) -> list[str]:
    if sample.random or sample.low.min() >= 0.0:
        return []
    at = int(np.argmin(sample.low))
    return [
        f"feature {names[at]} has negative values in the data, down to {sample.low[at]:.4g}: the score of a Lucene "
        "query is never negative, so the engine cannot compute it as it is; shift it and train again"
    ]


def _describe_swaps(check: Check, as_trained: bool) -> list[str]:
    if not check.pairs:
        return [f"the model gives all documents of a list the same score (verified on {check.sample})"]
    if not check.swapped:
        return []
    hint = "" if as_trained else "; native normalizers round less"
    return [
        f"rounding to 32-bit floats swaps {check.swapped:,} of {check.pairs:,} pairs, whose scores differ by "
        f"{check.gap:.2g} at most{hint}"
    ]
