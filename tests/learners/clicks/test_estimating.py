import numpy as np
import pytest

from ranktron import DataError, Impressions, RankingWarning, Rounds
from ranktron.learners.clicks.estimating import as_examination, estimate_examination, weigh_log
from ranktron.learners.clicks.examination import power_law


def test_the_method_that_assumes_least_is_chosen(counted, simulated):
    shuffled, _ = simulated(0, 200, shuffled=True)
    ranked, _ = simulated(0, 200, shuffled=False)
    assert estimate_examination(shuffled).method == "randomised"
    assert estimate_examination(ranked).method == "harvested"
    assert estimate_examination(ranked, method="em").method == "em"
    still = counted([("q", "a", 1, 5, 3), ("q", "b", 2, 5, 3)])
    with pytest.warns(RankingWarning, match="rests on a model of relevance alone"):
        assert estimate_examination(still, np.random.default_rng(0).normal(size=(10, 2))).method == "em"
    with pytest.raises(DataError, match="nothing to harvest"):
        estimate_examination(still)
    with pytest.raises(DataError, match="there is no estimator 'guess'"):
        estimate_examination(still, method="guess")


def test_an_examination_is_given_in_any_form():
    log = Impressions.from_arrays([1, 0], [0, 0], [1, 2])
    curve = power_law(1.0)
    assert as_examination(curve, log, None) is curve
    assert as_examination((1.0, 0.5), log, None).values.tolist() == [1.0, 0.5]


def test_own_propensities_come_first_and_not_twice():
    rounds = Rounds.from_arrays([[1.0], [2.0]], [1, 1])
    log = Impressions.from_arrays([1, 1], [0, 0], [1, 2], propensity=[0.5, 0.1])
    found = weigh_log(log, rounds, clip=0.2)
    assert found.weights.tolist() == [2.0, 5.0]
    assert found.examination.values.tolist() == [0.5, 0.1]
    assert found.click_weights.clipped == 1
    with pytest.raises(DataError, match="give one of them"):
        weigh_log(log, rounds, [1.0, 0.5])
