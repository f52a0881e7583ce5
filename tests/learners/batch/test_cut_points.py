import numpy as np
import pytest

from ranktron.learners.batch.cut_points import bin_by_cuts, find_column_bins, merge_bins
from ranktron.learners.batch.histograms import BINS


def parts_of(X, borders):
    return [X[a:b] for a, b in zip([0, *borders], [*borders, len(X)], strict=True)]


def test_few_values_are_cut_between_each_two():
    X = np.random.default_rng(0).integers(-3, 60, (900, 20)).astype(np.float32)
    cuts = merge_bins([find_column_bins(part) for part in parts_of(X, [1, 300])])
    for f in range(20):
        values = np.unique(X[:, f])[::-1].astype(float)
        assert cuts[f, : len(values) - 1].tolist() == (0.5 * (values[1:] + values[:-1])).tolist()
        assert np.isneginf(cuts[f, len(values) - 1 :]).all()


@pytest.mark.parametrize("borders", [[], [2000], [10, 5000, 5001]])
def test_many_values_are_cut_into_bins_of_about_as_many_documents(borders):
    rng = np.random.default_rng(1)
    X = np.stack([rng.normal(size=9000), rng.exponential(size=9000) ** 3], axis=1).astype(np.float32)
    X = np.ascontiguousarray(X[np.argsort(X[:, 0])])  # parts with other values than their neighbours
    cuts = merge_bins([find_column_bins(part) for part in parts_of(X, borders)])
    codes = np.empty((2, len(X)), np.uint8)
    bin_by_cuts(X, cuts, codes)
    for f in range(2):
        used = np.isfinite(cuts[f]).sum()
        assert 150 < used < BINS
        assert (np.diff(cuts[f, :used]) < 0).all()
        counts = np.bincount(codes[f], minlength=used + 1)
        assert counts.min() > 0
        assert counts.max() < 4 * len(X) / BINS
        assert np.array_equal(codes[f], (cuts[f] >= X[:, [f]]).sum(axis=1))
    slow = np.empty((2, 50), np.uint8)
    bin_by_cuts.py_func(X[:50], cuts, slow)
    assert np.array_equal(slow, codes[:, :50])


def test_a_constant_column_has_no_cut_point():
    assert np.isneginf(merge_bins([find_column_bins(np.ones((5, 1), np.float32))] * 2)).all()
