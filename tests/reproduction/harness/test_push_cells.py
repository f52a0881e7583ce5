"""The p-norm push against sums over all pairs, and plain regression against the normal equations."""

import numpy as np
import pytest

from ranktron.data.synthetic import WebSearch
from reproduction.harness.push_cells import PushObjective, minimise_push, regression_weights

LISTS = WebSearch(features=5, documents=8).rounds(6)


def by_pairs(rounds, C, p, w):
    total = 0.5 * w @ w
    for round in rounds:
        s, y = round.X.astype(float) @ w, round.labels
        lower = [k for k in range(len(y)) if (y > y[k]).any()]
        for k in lower:
            mean = np.mean([np.exp(s[k] - s[j]) for j in range(len(y)) if y[j] > y[k]])
            total += C / len(rounds) / len(lower) * mean**p
    return total


@pytest.mark.parametrize("p", [1.0, 2.0, 8.0])
def test_value_and_gradient_are_those_of_all_pairs(p):
    w = np.random.default_rng(3).normal(size=5) / 2.0
    value, gradient = PushObjective(LISTS, 3.0, p)(w)
    assert value == pytest.approx(by_pairs(LISTS, 3.0, p, w))
    steps = [by_pairs(LISTS, 3.0, p, w + 1e-6 * e) - by_pairs(LISTS, 3.0, p, w - 1e-6 * e) for e in np.eye(5)]
    assert gradient == pytest.approx(np.array(steps) / 2e-6, rel=1e-4, abs=1e-5)


def test_the_solution_has_no_gradient_and_nothing_near_it_is_better():
    w = minimise_push(LISTS, 3.0, 4.0, np.zeros(5))
    value, gradient = PushObjective(LISTS, 3.0, 4.0)(w)
    assert np.abs(gradient).max() < 1e-3
    rng = np.random.default_rng(0)
    assert all(PushObjective(LISTS, 3.0, 4.0)(w + 0.1 * rng.normal(size=5))[0] > value for _ in range(20))


def test_too_far_is_infinite_and_not_an_error():
    assert PushObjective(LISTS, 1.0, 16.0)(np.full(5, 1e4))[0] == np.inf


def test_regression_solves_the_normal_equations():
    X = np.column_stack([LISTS.X.astype(float), np.ones(len(LISTS.labels))])
    w = np.linalg.solve(X.T @ X, X.T @ LISTS.labels)
    assert regression_weights(LISTS) == pytest.approx(w[:-1], rel=1e-6)
