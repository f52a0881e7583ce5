"""Estimators of a ranker's value from the log of another one, on plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError, warn
from ranktron.metrics.off_policy.likelihood import likelihood_interval
from ranktron.types import Floats

# A warning needs so many impressions. Weights are skewed to the right: a mean weight far below 1 is less surprising in
# its own standard errors than one above 1.
_ENOUGH, _SURE_BELOW, _SURE_ABOVE = 20, 6.0, 4.0
_TINY_SIZE = 10.0


@dataclass(frozen=True, eq=False)
class _Terms:
    """A ratio of sums over impressions that is linear in gains: Σ_i (base_i + Σ_k slopes_ik gains_ik) / Σ_i divisors_i.

    That is all that an interval needs, of the estimate or of a difference of two.
    """

    base: Floats
    slopes: Floats
    gains: Floats
    divisors: Floats
    users: Any

    @property
    def sums(self) -> Floats:
        found: Floats = self.base + (self.slopes * self.gains).sum(axis=1)
        return found

    @property
    def value(self) -> float:
        total = float(self.divisors.sum())
        return float(self.sums.sum()) / total if total > 0.0 else float("nan")

    def bounds(self) -> tuple[Floats, Floats]:
        """The least and the largest that the term of each impression could have been, with one gain at any place."""
        most = self.gains.max() if (self.gains > 0.0).any() else 1.0
        least = min(0.0, self.gains.min())
        possible = np.stack([self.slopes.max(axis=1) * most, self.slopes.min(axis=1) * most,
                             self.slopes.max(axis=1) * least, self.slopes.min(axis=1) * least])  # fmt: skip
        sums = self.sums
        low = np.minimum(sums, self.base + np.minimum(possible.min(axis=0), 0.0))
        return low, np.maximum(sums, self.base + np.maximum(possible.max(axis=0), 0.0))

    def interval(self) -> tuple[float, float]:
        """The empirical likelihood interval, over users where they are known: their impressions are not independent."""
        sums, divisors = self.sums, self.divisors
        low, high = self.bounds()
        if self.users is not None:
            ids = np.asarray(self.users)
            if ids.shape != sums.shape:
                raise DataError(f"{ids.size} users for {len(sums)} impressions: one for each")
            user = np.unique(ids, return_inverse=True)[1]
            total: Floats = np.bincount(user, sums).astype(float)
            least, most = np.zeros_like(total), np.zeros_like(total)  # what one impression of a user could change
            np.minimum.at(least, user, low - sums)
            np.maximum.at(most, user, high - sums)
            sums, divisors, low, high = total, np.bincount(user, divisors).astype(float), total + least, total + most
        if len(sums) < 2 or not np.isfinite(self.value) or not self.slopes.any():
            return float("nan"), float("nan")
        ends = likelihood_interval(sums, divisors, low, high)
        return float(ends[0]), float(ends[1])


@dataclass(frozen=True)
class Estimate:
    """The estimated value of a ranker, with a 95 % interval and what it rests on.

    The difference of two estimates from the same log is one, too: `better - worse` has the interval of the difference,
    which is narrower than the two intervals suggest.

    Parameters
    ----------
    value : float
        The estimated mean gain of a page.
    low, high : float
        An empirical likelihood 95 % interval, in which gains that were not observed may have probability, up to the
        largest weight and gain of the log. NaN where the log says nothing of the error.
    effective_size : float
        How many impressions of the ranker itself would tell as much: (Σ w)² / Σ w², the mean over places.
    mean_weight : float
        The mean of the weights, at the place where it is furthest from 1 in standard errors. It is 1 on average if the
        logging ranker shows all that the other one wants, with the probabilities that were stated.
    n : int
        The number of impressions.

    Examples
    --------
    >>> from ranktron.metrics.off_policy import ips
    >>> estimate = ips([[1, 0], [0, 0], [0, 1]], logged=[[0.5, 1]] * 3, target=[[0.4, 1], [0.6, 1], [0.4, 1]])
    >>> round(estimate.value, 3), round(estimate.effective_size, 2)
    (0.533, 2.88)
    >>> shown = ips([[1, 0], [0, 0], [0, 1]], logged=[[0.5, 1]] * 3, target=[[0.5, 1]] * 3)
    >>> round((estimate - shown).value, 3)
    -0.133
    """

    value: float
    low: float
    high: float
    effective_size: float
    mean_weight: float
    n: int
    _terms: _Terms | None = field(init=False, default=None, repr=False, compare=False)

    def __sub__(self, other: Estimate) -> Estimate:
        one, two = self._terms, other._terms
        if one is None or two is None or not np.array_equal(one.gains, two.gains):
            raise DataError("a difference is one of two estimates from the same log, with the same gains")
        weakest = min(self, other, key=lambda estimate: estimate.effective_size)
        if not np.isfinite([self.value, other.value]).all():
            return replace(weakest, value=float("nan"), low=float("nan"), high=float("nan"))
        mean_one, mean_two = one.divisors.mean(), two.divisors.mean()
        terms = _Terms(
            one.base / mean_one - (two.base - two.divisors * other.value) / mean_two
            - one.divisors * other.value / mean_one,
            one.slopes / mean_one - two.slopes / mean_two,
            one.gains, one.divisors / mean_one, one.users,
        )  # fmt: skip
        low, high = terms.interval()
        if np.isnan([self.low, other.low]).any():
            low = high = float("nan")
        elif not terms.slopes.any():  # the same ranker twice
            low = high = terms.value
        return _with_terms(replace(weakest, value=terms.value, low=low, high=high), terms)


def _with_terms(estimate: Estimate, terms: _Terms) -> Estimate:
    object.__setattr__(estimate, "_terms", terms)
    return estimate


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
    weights = prefix[:, -1:]
    return _estimate(0.0, weights, gained, weights, users)


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
    weights = prefix[:, -1:]
    return _estimate(0.0, weights, gained, weights, users, weights[:, 0])


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
    return _estimate(0.0, weights, gained, weights, users)


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
    return _estimate(0.0, weights, gained, weights, users)


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
    weights = prefix[:, -1:]
    model, mean = _of_pages(predicted, expected, len(weights))
    return _estimate(mean - weights[:, 0] * model, weights, gained, weights, users)


def self_normalised_doubly_robust(
    gains: npt.ArrayLike,
    logged: npt.ArrayLike,
    target: npt.ArrayLike,
    predicted: npt.ArrayLike,
    expected: npt.ArrayLike,
    users: Any = None,
) -> Estimate:
    """The doubly robust estimator with a weighted mean of errors.

        V = 1/n Σ_i expected_i + Σ_i w_i (Σ_k gain_ik − predicted_i) / Σ_i w_i,   w_i as in `ips`

    Consistent whatever the model predicts, not unbiased; less varied where weights are.

    Parameters
    ----------
    gains, logged, target, predicted, expected, users
        As in `doubly_robust`.

    Examples
    --------
    >>> log = dict(logged=[[0.5, 1], [0.5, 1]], target=[[0.9, 1], [0.1, 1]], predicted=[0.5, 0.5], expected=[0.5, 0.5])
    >>> round(self_normalised_doubly_robust([[1, 0], [0, 0]], **log).value, 3)
    0.9

    References
    ----------
    Thomas and Brunskill, Data-Efficient Off-Policy Policy Evaluation for Reinforcement Learning (ICML 2016).
    """
    gained, prefix = _prefix_weights(gains, logged, target)
    weights = prefix[:, -1:]
    model, mean = _of_pages(predicted, expected, len(weights))
    page, average = weights[:, 0], mean.mean()
    base = page * (average - model) + page.mean() * (mean - average)
    return _estimate(base, weights, gained, weights, users, page)


def direct(gains: npt.ArrayLike, expected: npt.ArrayLike) -> Estimate:
    """The direct method: what a model predicts for the pages of the other ranker, taken at its word.

        V = 1/n Σ_i expected_i

    It is as wrong as the model is, and the log does not say how much: there is no interval.

    Parameters
    ----------
    gains : array-like of shape (impressions, places)
        As in `ips`; the model has learnt from them, and nothing else is taken from them here.
    expected : array-like of shape (impressions,)
        As in `doubly_robust`.

    Examples
    --------
    >>> direct([[1, 0], [0, 1]], expected=[0.5, 0.7]).value
    0.6
    """
    gained = np.asarray(gains, float)
    ones = np.ones((len(gained), 1))
    _, mean = _of_pages(expected, expected, len(gained))
    return _estimate(mean, 0.0 * ones, gained, ones, None)


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
    return _estimate((above * mean - weights * model).sum(axis=1), weights, gained, weights, users)


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


def _of_pages(predicted: npt.ArrayLike, expected: npt.ArrayLike, n: int) -> tuple[Floats, Floats]:
    model, mean = (np.asarray(each, float) for each in (predicted, expected))
    if not model.shape == mean.shape == (n,) or not (np.isfinite(model).all() and np.isfinite(mean).all()):
        raise DataError(f"predictions are finite, one for each of {n} impressions: not {model.shape} and {mean.shape}")
    return model, mean


def _estimate(
    base: float | Floats, slopes: Floats, gains: Floats, weights: Floats, users: Any, divisors: Floats | None = None
) -> Estimate:
    """The estimate with its interval, and a warning where the weights say that it cannot be trusted."""
    n = len(gains)
    terms = _Terms(
        np.broadcast_to(np.asarray(base, float), (n,)), np.broadcast_to(slopes, gains.shape), gains,
        np.ones(n) if divisors is None else divisors, users,
    )  # fmt: skip
    squares = (weights**2).sum(axis=0)
    sizes = np.divide(weights.sum(axis=0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0.0)
    size, mean = float(sizes.mean()), _check_weights(weights, sizes)
    low, high = terms.interval()
    return _with_terms(Estimate(terms.value, low, high, size, mean, n), terms)


def _check_weights(weights: Floats, sizes: Floats) -> float:
    """The mean weight of the place where it is the most surprising; a warning if no chance explains it."""
    n, means = len(weights), weights.mean(axis=0)
    errors = np.maximum(weights.std(axis=0) / np.sqrt(n), 1e-9)
    apart = (means - 1.0) / errors
    surprise = np.where(apart < 0.0, -apart / _SURE_BELOW, apart / _SURE_ABOVE)
    worst = int(surprise.argmax())
    mean, size = float(means[worst]), float(sizes.mean())
    if n < _ENOUGH:
        return mean
    if surprise[worst] > 1.0 and mean < 0.9:
        warn(
            f"the logging ranker does not show what the new one wants: weights that should be 1 on average are "
            f"{mean:.2g}, and {size:,.0f} of {n:,} impressions count; the estimate cannot be trusted"
        )
    elif surprise[worst] > 1.0 and mean > 1.1:
        warn(
            f"the probabilities of the logging ranker are not those with which it showed the log: weights that should "
            f"be 1 on average are {mean:.2g}, {apart[worst]:,.0f} standard errors more; the estimate cannot be trusted"
        )
    elif size < _TINY_SIZE:
        warn(
            f"few impressions carry all the weight: the estimate rests on as much as {size:,.1f} of {n:,} impressions "
            f"would tell, and neither it nor its interval can be trusted"
        )
    return mean
