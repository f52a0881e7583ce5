"""Classification problems: binary, weighted, with a REJECT option, multiclass with any costs, ordinal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.predtron.problem import Enumerated
from ranktron.types import Floats


def binary(weights: Any = (1.0, 1.0)) -> Enumerated:
    """Two classes on one line: rep is −1 for class 0 and +1 for class 1, so that pred is the sign.

        L_α(σ, y) = α_y if σ ≠ y, else 0

    Algorithm 1 predicts the same for all weights α; the loss-driven variant takes larger steps for larger weights.

    Parameters
    ----------
    weights : pair of float
        The cost of a mistake if the true class is 0, and if it is 1.

    Examples
    --------
    >>> binary(weights=(1.0, 10.0)).largest
    10.0
    """
    alpha = _per_class(weights, 2, "weights")
    if not (alpha > 0.0).all():
        raise DataError(f"the weights of the classes must be above 0, not {alpha.tolist()}")
    return Enumerated((1.0 - np.eye(2)) * alpha, np.array([[-1.0], [1.0]]))


def multiclass(classes: int) -> Enumerated:
    """Any number of classes, each a basis vector, with the 0-1 loss. φ is the hinge of Crammer and Singer (2001).

        φ(t, y) = max(0, 1 + max_{σ ≠ y} t_σ − t_y)

    Parameters
    ----------
    classes : int
        The number of classes, at least 2.

    Examples
    --------
    >>> multiclass(4).dimension
    4
    """
    _check_count(classes)
    return Enumerated(1.0 - np.eye(classes), np.eye(classes))


def with_costs(costs: Any) -> Enumerated:
    """Classes with a cost for every pair: costs[σ, y] is the cost of predicting σ if the true class is y.

    Parameters
    ----------
    costs : array of shape (classes, classes)
        Rows: predictions; columns: true classes; 0 on the diagonal.

    Examples
    --------
    >>> with_costs([[0.0, 5.0], [1.0, 0.0]]).largest
    5.0
    """
    costs = np.array(costs, float)
    if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or len(costs) < 2:
        raise DataError(f"costs must be a square table (predictions × labels), not of shape {costs.shape}")
    if np.diag(costs).any():
        raise DataError("the right class must cost nothing: the diagonal of the costs is not 0")
    return Enumerated(costs, np.eye(len(costs)))


def with_reject(classes: int, beta: Any) -> Enumerated:
    """Classes and one more prediction, REJECT (the last one), which costs β_y.

        L(REJECT, y) = β_y,    rep(REJECT) = 1/√m Σ_σ rep(σ)

    Parameters
    ----------
    classes : int >= 2
        The number of classes, without REJECT.
    beta : number or (classes,), 0 <= β <= 1
        With β_y = 0 a rejection of class y counts as right.

    Examples
    --------
    >>> problem = with_reject(2, beta=0.25)
    >>> problem.pred(np.array([1.0, 0.9])), problem.pred(np.array([1.0, 0.1])), problem.smallest
    (2, 0, 0.25)
    """
    _check_count(classes)
    beta = _per_class(beta, classes, "beta")
    if not ((beta >= 0.0) & (beta <= 1.0)).all():
        raise DataError(f"the cost beta of a rejection must lie between 0 and 1, not {beta.tolist()}")
    losses = np.vstack([1.0 - np.eye(classes), beta])
    return Enumerated(losses, np.vstack([np.eye(classes), np.full(classes, classes**-0.5)]))


def ordinal(classes: int) -> Enumerated:
    """Ordered classes as a multiclass problem with the absolute loss: L(σ, y) = |σ − y|.

    Parameters
    ----------
    classes : int
        The number of classes, at least 2.

    Examples
    --------
    >>> ordinal(5).largest
    4.0
    """
    _check_count(classes)
    grades = np.arange(classes)
    return Enumerated(np.abs(grades[:, None] - grades[None, :]), np.eye(classes))


def _check_count(classes: int) -> None:
    if classes < 2:
        raise DataError(f"a problem of classes needs at least 2 of them, not {classes}")


def _per_class(values: Any, classes: int, name: str) -> Floats:
    per_class: Floats = np.array(values, float)
    if per_class.ndim == 0:
        per_class = np.full(classes, float(per_class))
    if per_class.shape != (classes,):
        raise DataError(f"{name} must be one number, or one for each of {classes} classes")
    return per_class
