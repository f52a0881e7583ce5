"""Verification of a file before it is written: it is read back, and must score as the model does.

In exact arithmetic, the file's scores equal the model's up to a constant. In 32-bit floats they may differ by rounding:
with d terms, by at most (d + 8) 2⁻²³ Σ |terms|. A file that differs more is refused. Documents whose scores are closer
than that may swap; such pairs are counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.data.scaling import Global
from ranktron.errors import DataError
from ranktron.export.engine import Engine, ExportableRanker
from ranktron.kernels.dispatch import with_layout
from ranktron.training.model import Model
from ranktron.types import Floats, Matrix

LISTS, DOCUMENTS = 64, 32  # of a random sample; documents per list
MAX_LISTS = 1000  # of given data
MISSING_SHARE = 0.2  # of the features in random documents, for models with an imputer


@dataclass(frozen=True)
class Check:
    """The number of pairs compared on a sample, and how many of them the engine's rounding swaps.

    `gap` is the largest difference in the model's scores of a swapped pair; `error` is the largest difference between
    the engine's and the model's scores, up to a constant.
    """

    sample: str
    lists: int
    documents: int
    pairs: int
    swapped: int
    gap: float
    error: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Sample:
    """Documents to verify a file with, and the range of each feature in them."""

    rounds: Rounds
    low: Floats
    high: Floats
    description: str
    random: bool


def sample_rounds(model: Model, data: Rounds | None) -> Sample:
    """The first queries of the data; without data, random documents in the range given by the scaling."""
    if data is not None:
        data = data[:MAX_LISTS] if len(data) > MAX_LISTS else data
        data = replace(data, X=with_layout(data.X, sparse=False))
        filled = data.X if model.imputer is None else model.fill(data).X[:, : model.n_features]
        low, high = filled.min(axis=0).astype(float), filled.max(axis=0).astype(float)
        return Sample(data, low, high, f"{len(data):,} queries of the data", False)
    ones = np.ones(model.n_features)
    low, high, within = -ones, ones, "between -1 and 1"
    if isinstance(model.scaler, Global):
        standard = model.scaler.name != "minmax"
        low = model.scaler.shift - 3.0 * model.scaler.divisor if standard else model.scaler.shift
        high = model.scaler.shift + (3.0 if standard else 1.0) * model.scaler.divisor
        within = "within three standard deviations" if standard else "between minimum and maximum"
    rng = np.random.default_rng(0)
    low, high = low[: model.n_features], high[: model.n_features]
    X = rng.uniform(low, high, (LISTS * DOCUMENTS, model.n_features)).astype(np.float32)
    if model.imputer is not None:
        X[rng.random(X.shape) < MISSING_SHARE] = np.nan
        low, high = np.minimum(low, model.imputer.fill), np.maximum(high, model.imputer.fill)
    rounds = Rounds.from_arrays(X, np.zeros(len(X)), group=np.full(LISTS, DOCUMENTS), missing=True)
    return Sample(rounds, low, high, f"{LISTS} queries drawn at random, features {within}", True)


def verify_export(engine: Engine[Any], file: bytes, ranker: ExportableRanker, model: Model, sample: Sample) -> Check:
    """Scores the sample with the model and with the file; refuses a file that differs by more than rounding."""
    rounds = sample.rounds
    model_scores = model.score_rounds(rounds)
    X = _with_ones(rounds.X, len(ranker.names))
    X = X if engine.handles_missing else np.nan_to_num(X)  # other engines score a missing feature as 0
    with np.errstate(over="ignore", invalid="ignore"):
        engine_scores = engine.scores(file, ranker.names, X, rounds.offsets)
    if not np.isfinite(engine_scores).all():
        raise DataError("the engine's 32-bit floats overflow on these features: scale them (--scale) and train again")
    unit = 2.0**-23  # the model also rounds scaled features to 32-bit floats
    bound = (ranker.terms + 8) * unit * ranker.magnitude(X) + 1e-30
    pairs = swapped = 0
    gap = error = 0.0
    for a, b in zip(rounds.offsets, rounds.offsets[1:], strict=False):
        difference = engine_scores[a:b] - model_scores[a:b]
        spread = float(difference.max() - difference.min())
        if spread > 2.0 * bound[a:b].max():
            raise DataError(
                f"the file does not score as the model does (scores differ by {spread:g}): nothing is written; this is "
                "a defect of Ranktron, please report it"
            )
        list_pairs, list_swapped, list_gap = _swaps(model_scores[a:b], engine_scores[a:b], engine.double)
        pairs, swapped, gap, error = pairs + list_pairs, swapped + list_swapped, max(gap, list_gap), max(error, spread)
    return Check(sample.description, len(rounds), len(X), pairs, swapped, gap, error)


def _swaps(model_scores: Floats, engine_scores: Floats, double: bool) -> tuple[int, int, float]:
    """The number of pairs with different scores, how many of them the engine swaps, and their largest gap."""
    ours = model_scores.astype(np.float32)  # documents are ordered by scores rounded to 32 bits
    theirs = engine_scores if double else engine_scores.astype(np.float32)
    pairs = swapped = 0
    gap = 0.0
    for i in range(len(ours) - 1):
        our_gaps, their_gaps = ours[i] - ours[i + 1 :], theirs[i] - theirs[i + 1 :]
        pairs += int(np.count_nonzero(our_gaps))
        wrong = our_gaps * np.sign(their_gaps) < 0.0
        swapped += int(np.count_nonzero(wrong))
        gap = max(gap, float(np.abs(our_gaps[wrong]).max(initial=0.0)))
    return pairs, swapped, gap


def _with_ones(X: Matrix, width: int) -> Matrix:
    """The features, with an additional column of ones if the exported ranker has one."""
    return X if X.shape[1] == width else np.hstack([X, np.ones((len(X), width - X.shape[1]), np.float32)])
