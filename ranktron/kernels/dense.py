"""Kernels on a matrix of features: score rows, add them up, take a step."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit, jit_dot
from ranktron.kernels.memory import prefetch
from ranktron.kernels.sorting import argsort_descending
from ranktron.types import Floats, Integers, Matrix


@jit_dot
def score(X: Matrix, w: Floats) -> Floats:
    """Scores each row of X: s = X w.

    >>> score(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([1.0, -1.0]))
    array([-1., -1.])
    """
    scores = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * w[j]
        scores[i] = total
    return scores


@jit_dot
def squared_length(direction: Floats) -> float:
    """The sum of squares, in any order: a strictly sequential sum would take longer than the rest of a short round."""
    squared = 0.0
    for j in range(direction.shape[0]):
        squared += direction[j] * direction[j]
    return squared


@jit
def add_row(X: Matrix, i: int, g: float, direction: Floats) -> None:
    """Adds g times row i to the direction."""
    for j in range(direction.shape[0]):
        direction[j] += g * X[i, j]


@jit
def pull_back(X: Matrix, items: Integers, gradient: Floats, direction: Floats, ahead: int) -> float:
    """Computes the gradient in the weights from that in the scores: direction = Σ_i gradient_i X[items_i].

    Returns the squared length of the direction. The list that will be read next is as many rows `ahead` in memory; 0
    if that is not known.

    >>> direction = np.empty(2)
    >>> pull_back(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), np.array([1]), np.array([0.5]), direction, 0)
    6.25
    >>> direction
    array([1.5, 2. ])
    """
    d = direction.shape[0]
    direction[:] = 0.0
    # Rows are added two at a time, so that the direction is read and written half as often. They come from the cache:
    # meanwhile memory is idle, and can fetch rows of the next list. As many as are added would be too many at once.
    one, fetched = -1, ahead * d
    for other in range(items.shape[0]):
        if gradient[other] == 0.0:
            continue
        if one < 0:
            one = other
            continue
        a, b, g, h = items[one], items[other], gradient[one], gradient[other]
        if ahead != 0:
            prefetch(X, fetched, fetched + d)
            fetched += d
        for j in range(d):
            direction[j] = (direction[j] + g * X[a, j]) + h * X[b, j]
        one = -1
    if one >= 0:
        add_row(X, items[one], gradient[one], direction)
    return squared_length(direction)


@jit
def move(w: Floats, lagged_sum: Floats, direction: Floats, eta: float, t: float) -> None:
    """Steps against the direction, in place: w -= η·direction, and lagged_sum -= t·η·direction for the average."""
    # The mean of w_1 … w_T is w − lagged_sum / T, so that rounds without an update cost nothing (Daumé, Practical
    # Structured Learning Techniques for Natural Language Processing, 2006).
    for j in range(w.shape[0]):
        step = eta * direction[j]
        w[j] -= step
        lagged_sum[j] -= t * step


@jit
def descend(
    X: Matrix, items: Integers, gradient: Floats, loss: float, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats, ahead: int,
) -> bool:  # fmt: skip
    """Takes the step of round t and adds the round to Σ f_t, Σ η_t f_t and Σ η_t² |z_t|².

    Returns False and changes nothing if the loss or the step is not finite. `direction` is 0 before and after; `ahead`
    is as for `pull_back`.
    """
    squared = pull_back(X, items, gradient, direction, ahead)
    if not np.isfinite(loss + eta * squared * eta):
        direction[:] = 0.0
        return False
    move(w, lagged_sum, direction, eta, t)
    direction[:] = 0.0
    sums[0] += loss
    sums[1] += eta * loss
    sums[2] += eta * squared * eta
    return True


@jit
def rank_list(X: Matrix, w: Floats) -> tuple[Integers, Floats]:
    """The order in which documents are shown, and their scores."""
    scores = score(X, w)
    return argsort_descending(scores), scores


@jit
def is_full(items: Integers, labels: Floats, m: int) -> bool:
    """Whether feedback is on all m documents, in input order, with valid labels."""
    if items.shape[0] != m or labels.shape[0] != m:
        return False
    full = True
    for i in range(m):
        full &= items[i] == i and 0.0 <= labels[i] < np.inf
    return full


@jit
def gather_observed(scores: Floats, items: Integers, labels: Floats) -> tuple[Floats, int]:
    """Gathers the scores of the observed documents.

    The second number is -1, or the position of the first invalid observation: a document that does not exist, the same
    document twice, a label that is negative, missing or not a number.
    """
    gathered = np.empty(items.shape[0])
    if items.shape[0] != labels.shape[0]:
        return gathered, 0
    seen = np.zeros(scores.shape[0], np.bool_)
    for i in range(items.shape[0]):
        item = items[i]
        if item < 0 or item >= scores.shape[0] or seen[item] or not (0.0 <= labels[i] < np.inf):
            return gathered, i
        seen[item] = True
        gathered[i] = scores[item]
    return gathered, -1


@jit_dot
def _sum_of_zeros(values: npt.NDArray[Any]) -> float:
    """Adds up 0 times each value: 0, or NaN if one is not finite. Unlike a search for that one, it is vectorised."""
    zero = values.dtype.type(0)
    total = zero
    for i in range(values.shape[0]):
        total += values[i] * zero
    return float(total)


@jit
def first_non_finite(values: npt.NDArray[Any]) -> int:
    """Finds the first NaN or infinity, -1 if there is none."""
    if _sum_of_zeros(values) == 0.0:
        return -1
    for i in range(values.shape[0]):
        if not np.isfinite(values[i]):
            return i
    return -1


@jit
def longest_row(X: Matrix) -> float:
    """The length of the longest row."""
    longest = 0.0
    for i in range(X.shape[0]):
        squared = 0.0
        for j in range(X.shape[1]):
            squared += np.float64(X[i, j]) * np.float64(X[i, j])  # a 32-bit square may overflow or underflow
        longest = max(longest, squared)
    return float(np.sqrt(longest))
