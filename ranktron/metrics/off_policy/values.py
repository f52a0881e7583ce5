"""All estimates at once, for a log of impressions and two rankers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.metrics.off_policy import estimators
from ranktron.metrics.off_policy.estimators import Estimate
from ranktron.metrics.off_policy.policies import RankingPolicy
from ranktron.types import Floats, Impression, Integers


@dataclass(frozen=True)
class GainModel:
    """A plain model of gains for the doubly robust estimators: one rate for each place, plus weights times features.

    Fitted by least squares with a small ridge on standardised features. `halves` fits two, each to the impressions that
    the other one predicts: a prediction must not have seen its own gain.

    Parameters
    ----------
    rates : array of shape (places,)
        The mean gain of each place.
    weights, centre : array of shape (features,)
        What each feature adds per unit, and where it is counted from.

    Examples
    --------
    >>> model = GainModel(np.array([0.4, 0.2]), np.array([0.1]), np.array([1.0]))
    >>> model.predict(np.array([[1.0], [3.0]])).round(3).tolist()  # two documents, each at two places
    [[0.4, 0.2], [0.6, 0.4]]
    """

    rates: Floats
    weights: Floats
    centre: Floats

    @classmethod
    def fit(cls, X: Floats, places: Integers, gains: Floats, n_places: int, ridge: float = 1.0) -> GainModel:
        """Fits rates and weights to documents at places (from 0) and what they gained.

        Parameters
        ----------
        X : array of shape (rows, features)
            The documents shown.
        places : array of int
            Where each stood, from 0.
        gains : array
            What each gained.
        n_places : int
            How many places there are.
        ridge : float
            The penalty on the weights.
        """
        counts = np.bincount(places, minlength=n_places)
        rates = np.bincount(places, gains, n_places) / np.maximum(counts, 1)
        centre, scale = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
        Z = (X - centre) / scale
        weights = np.linalg.solve(Z.T @ Z + ridge * np.eye(X.shape[1]), Z.T @ (gains - rates[places]))
        return cls(rates, weights / scale, centre)

    @classmethod
    def halves(cls, log: Sequence[Impression], features: Sequence[npt.ArrayLike]) -> list[GainModel]:
        """For each impression a model that was fitted to the others of two halves: every second one.

        Parameters
        ----------
        log : sequence of Impression
            What was shown, and what it gained.
        features : sequence of arrays
            The candidates of each impression.
        """
        n_places = max(len(impression.items) for impression in log)
        models = []
        for half in (1, 0):  # even impressions are predicted by what the odd ones taught
            chosen = [i for i in range(len(log)) if i % 2 == half] or [0]
            X = np.concatenate([np.asarray(features[i], float)[log[i].items] for i in chosen])
            places = np.concatenate([np.arange(len(log[i].items)) for i in chosen])
            models.append(cls.fit(X, places, np.concatenate([log[i].gains for i in chosen]), n_places))
        return [models[i % 2] for i in range(len(log))]

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The expected gain of each document at each place.

        Parameters
        ----------
        X : array of shape (documents, features)
            The candidates of one query.
        """
        found: Floats = (np.asarray(X, float) - self.centre) @ self.weights
        return found[:, None] + self.rates


class _Tables(NamedTuple):
    """One row for each impression, one column for each place; places below a page gain nothing and weigh nothing."""

    gains: Floats
    logged: Floats
    target: Floats
    logged_at: Floats
    target_at: Floats
    predicted: Floats
    expected: Floats
    expected_page: Floats


def estimate_values(
    log: Sequence[Impression],
    target: Sequence[RankingPolicy],
    logging: Sequence[RankingPolicy] | None = None,
    features: Sequence[npt.ArrayLike] | None = None,
    users: Any = None,
    positions: Sequence[npt.ArrayLike] | None = None,
) -> dict[str, Estimate]:
    """What a ranker would have earned, by every estimator that the log allows.

    Parameters
    ----------
    log : sequence of Impression
        What was shown, and what it gained.
    target : sequence of RankingPolicy
        How the other ranker would have chosen, for each impression.
    logging : sequence of RankingPolicy, optional
        How the ranker that showed it chose. Without it the propensities of the impressions are taken for the
        probability of each document at its place: all that `item_position` needs, and too little for the others.
    features : sequence of arrays, optional
        The features of each impression's candidates, for the model of the doubly robust estimators.
    users : array-like, optional
        Who saw each impression: intervals are then over users.
    positions : sequence of arrays, optional
        Where the documents of each impression stood, from 1. Unless given, 1, 2, …; a page that lacks a position says
        nothing of what stood above, so that only `item_position` can be had.

    Returns
    -------
    dict
        {name of the estimator: Estimate}

    Examples
    --------
    >>> from ranktron.types import Impression
    >>> rng = np.random.default_rng(0)
    >>> shown = [[0, 1] if rng.random() < 0.5 else [1, 0] for _ in range(2000)]
    >>> log = [Impression(items, gains=[float(items[0] == 1), 0.0]) for items in shown]  # only document 1 is clicked
    >>> found = estimate_values(log, [RankingPolicy([0.0, 1.0], 0)] * 2000, [RankingPolicy([0.0, 0.0])] * 2000)
    >>> {name: round(estimate.value, 1) for name, estimate in found.items()}
    {'ips': 1.0, 'self_normalised': 1.0, 'item_position': 1.0, 'reward_interaction': 1.0}
    """
    if not len(log) == len(target) or not len(log):
        raise DataError(f"{len(log)} impressions and {len(target)} policies: one for each, of at least one")
    if logging is None and any(impression.propensities is None for impression in log):
        raise DataError("nothing says how likely the logged pages were: give propensities, or the logging policy")
    places = [np.arange(len(impression.items)) for impression in log]
    if positions is not None:
        places = _as_places(positions, places)
    whole = logging is not None and all(np.array_equal(each, np.arange(len(each))) for each in places)
    t = _tabulate(log, target, logging, features if whole else None, places, whole)
    found = {}
    if whole:
        found["ips"] = estimators.ips(t.gains, t.logged, t.target, users)
        found["self_normalised"] = estimators.self_normalised(t.gains, t.logged, t.target, users)
    found["item_position"] = estimators.item_position(t.gains, t.logged_at, t.target_at, users)
    if whole:
        found["reward_interaction"] = estimators.reward_interaction(t.gains, t.logged, t.target, users)
        if features is not None:
            both = t.gains, t.logged, t.target
            predicted = t.predicted.sum(axis=1)
            page = *both, predicted, t.expected_page, users
            found["direct"] = estimators.direct(t.gains, t.expected_page)
            found["doubly_robust"] = estimators.doubly_robust(*page)
            found["self_normalised_doubly_robust"] = estimators.self_normalised_doubly_robust(*page)
            found["cascade_doubly_robust"] = estimators.cascade_doubly_robust(*both, t.predicted, t.expected, users)
    return found


def _as_places(positions: Sequence[npt.ArrayLike], places: Sequence[Integers]) -> list[Integers]:
    """Positions counted from 0, checked."""
    found = [np.asarray(each, float) for each in positions]
    if [each.shape for each in found] != [each.shape for each in places]:
        raise DataError("positions have a number for each document shown")
    for each in found:
        if not ((each >= 1) & (each == np.floor(each))).all() or len(np.unique(each)) < len(each):
            raise DataError(f"positions are different whole numbers from 1 on, not {each.tolist()}")
    return [each.astype(np.int64) - 1 for each in found]


def _tabulate(
    log: Sequence[Impression],
    target: Sequence[RankingPolicy],
    logging: Sequence[RankingPolicy] | None,
    features: Sequence[npt.ArrayLike] | None,
    places: Sequence[Integers],
    whole: bool,
) -> _Tables:
    shape = len(log), max(len(impression.items) for impression in log)
    t = _Tables(
        gains=np.zeros(shape), logged=np.ones(shape), target=np.ones(shape), logged_at=np.ones(shape),
        target_at=np.ones(shape), predicted=np.zeros(shape), expected=np.zeros(shape), expected_page=np.zeros(shape[0]),
    )  # fmt: skip
    models = None if features is None or logging is None else GainModel.halves(log, features)
    place_table = _PlaceTables(1 + max(int(each.max(initial=0)) for each in places))
    for i, impression in enumerate(log):
        items, k = impression.items, len(impression.items)
        diagonal = np.arange(k)
        t.gains[i, :k] = impression.gains
        t.target_at[i, :k] = place_table(target[i])[items, places[i]]
        if logging is None:
            assert impression.propensities is not None
            t.logged_at[i, :k] = impression.propensities
            continue
        t.logged_at[i, :k] = place_table(logging[i])[items, places[i]]
        if not whole:
            continue
        t.logged[i, :k], t.target[i, :k] = logging[i].draws(items), target[i].draws(items)
        if models is not None and features is not None:
            table = models[i].predict(features[i])[:, :k]
            t.predicted[i, :k] = table[items, diagonal]
            t.expected[i, :k] = (target[i].next_draws(items) * table.T).sum(axis=1)
            t.expected_page[i] = (place_table(target[i])[:, :k] * table).sum()
    return t


class _PlaceTables:
    """The probabilities of all candidates at all places; the same scores, as of a query that comes back, once."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.known: dict[tuple[bytes, float, float], Floats] = {}

    def __call__(self, policy: RankingPolicy) -> Floats:
        scores = np.asarray(policy.scores, float)
        key = scores.tobytes(), policy.temperature, policy.exploration_price
        if key not in self.known:
            self.known[key] = policy.at_places(np.arange(len(scores)), self.places)
        return self.known[key]
