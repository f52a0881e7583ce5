"""The theorems as code: margins, radii, and every bound as a function.

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
from ranktron.metrics import Metric, metric
from ranktron.surrogates import SLAM
from ranktron.surrogates.slam import AP, NDCG, slam_weights
from ranktron.surrogates.worst_pair import closest_pair
from ranktron.types import Features, Floats, Integers
from ranktron.types.validation import check_count


def margin(w: Floats, rounds: Rounds) -> float:
    """The margin of a weight vector's direction on a data set, Eq. (21).

        γ = min over queries and pairs with y_i > y_j of <w, x_i − x_j> / |w|

    Negative if a pair is misordered, infinite if there is no pair.

    Parameters
    ----------
    w : array of shape (n_features,)
        The weights, not all 0.
    rounds : Rounds
        The queries.

    Examples
    --------
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
    """The smallest lead of a better document over a worse one in each query, and the rows of these two."""
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
    """The largest margin that any unit vector has on a data set, and that vector; margin 0 if none separates it.

    Parameters
    ----------
    margin : float
        The margin, 0 if the data are not separable.
    ranker : array of shape (n_features,)
        The unit vector, all 0 if the data are not separable.

    Examples
    --------
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

    Cutting planes: the closest pair of each query joins the working set, on which the problem is solved exactly as a
    least-distance problem by non-negative least squares (Lawson and Hanson, Solving Least Squares Problems, chapter
    23), until no pair falls short by more than `tolerance`. Features are divided by the radius, so that the result
    scales with them.

    Parameters
    ----------
    rounds : Rounds
        The queries.
    tolerance : float
        By how much a pair may fall short of a lead of 1, between 0 and 1.
    rows : int
        How many pairs at most join the working set in one iteration.

    Examples
    --------
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
    """The metric whose loss the bounds of a surrogate are about: the surrogate's own, otherwise NDCG.

    Parameters
    ----------
    surrogate : Surrogate
        Such as `SLAM("ndcg@3")`.

    Examples
    --------
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
    """v_max: the largest ratio of two positive weights within a query; 1 for AP.

    It depends on the labels alone, as exchanging documents within a grade exchanges their weights.

    Parameters
    ----------
    rounds : Rounds
        The queries.
    surrogate : SLAM
        Which weights.

    Examples
    --------
    >>> from ranktron.metrics import metric
    >>> largest_weight_ratio(Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1]), SLAM(metric("ap")))
    1.0
    """
    if surrogate.code == AP:
        return 1.0
    return float(_widest_ratio(rounds.labels, rounds.offsets, surrogate.k))


def weight_ratio_limit(grade: float, positions: int) -> float:
    """An upper bound on v_max: (2^n − 1) log2(m + 1) for grades up to n and m (or k) positions.

    Parameters
    ----------
    grade : float
        n, the highest grade.
    positions : int
        m, the number of documents, or the metric's cut-off k.

    Examples
    --------
    >>> weight_ratio_limit(1, 3)
    2.0
    """
    _check_numbers(grade=grade, positions=positions)
    return float((2.0**grade - 1.0) * log2(positions + 1.0))


def slam_constant(positions: int, R: float, v_max: float) -> float:
    """K = 4 m R² v_max of Theorem 6; with k in place of m, of Theorem 8.

    Parameters
    ----------
    positions : int
        m, the largest number of documents of a query, or the metric's cut-off k.
    R : float
        The radius: the length of the longest row.
    v_max : float
        The largest ratio of weights, see `largest_weight_ratio`.

    Examples
    --------
    >>> slam_constant(10, 2.0, 1.5)
    240.0
    """
    return 4.0 * positions * R * R * v_max


def square_root_trick(b: float, c: float) -> float:
    """An upper bound on every x with x − b√x − c ≤ 0: b² + c + b√c.

    Parameters
    ----------
    b, c : float
        The coefficients, at least 0.

    Examples
    --------
    >>> square_root_trick(2.0, 9.0)
    19.0
    """
    _check_numbers(b=b, c=c)
    return b * b + c + b * sqrt(c)


def shared_bound(L: float, norm: float, K: float) -> float:
    """The form of the bound that all three theorems share: L + |u| √(K L) + K |u|².

    With K = R² it is the bound of the classification perceptron (Eq. 5), with `slam_constant` that of Algorithm 2
    (Eq. 19 and 22, with the factor v_max under the root that is missing from Eq. 19 as printed), with K = 4 R² that of
    Algorithm 3 (Eq. 30).

    Parameters
    ----------
    L : float
        The comparator's cumulative loss Σ f_t(u); 0 if the data are separable.
    norm : float
        |u|, the length of the comparator; 1/γ for one that separates the data with margin γ.
    K : float
        The constant of the theorem.

    Examples
    --------
    >>> shared_bound(0.0, 2.0, 9.0)
    36.0
    """
    _check_numbers(L=L, norm=norm, K=K)
    return L + norm * sqrt(K * L) + K * norm * norm


def bound_at(eta: float, L: float, norm: float, K: float) -> float:
    """The bound of Algorithm 2 at a given eta < 2/K: (L + |u|²/(2η)) / (1 − ηK/2); infinite for a larger eta.

    The theorem as stated optimises eta in hindsight; at eta = 1/K and L = 0 both are K |u|².

    Parameters
    ----------
    eta : float
        The step size of the run, above 0.
    L : float
        The comparator's cumulative loss.
    norm : float
        |u|, the length of the comparator.
    K : float
        `slam_constant`.

    Examples
    --------
    >>> bound_at(0.25, 0.0, 3.0, 4.0) == shared_bound(0.0, 3.0, 4.0)
    True
    """
    _check_numbers(L=L, norm=norm, K=K)
    _check_eta(eta)
    if not eta * K < 2.0:
        return inf
    return (L + norm * norm / (2.0 * eta)) / (1.0 - eta * K / 2.0)


def bound_for_any_eta(eta: float, L: float, norm: float, R: float) -> float:
    """Our own bound, not the paper's, on the loss of Algorithm 2: for any eta, and without m, k or v_max.

        (1 + x) L + (1 + x)² |u|²/(2η),  x = 2 η R²     where |u|² ≥ 4 η² R² (L + R² |u|²)
        L + 2 R² |u|² + 2 R |u| √(L + R² |u|²)          for larger steps

    On separable data (L = 0, |u| = 1/γ) this is 4 R²/γ² for every eta ≥ 1/(2R²): the constant of Algorithm 3, the
    best there is. The proof is in the documentation of the paper, with streams that come close to it at every eta.

    Parameters
    ----------
    eta : float
        The step size of the run, above 0.
    L : float
        The comparator's cumulative loss.
    norm : float
        |u|, the length of the comparator.
    R : float
        The radius: the length of the longest row.

    Examples
    --------
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
    """Our own bound on the sum of the weights of all documents with a loss: L + |u| √(K' L) + K' |u|², K' = 4 R² + 2/η.

    On separable data it is (4 R² + 2/η)/γ². It bounds the loss as well, but `bound_for_any_eta` is never larger.

    Parameters
    ----------
    eta : float
        The step size of the run, above 0.
    L : float
        The comparator's cumulative loss.
    norm : float
        |u|, the length of the comparator.
    R : float
        The radius: the length of the longest row.

    Examples
    --------
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
    """A loss that no deterministic learner can avoid on some separable stream (Theorem 9).

        (⌊R²/γ²⌋ − 1) · (the least loss of a mistake: 1 − 1/log2(3) for NDCG, 1/2 for AP)

    Parameters
    ----------
    R : float
        The radius: the length of the longest row.
    gamma : float
        The margin, above 0.
    measure : {"ndcg", "ap"}
        The metric whose loss is bounded.

    Examples
    --------
    >>> lower_bound(R=1.0, gamma=0.5, measure="ap")
    1.5
    """
    least = {"ndcg": 1.0 - 1.0 / log2(3.0), "ap": 0.5}.get(measure)
    if least is None:
        raise DataError(f"the theorem is of ndcg and of ap, not of {measure!r}")
    if not (R >= 0.0 and gamma > 0.0 and R / gamma < 1e150):
        raise DataError(f"a margin above 0 and a radius that is not beyond all bounds are needed, not {gamma} and {R}")
    return max(0, int((R / gamma) ** 2 + 1e-9) - 1) * least
