"""Empirical likelihood intervals of means and ratios whose terms are bounded."""

from __future__ import annotations

import numpy as np

from ranktron.types import Floats

_NORMAL = 1.959963984540054  # the 97.5 % point of the normal distribution
# χ² is replaced by the square of Student's t. Its degrees of freedom are at least these: with fewer gains than that the
# values that were not observed make the interval wide enough.
_FEWEST = 30.0
_STEPS = 60
_INSIDE = 1.0 - 1e-12  # bets stay this far inside their bounds


def likelihood_interval(
    terms: Floats, divisors: Floats, lowest: Floats, highest: Floats, counts: Floats | None = None
) -> tuple[Floats, Floats]:
    """The empirical likelihood interval of Σ terms / Σ divisors, by the dual with bounded terms.

        R(v) = max_μ Σ_i c_i log(1 + μ (t_i − d_i v)),    interval = { v : R(v) ≤ q² / 2 }

    The maximum is over all μ for which 1 + μ (t − d v) is nonnegative not only for the terms that were observed but
    also for the lowest and the highest that each row could have had: unobserved values may have probability, too. q is
    the 97.5 % point of Student's t with (Σ m²)² / Σ m⁴ degrees of freedom, at least 30; m = t − d v at the estimate.

    All arrays have a row of the log along the last axis; other axes are logs.

    Parameters
    ----------
    terms, divisors : array
        t and d; divisors are nonnegative.
    lowest, highest : array
        The least and the largest term that each row could have had.
    counts : array, optional
        How often each row occurs; 1 unless given.

    Examples
    --------
    >>> clicks = np.zeros(100)  # none of a hundred: up to about two
    >>> low, high = likelihood_interval(clicks, np.ones(100), np.zeros(100), np.ones(100))
    >>> round(float(low), 4), round(float(high), 4)
    (0.0, 0.0206)

    References
    ----------
    Owen, Empirical Likelihood Ratio Confidence Intervals for a Single Functional (Biometrika 1988); Karampatziakis,
    Langford and Mineiro, Empirical Likelihood for Contextual Bandits (2019).
    """
    c = np.ones(terms.shape) if counts is None else counts
    t, d, bottom, top = (np.where(c > 0.0, each, 0.0) for each in (terms, divisors, lowest, highest))
    total = (c * d).sum(axis=-1)
    value = (c * t).sum(axis=-1) / total
    m = t - d * value[..., None]
    spread = np.sqrt((c * m**2).sum(axis=-1)) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = np.where(d > 0.0, bottom / d, np.inf).min(axis=-1)
        roof = np.where(d > 0.0, top / d, -np.inf).max(axis=-1)
    step = np.maximum(spread, 1e-3 * (roof - floor) / np.maximum(c.sum(axis=-1), 1.0))
    limits, rise = np.stack([floor, roof]), np.sqrt(threshold(c, m))
    low, high = (_end(c, t, d, bottom, top, value, 2.0 * step, limit, rise) for limit in limits)
    return low, high


def threshold(counts: Floats, m: Floats) -> Floats:
    """q² / 2 of `likelihood_interval`, by the expansion of Student's t in its degrees of freedom.

    >>> round(float(threshold(np.ones(100_000), np.ones(100_000))), 4)  # with many, half the 95 % point of χ²
    1.9208
    """
    second, fourth = (counts * m**2).sum(axis=-1), (counts * m**4).sum(axis=-1)
    df = np.maximum(second**2 / np.maximum(fourth, 1e-300), _FEWEST)
    z = _NORMAL
    q = z + (z**3 + z) / (4.0 * df) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * df**2)
    half: Floats = 0.5 * q**2
    return half


def _end(
    c: Floats, t: Floats, d: Floats, bottom: Floats, top: Floats, value: Floats, step: Floats, limit: Floats,
    rise: Floats,
) -> Floats:  # fmt: skip
    """Where the likelihood ratio passes the threshold between the value and a limit: Newton's method in √R, guarded."""

    def excess(v: Floats) -> tuple[Floats, Floats]:
        """√R above √(q² / 2), and its derivative."""
        at = v[..., None]
        m = t - d * at
        bet = _best_bet(c, m, (bottom - d * at).min(axis=-1), (top - d * at).max(axis=-1))
        root = np.sqrt(np.maximum((c * np.log1p(bet[..., None] * m)).sum(axis=-1), 1e-300))
        slope = -0.5 * bet * (c * d / (1.0 + bet[..., None] * m)).sum(axis=-1) / root
        return root - rise, slope

    inside, outside = value, limit
    v: Floats = value + np.sign(limit - value) * np.minimum(step, 0.5 * np.abs(limit - value))
    for _ in range(_STEPS):
        beyond, slope = excess(v)
        outside, inside = np.where(beyond > 0.0, v, outside), np.where(beyond > 0.0, inside, v)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = v - beyond / slope
        between = (newton - inside) * (newton - outside) < 0.0
        new = np.where(between, newton, 0.5 * (inside + outside))
        done = np.abs(new - v) <= 1e-9 * np.abs(outside - value) + 1e-300
        v = new
        if done.all():
            break
    return v


def _best_bet(c: Floats, m: Floats, least: Floats, most: Floats) -> Floats:
    """The μ that maximises Σ c log(1 + μ m), with 1 + μ m ≥ 0 for m from `least` to `most`."""

    def derivatives(bet: Floats) -> tuple[Floats, Floats]:
        ratio = m / (1.0 + bet[..., None] * m)
        weighted = c * ratio
        return weighted.sum(axis=-1), (weighted * ratio).sum(axis=-1)

    near = np.zeros(least.shape)
    start, curvature = derivatives(near)
    with np.errstate(divide="ignore"):
        bound = np.where(start > 0.0, -_INSIDE / least, -_INSIDE / most)
    far = np.where(np.isfinite(bound) & (start != 0.0), bound, 0.0)
    at_bound = derivatives(far)[0] * start > 0.0  # the likelihood rises all the way
    bet, slope = near, start
    for _ in range(_STEPS):
        newton = bet + slope / np.maximum(curvature, 1e-300)
        within = (newton - near) * (newton - far) < 0.0
        new: Floats = np.where(at_bound, far, np.where(within, newton, 0.5 * (near + far)))
        done = at_bound | (np.abs(new - bet) <= 1e-7 * np.abs(new))
        bet = new
        if done.all():
            break
        slope, curvature = derivatives(bet)
        near, far = np.where(slope * start > 0.0, bet, near), np.where(slope * start > 0.0, far, bet)
    return bet
