"""Empirical likelihood intervals of means and ratios whose terms are bounded."""

from __future__ import annotations

import numpy as np

from ranktron.types import Floats

THRESHOLD = 0.5 * 1.959963984540054**2  # half the 95 % point of χ² with one degree of freedom
_STEPS = 60
_INSIDE = 1.0 - 1e-12  # bets stay this far inside their bounds


def likelihood_interval(
    terms: Floats, divisors: Floats, lowest: Floats, highest: Floats, counts: Floats | None = None
) -> tuple[Floats, Floats]:
    """The empirical likelihood interval of Σ terms / Σ divisors, by the dual with bounded terms.

        R(v) = max_μ Σ_i c_i log(1 + μ (t_i − d_i v)),    interval = { v : R(v) ≤ χ²₁(0.95) / 2 }

    The maximum is over all μ for which 1 + μ (t − d v) is nonnegative not only for the terms that were observed but
    also for the lowest and the highest that each row could have had: unobserved values may have probability, too.

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
    (0.0, 0.019)
    """
    c = np.ones(terms.shape) if counts is None else counts
    t, d, bottom, top = (np.where(c > 0.0, each, 0.0) for each in (terms, divisors, lowest, highest))
    total = (c * d).sum(axis=-1)
    value = (c * t).sum(axis=-1) / total
    spread = np.sqrt((c * (t - d * value[..., None]) ** 2).sum(axis=-1)) / total
    with np.errstate(divide="ignore", invalid="ignore"):
        floor = np.where(d > 0.0, bottom / d, np.inf).min(axis=-1)
        roof = np.where(d > 0.0, top / d, -np.inf).max(axis=-1)
    step = np.maximum(spread, 1e-3 * (roof - floor) / np.maximum(c.sum(axis=-1), 1.0))
    low, high = (_end(c, t, d, bottom, top, value, 2.0 * step, limit) for limit in (floor, roof))
    return low, high


def _end(
    c: Floats, t: Floats, d: Floats, bottom: Floats, top: Floats, value: Floats, step: Floats, limit: Floats
) -> Floats:
    """Where the likelihood ratio passes the threshold between the value and a limit: Newton's method in √R, guarded."""

    def excess(v: Floats) -> tuple[Floats, Floats]:
        """√R − √threshold, and its derivative."""
        at = v[..., None]
        m = t - d * at
        bet = _best_bet(c, m, (bottom - d * at).min(axis=-1), (top - d * at).max(axis=-1))
        root = np.sqrt(np.maximum((c * np.log1p(bet[..., None] * m)).sum(axis=-1), 1e-300))
        slope = -0.5 * bet * (c * d / (1.0 + bet[..., None] * m)).sum(axis=-1) / root
        return root - np.sqrt(THRESHOLD), slope

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
