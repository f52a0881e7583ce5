import itertools

import numpy as np
import pytest

from ranktron import Sparse
from ranktron.data.moments import _add_rows, _add_squares, moments, sum_features, sum_squares

RNG = np.random.default_rng(0)
X = np.hstack([RNG.normal(5.0, 3.0, (200, 3)), np.full((200, 1), 0.1), RNG.integers(0, 2, (200, 2))]).astype(np.float32)
CUTS = [0, 3, 50, 51, 200]


def as_sparse(rows):
    from scipy.sparse import csr_matrix

    return Sparse.from_matrix(csr_matrix(rows))


@pytest.mark.parametrize("of", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_the_moments_are_those_of_numpy(of):
    mean, deviation, low, high = moments(of(X))
    wide = X.astype(float)
    assert mean == pytest.approx(wide.mean(axis=0))
    assert deviation == pytest.approx(wide.std(axis=0), rel=1e-6, abs=1e-6)
    assert np.array_equal(low, X.min(axis=0))
    assert np.array_equal(high, X.max(axis=0))


@pytest.mark.parametrize("of", [np.asarray, as_sparse], ids=["dense", "sparse"])
def test_parts_one_after_the_other_give_the_bits_of_all_rows(of):
    parts = [of(X[a:b]) for a, b in itertools.pairwise(CUTS)]
    sums = squares = None
    for part in parts:
        sums = sum_features(part, sums)
    for part in parts:
        squares = sum_squares(part, sums.mean, squares)
    if of is np.asarray:
        sums = sums._replace(squares=squares)
    for one, two in zip(sums.moments(of is as_sparse), moments(of(X)), strict=True):
        assert np.array_equal(one, two)


def test_parts_that_are_summed_apart_and_added_differ_by_rounding_alone():
    parts = [X[a:b] for a, b in itertools.pairwise(CUTS)]
    first, *others = [sum_features(part) for part in parts]
    for other in others:
        first = first + other
    first = first._replace(squares=sum(sum_squares(part, first.mean) for part in parts))
    for one, two in zip(first.moments(), moments(X), strict=True):
        assert one == pytest.approx(two, rel=1e-12, abs=1e-9)


def test_kernels_do_what_their_python_says():
    fast, slow = [tuple(np.full(6, start) for start in (0.0, np.inf, -np.inf)) for _ in range(2)]
    _add_rows(X, *fast)
    _add_rows.py_func(X, *slow)
    assert all(one == pytest.approx(two, rel=1e-5) for one, two in zip(fast, slow, strict=True))
    one, two = np.zeros(6), np.zeros(6)
    _add_squares(X, X.mean(axis=0).astype(float), one)
    _add_squares.py_func(X, X.mean(axis=0).astype(float), two)
    assert one == pytest.approx(two, rel=1e-5)
