"""Cells of two systems beside RankMM's figure: the p-norm push, of which RankMM-3 is an extreme, and regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.types import Floats, Integers
from reproduction.harness.data import cached_folds
from reproduction.harness.rank_mm_cells import Choice, best_on_validation, judge_on_validation, measure_on_test


@dataclass(eq=False)
class PushObjective:
    """The objective of the p-norm push with linear scores s = X w, on grades.

        ½ |w|² + C/m Σ_i 1/n_i Σ_k (1/|P_k| Σ_{j in P_k} exp(s_k − s_j))^p

    P_k are the documents of query i with a higher grade than k, n_i counts the k that have any, m the queries. The
    larger p, the more the sum over k is its largest term: what RankMM-3 minimises, with a hinge.

    Parameters
    ----------
    rounds : Rounds
    C, p : float > 0

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0], [0.0], [0.0]], [1, 0, 0])
    >>> value, gradient = PushObjective(lists, C=2.0, p=2.0)(np.zeros(1))
    >>> value, gradient
    (2.0, array([-4.]))

    References
    ----------
    Rudin, Ranking with a p-norm push, COLT 2006.
    """

    rounds: Rounds
    C: float
    p: float
    groups: Integers = field(init=False, repr=False)
    higher: Floats = field(init=False, repr=False)
    weights: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rounds = self.rounds
        grades, codes = np.unique(rounds.labels, return_inverse=True)
        queries = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets))
        self.shape = len(rounds), len(grades)
        self.groups = queries * len(grades) + codes
        counts = np.bincount(self.groups, minlength=len(rounds) * len(grades)).reshape(self.shape).astype(float)
        self.higher = _above(counts).ravel()[self.groups]
        lower = np.bincount(queries, weights=self.higher > 0.0, minlength=len(rounds))
        self.weights = np.where(self.higher > 0.0, self.C / len(rounds) / np.maximum(lower, 1.0)[queries], 0.0)

    def __call__(self, w: Floats) -> tuple[float, Floats]:
        scores = self.rounds.X.astype(np.float64) @ w
        with np.errstate(over="ignore", invalid="ignore"):
            pulls = np.exp(-scores)
            table = _above(self._sums(pulls))
            above = table.ravel()[self.groups]
            u = np.exp(scores) * above / np.maximum(self.higher, 1.0)
            terms = self.weights * u**self.p
            if not np.isfinite(terms).all():
                return np.inf, np.zeros(len(w))
            shares = self._sums(self.p * terms) / np.where(table > 0.0, table, 1.0)
            upper = pulls * _below(shares).ravel()[self.groups]
        gradient: Floats = w + self.rounds.X.T.astype(np.float64) @ (self.p * terms - upper)
        return float(0.5 * w @ w + terms.sum()), gradient

    def _sums(self, values: Floats) -> Floats:
        sums = np.bincount(self.groups, weights=values, minlength=self.shape[0] * self.shape[1])
        return sums.astype(np.float64).reshape(self.shape)


def _above(table: Floats) -> Floats:
    """For each query and grade the sum over the higher grades."""
    sums: Floats = np.cumsum(table[:, ::-1], axis=1)[:, ::-1] - table
    return sums


def _below(table: Floats) -> Floats:
    """The same over the lower grades."""
    sums: Floats = np.cumsum(table, axis=1) - table
    return sums


def minimise_push(rounds: Rounds, C: float, p: float, start: Floats) -> Floats:
    """The weights that minimise the objective.

    >>> lists = Rounds.from_arrays([[1.0], [0.0]], [1, 0])
    >>> w = minimise_push(lists, 1.0, 1.0, np.zeros(1))
    >>> bool(abs(w[0] - np.exp(-w[0])) < 1e-6)  # the derivative: w − exp(−w)
    True
    """
    from scipy.optimize import minimize

    objective = PushObjective(rounds, C, p)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "ftol": 1e-12})
    return np.asarray(found.x, float)


def regression_weights(rounds: Rounds) -> Floats:
    """Plain regression: the weights that predict the labels best, with a constant that ranks nothing.

    >>> regression_weights(Rounds.from_arrays([[0.0], [1.0], [2.0]], [1, 2, 3])).round(6)
    array([1.])
    """
    X = rounds.X.astype(np.float64)
    w: Floats = np.linalg.lstsq(X - X.mean(axis=0), rounds.labels - rounds.labels.mean(), rcond=None)[0]
    return w


def measure_push(fold: int, Cs: Sequence[float], ps: Sequence[float], folder: str, seed: int) -> Any:
    """Plain regression, the push with the (C, p) that validation likes best, and the best C for every p."""
    data = cached_folds(folder)[fold]
    by_p: dict[str, Choice] = {}
    for p in ps:
        w, choices = np.zeros(data.train.n_features), []
        for C in Cs:
            w = minimise_push(data.train, C, p, w)
            choices.append(judge_on_validation(data, (C, p), w))
        by_p[f"p = {p:g}"] = best_on_validation(choices)
    found = {
        "Regression": judge_on_validation(data, (), regression_weights(data.train)),
        "p-norm push": best_on_validation(list(by_p.values())),
        **by_p,
    }
    return {name: measure_on_test(data, choice) for name, choice in found.items()}
