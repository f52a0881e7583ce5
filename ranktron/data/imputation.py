"""Imputation of missing values: learnt at fit, stored in the model and applied before the scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranktron.data.option_names import IMPUTATIONS
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Integers, Matrix


@dataclass(frozen=True, eq=False)
class Imputer:
    """Replaces every missing value (NaN) by a number, and optionally adds features that mark them.

    `mean` and `indicator` use the feature's mean over the training data, 0 for a feature without any value there;
    `zero` uses 0. `indicator` also adds a feature that is 1 if the value is missing and 0 otherwise, for each feature
    that had missing values at fit. Entries that sparse rows omit are 0 and not missing; a stored NaN is missing.

    Parameters
    ----------
    name : {"mean", "zero", "indicator"}
        The rule.
    fill : float64, (features,)
        The replacement for missing values of each feature.
    indicators : int64
        The features that have an indicator; the indicators come after all features, in this order.

    Examples
    --------
    >>> imputer = Imputer("indicator", np.array([3.0, 5.0]), np.array([1]))
    >>> imputer(np.array([[1.0, np.nan], [np.nan, 2.0]], np.float32)).tolist()
    [[1.0, 5.0, 1.0], [3.0, 2.0, 0.0]]
    """

    name: str
    fill: Floats
    indicators: Integers

    @property
    def n_inputs(self) -> int:
        return len(self.fill)

    @property
    def n_outputs(self) -> int:
        return len(self.fill) + len(self.indicators)

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """The names of the features, followed by those of the indicators."""
        return (*names, *(f"{names[j]} is missing" for j in self.indicators))

    def __call__(self, X: Features) -> Features:
        if X.shape[1] != self.n_inputs:
            raise DataError(f"missing values are filled in for {self.n_inputs} features, the data has {X.shape[1]}")
        return self._filled_sparse(X) if isinstance(X, Sparse) else self.filled(X)

    def filled(self, X: Matrix) -> Matrix:
        """The matrix without NaN, followed by the columns of the indicators."""
        missing = np.isnan(X)
        if not len(self.indicators):
            return np.where(missing, self.fill.astype(np.float32), X) if missing.any() else X
        filled: Matrix = np.empty((len(X), self.n_outputs), np.float32)
        filled[:, : self.n_inputs] = np.where(missing, self.fill.astype(np.float32), X)
        filled[:, self.n_inputs :] = missing[:, self.indicators]
        return filled

    def _filled_sparse(self, X: Sparse) -> Sparse:
        own = X.trimmed()
        missing = np.flatnonzero(np.isnan(own.values))
        if not len(missing):
            return own.padded(0, len(self.indicators))
        values = own.values.copy()
        values[missing] = self.fill[own.columns[missing]]
        place = np.full(self.n_inputs, -1)
        place[self.indicators] = np.arange(self.n_inputs, self.n_outputs)
        marked = missing[place[own.columns[missing]] >= 0]
        rows = np.repeat(np.arange(len(own)), np.diff(own.starts))
        order = np.argsort(np.concatenate([rows, rows[marked]]), kind="stable")
        columns = np.concatenate([own.columns.astype(np.int32), place[own.columns[marked]].astype(np.int32)])
        starts = own.starts + np.searchsorted(rows[marked], np.arange(len(own) + 1))
        ones = np.ones(len(marked), np.float32)
        return Sparse(starts, columns[order], np.concatenate([values, ones])[order], self.n_outputs)


def fit_imputer(name: str, rounds: Rounds) -> Imputer | None:
    """Learns how to replace missing values; None if they are errors.

    >>> rounds = Rounds.from_arrays([[1.0, 2.0], [np.nan, 4.0]], [0, 1], missing=True)
    >>> fit_imputer("mean", rounds).fill
    array([1., 3.])
    """
    if name not in IMPUTATIONS:
        raise DataError(f"nan must be one of {', '.join(map(repr, IMPUTATIONS))}, not {name!r}")
    if name == "error":
        return None
    return make_imputer(name, *known_values(rounds), len(rounds.X))


def make_imputer(name: str, sums: Floats, known: Integers, rows: int) -> Imputer | None:
    """Makes an imputer from the sum and the number of each feature's known values, and the number of documents.

    >>> make_imputer("indicator", np.array([6.0, 4.0]), np.array([3, 2]), 3)
    Imputer(name='indicator', fill=array([2., 2.]), indicators=array([1]))
    """
    if name == "error":
        return None
    fill = np.zeros(len(sums)) if name == "zero" else sums / np.maximum(known, 1)
    incomplete = np.flatnonzero(known < rows) if name == "indicator" else np.empty(0)
    return Imputer(name, fill, incomplete.astype(np.int64))


def known_values(rounds: Rounds) -> tuple[Floats, Integers]:
    """The sum and the number of each feature's known values."""
    return _sparse_sums(rounds.X) if isinstance(rounds.X, Sparse) else _sums(rounds.X)


def count_missing(rounds: Rounds) -> Integers:
    """The number of documents with a missing value of each feature.

    >>> count_missing(Rounds.from_arrays([[1.0, 2.0], [np.nan, 4.0]], [0, 1], missing=True))
    array([1, 0])
    """
    if not rounds.missing:
        return np.zeros(rounds.n_features, np.int64)
    _, known = known_values(rounds)
    missing: Integers = len(rounds.X) - known
    return missing


def _sums(X: Matrix) -> tuple[Floats, Integers]:
    """The sum and the number of each feature's known values."""
    missing = np.isnan(X)
    return np.where(missing, 0.0, X).sum(axis=0, dtype=np.float64), len(X) - missing.sum(axis=0)


def _sparse_sums(X: Sparse) -> tuple[Floats, Integers]:
    own = X.trimmed()
    values = own.written_values().astype(np.float64)
    missing = np.isnan(values)
    sums: Floats = np.bincount(own.columns[~missing], values[~missing], X.width).astype(np.float64)
    return sums, len(X) - np.bincount(own.columns[missing], minlength=X.width)


def impute(rounds: Rounds, imputer: Imputer | None) -> Rounds:
    """The same rounds without missing values; an error if values are missing and there is no imputer."""
    if imputer is not None:
        names = None if rounds.feature_names is None else imputer.names(rounds.feature_names)
        return replace(rounds, X=imputer(rounds.X), feature_names=names, missing=False)
    if rounds.missing:
        raise DataError(
            "the features have missing values (NaN or NULL) and the model was trained without a rule for them: train "
            "it with nan='mean', 'zero' or 'indicator' (--nan)"
        )
    return rounds


def imputer_to_dict(imputer: Imputer) -> dict[str, Any]:
    """The imputer as a model file stores it."""
    return {"name": imputer.name, "fill": imputer.fill, "indicators": imputer.indicators}


def imputer_from_dict(stored: Mapping[str, Any] | None, n_features: int) -> Imputer | None:
    """The imputer that a model file stores."""
    if stored is None:
        return None
    if stored["name"] not in IMPUTATIONS[1:]:
        raise DataError(
            f"the model fills in missing values in a way that this version does not know: {stored['name']!r}"
        )
    fill, indicators = np.array(stored["fill"], float), np.array(stored["indicators"], np.int64)
    fits = fill.shape == (n_features,) and (np.abs(fill) <= np.finfo(np.float32).max).all() and indicators.ndim == 1
    if not fits or (np.diff(indicators, prepend=-1, append=n_features) <= 0).any():
        raise DataError(f"the model does not hold a finite number for missing values of each of {n_features} features")
    return Imputer(str(stored["name"]), fill, indicators)
