"""The kernels of `TopK`: what it keeps of a query, and its update, for dense and sparse features.

For the same ranking, dense and sparse features give the same weights, to the bit: each column is summed in the same
order, and zeros add nothing.
"""

import numpy as np

from ranktron.kernels.csr import Columns, Values, add_sparse_row
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import squared_length
from ranktron.kernels.dispatch import FeatureArrays, add_one_row, as_features, take_rows
from ranktron.kernels.jit import jit
from ranktron.learners.pending_rounds import EVERY, PendingRound
from ranktron.types import Features, Floats, Integers, Matrix


@jit
def first_scores(scores: Floats, order: Integers, n: int) -> Floats:
    """The scores of the first n documents shown; NaN for a document that does not exist."""
    shown = np.empty(n)
    for place in range(n):
        there = 0 <= order[place] < scores.shape[0]
        shown[place] = scores[order[place]] if there else np.nan
    return shown


@jit
def _gather_dense(X: Matrix, order: Integers, r: int, base: Floats) -> tuple[Matrix, Floats]:
    drift = np.zeros(X.shape[1] if base.shape[0] else 0)
    for place in range(base.shape[0]):
        add_one_row(X, order[place], base[place], drift)
    return take_rows(X, order[:r]), drift


@jit
def _gathered_rows(
    starts: Integers, columns: Columns, values: Values, order: Integers, r: int, base: Floats, drift: Floats
) -> tuple[FeatureArrays, Floats, Columns]:
    """The same of sparse rows: what is not 0 of the drift, and its columns. `drift` is 0 before and after."""
    most = 0
    for place in range(base.shape[0]):
        add_sparse_row(starts, columns, values, order[place], base[place], drift)
        most += starts[order[place] + 1] - starts[order[place]]
    own, kept, n = np.empty(most, np.int32), np.empty(most), 0
    for item in order[: base.shape[0]]:
        for column in columns[starts[item] : starts[item + 1]]:
            if drift[column] != 0.0:
                own[n], kept[n] = column, drift[column]
                drift[column] = 0.0
                n += 1
    return take_rows((starts, columns, values), order[:r]), kept[:n].copy(), own[:n].copy()


def gather_top(X: Features, order: Integers, r: int, base: Floats) -> tuple[Features, Floats, Columns]:
    """The rows of the first r documents, and the direction of the label-free part of the gradient, with its columns.

    For sparse rows only its nonzero entries are kept, so that pending rounds do not grow with the number of features.
    """
    if not isinstance(X, Sparse):
        rows, drift = _gather_dense(X, order, r, base)
        return rows, drift, EVERY
    still = np.zeros(X.width if len(base) else 0)
    rows, drift, columns = _gathered_rows(X.starts, X.columns, X.values, order, r, base, still)
    return as_features(rows, X.width), drift, columns


@jit
def descend_dense(
    X: Matrix, items: Integers, gradient: Floats, drift: Floats, factor: float, eta: float, radius: float,
    adaptive: bool, weight: float, w: Floats, total: Floats, squares: Floats,
) -> bool:  # fmt: skip
    """The step on Σ_i gradient_i X[items_i] and a multiple of the drift."""
    d = w.shape[0]
    z = np.empty(d)
    for j in range(d):
        z[j] = factor * drift[j] if drift.shape[0] else 0.0
    for place in range(gradient.shape[0]):
        if gradient[place] != 0.0:
            add_one_row(X, items[place], gradient[place], z)
    squared = 0.0
    for j in range(d):
        squared += z[j] * z[j]
    if not np.isfinite(max(eta * eta, 1.0) * squared):
        return False
    # Adaptive steps are AdaGrad's, one per coordinate (Duchi, Hazan and Singer, 2011). Projecting onto the ball is a
    # multiplication (projected online gradient descent: Zinkevich, 2003).
    length = 0.0
    for j in range(d):
        total[j] += weight * w[j]
        squares[j] += z[j] * z[j]
        scale = np.sqrt(squares[j]) if adaptive else 1.0
        if scale > 0.0:
            w[j] -= eta * z[j] / scale  # Algorithm 1, step 10
        length += w[j] * w[j]
    length = np.sqrt(length)
    if length > radius:
        for j in range(d):
            w[j] *= radius / length  # step 11
    return True


@jit
def _descended_rows(
    starts: Integers, columns: Columns, values: Values, gradient: Floats, drift: Floats, drift_columns: Columns,
    factor: float, eta: float, radius: float, adaptive: bool, weight: float,
    w: Floats, total: Floats, squares: Floats, z: Floats,
) -> bool:  # fmt: skip
    """The same for sparse rows. `z` is 0 before and after: only columns with entries are visited."""
    for at in range(drift.shape[0]):
        z[drift_columns[at]] = factor * drift[at]
    for place in range(gradient.shape[0]):
        if gradient[place] != 0.0:
            add_sparse_row(starts, columns, values, place, gradient[place], z)
    if not np.isfinite(max(eta * eta, 1.0) * squared_length(z)):
        z[:] = 0.0
        return False
    for j in range(w.shape[0]):
        total[j] += weight * w[j]
    for touched in (drift_columns, columns[starts[0] : starts[-1]]):
        for j in touched:
            if z[j] != 0.0:
                squares[j] += z[j] * z[j]
                scale = np.sqrt(squares[j]) if adaptive else 1.0
                if scale > 0.0:
                    w[j] -= eta * z[j] / scale
                z[j] = 0.0
    if radius < np.inf:
        length = 0.0
        for j in range(w.shape[0]):
            length += w[j] * w[j]
        length = np.sqrt(length)
        if length > radius:
            for j in range(w.shape[0]):
                w[j] *= radius / length
    return True


def descend_in_ball(
    pending: PendingRound, gradient: Floats, factor: float, eta: float, radius: float, adaptive: bool, weight: float,
    w: Floats, total: Floats, squares: Floats, z: Floats,
) -> bool:  # fmt: skip
    """A gradient step and the projection onto the ball, in place; returns False without any change on overflow."""
    rows, drift = pending.rows, pending.drift
    if isinstance(rows, Sparse):
        return _descended_rows(
            rows.starts, rows.columns, rows.values, gradient, drift, pending.columns, factor, eta, radius, adaptive,
            weight, w, total, squares, z,
        )  # fmt: skip
    items = np.arange(len(gradient))
    return descend_dense(rows, items, gradient, drift, factor, eta, radius, adaptive, weight, w, total, squares)
