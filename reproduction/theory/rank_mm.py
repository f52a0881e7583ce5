"""What RankMM's paper says beyond what training needs: its losses as surrogates, paths of solutions, the projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.grades import grades
from ranktron.learners.batch.projections import cap_groups
from ranktron.learners.batch.rank_mm import RankMMSolution, solve_rank_mm
from ranktron.learners.batch.rank_mm_losses import loss_code, vertex
from ranktron.types import Floats, Integers


@dataclass(frozen=True)
class MarginLoss:
    """A loss of a list that asks for a lead as large as the difference of the labels.

        average      1/|R| Σ_{(j, k) ∈ R} ℓ_jk        ℓ_jk = max(0, y_j − y_k − (s_j − s_k))
        max          max_{(j, k) ∈ R} ℓ_jk            R = {(j, k): y_j > y_k}
        max-average  max_k 1/|P_k| Σ_{j ∈ P_k} ℓ_jk   P_k = {j: y_j > y_k}

    Labels may be any numbers. A surrogate like any other: it may also be learnt online.

    Examples
    --------
    >>> scores, labels = np.array([0.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0])
    >>> MarginLoss("average")(scores, labels)
    (2.5, array([-1. ,  0.5,  0.5]))
    >>> MarginLoss("max")(scores, labels)
    (3.0, array([-1.,  1.,  0.]))
    """

    name: str = "average"

    def __post_init__(self) -> None:
        loss_code(self.name)

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        codes, count = grades(labels)
        g = np.zeros(len(scores))
        if count < 2:
            return 0.0, g
        loss = vertex(loss_code(self.name), scores - labels, codes, count, np.ones(len(labels)), g)
        return loss, 0.0 - g


def solve_path(rounds: Rounds, Cs: Sequence[float], loss: str = "average", **options: Any) -> list[RankMMSolution]:
    """Solves for one C after the other, each starting from the solution before it.

    >>> from ranktron.data.synthetic import Separable
    >>> path = solve_path(Separable().rounds(50), [0.1, 1.0, 10.0])
    >>> [found.converged for found in path]
    [True, True, True]
    """
    path: list[RankMMSolution] = []
    for C in Cs:
        path.append(solve_rank_mm(rounds, C, loss, start=path[-1] if path else None, **options))
    return path


def project_l1_inf(values: Any, radius: float, offsets: Any = None, *, nonnegative: bool = False) -> Floats:
    """Projects on the ball of the ℓ1,∞ norm: the nearest values whose group maxima add up to at most `radius`.

        argmin_B Σ (b − a)²   subject to   Σ_g max_i |b_gi| ≤ radius   (and b ≥ 0 where `nonnegative`)

    Exact, in O(n log n); also what a group lasso projects on. With `nonnegative` the values below 0 become 0 *first*:
    the other way round, the result is not the nearest point.

    Parameters
    ----------
    values : (groups, members), or (n,) with offsets
        Each row is a group; or group g owns `values[offsets[g]:offsets[g + 1]]`.
    radius : float >= 0

    Examples
    --------
    >>> project_l1_inf([[3.0, 1.0], [1.0, 0.0]], radius=2.0)
    array([[2., 1.],
           [0., 0.]])
    >>> project_l1_inf([[3.0, 2.5], [2.0, -1.0]], radius=3.0, nonnegative=True)
    array([[2.16666667, 2.16666667],
           [0.83333333, 0.        ]])

    A group lasso over tasks: features × tasks, of which only the features that matter to some task are left.

    >>> weights = np.array([[2.0, -2.0, 1.9], [0.2, 0.1, -0.2], [0.1, 0.0, 0.1]])
    >>> project_l1_inf(weights, radius=1.5)
    array([[ 1.5, -1.5,  1.5],
           [ 0. ,  0. , -0. ],
           [ 0. ,  0. ,  0. ]])

    References
    ----------
    Quattoni, Carreras, Collins and Darrell, An Efficient Projection for ℓ1,∞ Regularization.
    """
    given = np.array(values, float)
    if not np.isfinite(given).all():
        raise DataError("values to project must be finite numbers")
    if not 0.0 <= radius < float("inf"):
        raise DataError(f"the radius must be a number >= 0, not {radius}")
    groups = _groups(given, offsets)
    flat = given.reshape(-1)
    lengths = np.maximum(flat, 0.0) if nonnegative else np.abs(flat)
    cap_groups(lengths, groups, float(radius))
    projected: Floats = (lengths if nonnegative else np.copysign(lengths, flat)).reshape(given.shape)
    return projected


def _groups(values: Floats, offsets: Any) -> Integers:
    if offsets is None:
        if values.ndim != 2:
            raise DataError("values must be a table with a group in each row, or a row with offsets of the groups")
        return np.arange(0, values.size + 1, max(values.shape[1], 1))
    groups: Integers = np.asarray(offsets, np.int64)
    fits = values.ndim == 1 and groups.ndim == 1 and len(groups) > 0 and groups[0] == 0 and groups[-1] == len(values)
    if not fits or (np.diff(groups) < 0).any():
        raise DataError("offsets must rise from 0 to the number of values, which stand in one row")
    return groups
