"""The presets of RTop-kF: what a parameter left to them becomes."""

import pytest

from ranktron import DataError, TopKRanker
from ranktron.learners import top_k_ranker
from ranktron.learners.algorithms.topk import PAPER, RECOMMENDED
from ranktron.surrogates import KL, Squared


def test_pairs_and_squared_residuals_have_a_floor_by_default_and_other_losses_none():
    for surrogate in RECOMMENDED:
        learner = TopKRanker(surrogate=surrogate).make_learner(3)
        assert learner.floor == (0.1 if surrogate in ("ranksvm", "squared") else 0.0)
        assert TopKRanker(surrogate=surrogate, floor=0.25).make_learner(3).floor == 0.25
        assert top_k_ranker(3, surrogate).floor == PAPER[surrogate].floor == 0.0
    assert TopKRanker(surrogate="squared", residual=False).make_learner(3).floor == 0.0  # everything would be lost
    assert TopKRanker(exploration_price=0.5).make_learner(3).floor == 0.0  # which cannot have both
    assert top_k_ranker(3, preset="recommended", exploration_price=0.5).floor == 0.0


def test_residuals_are_weighted_by_default_and_labels_where_that_is_chosen():
    assert TopKRanker(surrogate="squared").make_learner(3).surrogate == Squared(residual=True)
    assert TopKRanker(surrogate="kl").make_learner(3).surrogate == KL(printed=True)
    for surrogate, plain in (("squared", Squared()), ("kl", KL())):
        ours = top_k_ranker(3, surrogate, preset="recommended")
        chosen = TopKRanker(surrogate=surrogate, residual=False).make_learner(3)
        assert ours.surrogate == chosen.surrogate == plain
        assert ours.step(1) == chosen.step(1) == 0.03
        assert TopKRanker(surrogate=surrogate).make_learner(3).step(1) == 0.1


def test_the_papers_preset_weighs_what_is_printed():
    for residual in (False, True):
        assert top_k_ranker(3, "squared", 1, "paper", residual=residual).surrogate == Squared()
        assert top_k_ranker(3, "kl", 1, "paper", residual=residual).surrogate == KL(printed=True)


def test_exploration_falls_slowly_by_default():
    ours, given = TopKRanker().make_learner(3), top_k_ranker(3, preset="recommended", explore=1.0)
    assert ours.explore(63) == pytest.approx(64 ** (-1 / 6)) == 0.5
    assert given.explore(63) == pytest.approx(64 ** (-1 / 3)) == 0.25
    assert TopKRanker(explore=0.4).make_learner(3).explore(63) == pytest.approx(0.1)
    assert top_k_ranker(3).explore(63) == pytest.approx(0.1 / 4)
    with pytest.raises(DataError, match="explore"):
        top_k_ranker(3, explore=-0.5)


def test_no_other_floor_is_below_0():
    with pytest.raises(DataError, match="floor"):
        top_k_ranker(3, floor=-0.5)
