import numpy as np
import pytest

from ranktron.learners.batch.histograms import BINS, bin_columns, sort_column, sum_bins


def binned(X, kernel=bin_columns):
    n, width = X.shape
    orders, codes = np.empty((width, n), np.int32), np.empty((width, n), np.uint8)
    ends = np.empty((width, BINS), np.int32)
    kernel(X, orders, codes, ends, 0, width)
    return orders, codes, ends


@pytest.mark.parametrize("values", [3, 256, 257, 4000])
def test_bins_divide_a_column_where_its_values_change(values):
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, (3000, 2)).astype(np.float32)
    X[:values, 1] = np.arange(min(values, 3000))
    orders, codes, ends = binned(X)
    for f in range(2):
        column, distinct = X[:, f], len(np.unique(X[:, f]))
        bins = int(codes[f].max()) + 1
        assert bins == distinct if distinct <= BINS else 150 < bins <= BINS
        for b in range(bins):
            inside = codes[f] == b
            assert ends[f, b] == (codes[f] <= b).sum()
            if b + 1 < bins:
                assert column[inside].min() > column[codes[f] == b + 1].max()
        assert (np.diff(column[orders[f]]) <= 0).all()
    assert all(np.array_equal(a, b) for a, b in zip(binned(X[:500]), binned(X[:500], bin_columns.py_func), strict=True))


def test_sums_of_bins_are_those_of_their_documents():
    rng = np.random.default_rng(0)
    codes, weights = rng.integers(0, BINS, (3, 1000)).astype(np.uint8), rng.normal(size=1000)
    for kernel in (sum_bins, sum_bins.py_func):
        sums = np.full((3, BINS), np.nan)
        kernel(codes, weights, sums, 1, 3)
        assert np.isnan(sums[0]).all()
        for f in (1, 2):
            assert np.array_equal(sums[f], np.bincount(codes[f], weights, BINS))  # which adds in the same order


def test_the_interpreted_sort_is_the_compiled_one():
    column = np.random.default_rng(0).normal(size=500).astype(np.float32)
    for kernel in (sort_column, sort_column.py_func):
        order = np.empty(500, np.int32)
        kernel(column, order, order.copy(), *np.empty((2, 500), np.uint32))
        assert np.array_equal(order, np.argsort(-column, kind="stable"))
