"""Euclidean projections on the sets that dual variables live in.

The ball of the ℓ1,∞ norm, {A: Σ_g max_i |a_gi| ≤ radius}, is also what a group lasso with that norm projects on: with
one group per feature and one column per task, a small radius keeps few features and shares them among all tasks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import kernel
from ranktron.kernels.sorting import rising
from ranktron.types import Floats, Integers


@kernel
def _fall(values: Floats, places: Floats, slopes: Floats, at: int) -> int:
    """Where the cap μ of one group changes its slope as θ = Σ_i (v_i − μ)_+ grows from 0, and by how much.

    While μ lies between the r-th and the next largest value it falls by 1/r; from θ = Σ_i v_i on it is 0.
    """
    ordered = values[rising(-values)]
    total = 0.0
    for r in range(1, ordered.shape[0] + 1):
        total += ordered[r - 1]
        following = ordered[r] if r < ordered.shape[0] else 0.0
        if following <= 0.0:
            places[at], slopes[at] = total, 1.0 / r
            return at + 1
        places[at], slopes[at] = total - r * following, 1.0 / r - 1.0 / (r + 1)
        at += 1
    return at


@kernel
def _cap(values: Floats, theta: float) -> float:
    """The cap μ ≥ 0 of a group that loses θ by it: Σ_i (v_i − μ)_+ = θ."""
    ordered = values[rising(-values)]
    total = 0.0
    for r in range(1, ordered.shape[0] + 1):
        total += ordered[r - 1]
        following = ordered[r] if r < ordered.shape[0] else 0.0
        if total - r * following >= theta:
            cap: float = (total - theta) / r
            return cap
    return 0.0


@kernel
def cap_groups(values: Floats, offsets: Integers, radius: float) -> None:
    """Projects values ≥ 0, in place, on those whose group maxima add up to at most `radius`: a cap for each group.

    All groups that keep anything lose the same θ, at which the caps add up to the radius. Their sum falls along
    straight lines between the places where a cap passes a value: sorting these places takes O(n log n), walking
    them O(n).
    """
    maxima, positive, groups = 0.0, 0, 0
    for group in range(offsets.shape[0] - 1):
        largest = 0.0
        for i in range(offsets[group], offsets[group + 1]):
            largest = max(largest, values[i])
            positive += values[i] > 0.0
        maxima += largest
        groups += largest > 0.0
    if maxima <= radius:
        return
    places, slopes = np.empty(positive), np.empty(positive)
    count = 0
    for group in range(offsets.shape[0] - 1):
        part = values[offsets[group] : offsets[group + 1]]
        if part.shape[0] > 0 and part.max() > 0.0:
            count = _fall(part, places, slopes, count)
    slope, theta = float(groups), 0.0
    for i in rising(places[:count]):
        if maxima - slope * (places[i] - theta) <= radius:
            theta += (maxima - radius) / slope
            break
        maxima -= slope * (places[i] - theta)
        theta = places[i]
        slope -= slopes[i]
    for group in range(offsets.shape[0] - 1):
        part = values[offsets[group] : offsets[group + 1]]
        if part.shape[0] > 0:
            cap = _cap(part, theta)
            for i in range(part.shape[0]):
                part[i] = min(part[i], cap)


def project_l1_inf(values: Any, radius: float, offsets: Any = None, *, nonnegative: bool = False) -> Floats:
    """Projects on the ball of the ℓ1,∞ norm: the nearest values whose group maxima add up to at most `radius`.

        argmin_B Σ (b − a)²   subject to   Σ_g max_i |b_gi| ≤ radius   (and b ≥ 0 where `nonnegative`)

    Exact, in O(n log n). With `nonnegative` the values below 0 become 0 *first*: the other way round, the result is
    not the nearest point.

    Parameters
    ----------
    values : (groups, members), or (n,) with offsets
        Each row is a group; or group g owns `values[offsets[g]:offsets[g + 1]]`.
    radius : float >= 0

    Examples
    --------
    >>> project_l1_inf([[3.0, 1.0], [1.0, 0.0]], radius=2.0)
    array([[2., 1.],
           [0., 0.]])
    >>> project_l1_inf([[3.0, 2.5], [2.0, -1.0]], radius=3.0, nonnegative=True)
    array([[2.16666667, 2.16666667],
           [0.83333333, 0.        ]])

    A group lasso over tasks: features × tasks, of which only the features that matter to some task are left.

    >>> weights = np.array([[2.0, -2.0, 1.9], [0.2, 0.1, -0.2], [0.1, 0.0, 0.1]])
    >>> project_l1_inf(weights, radius=1.5)
    array([[ 1.5, -1.5,  1.5],
           [ 0. ,  0. , -0. ],
           [ 0. ,  0. ,  0. ]])

    References
    ----------
    Quattoni, Carreras, Collins and Darrell, An Efficient Projection for ℓ1,∞ Regularization.
    """
    given = np.array(values, float)
    if not np.isfinite(given).all():
        raise DataError("values to project must be finite numbers")
    if not 0.0 <= radius < float("inf"):
        raise DataError(f"the radius must be a number >= 0, not {radius}")
    groups = _groups(given, offsets)
    flat = given.reshape(-1)
    lengths = np.maximum(flat, 0.0) if nonnegative else np.abs(flat)
    cap_groups(lengths, groups, float(radius))
    projected: Floats = (lengths if nonnegative else np.copysign(lengths, flat)).reshape(given.shape)
    return projected


def _groups(values: Floats, offsets: Any) -> Integers:
    if offsets is None:
        if values.ndim != 2:
            raise DataError("values must be a table with a group in each row, or a row with offsets of the groups")
        return np.arange(0, values.size + 1, max(values.shape[1], 1))
    groups: Integers = np.asarray(offsets, np.int64)
    fits = values.ndim == 1 and groups.ndim == 1 and len(groups) > 0 and groups[0] == 0 and groups[-1] == len(values)
    if not fits or (np.diff(groups) < 0).any():
        raise DataError("offsets must rise from 0 to the number of values, which stand in one row")
    return groups
