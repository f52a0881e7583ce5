"""All estimates at once, for a log of documents that were each drawn for its own place: a bandit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.metrics.off_policy import estimators
from ranktron.metrics.off_policy.estimators import Estimate
from ranktron.types import Floats, Integers, validation


@dataclass(frozen=True)
class ItemGainModel:
    """A model of gains without features: the mean gain of each place, times how much better an item does than others.

        q(item, place) = rate(place) · (gains of the item + s) / (gains expected of it + s)

    What is expected of an item are the rates of the places where it stood. s, the mean of all positive gains, draws
    items that were shown little towards 1.

    Parameters
    ----------
    rates : array of shape (places,)
        The mean gain of each place.
    ratios : array of shape (items,)
        How many times as much as others each item gains.

    Examples
    --------
    >>> model = ItemGainModel.fit(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 0]), np.array([1.0, 1.0, 0.0, 0.0]), 3, 1)
    >>> model.predict()  # a row for each place; the third item was never shown
    array([[0.75, 0.25, 0.5 ]])
    """

    rates: Floats
    ratios: Floats

    @classmethod
    def fit(cls, items: Integers, places: Integers, gains: Floats, n_items: int, n_places: int) -> ItemGainModel:
        """Fits rates and ratios to items at places (both from 0) and what they gained.

        Parameters
        ----------
        items, places : array of int
            What was shown where.
        gains : array
            What it gained.
        n_items, n_places : int
            How many there are.
        """
        rates = np.bincount(places, gains, n_places) / np.maximum(np.bincount(places, minlength=n_places), 1)
        unit = float(gains[gains > 0.0].mean()) if (gains > 0.0).any() else 1.0
        gained, expected = np.bincount(items, gains, n_items), np.bincount(items, rates[places], n_items)
        return cls(rates, (gained + unit) / (expected + unit))

    def predict(self) -> Floats:
        """The expected gain of each item, a row for each place."""
        found: Floats = np.outer(self.rates, self.ratios)
        return found


def estimate_bandit(
    gains: npt.ArrayLike,
    logged: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    item: npt.ArrayLike | None = None,
    position: npt.ArrayLike | None = None,
    impression: npt.ArrayLike | None = None,
    users: Any = None,
) -> dict[str, Estimate]:
    """What another ranker would have earned, from a log with a row for each document that was shown.

    Nothing is known of the candidates that were not shown. Each row has its own probability, so a row may be the second
    place of a page whose first is not in the log. Rows are impressions by themselves, unless `impression` says which
    belong together: then the value is that of a whole impression, and only `item_position` can be had.

    Parameters
    ----------
    gains : array of shape (rows,)
        1 for a click, 0 for none, or any gain of at least 0.
    logged : array of shape (rows,)
        How likely the logging ranker was to show this document at its position.
    target : array of shape (rows,) or (positions, items)
        How likely the other ranker is to show it there; or the probabilities of all items, a row for each position (one
        row if they do not differ), which the direct and doubly robust estimators need.
    item, position : array of int of shape (rows,), optional
        Which item was shown, from 0, and where, from 1. Needed where `target` is a table.
    impression : array of shape (rows,), optional
        Which rows were shown together.
    users : array of shape (rows,), optional
        Who saw each row: intervals are then over users. Not with `impression`.

    Returns
    -------
    dict
        {name of the estimator: Estimate}

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> item = rng.choice(2, p=[0.8, 0.2], size=2000)
    >>> gains = (rng.random(2000) < 0.3 * (item == 1)).astype(float)  # only item 1 is clicked
    >>> found = estimate_bandit(gains, np.array([0.8, 0.2])[item], [[0.5, 0.5]], item=item, position=np.ones(2000, int))
    >>> for name, estimate in found.items():
    ...     print(f"{name} {estimate.value:.3f}")
    ips 0.152
    self_normalised 0.151
    direct 0.140
    doubly_robust 0.148
    self_normalised_doubly_robust 0.148
    """
    gained, below, wanted = (np.asarray(each, float) for each in (gains, logged, target))
    n = len(gained)
    if gained.shape != (n,) or below.shape != (n,) or not n:
        raise DataError(f"gains and logged have one number for each row: not {gained.shape} and {below.shape}")
    table = wanted if wanted.ndim == 2 else None
    if table is not None and len(table) == 1 and position is not None:  # the model of gains still has places
        table = np.repeat(table, max(1, int(np.max(position))), axis=0)
    items, places = _cells(item, position, n, table)
    above = wanted if table is None else table[places, items]
    if above.shape != (n,):
        raise DataError(f"target has a number for each of {n} rows, or is a table with a row for each position")
    if impression is not None:
        if users is not None:
            raise DataError("intervals are over impressions or over users: give one of impression and users")
        tables = _by_impression(np.asarray(impression), gained, below, above)
        return {"item_position": estimators.item_position(*tables)}
    both = gained[:, None], below[:, None], above[:, None]
    found = {"ips": estimators.ips(*both, users), "self_normalised": estimators.self_normalised(*both, users)}
    if table is None:
        return found
    predicted, expected = np.empty(n), np.empty(n)
    for half in (0, 1):  # even rows are predicted by what the odd ones taught, and the other way round
        other = slice(1 - half, None, 2) if n > 1 else slice(None)
        model = ItemGainModel.fit(items[other], places[other], gained[other], table.shape[1], len(table)).predict()
        predicted[half::2] = model[places[half::2], items[half::2]]
        expected[half::2] = (table * model).sum(axis=1)[places[half::2]]
    found["direct"] = estimators.direct(both[0], expected)
    found["doubly_robust"] = estimators.doubly_robust(*both, predicted, expected, users)
    name = "self_normalised_doubly_robust"
    found[name] = estimators.self_normalised_doubly_robust(*both, predicted, expected, users)
    return found


def _cells(item: Any, position: Any, n: int, table: Floats | None) -> tuple[Integers, Integers]:
    """Item and place of each row, from 0, for which the table has a probability; zeros without a table."""
    if table is None:
        return np.zeros(n, np.int64), np.zeros(n, np.int64)
    if item is None or (position is None and len(table) > 1):
        raise DataError("a table of probabilities needs item=, and position= if they differ by position")
    items = validation.integers(item, "items are numbers from 0")
    places = np.zeros(n, np.int64) if position is None else validation.integers(position, "positions are numbers") - 1
    if items.shape != (n,) or places.shape != (n,):
        raise DataError(f"item and position have one number for each of {n} rows: not {items.shape}, {places.shape}")
    if items.min() < 0 or items.max() >= table.shape[1] or places.min() < 0 or places.max() >= len(table):
        raise DataError(
            f"the table has probabilities of {table.shape[1]} items at {len(table)} positions, and the log the items "
            f"{items.min()} to {items.max()} at positions {places.min() + 1} to {places.max() + 1}"
        )
    sums = table.sum(axis=1)
    if not ((table >= 0.0).all() and np.abs(sums - 1.0).max() <= 1e-6):
        raise DataError(f"the probabilities of each position are at least 0 and add up to 1, not {sums.tolist()}")
    return items, places


def _by_impression(impression: npt.NDArray[Any], *columns: Floats) -> list[Floats]:
    """Gains, and probabilities of both rankers, with a row for each impression; what is missing gains nothing."""
    if impression.shape != columns[0].shape:
        raise DataError(f"impression has one name for each of {len(columns[0])} rows")
    _, row, counts = np.unique(impression, return_inverse=True, return_counts=True)
    order = np.argsort(row, kind="stable")
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    tables = [np.full((len(counts), counts.max()), fill) for fill in (0.0, 1.0, 1.0)]
    for table, column in zip(tables, columns, strict=True):
        table[row[order], place] = column[order]
    return tables
