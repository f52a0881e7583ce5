"""Feature scaling: fitted once, stored in the model, applied at prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ranktron.data.moments import Moments, moments, sum_features
from ranktron.data.option_names import SCALINGS
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.blocks import Blocks
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Features, Floats, Integers, Matrix


class Scaler(Protocol):
    """Maps features to scaled features; `offsets` delimit the queries."""

    @property
    def name(self) -> str: ...

    def __call__(self, X: Features, offsets: Integers) -> Features: ...


@jit
def _shift_and_divide(X: Matrix, shift: Floats, divisor: Floats, scaled: Matrix) -> None:
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            scaled[i, j] = (X[i, j] - shift[j]) / divisor[j]


@jit
def _between_zero_and_one(X: Matrix, offsets: Integers, scaled: Matrix) -> None:
    for q in range(offsets.shape[0] - 1):
        for j in range(X.shape[1]):
            low = X[offsets[q], j]
            high = low
            for i in range(offsets[q], offsets[q + 1]):
                low = min(low, X[i, j])
                high = max(high, X[i, j])
            for i in range(offsets[q], offsets[q + 1]):
                scaled[i, j] = (X[i, j] - low) / (high - low) if high > low else 0.0


@jit
def _standardised_by_query(X: Matrix, offsets: Integers, scaled: Matrix) -> None:
    # Row by row, in the order of memory; the values of a feature are added in the same order as column by column.
    width = X.shape[1]
    low, high = np.empty(width, X.dtype), np.empty(width, X.dtype)
    mean, deviation = np.empty(width), np.empty(width)
    for q in range(offsets.shape[0] - 1):
        first, last = offsets[q], offsets[q + 1]
        for j in range(width):
            low[j] = high[j] = X[first, j]
            mean[j] = deviation[j] = 0.0
        for i in range(first, last):
            for j in range(width):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
                mean[j] += X[i, j]
        for j in range(width):
            mean[j] /= last - first
        for i in range(first, last):
            for j in range(width):
                deviation[j] += (X[i, j] - mean[j]) ** 2
        for j in range(width):
            deviation[j] = np.sqrt(deviation[j] / (last - first))
            # a constant feature may show a deviation of rounding errors
            deviation[j] = deviation[j] if high[j] > low[j] else 0.0
        for i in range(first, last):
            for j in range(width):
                scaled[i, j] = (X[i, j] - mean[j]) / deviation[j] if deviation[j] > 0.0 else 0.0


def _weighted_moments(X: Features, weights: Floats) -> Moments:
    """The moments of weighted rows: a row of weight 2 counts as two rows."""
    share = weights / weights.sum()
    low, high = feature_ranges(X)
    mean: Floats
    variance: Floats
    if isinstance(X, Sparse):
        own = X.trimmed()
        values, shares = own.written_values().astype(np.float64), np.repeat(share, np.diff(own.starts))
        mean = np.bincount(own.columns, values * shares, X.width).astype(np.float64)
        variance = np.bincount(own.columns, values**2 * shares, X.width) - mean**2
    else:
        mean = share @ X.astype(np.float64)
        variance = share @ (X - mean) ** 2
    return Moments(mean, np.sqrt(np.maximum(variance, 0.0)), low.astype(np.float64), high.astype(np.float64))


def feature_ranges(X: Features) -> tuple[Floats, Floats]:
    """The smallest and the largest value of each feature."""
    if isinstance(X, Sparse):
        found = sum_features(X)
        return found.low, found.high
    return X.min(axis=0), X.max(axis=0)


@dataclass(frozen=True, eq=False)
class Global:
    """The same shift and divisor for every query: (x − shift) / divisor; can be folded into linear weights.

    `standard` shifts by the mean and divides by the standard deviation; `minmax` maps the training data to [0, 1]. A
    constant feature becomes 0. Sparse features are not shifted, so that zeros stay zeros: this changes all scores of a
    linear ranker by the same number.

    `range` divides by the difference of largest and smallest value, for sparse features mostly the largest one, and
    does not shift. Division by the standard deviation would make the rarest one-hot features the largest. All features
    have a common factor, by which rows are as far from their mean, in the mean square, as those of 50 standardised
    features: step sizes and C are meant for that.
    """

    name: str
    shift: Floats
    divisor: Floats

    def __call__(self, X: Features, offsets: Integers) -> Features:
        _check_width(X, len(self.shift))
        if isinstance(X, Sparse):
            return X.divided(self.divisor)
        scaled = np.empty(X.shape, np.float32)
        _shift_and_divide(X, self.shift, self.divisor, scaled)
        return scaled

    def fold(self, w: Floats) -> tuple[Floats, float]:
        """Weights and constant for unscaled features with the same scores: w / divisor and −Σ w · shift / divisor."""
        return w / self.divisor, float(-np.dot(w / self.divisor, self.shift))


@dataclass(frozen=True, eq=False)
class Running(Global):
    """Standardises by running estimates of mean and standard deviation, which each query of a stream updates.

    With n rows so far, m rows of a query, and δ the difference of their means (Chan, Golub and LeVeque, Updating
    Formulae and a Pairwise Algorithm for Computing Sample Variances, 1979):

        mean ← mean + δ m / (n + m),    M ← M + M_query + δ² n m / (n + m),    σ² = M / (n + m)

    A linear learner multiplies its weights by σ_new / σ_old, so that its scores change only by a constant. `low` and
    `high` show which features are constant: rounding may give them a deviation above 0.

    Examples
    --------
    >>> scaler = Running.blank(1, shifts=True).after(np.array([[1.0], [3.0]], np.float32))
    >>> scaler = scaler.after(np.array([[5.0], [7.0]], np.float32))
    >>> scaler.mean, (scaler.divisor**2).round(12)
    (array([4.]), array([5.]))
    """

    count: float  # rows so far
    mean: Floats
    squares: Floats  # sums of squared distances from the mean
    low: Floats
    high: Floats
    shifts: bool  # false for sparse features

    @classmethod
    def blank(cls, n_features: int, shifts: bool) -> Running:
        """The estimate before the first query; sparse features are not shifted."""
        zero, ones, most = np.zeros(n_features), np.ones(n_features), np.full(n_features, np.inf)
        return cls("running-standard", zero, ones, 0.0, zero, zero, most, -most, shifts)

    def after(self, X: Features) -> Running:
        """The estimate after the rows of one more query."""
        _check_width(X, len(self.shift))
        mean, deviation, low, high = moments(X)
        n, m = self.count, float(len(X))
        apart = mean - self.mean
        mean = self.mean + apart * (m / (n + m))
        squares = self.squares + deviation**2 * m + apart**2 * (n * m / (n + m))
        low, high = np.minimum(self.low, low), np.maximum(self.high, high)
        divisor = np.where((high > low) & (squares > 0.0), np.sqrt(squares / (n + m)), 1.0)
        shift = mean if self.shifts else self.shift
        return Running(self.name, shift, divisor, n + m, mean, squares, low, high, self.shifts)


@dataclass(frozen=True)
class PerQuery:
    """Scales each feature within each list; constant features become 0. Nothing is fitted.

    `minmax-query` is the scaling of LETOR, to [0, 1]; `standard-query` subtracts the list's mean and divides by its
    standard deviation.

    Examples
    --------
    >>> scaler = PerQuery(1, "standard-query")
    >>> scaler(np.array([[10.0], [30.0], [5.0]], np.float32), np.array([0, 2, 3])).ravel()
    array([-1.,  1.,  0.], dtype=float32)
    """

    n_features: int
    name: str = "minmax-query"

    def __call__(self, X: Features, offsets: Integers) -> Features:
        _check_width(X, self.n_features)
        if isinstance(X, Sparse):
            raise DataError("scaling within each query needs dense features, these are sparse: choose standard or none")
        scaled = np.empty(X.shape, np.float32)
        kernel = _WITHIN_QUERIES[self.name]
        Blocks(X.size)(lambda first, last: kernel(X, offsets[first : last + 1], scaled), len(offsets) - 1)
        return scaled


CACHED = 1 << 16
"""The numbers that are scaled at once in place."""
GLOBAL = ("auto", "standard", "minmax", "range")
LENGTH = 50.0
"""The mean squared distance of rows scaled by `range` from their mean."""
LISTS = "auto-lists"
"""The `auto` of the commands, which always have whole lists."""
_WITHIN_QUERIES = {"minmax-query": _between_zero_and_one, "standard-query": _standardised_by_query}


def choose_scaling(name: str | None, *, sparse: bool, mapped: bool) -> str | None:
    """Resolves `auto-lists`; returns any other name unchanged.

    Scaling within each query is about as good as over all queries, and much better on raw web features
    (docs/quality-research.md). But sparse features cannot be shifted, and a feature map needs features that mean the
    same in every query.

    >>> choose_scaling("auto-lists", sparse=False, mapped=False)
    'standard-query'
    >>> choose_scaling("auto-lists", sparse=True, mapped=False)
    'range'
    """
    if name != LISTS:
        return name
    return "range" if sparse else "standard" if mapped else "standard-query"


def fit_scaler(
    name: str | None, rounds: Rounds, weights: Floats | None = None, document_weights: Floats | None = None
) -> Scaler | None:
    """Fits the scaling of that name; `auto` standardises dense features, and sparse ones have `range`.

    `weights` are the weights of queries, `document_weights` those of documents within their query.

    >>> rounds = Rounds.from_arrays([[10.0], [30.0]], [0, 1])
    >>> fit_scaler("minmax", rounds)(rounds.X, rounds.offsets).ravel()
    array([0., 1.], dtype=float32)
    """
    if name is None or name == "none":
        return None
    if name == "running-standard":
        return Running.blank(rounds.n_features, not isinstance(rounds.X, Sparse)).after(rounds.X)
    if name not in GLOBAL:
        return make_scaler(name, rounds.n_features)
    by_row = None if weights is None else np.repeat(weights, np.diff(rounds.offsets))
    if document_weights is not None:
        by_row = document_weights if by_row is None else by_row * document_weights
    found = moments(rounds.X) if by_row is None else _weighted_moments(rounds.X, by_row)
    return make_scaler(name, rounds.n_features, found, sparse=isinstance(rounds.X, Sparse))


def make_scaler(name: str, n_features: int, found: Moments | None = None, sparse: bool = False) -> Scaler | None:
    """The scaling of that name for features with these moments, which scaling within queries does not need.

    >>> make_scaler("minmax-query", 3)
    PerQuery(n_features=3, name='minmax-query')
    """
    if name in _WITHIN_QUERIES:
        return PerQuery(n_features, name)
    if name not in GLOBAL or found is None:
        raise DataError(f"there is no scaling {name!r}; choose from {', '.join(SCALINGS)}")
    mean, deviation, low, high = found
    name = ("range" if sparse else "standard") if name == "auto" else name
    if name == "range":
        width = np.where(high > low, high - low, 1.0)
        squared = float(np.where(high > low, (deviation / width) ** 2, 0.0).sum())
        return Global(name, np.zeros_like(mean), width * np.sqrt((squared or LENGTH) / LENGTH))
    shift, divisor = (mean, deviation) if name == "standard" else (low, high - low)
    shift = np.zeros_like(shift) if sparse else shift
    # Because of rounding, the computed deviation of a constant feature may not be 0; its range is.
    return Global(name, shift, np.where(high > low, divisor, 1.0))


def scale(rounds: Rounds, scaler: Scaler | None) -> Rounds:
    """The rounds with scaled features; without a scaler the same object."""
    return rounds if scaler is None else replace(rounds, X=scaler(rounds.X, rounds.offsets))


def scale_in_place(rounds: Rounds, scaler: Scaler | None) -> Rounds:
    """Scales the features in place, which saves the memory and time of a second matrix.

    Sparse rows and mapped files are not changed: they get new features, as in `scale`.

    >>> rounds = Rounds.from_arrays([[10.0], [30.0], [5.0]], [0, 1, 2], group=[2, 1])
    >>> scale_in_place(rounds, PerQuery(1, "standard-query")).X is rounds.X, rounds.X.ravel()
    (True, array([-1.,  1.,  0.], dtype=float32))
    """
    X, offsets = rounds.X, rounds.offsets
    if scaler is None or isinstance(X, Sparse) or not _has_own_memory(X):
        return scale(rounds, scaler)
    parts = _cached_parts(offsets, X.shape[1])

    def scale_parts(first: int, last: int) -> None:
        for a, b in pairwise(parts[first : last + 1]):
            rows = slice(offsets[a], offsets[b])
            X[rows] = scaler(X[rows], offsets[a : b + 1] - offsets[a])

    Blocks(X.size)(scale_parts, len(parts) - 1)
    return rounds


def _has_own_memory(X: Matrix) -> bool:
    """Whether a matrix is writable and allocated, not mapped from a file."""
    whole = X
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    return bool(X.flags.writeable and whole.flags.owndata)


def _cached_parts(offsets: Integers, width: int) -> list[int]:
    """Divides queries into parts whose features fit into the processor's cache."""
    parts, last = [0], len(offsets) - 1
    while parts[-1] < last:
        most = offsets[parts[-1]] + CACHED // width
        parts.append(max(int(np.searchsorted(offsets, most, side="right")) - 1, parts[-1] + 1))
    return parts


_ESTIMATE = ("shift", "divisor", "mean", "squares", "low", "high")


def scaler_to_dict(scaler: Scaler | None) -> dict[str, Any]:
    """The scaler as a model file stores it."""
    if scaler is None:
        return {"name": "none"}
    if isinstance(scaler, Running):
        return {"name": scaler.name, **{key: getattr(scaler, key) for key in (*_ESTIMATE, "count", "shifts")}}
    if isinstance(scaler, Global):
        return {"name": scaler.name, "shift": scaler.shift, "divisor": scaler.divisor}
    return {"name": scaler.name}


def scaler_from_dict(stored: Mapping[str, Any], n_features: int) -> Scaler | None:
    """The scaler that a model file stores."""
    name = stored["name"]
    if name == "none":
        return None
    if name in _WITHIN_QUERIES:
        return PerQuery(n_features, name)
    if name in GLOBAL:
        shift, divisor = np.array(stored["shift"], float), np.array(stored["divisor"], float)
        finite = np.isfinite(shift).all() and np.isfinite(divisor).all()
        if shift.shape == divisor.shape == (n_features,) and finite and divisor.all():
            return Global(name, shift, divisor)
        raise DataError(
            f"the model does not hold the scaling of {n_features} features: finite, by divisors that are not 0"
        )
    if name == "running-standard":
        return _running_from_dict(stored, n_features)
    raise DataError(f"the model holds a scaling that this version does not know: {name!r}")


def _running_from_dict(stored: Mapping[str, Any], n_features: int) -> Running:
    arrays = {key: np.array(stored[key], float) for key in _ESTIMATE}
    count = float(stored["count"])
    fits = all(array.shape == (n_features,) and np.isfinite(array).all() for array in arrays.values())
    if not fits or not 1.0 <= count < 2.0**53 or (arrays["divisor"] <= 0.0).any() or (arrays["squares"] < 0.0).any():
        raise DataError(f"the model does not hold a running estimate of the scaling of {n_features} features")
    return Running("running-standard", count=count, shifts=bool(stored["shifts"]), **arrays)


def _check_width(X: Features, n_features: int) -> None:
    if X.shape[1] != n_features:
        raise DataError(f"the scaling was fitted on {n_features} features, the data has {X.shape[1]}")
