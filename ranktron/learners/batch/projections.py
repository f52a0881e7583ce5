"""The Euclidean projection onto the ball of the ℓ1,∞ norm, {A: Σ_g max_i |a_gi| ≤ radius}, of dual variables."""

from __future__ import annotations

import numpy as np

from ranktron.kernels.jit import jit, jit_dot
from ranktron.types import Floats, Integers

_ROUNDING = 1e-15
"""Caps whose sum exceeds the radius by no more than this share of it fit."""


@jit_dot
def _sum_from(values: Floats, cap: float) -> tuple[float, int]:
    """The sum and the number of the values that are at least `cap`."""
    total, count = 0.0, 0
    for i in range(values.shape[0]):
        reached = values[i] >= cap
        total += values[i] if reached else 0.0
        count += reached
    return total, count


@jit
def _lower_cap(values: Floats, theta: float, cap: float) -> tuple[float, int]:
    """The cap μ of a group with Σ_i (v_i − μ)_+ = θ, and how many values reach it; 0 and 0 if even μ = 0 takes less.

    Newton's method from an earlier cap: as the sum is convex in μ, the first step leads to the root or below it, and
    the others upwards, until no further value is passed.
    """
    total, reached = _sum_from(values, cap)
    cap = max((total - theta) / reached, 0.0)
    while True:
        total, count = _sum_from(values, cap)
        higher = (total - theta) / count if count else cap
        if higher <= cap:
            return cap, reached if cap > 0.0 else 0
        cap, reached = higher, count


@jit
def cap_groups(values: Floats, offsets: Integers, radius: float) -> None:
    """Projects values ≥ 0, in place, onto those whose group maxima add up to at most `radius`: a cap for each group.

    All groups with a positive cap lose the same θ, at which the caps add up to the radius (Quattoni et al., An
    Efficient Projection for ℓ1,∞ Regularization, 2009). The sum of the caps is convex and piecewise linear in θ:
    Newton's method finds it from below in a few steps, each of them O(n), without sorting the values.
    """
    groups = offsets.shape[0] - 1
    caps, theta, total, slope = np.zeros(groups), 0.0, 0.0, 0.0
    for group in range(groups):
        for i in range(offsets[group], offsets[group + 1]):
            caps[group] = max(caps[group], values[i])
        total += caps[group]
        slope += caps[group] > 0.0
    if total <= radius:
        return
    while total > radius * (1.0 + _ROUNDING):
        further = theta + (total - radius) / slope
        if further <= theta:
            break
        theta, total, slope = further, 0.0, 0.0
        for group in range(groups):
            if caps[group] > 0.0:
                part = values[offsets[group] : offsets[group + 1]]
                caps[group], reached = _lower_cap(part, theta, caps[group])
                total += caps[group]
                slope += 1.0 / reached if reached else 0.0
    for group in range(groups):
        for i in range(offsets[group], offsets[group + 1]):
            values[i] = min(values[i], caps[group])
