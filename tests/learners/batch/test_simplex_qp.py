"""The best weights of corners, against the conditions of optimality."""

import numpy as np
import pytest

from ranktron.learners.batch.simplex_qp import NEGLIGIBLE, best_weights


@pytest.mark.parametrize(("size", "tolerance"), [(1e-3, 1e-6), (1.0, 1e-6), (1e4, 1e-3)])
@pytest.mark.parametrize("seed", range(8))
def test_the_weights_are_optimal(size, tolerance, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(1, 12))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    A, b = size * rng.normal(size=(sizes.sum(), 5)), rng.random(sizes.sum())
    start = 1.0 / np.repeat(sizes, sizes)
    weights = best_weights(A, b, groups, start)
    assert np.add.reduceat(weights, np.cumsum(sizes) - sizes) == pytest.approx(np.ones(len(sizes)))
    assert weights.min() >= 0.0
    assert (weights[weights > 0] >= NEGLIGIBLE / 2).all()
    w = A.T @ weights
    value = b @ weights - 0.5 * w @ w
    promise = b - A @ w  # no vertex of the simplices promises more than the weights have, so that they are optimal
    best = np.maximum.reduceat(promise, np.cumsum(sizes) - sizes).sum()
    assert best - promise @ weights <= tolerance * abs(value)
    assert value >= b @ start - 0.5 * np.sum((A.T @ start) ** 2)


def test_corners_without_length_stay_as_they_are():
    start = np.array([0.5, 0.5])
    assert best_weights(np.zeros((2, 3)), np.zeros(2), np.array([0, 0]), start) is start
