"""Prediction problems: a loss, a representation, a decoding and a loss-augmented argmax.

    loss(σ, y) >= 0          rep(σ), a unit vector          pred(t) ∈ argmax_σ <rep(σ), t>
    augmented(t, y) ∈ argmax_σ L(σ, y) + <rep(σ), t>

The rest of the framework uses only these methods, for any problem. Problems with few
predictions are `Enumerated`: two matrices, and every method is a search over all predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Floats

UNIT = 1e-6  # how far from 1 the length of a representation may be


class PredictionProblem(Protocol):
    """The protocol of a prediction problem; predictions and labels may be of any type that its methods agree on.

    `smallest` and `largest` are c_L and C_L, the smallest loss above 0 and the largest one. `check` refuses a label
    outside the label space and returns the others in the form that the methods take. `correct` is σ_y, a prediction
    without loss; among several it may choose by the scores. `rival` is the best-scored prediction with a loss, None
    if there is none.

    Examples
    --------
    >>> from ranktron.learners.predtron import PredictionProblem, ordinal
    >>> problem: PredictionProblem = ordinal(5)
    >>> problem.loss(1, 4), problem.largest
    (3.0, 4.0)
    """

    @property
    def smallest(self) -> float: ...

    @property
    def largest(self) -> float: ...

    def check(self, label: Any, /) -> Any:
        """Refuses a label outside the label space, and returns the others in the form that the methods take.

        Parameters
        ----------
        label : label
            As users write it.
        """

    def loss(self, prediction: Any, label: Any, /) -> float:
        """Returns L(σ, y).

        Parameters
        ----------
        prediction : prediction
            What was predicted.
        label : label
            One that `check` returned.
        """

    def rep(self, prediction: Any, /) -> Floats:
        """Returns the vector that represents a prediction.

        Parameters
        ----------
        prediction : prediction
            Any of the problem's predictions.
        """

    def pred(self, scores: Floats, label: Any = None, /) -> Any:
        """Decodes scores; ties are broken against the label, if it is given, so that learning starts at W = 0.

        Parameters
        ----------
        scores : array
            The scores t.
        label : label
            One that `check` returned.
        """

    def augmented(self, scores: Floats, label: Any, /) -> Any:
        """Returns argmax_σ L(σ, y) + <rep(σ), t>.

        Parameters
        ----------
        scores : array
            The scores t.
        label : label
            One that `check` returned.
        """

    def correct(self, scores: Floats, label: Any, /) -> Any:
        """Returns σ_y, a prediction without loss; among several it may choose by the scores.

        Parameters
        ----------
        scores : array
            The scores t.
        label : label
            One that `check` returned.
        """

    def rival(self, scores: Floats, label: Any, /) -> Any:
        """Returns the best-scored prediction with a loss, or None if there is none.

        Parameters
        ----------
        scores : array
            The scores t.
        label : label
            One that `check` returned.
        """


def similarity(problem: PredictionProblem, prediction: Any, scores: Floats) -> float:
    """How similar a prediction is to the scores: <rep(σ), t>."""
    return float(problem.rep(prediction) @ scores)


def surrogate(problem: PredictionProblem, scores: Floats, label: Any, correct: Any) -> tuple[float, Floats]:
    """The loss-augmented surrogate, with its gradient.

        φ(t, y) = max_σ L(σ, y) − <rep(σ_y) − rep(σ), t>

    It is convex as long as σ_y (`correct`) does not depend on t.

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    scores : array
        The point t at which the surrogate is taken.
    label : any
        The truth y.
    correct : any
        The prediction σ_y without loss.

    Examples
    --------
    >>> from ranktron.learners.predtron import multiclass
    >>> surrogate(multiclass(3), np.array([0.5, 0.25, 0.0]), 0, 0)
    (0.75, array([-1.,  1.,  0.]))
    """
    rival = problem.augmented(scores, label)
    gradient = problem.rep(rival) - problem.rep(correct)
    return float(problem.loss(rival, label) + gradient @ scores), gradient  # Eq. (2)


def unit_surrogate(problem: PredictionProblem, scores: Floats, label: Any, correct: Any) -> tuple[float, Floats]:
    """The surrogate that does not depend on the size of the loss, with its gradient.

        φ_1(t, y) = max(0, 1 + max_{σ ∉ Σ_y} <rep(σ), t> − <rep(σ_y), t>)

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    scores : array
        The point t at which the surrogate is taken.
    label : any
        The truth y.
    correct : any
        The prediction σ_y without loss.

    Examples
    --------
    >>> from ranktron.learners.predtron import multiclass
    >>> unit_surrogate(multiclass(3), np.array([2.0, 0.25, 0.0]), 0, 0)
    (0.0, array([0., 0., 0.]))
    """
    rival = problem.rival(scores, label)
    nothing = np.zeros_like(scores)
    if rival is None:
        return 0.0, nothing
    gradient = problem.rep(rival) - problem.rep(correct)
    value = float(1.0 + gradient @ scores)
    return (value, gradient) if value > 0.0 else (0.0, nothing)


@jit
def _similarities(reps: Floats, scores: Floats) -> Floats:
    values = np.zeros(reps.shape[0])
    for prediction in range(reps.shape[0]):
        for j in range(reps.shape[1]):
            values[prediction] += reps[prediction, j] * scores[j]
    return values


@jit
def _tie(values: Floats) -> float:
    """The largest difference of tied similarities: the rounding error of their sums, 0 if all are 0."""
    return 1e-14 * float(np.max(np.abs(values)))


@jit
def _decode(reps: Floats, scores: Floats) -> int:
    values = _similarities(reps, scores)
    top = np.max(values) - _tie(values)
    for prediction in range(values.shape[0]):
        if values[prediction] >= top:
            return prediction
    return 0


@jit
def _decoded_against(reps: Floats, scores: Floats, losses: Floats, label: int) -> int:
    """The prediction with the largest loss among those that tie for the best."""
    values = _similarities(reps, scores)
    top = np.max(values) - _tie(values)
    best = -1
    for prediction in range(values.shape[0]):
        if values[prediction] >= top and (best < 0 or losses[prediction, label] > losses[best, label]):
            best = prediction
    return best


@jit
def _decode_augmented(reps: Floats, scores: Floats, losses: Floats, label: int) -> int:
    values = _similarities(reps, scores)
    for prediction in range(values.shape[0]):
        values[prediction] += losses[prediction, label]
    return int(np.argmax(values))


@jit
def _among(reps: Floats, scores: Floats, losses: Floats, label: int, correct: bool) -> int:
    """The most similar of the predictions without loss, or of those with one; -1 if there is none."""
    values = _similarities(reps, scores)
    best = -1
    for prediction in range(values.shape[0]):
        if (losses[prediction, label] == 0.0) == correct and (best < 0 or values[prediction] > values[best]):
            best = prediction
    return best


@dataclass(frozen=True, eq=False)
class Enumerated:
    """A problem with few predictions, whose methods search over all of them.

    Predictions and labels are integers from 0.

    Parameters
    ----------
    losses : (predictions, labels)
        L(σ, y) >= 0, with a 0 for every label.
    reps : (predictions, dimensions)
        Distinct unit vectors.
    follow_scores : bool
        Whether σ_y is the closest of several predictions without loss; otherwise the first.

    Examples
    --------
    >>> problem = Enumerated.of(range(3), range(3), lambda s, y: abs(s - y), lambda s: np.eye(3)[s])
    >>> problem.augmented(np.array([0.5, 0.0, 0.0]), 0), problem.smallest, problem.largest
    (2, 1.0, 2.0)
    """

    losses: Floats
    reps: Floats
    follow_scores: bool = True

    def __post_init__(self) -> None:
        losses, reps = (np.array(part, float, order="C") for part in (self.losses, self.reps))
        object.__setattr__(self, "losses", losses)
        object.__setattr__(self, "reps", reps)
        if losses.ndim != 2 or reps.ndim != 2 or len(losses) != len(reps) or len(reps) == 0:
            raise DataError(
                "a problem needs a loss for every prediction and label and a vector for every prediction, "
                f"not losses of shape {losses.shape} with representations of shape {reps.shape}"
            )
        _check_losses(losses)
        _check_reps(reps)

    @classmethod
    def of(
        cls, predictions: Sequence[Any], labels: Sequence[Any], loss: Callable[..., float], rep: Callable[..., Any]
    ) -> Enumerated:
        """Tabulates a loss and a representation given as functions.

        Parameters
        ----------
        predictions : sequence
            All predictions.
        labels : sequence
            All labels.
        loss : callable
            `loss(prediction, label)`.
        rep : callable
            `rep(prediction)`, a vector.
        """
        losses = np.array([[loss(prediction, label) for label in labels] for prediction in predictions], float)
        return cls(losses, np.array([rep(prediction) for prediction in predictions], float))

    @property
    def smallest(self) -> float:
        return float(np.min(self.losses[self.losses > 0.0]))

    @property
    def largest(self) -> float:
        return float(np.max(self.losses))

    @property
    def dimension(self) -> int:
        """The number of scores, d."""
        return int(self.reps.shape[1])

    def check(self, label: Any) -> int:
        if not (hasattr(label, "__index__") and 0 <= int(label) < self.losses.shape[1]):
            raise DataError(f"the labels of this problem are 0 to {self.losses.shape[1] - 1}, not {label!r}")
        return int(label)

    def loss(self, prediction: int, label: int) -> float:
        return float(self.losses[prediction, label])

    def rep(self, prediction: int) -> Floats:
        vector: Floats = self.reps[prediction]
        return vector

    def pred(self, scores: Floats, label: int | None = None) -> int:
        if label is None:
            return int(_decode(self.reps, scores))
        return int(_decoded_against(self.reps, scores, self.losses, label))

    def augmented(self, scores: Floats, label: int) -> int:
        return int(_decode_augmented(self.reps, scores, self.losses, label))

    def correct(self, scores: Floats, label: int) -> int:
        if not self.follow_scores:
            return int(np.argmin(self.losses[:, label]))
        return int(_among(self.reps, scores, self.losses, label, True))

    def rival(self, scores: Floats, label: int) -> int | None:
        found = int(_among(self.reps, scores, self.losses, label, False))
        return None if found < 0 else found


def _check_losses(losses: Floats) -> None:
    if not (np.isfinite(losses).all() and losses.min() >= 0.0):
        raise DataError("losses must be finite and >= 0")
    costly = np.flatnonzero(losses.min(axis=0) > 0.0)
    if len(costly):
        raise DataError(f"every label needs a prediction without loss; label {costly[0]} has none")
    if losses.max() == 0.0:
        raise DataError("no prediction has a loss for any label: there is nothing to learn")


def _check_reps(reps: Floats) -> None:
    lengths = np.linalg.norm(reps, axis=1)
    long = np.flatnonzero(~(np.abs(lengths - 1.0) <= UNIT))
    if len(long):
        raise DataError(f"representations must have length 1; that of prediction {long[0]} has {lengths[long[0]]:g}")
    if len(np.unique(reps, axis=0)) < len(reps):
        raise DataError("two predictions have the same representation and cannot be told apart")
