"""The best weights of given corners: a quadratic problem over a product of simplices, by a primal-dual interior method.

    max_α  b·α − ½ |Aᵀα|²    with α ≥ 0 and Σ α = 1 within each group

A step costs n d² for n corners of d features: the Newton equations are reduced to d unknowns, the change of w = Aᵀα.
(Wright, Primal-Dual Interior-Point Methods, 1997, chapter 6; the reduction is that of Ferris and Munson, Interior-Point
Methods for Massive Support Vector Machines, 2002.)
"""

from __future__ import annotations

import numpy as np

from ranktron.types import Floats, Integers

STEPS = 60
PRECISION = 1e-9
"""The gap at which it ends, relative to the objective."""
NEGLIGIBLE = 1e-12
"""Weights below this become 0, which frees the place of a corner."""


def best_weights(corners: Floats, margins: Floats, groups: Integers, start: Floats) -> Floats:
    """The weights α, from a feasible start.

    Parameters
    ----------
    corners : array of shape (n, d)
        The rows A.
    margins : array of shape (n,)
        The linear part b.
    groups : array of shape (n,)
        The group of each row, from 0, in order.
    start : array of shape (n,)
        Weights that are feasible.

    Examples
    --------
    >>> A, b = np.array([[0.0], [2.0]]), np.array([0.0, 1.0])
    >>> best_weights(A, b, np.array([0, 0]), np.array([1.0, 0.0])).round(6)
    array([0.75, 0.25])
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(np.append(starts, len(groups)))

    def add(values: Floats) -> Floats:
        """Sums within each group."""
        return np.add.reduceat(values, starts, axis=0)

    # One unit of the objective is that of the longest corner, so that numbers of any size are alike.
    unit = float(np.einsum("ij,ij->i", corners, corners).max())
    if unit == 0.0:
        return start
    A, b = corners / np.sqrt(unit), margins / unit
    alpha = 0.9 * start + 0.1 / np.repeat(sizes, sizes)
    slope = b - A @ (A.T @ alpha)
    multipliers = np.maximum.reduceat(slope, starts)
    z = np.repeat(multipliers, sizes) - slope
    z = np.maximum(z, 1e-3 * max(float(z.max()), 1e-12))
    for _ in range(STEPS):
        w = A.T @ alpha
        complementarity = float(alpha @ z)
        # Beyond this, rounding errors grow.
        if complementarity <= PRECISION * abs(float(b @ alpha) - 0.5 * float(w @ w)):
            break
        mu = 0.1 * complementarity / len(alpha)
        share = alpha / z
        r = b - np.repeat(multipliers, sizes) + mu / alpha - A @ w
        total = add(share)
        means = add(share[:, None] * A) / total[:, None]
        centred = A - np.repeat(means, sizes, axis=0)
        matrix = np.eye(A.shape[1]) + (centred.T * share) @ centred
        shifts = add(share * r) / total
        try:
            dw = cho_solve(cho_factor(matrix), centred.T @ (share * (r - np.repeat(shifts, sizes))))
        except LinAlgError:
            break
        rest = r - A @ dw
        change = add(share * rest) / total
        d_alpha = share * (rest - np.repeat(change, sizes))
        d_z = mu / alpha - z - d_alpha / share
        step = min(1.0, 0.995 * _longest(alpha, d_alpha), 0.995 * _longest(z, d_z))
        alpha, z, multipliers = alpha + step * d_alpha, z + step * d_z, multipliers + step * change
    alpha[alpha < NEGLIGIBLE] = 0.0
    weights: Floats = alpha / np.repeat(add(alpha), sizes)
    return weights


def _longest(values: Floats, change: Floats) -> float:
    """The longest step after which no value is below 0."""
    falling = change < 0.0
    return float((-values[falling] / change[falling]).min()) if falling.any() else np.inf
