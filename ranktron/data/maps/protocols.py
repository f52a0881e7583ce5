"""The two protocols of a feature map: its settings, which are fitted once, and the fitted map, stored in the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np

from ranktron.data.rounds import Rounds, as_matrix
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Matrix


class FittedMap(Protocol):
    """Transforms each row of features into another row. `state` and `from_state` write it to a file and read it back.

    Parameters
    ----------
    X : array of shape (documents, n_inputs)
        What a fitted map is called with.

    Examples
    --------
    >>> from ranktron.data.maps import Products
    >>> fitted = Products(2).fit(Rounds.from_arrays([[1.0, 2.0], [3.0, 5.0]], [0, 1]))
    >>> fitted.n_inputs, fitted.n_outputs
    (2, 5)
    """

    @property
    def name(self) -> str: ...

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    def __call__(self, X: Matrix, /) -> Features: ...

    def state(self) -> dict[str, Any]: ...

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any], /) -> Self:
        """Makes a fitted map from a stored state.

        Parameters
        ----------
        name : str
            The map's name.
        state : dict
            What `state` returned.
        """


class Shape(NamedTuple):
    """The contribution of one feature to a score: a curve through (places[i], values[i]), stepwise if `steps`."""

    places: Floats
    values: Floats
    steps: bool


@runtime_checkable
class Explainable(Protocol):
    """A map after which a linear score is a sum of one contribution per feature; `spans` are their ranges."""

    def contributions(self, X: Matrix, w: Floats, /) -> Floats: ...

    def spans(self, w: Floats, /) -> Floats: ...


@runtime_checkable
class Additive(Explainable, Protocol):
    """A map after which a contribution is a function of its feature alone, which can be drawn."""

    def shape(self, feature: int, w: Floats, /) -> Shape: ...


class FeatureMap(Protocol):
    """The settings of a feature map, a small value that prints and compares; `fit` returns a `FittedMap`.

    Examples
    --------
    >>> from ranktron.data.maps import Bins
    >>> Bins(8), Bins(8) == Bins(8)
    (Bins(count=8), True)
    """

    def fit(self, rounds: Rounds, /) -> FittedMap:
        """Fits the map to the features of a training set.

        Parameters
        ----------
        rounds : Rounds
            The training set.
        """


def map_rounds(rounds: Rounds, fitted: FittedMap | None) -> Rounds:
    """The rounds with mapped features; without a map the same object."""
    if fitted is None:
        return rounds
    return replace(rounds, X=fitted(rounds.X), feature_names=None)


def check_input(X: Features, n_inputs: int) -> Matrix:
    """The features as a matrix; an error unless they are dense and as many as the map was fitted on."""
    if isinstance(X, Sparse) or hasattr(X, "tocsr"):
        raise DataError("feature maps need dense features, these are sparse: train without a map")
    matrix = as_matrix(X)
    if matrix.shape[1] != n_inputs:
        raise DataError(f"the map was fitted on {n_inputs} features, the data has {matrix.shape[1]}")
    return matrix


def sample_documents(rounds: Rounds, most: int) -> Matrix:
    """At most `most` documents, evenly spaced over all queries."""
    if not isinstance(rounds, Rounds):
        raise DataError("a feature map is fitted on Rounds: make them with Rounds.from_arrays(X, y, qid)")
    X = check_input(rounds.X, rounds.n_features)
    return X if len(X) <= most else X[np.linspace(0, len(X) - 1, most).astype(np.int64)]
