"""Which estimator of examination a log allows, by name."""

from __future__ import annotations

from typing import Any

from ranktron.data.impressions import Impressions
from ranktron.errors import DataError
from ranktron.learners.clicks.em import em_examination
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.clicks.harvesting import harvested_examination
from ranktron.learners.clicks.randomised import randomised_examination
from ranktron.types import Features

METHODS = ("randomised", "harvested", "em")


def estimate_examination(
    log: Impressions, X: Features | None = None, method: str | None = None, replicates: int = 0, seed: int = 0
) -> Examination:
    """The examination of a log by one of the methods, or by the one that assumes least of those that it allows.

    Randomised where the log has `exploration`, harvested where it has `query` and `item` and documents have moved,
    otherwise expectation-maximisation on features.

    >>> log = Impressions.from_arrays([1, 1, 0, 1], list("abcd"), [1, 1, 2, 2], query="q", item=[7, 7, 7, 7])
    >>> estimate_examination(log).method
    'harvested'
    """
    if method not in (None, *METHODS):
        raise DataError(f"there is no estimator {method!r} of examination; choose from {', '.join(METHODS)}")
    if method == "randomised" or (method is None and log.exploration is not None):
        return randomised_examination(log, replicates, seed)
    if method == "harvested" or (method is None and log.query is not None and log.item is not None):
        try:
            return harvested_examination(log, replicates, seed)
        except DataError:
            if method == "harvested" or X is None:
                raise
    return em_examination(log, X, replicates=replicates, seed=seed)


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
