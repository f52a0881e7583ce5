"""The theorems as running code: margins, radii, and every bound as a function.

Letters are the papers': R the radius (longest row of X), γ a margin, L = Σ f_t(u) the comparator's cumulative loss,
|u| its length, K = 4 m R² v_max. A bound with L = 0 is that of the separable case; |u| = 1/γ gives the corollaries.
"""

from __future__ import annotations

from math import inf, log2, sqrt
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds, largest_row_norm
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import as_dense, linear_scores
from ranktron.kernels.grades import by_grade
from ranktron.kernels.jit import jit
from ranktron.lazy import lazy_names
from ranktron.metrics import Metric, metric
from ranktron.surrogates import SLAM
from ranktron.surrogates.slam import AP, NDCG, slam_weights
from ranktron.surrogates.worst_pair import closest_pair
from ranktron.types import Features, Floats, Integers
from ranktron.types.validation import check_count


def margin(w: Floats, rounds: Rounds) -> float:
    """The margin of w's direction on a data set, Eq. (21): negative where a pair is misordered, infinite without pairs.

    >>> margin(np.array([2.0]), Rounds.from_arrays([[3.0], [1.0]], [1, 0]))
    2.0
    """
    w = np.asarray(w, np.float64)
    if w.shape != (rounds.n_features,):
        raise DataError(f"a margin on {rounds.n_features} features is of as many weights, not of shape {w.shape}")
    length = float(np.linalg.norm(w))
    if not 0.0 < length < inf:
        raise DataError("weights that are all 0, or not finite, have no direction and so no margin")
    return min(_leads(w / length, rounds)[0], default=inf)


def _leads(w: Floats, rounds: Rounds) -> tuple[list[float], list[Integers]]:
    """The smallest lead of each list, and the two rows of X it is between."""
    scores = linear_scores(rounds.X, w)
    leads, pairs = [], []
    for q in range(len(rounds)):
        a, b = rounds.offsets[q], rounds.offsets[q + 1]
        lead, better, worse = closest_pair(scores[a:b], rounds.labels[a:b])
        leads.append(float(lead))
        pairs.append(np.array([a + better, a + worse]))
    return leads, pairs


def _as_array(X: Features) -> Floats:
    written: Floats = as_dense(X).astype(np.float64)
    return written


class Separation(NamedTuple):
    """The best margin that any unit vector has on a data set, and that vector; margin 0 if none separates it.

    >>> Separation(0.0, np.zeros(2)).separable
    False
    """

    margin: float
    ranker: Floats

    @property
    def separable(self) -> bool:
        return self.margin > 0.0


def best_margin(rounds: Rounds, tolerance: float = 1e-3, rows: int = 400) -> Separation:
    """Solves the hard-margin problem: min |w| such that every better document leads every worse one by 1.

    Cutting planes: the closest pair of each list joins the working set, on which the problem is solved exactly as a
    least-distance problem by non-negative least squares, until no pair falls short by more than `tolerance`. Lengths
    are measured in radii, so that multiples of the features have multiples of the margin.

    >>> found = best_margin(Rounds.from_arrays([[3.0, 0.0], [1.0, 0.0]], [1, 0]))
    >>> found.separable, round(found.margin, 6)
    (True, 2.0)
    """
    if not 0.0 < tolerance < 1.0:
        raise DataError(f"the tolerance must lie between 0 and 1, not {tolerance}")
    check_count(rows, "the number of pairs that join at a time", 1)
    R, d = largest_row_norm(rounds) or 1.0, rounds.n_features
    differences, known = np.zeros((0, d)), -1
    w = np.zeros(d)
    while True:
        leads, pairs = _leads(w / R, rounds)
        short = sorted((lead, q) for q, lead in enumerate(leads) if lead < 1.0 - tolerance)
        if not short or known == len(differences):  # all pairs lead by enough, or by as much as numbers can tell
            length = float(np.linalg.norm(w))
            worst = min(leads, default=inf)
            if worst <= 0.0:
                return Separation(0.0, np.zeros(d))
            return Separation(R * worst / length, w / length) if length else Separation(inf, w)
        chosen, known = np.array([pairs[q] for _, q in short[:rows]]), len(differences)
        new = (_as_array(rounds.X[chosen[:, 0]]) - _as_array(rounds.X[chosen[:, 1]])) / R
        differences = np.unique(np.vstack([differences, new]), axis=0)
        shortest = _shortest(differences)
        if shortest is None:
            return Separation(0.0, np.zeros(d))
        w = shortest


def _shortest(differences: Floats) -> Floats | None:
    """The shortest vector that gives every difference at least 1; None where there is none.

    Margins far below the unit of length cannot be told from 0: then a smaller unit is tried.
    """
    from scipy.optimize import nnls

    n, d = differences.shape
    for unit in (1.0, 1e-3, 1e-6):
        solution, _ = nnls(np.vstack([differences.T / unit, np.ones(n)]), np.append(np.zeros(d), 1.0))
        residual = 1.0 - solution.sum()
        if residual > 1e-9:
            found: Floats = differences.T @ solution / (residual * unit * unit)
            return found
    return None


def bounded_measure(surrogate: object) -> Metric:
    """The measure whose loss the bounds of a surrogate speak of: its own, or NDCG.

    >>> str(bounded_measure(SLAM("ndcg@3")))
    'ndcg@3'
    """
    measure: Metric | None = getattr(surrogate, "measure", None)
    return measure or metric("ndcg")


@jit
def _widest_ratio(labels: Floats, offsets: Integers, k: int) -> float:
    ratio = 1.0
    for q in range(offsets.shape[0] - 1):
        own = labels[offsets[q] : offsets[q + 1]]
        _, starts, values = by_grade(own)
        v = slam_weights(starts, values, NDCG, k)
        if v.shape[0]:
            ratio = max(ratio, v.max() / v.min())
    return ratio


def largest_weight_ratio(rounds: Rounds, surrogate: SLAM) -> float:
    """v_max: the largest ratio of two positive weights within a list; 1 for AP.

    It depends on the labels alone, as exchanging documents within a grade exchanges their weights.

    >>> from ranktron.metrics import metric
    >>> largest_weight_ratio(Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1]), SLAM(metric("ap")))
    1.0
    """
    if surrogate.code == AP:
        return 1.0
    return float(_widest_ratio(rounds.labels, rounds.offsets, surrogate.k))


def weight_ratio_limit(grade: float, positions: int) -> float:
    """What v_max cannot exceed: (2^n − 1) log2(m + 1) for grades up to n and m (or k) positions.

    >>> weight_ratio_limit(1, 3)
    2.0
    """
    _check_numbers(grade=grade, positions=positions)
    return float((2.0**grade - 1.0) * log2(positions + 1.0))


def slam_constant(positions: int, R: float, v_max: float) -> float:
    """K = 4 m R² v_max of Theorem 6; with k for m, of Theorem 8.

    >>> slam_constant(10, 2.0, 1.5)
    240.0
    """
    return 4.0 * positions * R * R * v_max


def square_root_trick(b: float, c: float) -> float:
    """The x that x − b√x − c ≤ 0 cannot exceed: b² + c + b√c.

    >>> square_root_trick(2.0, 9.0)
    19.0
    """
    _check_numbers(b=b, c=c)
    return b * b + c + b * sqrt(c)


def shared_bound(L: float, norm: float, K: float) -> float:
    """The form that all three theorems share: L + |u| √(K L) + K |u|².

    With K = R² the classification perceptron's (Eq. 5), with `slam_constant` Algorithm 2's (Eq. 19 and 22, with the
    factor v_max under the root that Eq. 19 as printed has lost), with K = 4 R² Algorithm 3's (Eq. 30).

    >>> shared_bound(0.0, 2.0, 9.0)
    36.0
    """
    _check_numbers(L=L, norm=norm, K=K)
    return L + norm * sqrt(K * L) + K * norm * norm


def bound_at(eta: float, L: float, norm: float, K: float) -> float:
    """What Algorithm 2 guarantees at the eta it ran with, for eta < 2/K: (L + |u|²/(2η)) / (1 − ηK/2).

    The theorem's own form optimises eta afterwards; at eta = 1/K this one has its separable constant K |u|².

    >>> bound_at(0.25, 0.0, 3.0, 4.0) == shared_bound(0.0, 3.0, 4.0)
    True
    """
    _check_numbers(L=L, norm=norm, K=K)
    _check_eta(eta)
    if not eta * K < 2.0:
        return inf
    return (L + norm * norm / (2.0 * eta)) / (1.0 - eta * K / 2.0)


def bound_for_any_eta(eta: float, L: float, norm: float, R: float) -> float:
    """Ours, not the paper's: what Algorithm 2 can lose at the eta it ran with, whatever it is; no m, k or v_max.

        (1 + x) L + (1 + x)² |u|²/(2η),  x = 2 η R²     where |u|² ≥ 4 η² R² (L + R² |u|²)
        L + 2 R² |u|² + 2 R |u| √(L + R² |u|²)          for larger steps

    On separable lists (L = 0, |u| = 1/γ) this is 4 R²/γ² for every eta ≥ 1/(2R²): the constant of Algorithm 3, the
    best there is. The proof is in the documentation of the paper, with streams that come near it at every eta.

    >>> bound_for_any_eta(0.5, 0.0, 1.0, 1.0), bound_for_any_eta(2.0, 0.0, 1.0, 1.0)
    (4.0, 4.0)
    """
    _check_numbers(L=L, norm=norm, R=R)
    _check_eta(eta)
    if norm * norm >= 4.0 * (eta * R) ** 2 * (L + (R * norm) ** 2):
        grown = 1.0 + 2.0 * eta * R * R
        return grown * L + grown * grown * norm * norm / (2.0 * eta)
    return L + 2.0 * (R * norm) ** 2 + 2.0 * R * norm * sqrt(L + (R * norm) ** 2)


def active_weight_bound(eta: float, L: float, norm: float, R: float) -> float:
    """Ours: what the weights of all documents that paid add up to, L + |u| √(K' L) + K' |u|² with K' = 4 R² + 2/η.

    On separable lists (4 R² + 2/η)/γ². It bounds the loss as well, but `bound_for_any_eta` is never larger.

    >>> active_weight_bound(2.0, 0.0, 1.0, 1.0)
    5.0
    """
    _check_eta(eta)
    return shared_bound(L, norm, 4.0 * R * R + 2.0 / eta)


def _check_eta(eta: float) -> None:
    if not 0.0 < eta < inf:
        raise DataError(f"eta must be a number above 0, not {eta}")


def _check_numbers(**given: float) -> None:
    for name, value in given.items():
        if not value >= 0.0:
            raise DataError(f"{name} must be a number of at least 0, not {value}")


def lower_bound(R: float, gamma: float, measure: str = "ndcg") -> float:
    """What some separable stream costs any deterministic learner (Theorem 9): ⌊R²/γ²⌋ − 1 times a least loss.

    >>> lower_bound(R=1.0, gamma=0.5, measure="ap")
    1.5
    """
    least = {"ndcg": 1.0 - 1.0 / log2(3.0), "ap": 0.5}.get(measure)
    if least is None:
        raise DataError(f"the theorem is of ndcg and of ap, not of {measure!r}")
    if not (R >= 0.0 and gamma > 0.0 and R / gamma < 1e150):
        raise DataError(f"a margin above 0 and a radius that is not beyond all bounds are needed, not {gamma} and {R}")
    return max(0, int((R / gamma) ** 2 + 1e-9) - 1) * least


__getattr__ = lazy_names(__name__, renamed={"bound": "shared_bound", "measure_of": "bounded_measure"})
