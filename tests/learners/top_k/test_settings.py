"""The presets of RTop-kF: what a parameter left to them becomes."""

import pytest

from ranktron import DataError, TopKRanker
from ranktron.learners import top_k_ranker
from ranktron.learners.top_k.settings import PAPER, RECOMMENDED
from ranktron.training.algorithms import ALGORITHMS


def test_pairs_have_a_floor_by_default_and_other_losses_none():
    for surrogate in RECOMMENDED:
        learner = TopKRanker(surrogate=surrogate).make_learner(3)
        assert learner.floor == RECOMMENDED[surrogate].floor == (0.1 if surrogate == "ranksvm" else 0.0)
        assert TopKRanker(surrogate=surrogate, floor=0.25).make_learner(3).floor == 0.25
        assert top_k_ranker(3, surrogate, setting="paper", floor=-1.0).floor == PAPER[surrogate].floor == 0.0
    assert TopKRanker(exploration_price=0.5).make_learner(3).floor == 0.0  # which cannot have both
    assert ALGORITHMS["topk"].preset("paper")["floor"] == 0.0
    assert top_k_ranker(3).floor == 0.0  # as functions compose it, and as stored rankers have it


def test_exploration_falls_slowly_by_default():
    ours, stored = TopKRanker().make_learner(3), top_k_ranker(3)
    assert ours.explore(63) == pytest.approx(64 ** (-1 / 6)) == 0.5
    assert stored.explore(63) == pytest.approx(64 ** (-1 / 3)) == 0.25
    assert TopKRanker(explore=0.4).make_learner(3).explore(63) == pytest.approx(0.1)
    assert top_k_ranker(3, setting="paper", explore=-1.0).explore(63) == pytest.approx(0.1 / 4)
    assert ALGORITHMS["topk"].preset("paper")["explore"] == 0.0
    with pytest.raises(DataError, match="explore"):
        top_k_ranker(3, explore=-0.5)


def test_no_other_floor_is_below_0():
    with pytest.raises(DataError, match="floor"):
        top_k_ranker(3, floor=-0.5)
