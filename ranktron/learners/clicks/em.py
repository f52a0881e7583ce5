"""Examination by expectation-maximisation: at each position, clicks on relevant and on irrelevant documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranktron.data.impressions import Impressions
from ranktron.errors import DataError, warn
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.clicks.examination import Examination, with_interval
from ranktron.learners.clicks.identification import (
    REMEDY,
    Swaps,
    compared_with_first,
    islands,
    name_islands,
    overlaps,
    unconnected,
)
from ranktron.types import Features, Floats, Integers

TINY = 1e-6
MODEL_ALONE = "a model of relevance alone"
RIDGE = 1e-3  # on the weights of the regression, per row of weight 1 in all


def em_examination(
    log: Impressions,
    X: Features | None = None,
    *,
    trust: bool = False,
    iterations: int = 500,
    tol: float = 1e-6,
    replicates: int = 0,
    seed: int = 0,
    resample: str = "impressions",
) -> Examination:
    """θ_k by expectation-maximisation for a position-based model; with `trust`, offsets β_k as well.

        P(click | document, k) = γ p_k + (1 − γ) q_k,    p_1 = 1, q_1 = 0;    θ_k = p_k − q_k,  β_k = q_k

    γ, the relevance of the document, is a number for each query and item, or, given features, a logistic function of
    them above a floor, ε + (1 − ε) σ(⟨w, x⟩) (regression EM; ε are clicks that no feature explains). Without `trust` q
    is 0: the position-based model. What a curve means rests on the model of γ: where that is wrong, so is the curve.
    The other estimators assume nothing of the kind.

    Parameters
    ----------
    log : Impressions
        With `query` and `item` unless features are given.
    X : table of numbers, optional
        The features of each row of the log.
    trust : bool
        Whether irrelevant documents are clicked, more or less often by position.
    iterations, tol : int, float
        Steps end when no p_k and q_k changes by more than `tol`.
    replicates, seed : int
        How many resampled logs make the interval, and the seed of the resampling.
    resample : "impressions" or "queries"
        What is drawn with replacement: impressions, or all impressions of a query together.

    Positions are comparable where documents of a query moved between them. Where none did, similar features at several
    positions compare these through the model of relevance alone: the curve then has no interval, and a warning says so.
    Where features tell positions apart as well, nothing compares them, and the log is refused.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 1, 0, 1], list("abcd"), [1, 1, 2, 2], query="q", item=[7, 7, 7, 7])
    >>> em_examination(log).values.round(4)
    array([1. , 0.5])

    References
    ----------
    Wang, Golbandi, Bendersky, Metzler and Najork, *Position bias estimation for unbiased learning to rank in personal
    search*, WSDM 2018. Agarwal, Wang, Li, Bendersky and Najork, *Addressing trust bias*, WWW 2019. Varadhan and Roland,
    *Simple and globally convergent methods for accelerating the convergence of any EM algorithm*, 2008.
    """
    model = _Relevance(log, X)
    basis = _find_basis(log, X)
    swaps = Swaps(log) if X is None else None
    of, place, size, clicks = log.impression_of_rows, log.position - 1, log.n_positions, log.clicks
    start = model.start(clicks), _rates(clicks, place, size, trust)

    def fit(weights: Floats) -> Floats:
        nonlocal start
        own = weights[of]
        state, rates = start
        for _ in range(iterations):
            before = rates
            state, rates = _accelerate(model, state, rates, clicks, place, own, trust)
            if np.abs(rates - before).max() < tol:
                break
        if (weights == 1.0).all():
            start = state, rates  # resampled logs begin where this one ended
        return rates

    def estimate(weights: Floats) -> Floats:
        p, q = fit(weights)
        values: Floats = np.maximum(p - q, TINY)
        return values

    def estimate_resampled(weights: Floats) -> Floats:
        values = estimate(weights)
        return values if swaps is None else np.where(compared_with_first(swaps.wins(weights)), values, np.nan)

    everything = np.ones(len(log))
    found = Examination(estimate(everything), method="em-trust" if trust else "em", basis=basis)
    if basis == MODEL_ALONE:
        warn(
            "position bias rests on a model of relevance alone, which nothing in the log can check, and has no "
            f"interval: no documents of known query= and item= connect the positions; {REMEDY}"
        )
    else:
        found = with_interval(found, estimate_resampled, log, replicates, seed, resample)
    return replace(found, offsets=fit(everything)[1]) if trust else found


def _find_basis(log: Impressions, X: Features | None) -> str:
    """What makes positions comparable; an error if nothing does."""
    moved = None if log.query is None or log.item is None else islands(Swaps(log).joined)
    if moved is not None and len(moved) == 1:
        return "documents that moved"
    if X is None:
        raise DataError(unconnected(moved or []))
    alike = islands(overlaps(log, X))
    if len(alike) > 1:
        raise DataError(
            "position bias cannot be known from this log: no document is known to have stood on both sides of "
            f"{name_islands(alike)}, and features tell the documents there apart; {REMEDY}"
        )
    return MODEL_ALONE


class _Relevance:
    """γ of each row: by query and item, or by a logistic regression on features, γ = ε + (1 − ε) σ(⟨w, x⟩).

    The floor ε are clicks that no feature explains. A state is γ itself, or w and ε.
    """

    def __init__(self, log: Impressions, X: Features | None) -> None:
        if X is None:
            if log.query is None or log.item is None:
                raise DataError("expectation-maximisation takes features, or query= and item= to know documents again")
            self.codes: Integers | None = log.documents()
            self.size = int(self.codes.max()) + 1
            return
        dense = np.asarray(X.dense() if isinstance(X, Sparse) else X, float)
        if len(dense) != len(log.position):
            raise DataError(f"{len(dense)} rows of features for {len(log.position)} rows of the log")
        spread = dense.std(axis=0)
        rows = (dense[:, spread > 0.0] - dense[:, spread > 0.0].mean(axis=0)) / spread[spread > 0.0]
        self.codes, self.rows = None, np.column_stack([np.ones(len(dense)), rows])

    def start(self, clicks: Floats) -> Floats:
        if self.codes is not None:
            return np.full(self.size, max(float(clicks.mean()), TINY))
        state = np.zeros(self.rows.shape[1] + 1)
        rate = float(np.clip(clicks.mean(), TINY, 0.5))
        state[0], state[-1] = np.log(rate / (1.0 - rate)), 0.1 * rate
        return state

    def relevance(self, state: Floats) -> Floats:
        if self.codes is not None:
            return np.clip(state, TINY, 1.0 - TINY)[self.codes]
        floor, explained = self._parts(state)
        return floor + (1.0 - floor) * explained

    def _parts(self, state: Floats) -> tuple[float, Floats]:
        """The floor, and what the features explain."""
        explained: Floats = np.clip(
            1.0 / (1.0 + np.exp(-np.clip(self.rows @ state[:-1], -30.0, 30.0))), TINY, 1.0 - TINY
        )
        return float(np.clip(state[-1], TINY, 0.5)), explained

    def fitted(self, state: Floats, wanted: Floats, weights: Floats) -> Floats:
        """The state that makes relevance what is wanted: means, or a Newton step of the regression."""
        if self.codes is not None:
            total = np.bincount(self.codes, weights, minlength=self.size)
            means = np.bincount(self.codes, weights * wanted, minlength=self.size) / np.maximum(total, TINY)
            return np.where(total > 0.0, means, state)
        floor, now = self._parts(state)
        share = wanted / (floor + (1.0 - floor) * now)  # a relevant document is so by its features, by chance, or both
        ridge = RIDGE * np.ones(len(state) - 1)
        ridge[0] = 0.0
        gradient = self.rows.T @ (weights * (share * now - now)) - ridge * state[:-1]
        hessian = (self.rows * (weights * now * (1.0 - now))[:, None]).T @ self.rows + np.diag(ridge + 1e-9)
        newton = state[:-1] + np.linalg.solve(hessian, gradient)
        return np.append(newton, floor * float(weights @ share) / float(weights.sum()))


def _rates(clicks: Floats, place: Integers, size: int, trust: bool) -> Floats:
    """Where p and q begin: p at the click-through relative to the first position, q at 0 or a tenth of it."""
    shown = np.maximum(np.bincount(place, minlength=size), 1)
    rate = np.bincount(place, clicks, minlength=size) / shown
    if rate[0] == 0.0:
        raise DataError("nobody clicked at position 1: there is nothing to compare other positions with")
    p = np.clip(rate / rate[0], 0.01, 1.0 - 0.01)
    q = 0.1 * rate if trust else np.zeros(size)
    p[0], q[0] = 1.0, 0.0
    return np.array([p, np.minimum(q, 0.5 * p)])


def _step(
    model: _Relevance, state: Floats, rates: Floats, clicks: Floats, place: Integers, weights: Floats, trust: bool
) -> tuple[Floats, Floats]:
    """One expectation and one maximisation: how likely each document was relevant, then the rates and γ that fit it."""
    gamma, p, q = model.relevance(state), rates[0][place], rates[1][place]
    if_relevant = gamma * np.where(clicks > 0.0, p, 1.0 - p)
    if_not = (1.0 - gamma) * np.where(clicks > 0.0, q, 1.0 - q)
    relevant = if_relevant / np.maximum(if_relevant + if_not, 1e-300)
    size = rates.shape[1]
    found = rates.copy()
    for row, share in enumerate((relevant, 1.0 - relevant) if trust else (relevant,)):
        total = np.bincount(place, weights * share, minlength=size)
        clicked = np.bincount(place, weights * share * clicks, minlength=size)
        found[row, 1:] = np.clip(clicked[1:] / np.maximum(total[1:], TINY), TINY, 1.0 - TINY)
    return model.fitted(state, relevant, weights), found


def _accelerate(
    model: _Relevance, state: Floats, rates: Floats, clicks: Floats, place: Integers, weights: Floats, trust: bool
) -> tuple[Floats, Floats]:
    """Two steps, then a leap along the line that they make (SQUAREM), back within bounds, and a step from there."""
    one = _step(model, state, rates, clicks, place, weights, trust)
    two = _step(model, *one, clicks, place, weights, trust)
    first = np.concatenate([(one[0] - state), (one[1] - rates).ravel()])
    second = np.concatenate([(two[0] - one[0]), (two[1] - one[1]).ravel()]) - first
    length = -min(max(float(np.linalg.norm(first)) / max(float(np.linalg.norm(second)), 1e-300), 1.0), 64.0)
    n = len(state)
    leap_state = state - 2.0 * length * first[:n] + length**2 * second[:n]
    leap = rates - 2.0 * length * first[n:].reshape(rates.shape) + length**2 * second[n:].reshape(rates.shape)
    inside = np.clip(leap, TINY, 1.0 - TINY)
    inside[:, 0] = rates[:, 0]
    if not trust:
        inside[1] = 0.0
    tried = _step(model, leap_state, inside, clicks, place, weights, trust)
    fair = _likelihood(model, *tried, clicks, place, weights) >= _likelihood(model, *two, clicks, place, weights)
    return tried if fair else two


def _likelihood(
    model: _Relevance, state: Floats, rates: Floats, clicks: Floats, place: Integers, weights: Floats
) -> float:
    gamma = model.relevance(state)
    chance = np.clip(gamma * rates[0][place] + (1.0 - gamma) * rates[1][place], 1e-12, 1.0 - 1e-12)
    return float(weights @ np.where(clicks > 0.0, np.log(chance), np.log1p(-chance)))
