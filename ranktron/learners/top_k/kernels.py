"""The kernels of `TopK`: ranking, what is kept of a query, one round of learning, and its step, dense and sparse.

For the same ranking, dense and sparse features give the same weights, to the bit: each column is summed in the same
order, and zeros add nothing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.kernels.csr import Columns, Values, add_sparse_row
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import first_non_finite, squared_length
from ranktron.kernels.dispatch import FeatureArrays, add_one_row, as_features, dot_rows, take_rows
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.pending_rounds import EVERY
from ranktron.learners.top_k.estimator import inverse_propensities
from ranktron.learners.top_k.exploration import (
    document_propensities,
    draw_order,
    group_propensities,
    pair_propensities,
    restrict_exploration,
)
from ranktron.surrogates.pairwise_hinge import estimate_hinge
from ranktron.types import Features, Floats, Integers, Matrix

TOP_K = np.dtype(
    [
        ("k", "i8"),  # how many labels come back
        ("coordinates", "i8"),  # how many labels a term of the surrogate's gradient has
        ("shortlist", "i8"),  # among how many of the best-scored documents exploration draws, 0: all
        ("rounds", "i8"),  # learnt so far: `count_round` alone writes it
        ("price", "f8"),  # of exploration
        ("response_rate", "f8"),  # the share of shown documents whose label comes back
        ("share", "f8"),  # of such terms: response_rate ** coordinates
        ("max_label", "f8"),
        ("floor", "f8"),  # of propensities
        ("floor_bias", "f8"),  # what the floor took, summed over rounds: `count_round` alone writes it
        ("margin", "f8"),  # of the pairwise hinge
        ("radius", "f8"),
        ("adaptive", "?"),
        ("weighted_average", "?"),
        ("require_full_lists", "?"),
    ]
)
"""The settings and counts of a learner."""

TopKRecord = npt.NDArray[Any]
"""One record of `TOP_K`."""

NOT_SHOWN, TWICE, NO_LABEL, TOO_HIGH = 1, 2, 3, 4


@jit
def list_sizes(learner: TopKRecord, m: int) -> tuple[int, int]:
    """For m documents: how many labels come back, and among how many documents exploration draws."""
    k = min(learner[0]["k"], m)
    shortlist = learner[0]["shortlist"]
    return k, max(k, shortlist) if 0 < shortlist < m else m


@jit
def _draw(
    learner: TopKRecord, vectors: Floats, X: FeatureArrays, seed: int, number: int, gamma: float
) -> tuple[Floats, Integers, Integers, bool, float, int, int]:
    """Scores, the order by them, the order to show, whether it explores, and γ, k and n for this list."""
    X, vectors = borrow(X), borrow(vectors)
    scores = dot_rows(X, vectors[0])
    best = argsort_descending(scores)
    k, n = list_sizes(learner, scores.shape[0])
    gamma, n = restrict_exploration(scores, best, gamma, k, n, learner[0]["price"])
    order, explored = draw_order(best, seed, number, gamma, n)
    return scores, best, order, explored, gamma, k, n


@jit
def rank_documents(
    learner: TopKRecord, vectors: Floats, X: FeatureArrays, seed: int, number: int, gamma: float
) -> tuple[Floats, Integers, bool, Floats]:
    """The scores, the order to show, whether it explores, and the propensities of the first k documents."""
    scores, best, order, explored, gamma, k, n = _draw(learner, vectors, X, seed, number, gamma)
    return scores, order, explored, document_propensities(order, best, gamma, k, n)


@jit
def rank_pairs(
    learner: TopKRecord, vectors: Floats, X: FeatureArrays, seed: int, number: int, gamma: float
) -> tuple[Floats, Integers, bool, Floats]:
    """The same with the propensities of pairs."""
    scores, best, order, explored, gamma, k, n = _draw(learner, vectors, X, seed, number, gamma)
    return scores, order, explored, pair_propensities(order, best, gamma, k, n)


def rank_groups(
    learner: TopKRecord, vectors: Floats, X: FeatureArrays, seed: int, number: int, gamma: float
) -> tuple[Floats, Integers, bool, Floats]:
    """The same with the propensities of groups."""
    scores, best, order, explored, gamma, k, n = _draw(learner, vectors, X, seed, number, gamma)
    size = int(learner["coordinates"][0])
    return scores, order, explored, group_propensities(order, best, gamma, k, n, size)


@jit
def floor_bias(learner: TopKRecord, m: int, gamma: float) -> float:
    """The share that the floor takes from the gradient of documents outside the top k, in a round of m documents."""
    k, n = list_sizes(learner, m)
    p = gamma
    for i in range(learner[0]["coordinates"]):
        p *= learner[0]["response_rate"] * max(k - i, 0) / max(n - i, 1)
    return float(1.0 - p / max(p, learner[0]["floor"]))


@jit
def count_round(learner: TopKRecord, m: int, gamma: float) -> None:
    """Counts a round of m documents that was learnt, and the bias of the floor."""
    learner[0]["rounds"] += 1
    if learner[0]["floor"] > 0.0:
        learner[0]["floor_bias"] += floor_bias(learner, m, gamma)


@jit
def shown_scores(learner: TopKRecord, scores: Floats, order: Integers) -> Floats:
    """The scores in the order shown of the documents among which exploration draws; NaN for one that does not exist."""
    k, n = list_sizes(learner, order.shape[0])
    price = learner[0]["price"]
    if price < 1.0:
        n = restrict_exploration(scores, argsort_descending(scores), 0.0, k, n, price)[1]
    shown = np.empty(n)
    for place in range(n):
        there = 0 <= order[place] < scores.shape[0]
        shown[place] = scores[order[place]] if there else np.nan
    return shown


@jit
def locate(order: Integers, k: int, items: Integers, labels: Floats, max_label: float) -> tuple[Integers, int, int]:
    """The positions of the observed documents, and the error code and index of the first invalid one."""
    places = np.empty(items.shape[0], np.int64)
    seen = np.zeros(k, np.bool_)
    for i in range(items.shape[0]):
        place = i
        if i >= k or order[i] != items[i]:
            place = 0
            while place < k and order[place] != items[i]:
                place += 1
            if place == k:
                return places, NOT_SHOWN, i
        if seen[place]:
            return places, TWICE, i
        if not 0.0 <= labels[i] < np.inf:
            return places, NO_LABEL, i
        if labels[i] > max_label:
            return places, TOO_HIGH, i
        seen[place] = True
        places[i] = place
    return places, 0, 0


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
def _weight(learner: TopKRecord) -> float:
    """How much the current weights count in the mean that is served."""
    return float(learner[0]["rounds"] + 1.0 if learner[0]["weighted_average"] else 1.0)


@jit
def _project(w: Floats, centre: Floats, radius: float) -> None:
    """Moves w onto the ball, straight towards its centre."""
    squared = 0.0
    for j in range(w.shape[0]):
        squared += (w[j] - centre[j]) ** 2
    length = np.sqrt(squared)
    if length > radius:
        for j in range(w.shape[0]):
            w[j] = centre[j] + (w[j] - centre[j]) * (radius / length)  # step 11


@jit
def take_step(
    learner: TopKRecord, vectors: Floats, X: Matrix, items: Integers, gradient: Floats, drift: Floats, factor: float,
    eta: float,
) -> bool:  # fmt: skip
    """The step on Σ_i gradient_i X[items_i] and a multiple of the drift, and the projection onto the ball, in place.

    `vectors` are those of `TopK`. Returns False without any change on overflow.
    """
    vectors = borrow(vectors)
    w, total, squares = vectors[0], vectors[1], vectors[2]
    adaptive, weight = learner[0]["adaptive"], _weight(learner)
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
    for j in range(d):
        total[j] += weight * w[j]
        squares[j] += z[j] * z[j]
        scale = np.sqrt(squares[j]) if adaptive else 1.0
        if scale > 0.0:
            w[j] -= eta * z[j] / scale  # Algorithm 1, step 10
    if learner[0]["radius"] < np.inf:
        _project(w, vectors[4], learner[0]["radius"])
    return True


@jit
def take_step_rows(
    learner: TopKRecord, vectors: Floats, X: FeatureArrays, gradient: Floats, drift: Floats, drift_columns: Columns,
    factor: float, eta: float,
) -> bool:  # fmt: skip
    """The same for sparse rows. The fourth vector is 0 before and after: only columns with entries are visited."""
    vectors = borrow(vectors)
    w, total, squares, z = vectors[0], vectors[1], vectors[2], vectors[3]
    adaptive, weight = learner[0]["adaptive"], _weight(learner)
    starts, columns, values = X
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
    if learner[0]["radius"] < np.inf:
        _project(w, vectors[4], learner[0]["radius"])
    return True


@jit
def learn_top(
    learner: TopKRecord, vectors: Floats, X: Matrix, items: Integers, shown: Floats, places: Integers, labels: Floats,
    propensities: Floats, m: int, gamma: float, eta: float,
) -> float:  # fmt: skip
    """Learns the pairwise hinge from labels at some places of m documents: the loss, or NaN if weights would overflow.

    `items` are the rows of X in the order shown, `shown` their scores.
    """
    gradient = np.empty(propensities.shape[0])
    weights = inverse_propensities(propensities, learner[0]["share"], learner[0]["floor"])
    loss = estimate_hinge(shown, places, labels, weights, learner[0]["margin"], gradient)
    if not take_step(learner, vectors, X, items, gradient, np.empty(0), 0.0, eta):
        return np.nan
    count_round(learner, m, gamma)
    return float(loss)


@jit
def learn_list(
    learner: TopKRecord, vectors: Floats, X: Matrix, order: Integers, scores: Floats, propensities: Floats,
    items: Integers, labels: Floats, gamma: float, eta: float,
) -> float:  # fmt: skip
    """The same from a list that is still there and its feedback; NaN, too, if the feedback has to be refused."""
    shown = shown_scores(learner, scores, order)
    places, wrong, _ = locate(order, propensities.shape[0], items, labels, learner[0]["max_label"])
    if wrong or first_non_finite(shown) >= 0:
        return np.nan
    m = order.shape[0]
    return learn_top(learner, vectors, X, order, shown, places, labels, propensities, m, gamma, eta)
