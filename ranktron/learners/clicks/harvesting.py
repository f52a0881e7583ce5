"""Examination from interventions that happened anyway: the same document for the same query at two positions."""

from __future__ import annotations

import numpy as np

from ranktron.data.impressions import Impressions
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination, with_interval
from ranktron.learners.clicks.identification import Swaps, compared_with_first, islands, unconnected
from ranktron.types import Floats

FURTHEST = 12.0  # |log θ|: what was never clicked is taken as this far from the rest


def harvested_examination(
    log: Impressions, replicates: int = 200, seed: int = 0, resample: str = "impressions"
) -> Examination:
    """θ_k / θ_1 from documents that several rankers showed at several positions of the same query.

    For each pair of positions (k, k') the documents that stood at both are compared: with n and c the impressions and
    clicks of a document there,

        C_{k, k'} = Σ c_k n_k' / (n_k + n_k')    so that    E C_{k, k'} / E C_{k', k} = θ_k / θ_k'

    whatever their relevance (the weights of Mantel and Haenszel). All pairs together are fitted as a Bradley-Terry
    model, Σ C_{k, k'} log θ_k / (θ_k + θ_k'), whose score has the expectation 0 at the true θ.

    Agarwal et al. divide by the share of each ranker where this divides by the impressions that there were, and fit the
    mean relevance of each pair of positions as a further parameter where this cancels it out.

    Parameters
    ----------
    log : Impressions
        With `query` and `item`. Which ranker showed a document need not be known, but the choice must not depend on
        what was clicked.
    replicates, seed : int
        How many resampled logs make the interval, and the seed of the resampling.
    resample : "impressions" or "queries"
        What is drawn with replacement: impressions, or all impressions of a query together.

    Positions must be connected by documents that moved; where they are not, the error names the islands. A position
    whose interval has no bounds (0 to infinity) was compared with the first one by too few clicks to tell.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 1, 0, 1], list("abcd"), [1, 1, 2, 2], query="q", item=[7, 7, 7, 7])
    >>> harvested_examination(log, replicates=0).values.round(6)
    array([1. , 0.5])

    References
    ----------
    Agarwal, Zaitsev, Wang, Li, Najork and Joachims, *Estimating position bias without intrusive interventions*, WSDM
    2019. Mantel and Haenszel, 1959. Hunter, *MM algorithms for generalized Bradley-Terry models*, 2004.
    """
    swaps = Swaps(log)
    groups = islands(swaps.joined)
    if len(groups) > 1:
        raise DataError(unconnected(groups))

    def estimate(weights: Floats) -> Floats:
        won = swaps.wins(weights)
        values: Floats = np.where(compared_with_first(won), bradley_terry(won), np.nan)
        return values

    found = Examination(bradley_terry(swaps.wins()), method="harvested", basis="documents that moved")
    return with_interval(found, estimate, log, replicates, seed, resample)


def bradley_terry(won: Floats) -> Floats:
    """θ with θ_0 = 1 that maximises Σ won[k, l] log θ_k / (θ_k + θ_l), by Newton's method on log θ.

    >>> bradley_terry(np.array([[0.0, 6.0], [2.0, 0.0]])).round(6)
    array([1.      , 0.333333])
    """
    played = won + won.T
    scores, mine = np.zeros(len(won)), won.sum(axis=1)
    for _ in range(100):
        chance = 1.0 / (1.0 + np.exp(scores[None, :] - scores[:, None]))  # of k against l
        gradient = mine - (played * chance).sum(axis=1)
        curvature = played * chance * (1.0 - chance)
        hessian = np.diag(curvature.sum(axis=1)) - curvature
        ridge = 1e-9 * np.eye(len(won) - 1) * max(float(mine.max(initial=0.0)), 1e-300)
        step = np.linalg.solve(hessian[1:, 1:] + ridge, gradient[1:])
        scores[1:] = np.clip(scores[1:] + np.clip(step, -1.0, 1.0), -FURTHEST, FURTHEST)
        if np.abs(step).max(initial=0.0) < 1e-9:
            break
    return np.exp(scores)
