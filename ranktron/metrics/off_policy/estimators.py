"""Estimators of a ranker's value from the log of another one, on plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError, warn
from ranktron.types import Floats

_NORMAL = 1.959963984540054  # the 97.5 % point of the normal distribution
# A warning needs so many impressions, and a mean weight that misses 1 by so many standard errors: weights are skewed,
# and six is what three would be for others.
_ENOUGH, _SURE = 20, 6.0


@dataclass(frozen=True)
class Estimate:
    """The estimated value of a ranker, with a 95 % interval and what it rests on.

    Parameters
    ----------
    value : float
        The estimated mean gain of a page.
    low, high : float
        A normal 95 % interval: right for large logs, too narrow where few impressions carry the weight.
    effective_size : float
        How many impressions of the ranker itself would tell as much: (Σ w)² / Σ w², the mean over places.
    mean_weight : float
        The mean of the weights. It is 1 on average if the logging ranker shows all that the other one wants.
    n : int
        The number of impressions.

    Examples
    --------
    >>> from ranktron.metrics.off_policy import ips
    >>> estimate = ips([[1, 0], [0, 0], [0, 1]], logged=[[0.5, 1]] * 3, target=[[0.4, 1], [0.6, 1], [0.4, 1]])
    >>> round(estimate.value, 3), round(estimate.effective_size, 2)
    (0.533, 2.88)
    """

    value: float
    low: float
    high: float
    effective_size: float
    mean_weight: float
    n: int


def ips(gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike, users: Any = None) -> Estimate:
    """Inverse propensity scoring: each page counts by how much likelier the other ranker is to show it.

        V = 1/n Σ_i w_i Σ_k gain_ik,   w_i = Π_k target_ik / logged_ik

    Parameters
    ----------
    gains : array-like of shape (impressions, places)
        What each place gained.
    logged, target : array-like of shape (impressions, places)
        How likely the logging ranker, and the other one, are to show this document at this place after those above it.
    users : array-like, optional
        Who saw each impression. The interval is then one over users, not over impressions.

    Examples
    --------
    >>> ips([[1, 0], [0, 1]], logged=[[0.5, 1], [0.5, 1]], target=[[1, 1], [0, 1]]).value
    1.0
    """
    gained, prefix = _prefix_weights(gains, logged, target)
    weights = prefix[:, -1]
    return _estimate(weights * gained.sum(axis=1), weights[:, None], users)


def self_normalised(gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike, users: Any = None) -> Estimate:
    """Self-normalised inverse propensity scoring: a weighted mean, never outside what was observed.

        V = Σ_i w_i Σ_k gain_ik / Σ_i w_i

    Consistent, not unbiased.

    Parameters
    ----------
    gains, logged, target, users
        As in `ips`.

    Examples
    --------
    >>> log = dict(logged=[[0.5, 1], [0.5, 1], [0.5, 1]], target=[[0.9, 1], [0.9, 1], [0.1, 1]])
    >>> round(self_normalised([[1, 0], [0, 1], [0, 0]], **log).value, 3)
    0.947

    References
    ----------
    Swaminathan and Joachims, The Self-Normalized Estimator for Counterfactual Learning (NIPS 2015).
    """
    gained, prefix = _prefix_weights(gains, logged, target)
    weights, totals = prefix[:, -1], gained.sum(axis=1)
    mean = weights.mean()
    if mean == 0.0:
        return _estimate(np.full(len(weights), np.nan), weights[:, None], users)
    value = float(weights @ totals / weights.sum())
    return _estimate(value + weights * (totals - value) / mean, weights[:, None], users)  # the delta method


def item_position(gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike, users: Any = None) -> Estimate:
    """Item-position inverse propensity scoring: each place counts by itself.

        V = 1/n Σ_i Σ_k w_ik gain_ik,   w_ik = P_target(document at place k) / P_logged(document at place k)

    Unbiased if the gain of a place depends on the document and the place only.

    Parameters
    ----------
    logged, target : array-like of shape (impressions, places)
        The probabilities of this document at this place, *whatever* is above it (`RankingPolicy.at_places`).
    gains, users
        As in `ips`.

    Examples
    --------
    >>> item_position([[1, 0], [0, 1]], logged=[[0.5, 0.5]] * 2, target=[[1, 1], [0, 0]]).value
    1.0

    References
    ----------
    Li et al., Offline Evaluation of Ranking Policies with Click Models (KDD 2018).
    """
    gained, weights = _ratios(gains, logged, target)
    return _estimate((weights * gained).sum(axis=1), weights, users)


def reward_interaction(
    gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike, users: Any = None
) -> Estimate:
    """Reward-interaction inverse propensity scoring: each place counts by the documents down to it.

        V = 1/n Σ_i Σ_k w_ik gain_ik,   w_ik = Π_{l ≤ k} target_il / logged_il

    Unbiased if users read from the top: the gain of a place depends on the documents there and above.

    Parameters
    ----------
    gains, logged, target, users
        As in `ips`.

    Examples
    --------
    >>> log = dict(logged=[[0.5, 0.5], [0.5, 0.5]], target=[[1, 0], [1, 1]])
    >>> reward_interaction([[1, 1], [0, 0]], **log).value
    1.0

    References
    ----------
    McInerney et al., Counterfactual Evaluation of Slate Recommendations with Sequential Reward Interactions (KDD 2020),
    without its normalisation.
    """
    gained, weights = _prefix_weights(gains, logged, target)
    return _estimate((weights * gained).sum(axis=1), weights, users)


def doubly_robust(
    gains: npt.ArrayLike,
    logged: npt.ArrayLike,
    target: npt.ArrayLike,
    predicted: npt.ArrayLike,
    expected: npt.ArrayLike,
    users: Any = None,
) -> Estimate:
    """The doubly robust estimator: a model's prediction, corrected by weighted errors of it.

        V = 1/n Σ_i [ expected_i + w_i (Σ_k gain_ik − predicted_i) ],   w_i as in `ips`

    Unbiased whatever the model predicts, as long as it has not seen these gains; the better it is, the less V varies.

    Parameters
    ----------
    gains, logged, target, users
        As in `ips`.
    predicted : array-like of shape (impressions,)
        What the model predicts for the page that was shown.
    expected : array-like of shape (impressions,)
        The mean of what it predicts for the pages of the other ranker.

    Examples
    --------
    >>> log = dict(logged=[[0.5, 1], [0.5, 1]], target=[[1, 1], [0, 1]])
    >>> doubly_robust([[1, 0], [0, 1]], **log, predicted=[1, 1], expected=[1, 1]).value
    1.0

    References
    ----------
    Dudik, Langford and Li, Doubly Robust Policy Evaluation and Learning (ICML 2011).
    """
    gained, prefix = _prefix_weights(gains, logged, target)
    weights = prefix[:, -1]
    model, mean = (np.asarray(each, float) for each in (predicted, expected))
    return _estimate(mean + weights * (gained.sum(axis=1) - model), weights[:, None], users)


def cascade_doubly_robust(
    gains: npt.ArrayLike,
    logged: npt.ArrayLike,
    target: npt.ArrayLike,
    predicted: npt.ArrayLike,
    expected: npt.ArrayLike,
    users: Any = None,
) -> Estimate:
    """The cascade doubly robust estimator: a prediction for each place, corrected by errors weighted down to it.

        V = 1/n Σ_i Σ_k [ w_{i,k−1} expected_ik + w_ik (gain_ik − predicted_ik) ],   w_ik as in `reward_interaction`

    Unbiased if users read from the top, whatever the model predicts.

    Parameters
    ----------
    gains, logged, target, users
        As in `ips`.
    predicted : array-like of shape (impressions, places)
        What the model predicts for this document after those above it: of this place, or of it and all below.
    expected : array-like of shape (impressions, places)
        The mean of that prediction over the documents that the other ranker would show here, after the same ones.

    Examples
    --------
    >>> log = dict(logged=[[0.5, 0.5], [0.5, 0.5]], target=[[1, 0], [1, 1]])
    >>> half = [[0.5, 0.5], [0.5, 0.5]]
    >>> cascade_doubly_robust([[1, 1], [0, 0]], **log, predicted=half, expected=half).value
    0.5

    References
    ----------
    Kiyohara et al., Doubly Robust Off-Policy Evaluation for Ranking Policies under the Cascade Behavior Model (WSDM
    2022).
    """
    gained, weights = _prefix_weights(gains, logged, target)
    above = np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])
    model, mean = (np.asarray(each, float) for each in (predicted, expected))
    return _estimate((above * mean + weights * (gained - model)).sum(axis=1), weights, users)


def _ratios(gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike) -> tuple[Floats, Floats]:
    gained, below, above = (np.asarray(each, float) for each in (gains, logged, target))
    if gained.ndim != 2 or not gained.size or not gained.shape == below.shape == above.shape:
        raise DataError(
            "gains, logged and target are tables of one shape, a row for each impression and a column for each place; "
            f"not {gained.shape}, {below.shape} and {above.shape}"
        )
    if not ((below > 0.0) & (below <= 1.0)).all():
        raise DataError("what was shown has a probability above 0 and at most 1 of being shown by the logging ranker")
    if not ((above >= 0.0) & (above <= 1.0 + 1e-9)).all() or not np.isfinite(gained).all():
        raise DataError("probabilities of the other ranker lie between 0 and 1, and gains are finite")
    weights: Floats = above / below
    return gained, weights


def _prefix_weights(gains: npt.ArrayLike, logged: npt.ArrayLike, target: npt.ArrayLike) -> tuple[Floats, Floats]:
    gained, ratios = _ratios(gains, logged, target)
    weights = np.cumprod(ratios, axis=1, dtype=np.float64)
    return gained, weights


def _estimate(terms: Floats, weights: Floats, users: Any) -> Estimate:
    """The mean of the terms with its interval; a warning where the weights say that there is nothing to go by."""
    n = len(terms)
    value = float(terms.mean())
    error = _standard_error(terms, users)
    squares = (weights**2).sum(axis=0)
    sizes = np.divide(weights.sum(axis=0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0.0)
    lowest = int(weights.mean(axis=0).argmin())
    mean = float(weights[:, lowest].mean())
    if n >= _ENOUGH and 1.0 - mean > max(0.1, _SURE * weights[:, lowest].std() / np.sqrt(n)):
        warn(
            f"the logging ranker does not show what the new one wants: weights that should be 1 on average are "
            f"{mean:.2g}, and {sizes.mean():,.0f} of {n:,} impressions count; the estimate cannot be trusted"
        )
    return Estimate(value, value - _NORMAL * error, value + _NORMAL * error, float(sizes.mean()), mean, n)


def _standard_error(terms: Floats, users: Any) -> float:
    """That of the mean, over users where they are known: their impressions are not independent."""
    apart, n = terms - terms.mean(), len(terms)
    if users is not None:
        ids = np.asarray(users)
        if ids.shape != terms.shape:
            raise DataError(f"{ids.size} users for {n} impressions: one for each")
        apart = np.bincount(np.unique(ids, return_inverse=True)[1], weights=apart)
    groups = len(apart)
    if groups < 2:
        return float("nan")
    return float(np.sqrt(groups / (groups - 1) * (apart**2).sum()) / n)
