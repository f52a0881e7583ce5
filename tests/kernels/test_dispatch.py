"""One kernel for both kinds of features: in Python and compiled, the verbs give what the matrix gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron.kernels.csr import ONES
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import (
    add_one_row,
    as_arrays,
    as_features,
    dot_rows,
    is_matrix,
    linear_direction,
    slice_rows,
    take_rows,
    with_layout,
)
from ranktron.kernels.jit import jit


@jit
def compiled(X, start, stop, items, w, direction):
    """Every verb once."""
    some = slice_rows(X, start, stop)
    chosen = take_rows(some, items)
    scores = dot_rows(chosen, w)
    for i in range(items.shape[0]):
        add_one_row(chosen, i, scores[i], direction)
    return chosen, scores, is_matrix(X)


def plain(X, start, stop, items, w):
    """The same with matrices and nothing else."""
    chosen = X[start:stop][items]
    scores = chosen.astype(float) @ w
    return chosen, scores, scores @ chosen.astype(float)


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 9),
    d=st.sampled_from([1, 4, 70]),
    density=st.sampled_from([0.0, 0.1, 1.0]),
    ones=st.booleans(),
)
def test_the_verbs_are_those_of_a_matrix(seed, m, d, density, ones):
    rng = np.random.default_rng(seed)
    X = (rng.random((m, d)) < density) * (np.ones((m, d)) if ones else rng.normal(size=(m, d)))
    X = X.astype(np.float32)
    rows = Sparse.from_matrix(X)
    rows = Sparse(rows.starts, rows.columns, ONES, d) if ones else rows
    start = int(rng.integers(m + 1))
    stop = int(rng.integers(start, m + 1))  # perhaps an empty list
    items, w = rng.integers(stop - start, size=3 if stop > start else 0), rng.normal(size=d)
    chosen, scores, direction = plain(X, start, stop, items, w)
    for features in (X, rows):
        for call in (compiled, compiled.py_func):
            found = np.zeros(d)
            own, own_scores, matrix = call(as_arrays(features), start, stop, items, w, found)
            assert matrix == (features is X)
            assert (with_layout(as_features(own, d), False) == chosen).all()
            assert own_scores == pytest.approx(scores, rel=1e-12, abs=1e-12)
            assert found == pytest.approx(direction, rel=1e-12, abs=1e-12)


def test_rows_add_up_to_the_bit():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(40, 25)) * (rng.random((40, 25)) < 0.3)).astype(np.float32)
    sums = np.zeros((2, 25))
    for features, direction in zip((X, Sparse.from_matrix(X)), sums, strict=True):
        for i, g in enumerate(np.random.default_rng(1).normal(size=40)):
            add_one_row(as_arrays(features), i, g, direction)
    assert sums[0].any()
    assert (sums[0] == sums[1]).all()


def test_features_may_be_held_either_way():
    X = np.array([[0.0, 2.0], [1.0, 0.0]], np.float32)
    rows = with_layout(X, True)
    assert isinstance(rows, Sparse)
    assert (with_layout(rows, False) == X).all()
    assert with_layout(X, None) is with_layout(X, False) is X
    assert with_layout(rows, None) is with_layout(rows, True) is rows
    for features in (X, rows, rows[1:], X[1:]):
        gradient = np.array([3.0, 0.5])[-len(features) :]
        assert linear_direction(features, gradient).tolist() == (gradient @ X[-len(features) :]).tolist()


def test_the_machine_code_of_both_kinds_is_kept():
    """A tuple of arrays in place of a matrix must not keep numba from finding its code on disk again."""
    from ranktron.learners.batch.rank_mm_problem import carry

    X = np.ones((1, 1), np.float32)
    for features in (X, Sparse.from_matrix(X)):
        carry(as_arrays(features), np.ones(1), np.ones(1), 1.0, np.zeros(1))
    assert len(carry.signatures) >= 2
    assert carry._cache._impl is not None
    assert sum(carry.stats.cache_hits.values()) + sum(carry.stats.cache_misses.values()) == len(carry.signatures)
