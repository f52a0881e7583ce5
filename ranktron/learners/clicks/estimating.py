"""From a log to weighted lists: which estimator of examination it allows, and what the clicks then weigh."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ranktron.data.impressions import Impressions
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.clicks.browsing import browsing_examination
from ranktron.learners.clicks.em import em_examination
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.clicks.harvesting import harvested_examination
from ranktron.learners.clicks.randomised import randomised_examination
from ranktron.learners.clicks.weighting import (
    ClickWeights,
    click_lists,
    click_weights,
    lists_across_impressions,
    propensities,
)
from ranktron.types import Features, Floats

METHODS = ("randomised", "harvested", "em")
BROWSING = "user-browsing"  # whose examination depends on the clicks above, not on the position alone


def estimate_examination(
    log: Impressions,
    X: Features | None = None,
    method: str | None = None,
    replicates: int = 0,
    seed: int = 0,
    resample: str = "impressions",
) -> Examination:
    """The examination of a log by one of the methods, or by the one that assumes least of those that it allows.

    Randomised where the log has `exploration`, harvested where it has `query` and `item` and documents have moved
    between all positions, otherwise expectation-maximisation on features. A log from which no method can tell the curve
    is refused, with what is missing. "user-browsing" is never chosen by itself.

    Parameters
    ----------
    log : Impressions
        What was shown and clicked.
    X : table of numbers, optional
        The features of each row of the log.
    method : "randomised", "harvested", "em" or "user-browsing", optional
        Which estimator.
    replicates, seed : int
        How many resampled logs make the interval, and the seed of the resampling.
    resample : "impressions" or "queries"
        What is drawn with replacement.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 1, 0, 1], list("abcd"), [1, 1, 2, 2], query="q", item=[7, 7, 7, 7])
    >>> estimate_examination(log).method
    'harvested'
    """
    if method not in (None, *METHODS, BROWSING):
        known = ", ".join((*METHODS, BROWSING))
        raise DataError(f"there is no estimator {method!r} of examination; choose from {known}")
    if method == "randomised" or (method is None and log.exploration is not None):
        return randomised_examination(log, replicates, seed, resample)
    if method == "harvested" or (method is None and log.query is not None and log.item is not None):
        try:
            return harvested_examination(log, replicates, seed, resample)
        except DataError:
            if method == "harvested" or X is None:
                raise
    if method == BROWSING:
        return browsing_examination(log, replicates, seed, resample)
    return em_examination(log, X, replicates=replicates, seed=seed, resample=resample)


def as_examination(given: Any, log: Impressions, X: Features | None) -> Examination:
    """An examination as it is given: itself, the name of a method, the curve from position 1 on, or None.

    >>> log = Impressions.from_arrays([1, 0], ["a", "a"], [1, 2])
    >>> as_examination([1.0, 0.5], log, None).method
    'known'
    """
    if isinstance(given, Examination):
        return given
    if given is None or isinstance(given, str):
        return estimate_examination(log, X, given)
    return Examination(given)


class WeightedLog(NamedTuple):
    """A list for each click and what it weighs, the examination behind the weights, and what clipping took."""

    lists: Rounds
    weights: Floats
    examination: Examination
    click_weights: ClickWeights


def weigh_log(log: Impressions, rounds: Rounds, examination: Any = None, clip: float = 0.0) -> WeightedLog:
    """What learners that weigh lists learn from a log: its own propensities, or what `as_examination` gives.

    Clicks are compared with the other documents of their page. Where no page has another one, and `exploration` is
    known, they are compared across impressions of the query: see `lists_across_impressions`.

    >>> lists = Rounds.from_arrays([[1.0], [3.0]], [0, 1])
    >>> log = Impressions.from_arrays([0, 1], [0, 0], [1, 2])
    >>> weigh_log(log, lists, [1.0, 0.5]).weights
    array([2.])
    """
    if log.propensity is None:
        found = as_examination(examination, log, rounds.X)
        known = propensities(log, found)
    elif examination is not None:
        raise DataError(
            "propensity= says how likely each row was to be seen, and so would examination=: give one of them"
        )
    else:
        known, found = log.propensity, _mean_by_position(log, log.propensity)
    if log.exploration is not None and (np.diff(log.offsets) == 1).all():
        weighed = click_weights(log, known * log.exploration, clip)
        return WeightedLog(*lists_across_impressions(log, rounds, weighed.weights), found, weighed)
    weighed = click_weights(log, known, clip)
    return WeightedLog(*click_lists(rounds, weighed.weights), found, weighed)


def _mean_by_position(log: Impressions, propensity: Floats) -> Examination:
    place, size = log.position - 1, log.n_positions
    shown = np.bincount(place, minlength=size)
    mean = np.bincount(place, propensity, minlength=size) / np.maximum(shown, 1)
    return Examination(np.where(shown > 0, mean, propensity.min()), method="given by row")
