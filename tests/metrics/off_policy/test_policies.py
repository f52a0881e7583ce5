from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from ranktron import DataError
from ranktron.learners.clicks.pdgd import PDGD
from ranktron.learners.steps import Constant
from ranktron.metrics.off_policy import RankingPolicy


@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
@pytest.mark.parametrize("price", [0.1, 0.3, 1.0])
def test_places_by_quadrature_are_the_sums_over_all_rankings(spread, temperature, price):
    scores = spread * np.array([0.3, -1.0, 0.8, 0.1, -0.4])
    policy = RankingPolicy(scores, temperature, price)
    wanted = np.zeros((5, 5))
    for ranking in permutations(range(5)):
        p = policy.draws(ranking).prod()
        wanted[list(ranking), np.arange(5)] += p
    found = policy.at_places(np.arange(5), 5)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(policy.at_places([3, 1], 2), wanted[[3, 1], :2], atol=1e-12)


def test_a_document_is_somewhere_and_a_place_is_filled_even_when_scores_are_far_apart():
    scores = np.random.default_rng(0).normal(scale=15.0, size=30)
    found = RankingPolicy(scores).at_places(np.arange(30), 30)
    np.testing.assert_allclose(found.sum(axis=0), 1.0, atol=1e-10)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-10)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_draws_are_those_of_the_formula(temperature):
    scores = np.array([1.0, 0.5, 0.5, -1.0])
    policy = RankingPolicy(scores, temperature)
    table = policy.next_draws([1, 3, 0])
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    if temperature:
        weights = np.exp(scores / temperature)
        assert policy.draws([1, 3, 0])[2] == pytest.approx(weights[0] / (weights[0] + weights[2]))
    else:
        assert policy.draws([0, 1, 2]).tolist() == [1.0, 1.0, 1.0]  # ties go to the first
        assert policy.draws([0, 2, 1]).tolist() == [1.0, 0.0, 1.0]
        assert policy.at_places([0, 2], 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("price", [0.05, 0.2, 1.0])
def test_the_policy_of_a_ranker_is_how_often_it_shows_what(price):
    learner = PDGD(1, 3, step=Constant(0.1), seed=4, exploration_price=price)
    learner.w[:] = 1.0
    X, n = np.array([[0.4], [0.5], [-1.0], [0.45], [0.0]], np.float32), 6_000
    shown = Counter(tuple(learner.rank(X, number).order.tolist()) for number in range(n))
    policy = RankingPolicy(X[:, 0].astype(float), exploration_price=price)
    for order in permutations(range(5)):
        p = policy.draws(order).prod()
        assert abs(shown[order] / n - p) <= 5 * np.sqrt(p * (1 - p) / n)
    assert (len(shown) < 120) == (price < 1.0)


def test_large_scores_do_not_overflow():
    assert RankingPolicy([1e6, 0.0]).draws([0, 1]).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(RankingPolicy([800.0, 799.0]).at_places([0], 1), [[1 / (1 + np.exp(-1))]])


def test_bad_input_is_one_sentence():
    for wrong in ([], [np.nan], [np.inf, 0.0]):
        with pytest.raises(DataError, match="scores of a policy are finite"):
            RankingPolicy(wrong)
    with pytest.raises(DataError, match="temperature is at least 0"):
        RankingPolicy([0.0], -1.0)
    with pytest.raises(DataError, match="price of exploration"):
        RankingPolicy([0.0], exploration_price=2.0)
