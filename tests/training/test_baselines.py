"""Chance and the best single feature, against what they are by definition."""

import numpy as np
import pytest

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import Sparse
from ranktron.metrics import evaluate, metric
from ranktron.training.baselines import DRAWS, FREQUENT, best_feature, random_means

NDCG, INVERSIONS = metric("ndcg@10"), metric("inversions")
LABELS = np.array([0.0, 1.0, 2.0, 0.0, 2.0, 1.0])
NOISE = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0])


def lists(*columns):
    return Rounds.from_arrays(np.array(columns, np.float32).T, LABELS, group=[3, 3])


@pytest.mark.parametrize("by", [NDCG, INVERSIONS])
def test_the_best_feature_is_the_best_of_all_turned_either_way(by):
    seen = []
    found = best_feature(lists(NOISE, -LABELS, np.full(6, 5.0), NOISE + LABELS), [by], seen.append)
    assert (found.column, found.sign) == (1, -1.0)
    assert found.means == {str(by): 1.0 if by is NDCG else 0.0}
    assert seen == [0, 1, 2, 3]  # every column is told, a constant one too


def test_of_equal_features_the_first_is_taken_and_of_constant_ones_none():
    assert best_feature(lists(LABELS, LABELS), [NDCG])[:2] == (0, 1.0)
    found = best_feature(lists(np.zeros(6), np.ones(6)), [NDCG])
    assert found == (0, 1.0, evaluate(lists(np.zeros(6)), np.zeros(6), [NDCG]).means)


def test_of_sparse_features_the_most_frequent_are_tried():
    X = np.zeros((6, FREQUENT + 2), np.float32)
    X[:, 1:-1] = NOISE[:, None]  # three entries each
    X[:, -1] = LABELS + 1.0  # six
    X[2, 0] = X[4, 0] = 9.0  # two: the 102nd by frequency
    rounds, seen = Rounds.from_arrays(Sparse.from_matrix(X), LABELS, group=[3, 3]), []
    assert best_feature(rounds, [NDCG], seen.append)[:2] == (FREQUENT + 1, 1.0)
    assert seen == [FREQUENT + 1, *range(1, FREQUENT)]


def test_chance_is_the_mean_of_some_random_orders():
    rounds, rng = lists(NOISE), np.random.default_rng(7)
    drawn = [evaluate(rounds, rng.random(6), [NDCG, INVERSIONS]).means for _ in range(DRAWS)]
    found = random_means(rounds, [NDCG, INVERSIONS], seed=7)
    assert found == {name: pytest.approx(np.mean([means[name] for means in drawn])) for name in drawn[0]}
