"""The Euclidean projection onto the ball of the ℓ1,∞ norm, {A: Σ_g max_i |a_gi| ≤ radius}, of dual variables."""

from __future__ import annotations

import numpy as np

from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers


@jit
def _fall(values: Floats, places: Floats, slopes: Floats, at: int) -> int:
    """The breakpoints of the cap μ of one group as a function of θ = Σ_i (v_i − μ)_+, and the changes of its slope.

    While μ lies between the r-th and the next largest value, its slope is −1/r; from θ = Σ_i v_i on it is 0.
    """
    ordered = values[argsort_ascending(-values)]
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


@jit
def _cap(values: Floats, theta: float) -> float:
    """The cap μ ≥ 0 of a group with Σ_i (v_i − μ)_+ = θ."""
    ordered = values[argsort_ascending(-values)]
    total = 0.0
    for r in range(1, ordered.shape[0] + 1):
        total += ordered[r - 1]
        following = ordered[r] if r < ordered.shape[0] else 0.0
        if total - r * following >= theta:
            cap: float = (total - theta) / r
            return cap
    return 0.0


@jit
def cap_groups(values: Floats, offsets: Integers, radius: float) -> None:
    """Projects values ≥ 0, in place, onto those whose group maxima add up to at most `radius`: a cap for each group.

    All groups with a positive cap lose the same θ, at which the caps add up to the radius (Quattoni et al., An
    Efficient Projection for ℓ1,∞ Regularization, 2009). The sum of the caps is piecewise linear in θ: sorting its
    breakpoints takes O(n log n), finding θ among them O(n).
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
    for i in argsort_ascending(places[:count]):
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
