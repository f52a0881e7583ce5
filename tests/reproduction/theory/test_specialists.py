"""PRank, MMP and uneven margins: their steps against loops by hand, their bounds at every prefix and where tight."""

import numpy as np
import pytest

from ranktron import DataError
from ranktron.learners.predtron import Permutations
from reproduction.harness import specialist_cells
from reproduction.theory.specialists import (
    MMP,
    PRank,
    UnevenPerceptron,
    mmp_bound,
    prank_bound,
    uneven_bound,
)


def stream(seed, T=300, features=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(T, features))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng


def prefixes(losses, bounds):
    assert (np.cumsum(losses) <= np.array(bounds) * (1.0 + 1e-12)).all()


def test_prank_is_the_printed_algorithm_and_keeps_its_bound_at_every_prefix():
    for seed in range(3):
        X, rng = stream(seed)
        w, b = rng.normal(size=6), np.array([-0.5, 0.0, 0.4])
        labels = np.array([sum(x @ w > threshold for threshold in b) for x in X])
        learner, hand, thresholds, losses, bounds, gap = PRank(4, 6), np.zeros(6), np.zeros(3), [], [], np.inf
        for x, y in zip(X, labels, strict=True):
            predicted, tau = sum(hand @ x > threshold for threshold in thresholds), np.zeros(3)
            for r in range(3):
                side = 1.0 if y > r else -1.0
                if side * (hand @ x - thresholds[r]) <= 0.0:
                    tau[r] = side
            hand, thresholds = hand + tau.sum() * x, thresholds - tau
            losses.append(learner.learn(x, y))
            assert losses[-1] >= abs(predicted - y)  # equal but for a score on a threshold
            assert (learner.w == pytest.approx(hand), learner.b == pytest.approx(thresholds)) == (True, True)
            assert (np.diff(learner.b) >= 0.0).all()
            gap = min(gap, np.abs(x @ w - b).min() / np.sqrt(w @ w + b @ b))
            bounds.append(prank_bound(1.0, gap, 4))
        prefixes(losses, bounds)


def test_mmp_shares_a_step_among_the_pairs_in_the_wrong_order_and_keeps_its_bound():
    problem = Permutations()
    for seed in range(3):
        X, rng = stream(seed)
        W = rng.normal(size=(5, 6))
        W /= np.linalg.norm(W)
        learner, hand, losses, bounds, gap = MMP(problem, 5, 6), np.zeros((5, 6)), [], [], np.inf
        for x in X:
            t = np.sort(W @ x)
            label = (W @ x > t[2]).astype(float)
            scores, step = hand @ x, np.zeros((5, 6))
            pairs = [(r, s) for r in range(5) for s in range(5) if label[r] > label[s] and scores[r] <= scores[s]]
            losses.append(learner.learn(x, label))
            for r, s in pairs:
                step[r] += x * losses[-1] / len(pairs)
                step[s] -= x * losses[-1] / len(pairs)
            assert (losses[-1] > 0.0) == bool(pairs)
            hand += step
            assert pytest.approx(hand) == learner.W
            gap = min(gap, t[3] - t[2])
            bounds.append(mmp_bound(1.0, gap))
        prefixes(losses, bounds)


def test_uneven_margins_keep_their_bound_and_are_a_perceptron_without_margins():
    for margins in ((0.0, 0.0), (0.0, 1.0), (0.3, 2.0)):
        X, rng = stream(7)
        w = rng.normal(size=6)
        w /= np.linalg.norm(w)
        learner, hand, counts, bounds, gap = UnevenPerceptron(6, margins), np.zeros(6), [], [], np.inf
        for x in X:
            y = int(x @ w > 0.0)
            score = (2 * y - 1) * (hand @ x)
            hand = hand + (2 * y - 1) * x * (score <= margins[y])
            assert learner.learn(x, y) == float(score <= 0.0)
            counts.append(learner.updates)
            gap = min(gap, abs(x @ w))
            bounds.append(uneven_bound(1.0, gap, margins))
        assert learner.w == pytest.approx(hand)
        assert (np.array(counts) <= np.array(bounds)).all()


def test_the_bounds_are_reached():
    """T orthogonal examples, of which no one says anything about another: a constant too small would be noticed."""
    T, R = 50, 20.0
    X = R * np.eye(T)
    flags = [t % 2 for t in range(T)]
    prank, uneven, mmp = PRank(2, T), UnevenPerceptron(T, (1.0, 1.0)), MMP(Permutations(), 2, T)
    lost = sum(prank.learn(x, y) for x, y in zip(X, flags, strict=True))
    assert lost / prank_bound(R, R / np.sqrt(T), 2) > 0.99
    for x, y in zip(X, flags, strict=True):
        uneven.learn(x, y)
    assert uneven.updates / uneven_bound(R, R / np.sqrt(T), (1.0, 1.0)) > 0.99
    labels = [np.array([y, 1.0 - y]) for y in flags]
    largest = mmp.problem.loss(np.array([1, 0]), np.array([1.0, 0.0]))
    lost = sum(mmp.learn(x, label) for x, label in zip(X, labels, strict=True))
    assert lost / mmp_bound(R, R * np.sqrt(2.0 / T), largest) == pytest.approx(1.0)


@pytest.mark.parametrize("cell", ["measure_ordered_classes", "measure_label_ranking", "measure_unequal_costs"])
def test_both_sides_of_a_comparison_keep_to_their_bounds(cell):
    for player in getattr(specialist_cells, cell)(150, 4, seed=1).values():
        assert 0.0 < player["loss"] <= player["bound"]


def test_streams_are_what_they_are_called():
    rows = specialist_cells.unit_sphere_rows(np.random.default_rng(0), 5, 3)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(5))
    with pytest.raises(DataError, match="at least 2"):
        PRank(1, 3)
    with pytest.raises(DataError, match="0 or more"):
        UnevenPerceptron(3, (-1.0, 0.0))
