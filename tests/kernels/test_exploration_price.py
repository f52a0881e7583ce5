"""Exploration with a price: no list falls further than allowed, and what is learnt stays exact."""

from itertools import permutations
from math import factorial

import numpy as np
import pytest

from ranktron.errors import DataError
from ranktron.kernels.exploration_price import affordable_shortlist
from ranktron.learners.clicks.pdgd import PDGD
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.exploration import document_propensities, pair_propensities
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared
from ranktron.types import Feedback, Ranking

SURROGATES = [Squared(), PairwiseHinge(), KL(), SmoothDCG(0.5)]


def reward(scores, order):
    """DCG at 10 of gains that are scores above the lowest one."""
    gains = (scores - scores.min())[np.asarray(order)][:10]
    return float(sum(gain / np.log2(2 + place) for place, gain in enumerate(gains)))


def cost(scores, order):
    best = reward(scores, np.argsort(-scores, kind="stable"))
    return 1.0 - reward(scores, order) / best if best else 0.0


def topk(price, surrogate=None, k=2, gamma=0.5, seed=0):
    loss = surrogate or PairwiseHinge()
    return TopK(1, loss, k, explore=Constant(gamma), step=Constant(0.1), exploration_price=price, seed=seed)


def pdgd(price, k=10, seed=0):
    return PDGD(1, k, step=Constant(0.5), exploration_price=price, seed=seed)


@pytest.mark.parametrize("price", [0.0, 0.02, 0.1, 0.3, 0.7])
def test_the_shortlist_is_the_longest_of_which_every_order_is_affordable(price):
    rng = np.random.default_rng(0)
    for m in range(1, 7):
        for _ in range(5):
            scores = rng.normal(size=m).round(1)
            best = np.argsort(-scores, kind="stable")
            allowed = [
                n
                for n in range(1, m + 1)
                if all(cost(scores, [*p, *best[n:]]) <= price + 1e-12 for p in permutations(best[:n]))
            ]
            assert affordable_shortlist(scores, best, price, m) == max(allowed)
            assert affordable_shortlist(scores, best, price, 1) == 1


@pytest.mark.parametrize("make", [topk, pdgd])
@pytest.mark.parametrize("price", [0.01, 0.05, 0.2])
def test_no_list_falls_further_than_the_price(make, price):
    rng = np.random.default_rng(1)
    costs = []
    for number in range(600):
        learner = make(price, seed=3)
        learner.w[:] = rng.choice([0.0, 0.3, 3.0])
        X = rng.normal(size=(int(rng.integers(1, 40)), 1)).astype(np.float32)
        ranking = learner.rank(X, number)
        assert sorted(ranking.order) == list(range(len(X)))
        costs.append(cost(ranking.scores, ranking.order))
    assert 0.0 < max(costs) <= price + 1e-12
    free = [cost(r.scores, r.order) for r in (make(1.0).rank(np.eye(12, 1), n) for n in range(20))]
    assert max(free) == 0.0  # weights of 0: every order is as good


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize(("price", "n"), [(0.2, 4), (0.0, 2)])
def test_the_loss_on_the_shortlist_is_estimated_without_bias(surrogate, price, n):
    """The sum over all orders of the shortlist, of probability times estimate. A price of 0 never explores."""
    scores, labels = np.array([2.0, 1.8, 1.7, 1.5, 0.2, 0.0]), np.array([2.0, 0.0, 1.0, 1.0, 0.0, 2.0])
    gamma, k = 0.3, 2
    learner, best = topk(price, surrogate, k, gamma), np.arange(6)
    assert max(affordable_shortlist(scores, best, price, 6), k) == n
    share = gamma if n > k else 0.0
    propensities = pair_propensities if surrogate.coordinates == 2 else document_propensities
    total = np.zeros(6)
    for p in permutations(range(n)):
        order = np.append(best[list(p)], best[n:])
        P = (1.0 - share) * (order == best).all() + share / factorial(n)
        ranking = Ranking(order, scores, 0, True, propensities(order, best, share, k, n))
        part = learner.estimate(np.zeros((6, 1), np.float32), ranking, Feedback(order[:k], labels[order[:k]]))[1]
        total[order[: len(part)]] += P * part
    wanted = np.zeros(6)
    wanted[:n] = surrogate(scores[:n], labels[:n])[1]
    assert total == pytest.approx(wanted, abs=1e-10)
    learner.w[:] = 1.0
    own = learner.rank(scores[:, None].astype(np.float32), 0)
    assert own.propensities == pytest.approx(propensities(own.order, best, share, k, n))


def test_pdgd_learns_what_it_would_learn_from_the_shortlist_alone():
    rng = np.random.default_rng(2)
    shortened = 0
    for number in range(200):
        X = rng.normal(size=(12, 1)).astype(np.float32)
        w, clicks = float(rng.normal()), (rng.random(5) < 0.4).astype(float)
        limited, alone, late = pdgd(0.1, k=5), pdgd(1.0, k=5), pdgd(0.1, k=5)
        for learner in (limited, alone, late):
            learner.w[:] = w
        ranking = limited.rank(X, number)
        best = np.argsort(-ranking.scores, kind="stable")
        n = affordable_shortlist(ranking.scores, best, 0.1, 12)
        assert set(ranking.order[:n]) == set(best[:n])
        assert ranking.order[n:].tolist() == best[n:].tolist()
        shortened += n < 5
        items = ranking.order[:5]
        loss = limited.learn(X, ranking, Feedback(items, clicks))
        inside = np.sort(ranking.order[:n])
        part = Ranking(np.searchsorted(inside, ranking.order[:n]), ranking.scores[inside], number, True)
        seen = min(n, 5)
        assert loss == alone.learn(X[inside], part, Feedback(part.order[:seen], clicks[:seen]))
        assert limited.w == alone.w
        pending = late.pending(X, ranking, 5)
        assert late.learn_pending(pending, Feedback(np.arange(5), clicks)) == loss
        assert late.w == limited.w
    assert shortened > 20


def test_prices_that_cannot_be_are_refused():
    for make in (topk, pdgd):
        for price in (-0.1, 1.1, np.nan):
            with pytest.raises(DataError, match="price of exploration must be at least 0 and at most 1"):
                make(price)
    with pytest.raises(DataError, match="price and a floor"):
        TopK(1, Squared(), 1, explore=Constant(0.5), step=Constant(0.1), exploration_price=0.5, floor=0.1)
