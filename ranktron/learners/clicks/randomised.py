"""Examination from exploration: what was shown where was drawn, with probabilities that are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktron.data.impressions import Impressions
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination, Z, with_interval
from ranktron.learners.clicks.identification import REMEDY
from ranktron.types import Floats

LEAST = 1e-12  # of a curve: what was never clicked there is not impossible to see
NO_FIRST_CLICK = "nobody clicked at position 1: there is nothing to compare other positions with"


def randomised_examination(
    log: Impressions, replicates: int = 200, seed: int = 0, resample: str = "impressions"
) -> Examination:
    """θ_k / θ_1 from rankings that were drawn: consistent, whatever the documents are.

        θ_k ∝ Σ c / e  /  Σ 1 / e    over the rows at position k, e how likely the document was to be shown there

    Each sum has the same expectation at every position but for θ_k, if every document of a list could stand at every
    position. `log.exploration` are the e: 1/m for a list of m that was shuffled.

    Parameters
    ----------
    log : Impressions
        With `exploration`.
    replicates, seed : int
        How many resampled logs make the interval, and the seed of the resampling.
    resample : "impressions" or "queries"
        What is drawn with replacement: impressions, or all impressions of a query together.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 0, 1, 1], ["a", "a", "b", "b"], [1, 2, 2, 1], exploration=[0.5] * 4)
    >>> randomised_examination(log, replicates=0).values
    array([1. , 0.5])
    """
    inverse = _inverse_exploration(log)
    of, place, size = log.impression_of_rows, log.position - 1, log.n_positions
    clicked = log.clicks * inverse

    def estimate(weights: Floats) -> Floats:
        own = weights[of]
        sums = [np.bincount(place, own * each, minlength=size).astype(float) for each in (clicked, inverse)]
        return _curve(*sums)

    _check_support(log, inverse)
    found = Examination(estimate(np.ones(len(log))), method="randomised", basis="pages drawn at random")
    found = with_interval(found, estimate, log, replicates, seed, resample)
    return replace(found, sums=_add_sums(np.zeros((9, size)), log))


def update_examination(examination: Examination, log: Impressions) -> Examination:
    """A randomised estimate with further impressions: to the bit what all of them together give, however cut.

    Kept are sums over impressions, of w = 1 / e and of clicks, by position and together with position 1. The interval
    is θ exp(±1.96 σ) with the variance of a ratio (delta method),

        σ² = Σ [ w_k (c_k − r_k) / (W_k r_k) − w_1 (c_1 − r_1) / (W_1 r_1) ]²,    r = Σ w c / W,  W = Σ w

    Parameters
    ----------
    examination : Examination
        What `randomised_examination` or `update_examination` returned.
    log : Impressions
        With `exploration`.

    Examples
    --------
    >>> first, second = (
    ...     Impressions.from_arrays(clicks, ["a", "a", "b", "b"], [1, 2, 2, 1], exploration=[0.5] * 4)
    ...     for clicks in ([1, 0, 1, 1], [1, 1, 0, 0])
    ... )
    >>> update_examination(randomised_examination(first), second).values.round(3)
    array([1.   , 0.667])
    """
    if examination.sums is None:
        raise DataError(f"a randomised estimate can go on, and not one that is {examination.method}")
    _inverse_exploration(log)
    more = max(0, log.n_positions - examination.sums.shape[1])
    sums = _add_sums(np.pad(examination.sums, ((0, 0), (0, more))), log)
    clicked, total, *_ = sums
    values = _curve(clicked, total)
    spread = np.sqrt(_variances(sums))
    low, high = values * np.exp(-Z * spread), values * np.exp(Z * spread)
    return replace(examination, values=values, low=low, high=high, sums=sums)


def _inverse_exploration(log: Impressions) -> Floats:
    if log.exploration is None:
        raise DataError(
            "to estimate examination from randomised rankings takes exploration= (how likely each was shown)"
        )
    if (log.exploration == 1.0).all():
        raise DataError(
            "exploration is 1 everywhere: nothing was randomised, and nothing tells examination from quality"
        )
    inverse: Floats = 1.0 / log.exploration
    return inverse


def _check_support(log: Impressions, inverse: Floats) -> None:
    """Refuses positions that only some of a page's documents could hold.

    The mean of 1 / e at a position is the number of documents that could stand there: as many as are on the page, if
    each of them could. Means are noisy, so that only those far below are refused.
    """
    place, size = log.position - 1, log.n_positions
    shown = np.maximum(np.bincount(place, minlength=size), 1)
    lengths = np.bincount(place, np.diff(log.offsets)[log.impression_of_rows], minlength=size) / shown
    could = np.bincount(place, inverse, minlength=size) / shown
    error = np.sqrt(np.maximum(np.bincount(place, inverse**2, minlength=size) / shown - could**2, 0.0) / shown)
    few = np.flatnonzero((np.bincount(place, minlength=size) > 0) & (could + 4.0 * error < 0.75 * lengths))
    if len(few):
        k = int(few[0])
        raise DataError(
            f"by exploration, about {could[k]:.1f} of the {lengths[k]:.1f} documents of a page could stand at position "
            f"{k + 1}: pages were not randomised across all positions, and their clicks do not compare them; {REMEDY}"
        )


def _curve(clicked: Floats, total: Floats) -> Floats:
    rate = clicked / np.maximum(total, LEAST)
    if rate[0] == 0.0:
        raise DataError(NO_FIRST_CLICK)
    curve: Floats = np.maximum(rate / rate[0], LEAST)
    return curve


def _add_sums(sums: Floats, log: Impressions) -> Floats:
    """Adds row by row, so that the order of additions does not depend on where a log is cut.

    By position k: Σ wc, Σ w, Σ w²c², Σ w²c, Σ w²; and with w', c' of position 1 of the same impression Σ wc w'c',
    Σ wc w', Σ w w'c', Σ w w'.
    """
    w = _inverse_exploration(log)
    wc, of, place = w * log.clicks, log.impression_of_rows, log.position - 1
    top_w, top_wc = np.zeros(len(log)), np.zeros(len(log))
    top_w[of[place == 0]], top_wc[of[place == 0]] = w[place == 0], wc[place == 0]
    top_w, top_wc = top_w[of], top_wc[of]
    terms = (wc, w, wc * wc, w * wc, w * w, wc * top_wc, wc * top_w, w * top_wc, w * top_w)
    for row, term in zip(sums, terms, strict=True):
        np.add.at(row, place, term)
    return sums


def _variances(sums: Floats) -> Floats:
    """The variance of log θ_k: 0 at position 1; infinite where nothing was clicked."""
    clicked, total, *_ = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = clicked / total
        scale = 1.0 / clicked  # 1 / (W r)
        own = (sums[2] - 2.0 * rate * sums[3] + rate**2 * sums[4]) * scale**2
        both = (sums[5] - rate[0] * sums[6] - rate * sums[7] + rate * rate[0] * sums[8]) * scale * scale[0]
        variance = own + own[0] - 2.0 * both
    found: Floats = np.where(clicked > 0.0, np.maximum(variance, 0.0), np.inf)
    return found
