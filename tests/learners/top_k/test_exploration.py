"""Chance is even, a function of seed and round, and its propensities are exact."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from ranktron.kernels import random_numbers
from ranktron.learners import feedback
from ranktron.learners.steps import Constant
from ranktron.learners.top_k import exploration as exploration
from ranktron.learners.top_k.kernels import rank_documents, rank_pairs
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import PairwiseHinge, Squared

claim = pytest.mark.claim


def even(counts):
    """Whether counts are those of equally likely cases, as far as chance allows."""
    expected = counts.sum() / len(counts)
    return ((counts - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, len(counts) - 1)


def test_drawn_scores_are_uniform_and_independent():
    drawn = np.array([exploration.uniform_scores(3, number, 20) for number in range(20_000)])
    assert kstest(drawn.ravel(), "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(drawn.T) - np.eye(20)).max() < 6 / np.sqrt(len(drawn))
    after = np.corrcoef(drawn[:-1].T, drawn[1:].T)[:20, 20:]
    assert abs(after).max() < 6 / np.sqrt(len(drawn))
    cells = (drawn[:, 0] * 16).astype(int) * 16 + (drawn[:, 1] * 16).astype(int)
    assert even(np.bincount(cells, minlength=256))


@pytest.mark.parametrize("m", [1, 2, 40, 1000])
def test_drawn_scores_are_ordered_to_the_last_bit(m):
    drawn = exploration.uniform_scores(1, 2, m)
    drawn[m // 2] = drawn[0] + 2.0**-53
    assert (exploration._argsort_drawn(drawn) == np.argsort(-drawn, kind="stable")).all()
    with np.errstate(over="ignore"):
        assert (exploration._argsort_drawn.py_func(drawn) == exploration._argsort_drawn(drawn)).all()


def test_seeds_and_rounds_share_nothing():
    draws = [tuple(exploration.uniform_scores(seed, number, 3)) for seed in range(50) for number in range(200)]
    assert len({value for draw in draws for value in draw}) == 3 * len(draws)


def test_rounds_explore_in_their_share():
    explored = np.array([[exploration.explores(seed, number, 0.2) for number in range(2_000)] for seed in range(20)])
    assert abs(explored.mean() - 0.2) < 5 * np.sqrt(0.16 / explored.size)


def test_the_kernels_equal_their_python_twins():
    with np.errstate(over="ignore"):
        for number in range(20):
            origin = np.uint64(random_numbers.stream_origin(7, number, random_numbers.EXPLORATION))
            mixed = random_numbers._mix.py_func(
                random_numbers._mix.py_func(np.uint64(7) + random_numbers._GOLDEN)
                ^ (np.uint64(number) * random_numbers._FIRST + random_numbers._GOLDEN)
            )
            assert origin == mixed
            assert random_numbers.uniform.py_func(origin, 4) == random_numbers.uniform(origin, 4)
    X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    learner = TopK(3, Squared(), 3, Constant(0.5), Constant(1.0), shortlist=5, exploration_price=0.2)
    learner.w = np.array([1.0, -1.0, 0.5])
    for number in range(20):
        for rank in (rank_documents, rank_pairs):
            given = learner.record, learner.vectors, X, 7, number, 0.5
            fast, slow = rank(*given), rank.py_func(*given)
            assert all(np.array_equal(a, b) for a, b in zip(fast, slow, strict=True))


@claim("TOPK", "18 step 6")
def test_drawn_scores_show_every_order_equally_often():
    learner = TopK(1, Squared(), 1, explore=Constant(0.4), step=Constant(1.0), seed=5)
    learner.w[:] = 1.0
    X = np.array([[2.0], [4.0], [1.0], [3.0]], np.float32)
    orders = list(permutations(range(4)))
    rankings = [learner.rank(X, number) for number in range(40_000)]
    counts = np.zeros(24)
    for ranking in rankings:
        counts[orders.index(tuple(ranking.order))] += 1
        assert (np.diff(learner.played(ranking)[ranking.order]) <= 0.0).all()
    best = orders.index((1, 3, 0, 2))
    assert even(np.delete(counts, best))
    share = counts[best] / len(rankings)
    P = 0.6 + 0.4 / 24
    assert abs(share - P) < 5 * np.sqrt(P * (1 - P) / len(rankings))


def test_a_shortlist_is_shuffled_and_the_rest_stays():
    learner = TopK(1, Squared(), 1, explore=Constant(1.0), step=Constant(1.0), shortlist=3)
    learner.w[:] = -1.0
    X = np.arange(6, dtype=np.float32)[:, None]
    rankings = [learner.rank(X, number) for number in range(6_000)]
    orders = list(permutations(range(3)))
    assert all(ranking.order[3:].tolist() == [3, 4, 5] for ranking in rankings)
    assert even(np.bincount([orders.index(tuple(ranking.order[:3])) for ranking in rankings], minlength=6))
    played = learner.played(rankings[0])
    assert (np.diff(played[rankings[0].order]) <= 0.0).all()
    assert sorted(played) == sorted(rankings[0].scores)


def probability(order, best, gamma):
    """P_t of Algorithm 1, step 6."""
    return (1.0 - gamma) * (order == best) + gamma / factorial(len(best))


@claim("TOPK", "1 Eq.1")
@claim("TOPK", "16 s4.2")
@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("gamma", [0.05, 0.4])
def test_closed_forms_are_the_sums_over_all_rankings(m, gamma):
    best = tuple(np.random.default_rng(m).permutation(m).tolist())
    orders = list(permutations(range(m)))
    P = [probability(order, best, gamma) for order in orders]
    for order in orders:
        first = sum(p for p, pi in zip(P, orders, strict=True) if pi[0] == order[0])
        a, b = order[:2]
        both = sum(p for p, pi in zip(P, orders, strict=True) if {a, b} == set(pi[:2]))
        shown, by_score = np.array(order), np.array(best)
        assert exploration.document_propensities(shown, by_score, gamma, 1, m)[0] == pytest.approx(first, abs=1e-14)
        pairs = exploration.pair_propensities(shown, by_score, gamma, 2, m)
        assert pairs[0, 1] == pytest.approx(both, abs=1e-14)  # p(a, b) + p(b, a)
        assert first == pytest.approx((1 - gamma) * (a == best[0]) + gamma / m)
        ordered = sum(p for p, pi in zip(P, orders, strict=True) if pi[:2] == (a, b))
        assert ordered == pytest.approx((1 - gamma) * ((a, b) == best[:2]) + gamma / (m * (m - 1)))


@pytest.mark.parametrize(("m", "n", "k"), [(4, 4, 2), (5, 5, 3), (5, 4, 3), (6, 3, 2), (4, 4, 4), (1, 1, 1)])
def test_inclusion_probabilities_are_sums_over_all_rankings(m, n, k):
    gamma, best = 0.3, np.random.default_rng(m).permutation(m)
    orders = [np.append(best[list(p)], best[n:]) for p in permutations(range(n))]
    P = [(1.0 - gamma) * (order == best).all() + gamma / len(orders) for order in orders]
    for order in orders:
        alone = exploration.document_propensities(order, best, gamma, k, n)
        pairs = exploration.pair_propensities(order, best, gamma, k, n)
        groups = exploration.group_propensities(order, best, gamma, k, n, 2)
        for i in range(k):
            for j in range(k):
                wanted = sum(p for p, pi in zip(P, orders, strict=True) if {order[i], order[j]} <= set(pi[:k]))
                assert pairs[i, j] == pytest.approx(wanted, abs=1e-13)
                assert groups[i, j] == pytest.approx(wanted, abs=1e-13)
            assert alone[i] == pytest.approx(pairs[i, i], abs=1e-13)


def test_replay_gives_identical_rankings():
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    one, two = (TopK(4, PairwiseHinge(), 2, Constant(0.5), Constant(0.1), seed=9) for _ in range(2))
    for number in [5, 3, 5, 1000, 2**40]:
        first, second = one.rank(X, number), two.rank(X, number)
        assert first.explored == second.explored
        assert (first.order == second.order).all()
        assert (first.propensities == second.propensities).all()
    other = TopK(4, PairwiseHinge(), 2, Constant(0.5), Constant(0.1), seed=10)
    assert any((one.rank(X, number).order != other.rank(X, number).order).any() for number in range(20))


def test_only_the_first_k_labels_are_revealed():
    learner = TopK(2, Squared(), 3, Constant(0.5), Constant(0.1))
    X = np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32)
    ranking = learner.rank(X, 0)
    from ranktron.types import Round

    heard = feedback.top(3)(Round(X, np.arange(8.0), "q"), ranking)
    assert heard.items.tolist() == ranking.order[:3].tolist()
    assert heard.labels.tolist() == ranking.order[:3].tolist()
    assert learner.simulated_feedback(Round(X, np.arange(8.0), "q"), ranking).items.tolist() == heard.items.tolist()
