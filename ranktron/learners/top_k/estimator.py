"""Unbiased estimates of gradients from k labels: the conditions of Lemma 1, and its estimator.

∇φ(s, R) = known(s) + Σ_{(i_1 … i_ℓ)} h_{i_1 … i_ℓ}(R_{i_1}, …, R_{i_ℓ}),    ℓ ≤ k
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers

_NOTHING = np.zeros(0)


@runtime_checkable
class Decomposed(Protocol):
    """A surrogate whose gradient is a sum of terms with a few labels each.

    `coordinates` is ℓ, the number of labels in a term; `known` is the term without labels; `term` is h for ℓ different
    documents in the given order. That is enough; a surrogate that is `Outlined` as well is estimated faster.
    """

    @property
    def coordinates(self) -> int: ...

    def __call__(self, scores: Floats, labels: Floats, /) -> tuple[float, Floats]: ...

    def known(self, scores: Floats, /) -> Floats:
        """Returns the term of the gradient without labels.

        Parameters
        ----------
        scores : array
            The scores of all documents.
        """

    def term(self, scores: Floats, items: tuple[int, ...], labels: tuple[float, ...], /) -> Floats:
        """Returns h, the term of the gradient with the labels of these documents.

        Parameters
        ----------
        scores : array
            The scores of all documents.
        items : tuple of int
            ℓ different documents.
        labels : tuple of float
            Their labels.
        """


class Outlined(Protocol):
    """A surrogate that says in advance what it needs of a query, so that little has to be kept for late feedback.

        ∇φ estimated = factor · base + gradient of the first k,    base and `shown` without any label

    `outline` returns base (or an empty array), what to keep of the first k documents, and the part of the loss
    without labels; `settle` returns the estimated loss, the factor, and the gradient of the first k; `estimate` returns
    the loss and the whole gradient at once. `compiled_margin` is the margin of the pairwise hinge, whose rounds are
    compiled as a whole, and None for others.
    """

    @property
    def compiled_margin(self) -> float | None: ...

    def estimate(self, scores: Floats, places: Integers, labels: Floats, weights: Floats, /) -> tuple[float, Floats]:
        """Returns the estimated loss and its gradient.

        Parameters
        ----------
        scores : array
            The scores of all documents, in the order shown.
        places : array of int
            The positions whose labels are known.
        labels : array
            These labels.
        weights : array
            One over their propensities.
        """

    def outline(self, scores: Floats, k: int, /) -> tuple[Floats, Floats, float]:
        """Returns what to keep of a query until its labels arrive.

        Parameters
        ----------
        scores : array
            The scores of all documents.
        k : int
            Labels of the first k may arrive.
        """

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats, /
    ) -> tuple[float, float, Floats]:
        """Returns the estimated loss, the factor of the base, and the gradient of the first k.

        Parameters
        ----------
        shown : array
            What `outline` kept of the first k documents.
        constant : float
            The part of the loss without labels.
        places : array of int
            The positions whose labels arrived.
        labels : array
            These labels.
        weights : array
            One over their propensities.
        """


@dataclass(frozen=True)
class ByLemma1:
    """Any decomposition as an `Outlined` surrogate: all scores are kept, and Lemma 1 gives the gradient."""

    surrogate: Decomposed
    compiled_margin: ClassVar[None] = None

    def estimate(self, scores: Floats, places: Integers, labels: Floats, weights: Floats) -> tuple[float, Floats]:
        return estimate(self.surrogate, scores, places, labels, weights)

    def outline(self, scores: Floats, k: int) -> tuple[Floats, Floats, float]:
        return _NOTHING, scores, 0.0

    def settle(
        self, shown: Floats, constant: float, places: Integers, labels: Floats, weights: Floats
    ) -> tuple[float, float, Floats]:
        loss, gradient = self.estimate(shown, places, labels, weights)
        return loss, 0.0, gradient


def as_outlined(surrogate: Any) -> Outlined:
    """How to estimate a surrogate; `isinstance` with a protocol would take longer than the update."""
    outlined: Outlined = surrogate if hasattr(surrogate, "settle") else ByLemma1(surrogate)
    return outlined


@jit
def inverse_propensities(propensities: Floats, share: float, floor: float) -> Floats:
    """1 / max(propensity · answered, floor)."""
    weights = np.empty_like(propensities)
    for i in range(propensities.size):
        weights.flat[i] = 1.0 / max(propensities.flat[i] * share, floor)
    return weights


def check_decomposed(surrogate: object, k: int) -> Decomposed:
    """The surrogate, if k labels are enough to estimate its gradient; otherwise the error says which k it needs.

    >>> from ranktron.surrogates import PairwiseHinge
    >>> check_decomposed(PairwiseHinge(), 1)
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: PairwiseHinge needs k of at least 2, not 1: its gradient compares 2 labels at a time ...
    """
    name = type(surrogate).__name__
    if not isinstance(surrogate, Decomposed):
        raise DataError(
            f"{name} cannot be learnt from the labels of the first k documents: its gradient is not a sum of terms "
            "with a few labels each, so that it has no unbiased estimate (Lemmas 1, 3)"
        )
    if k < surrogate.coordinates:
        raise DataError(
            f"{name} needs k of at least {surrogate.coordinates}, not {k}: its gradient compares "
            f"{surrogate.coordinates} labels at a time and is not a sum of terms with fewer (Lemmas 1, 2)"
        )
    return surrogate


def estimate(
    surrogate: Decomposed, scores: Floats, places: Integers, labels: Floats, weights: Floats
) -> tuple[float, Floats]:
    """Estimates the gradient by Lemma 1, for any decomposition; the loss is not estimated (NaN).

    Every group of ℓ observed documents counts, weighted by one over the probability of observing it. With ℓ = k
    this is Eq. (3): the groups are the orders of one set, and its probability is the sum of p over them.

    Parameters
    ----------
    scores : (n,)
        The scores of the documents in the order shown.
    places, labels : (observed,)
        The positions of the observed documents in that order, and their labels.
    weights : (k, …, k), one axis for each of ℓ labels
        One over the propensity of each group of positions.
    """
    gradient = np.array(surrogate.known(scores))
    heard: Sequence[tuple[int, float]] = list(zip(places.tolist(), labels.tolist(), strict=True))
    for group in permutations(heard, surrogate.coordinates):
        items = tuple(place for place, _ in group)
        part = surrogate.term(scores, items, tuple(label for _, label in group))
        gradient += weights[items] * part  # Eq. (3)
    return float("nan"), gradient
