"""Examination from exploration: what was shown where was drawn, with probabilities that are known."""

from __future__ import annotations

import numpy as np

from ranktron.data.impressions import Impressions
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination, with_interval
from ranktron.types import Floats

LEAST = 1e-12  # of a curve: what was never clicked there is not impossible to see


def randomised_examination(log: Impressions, replicates: int = 200, seed: int = 0) -> Examination:
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

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 0, 1, 1], ["a", "a", "b", "b"], [1, 2, 2, 1], exploration=[0.5] * 4)
    >>> randomised_examination(log, replicates=0).values
    array([1. , 0.5])
    """
    if log.exploration is None:
        raise DataError(
            "to estimate examination from randomised rankings takes exploration= (how likely each was shown)"
        )
    if (log.exploration == 1.0).all():
        raise DataError(
            "exploration is 1 everywhere: nothing was randomised, and nothing tells examination from quality"
        )
    of, place, size = log.impression_of_rows, log.position - 1, log.n_positions
    inverse = 1.0 / log.exploration
    clicked = log.clicks * inverse

    def estimate(weights: Floats) -> Floats:
        own = weights[of]
        total = np.bincount(place, own * inverse, minlength=size)
        rate = np.bincount(place, own * clicked, minlength=size) / np.maximum(total, LEAST)
        if rate[0] == 0.0:
            raise DataError("nobody clicked at position 1: there is nothing to compare other positions with")
        curve: Floats = np.maximum(rate / rate[0], LEAST)
        return curve

    return with_interval(estimate, log, "randomised", replicates, seed)
