import itertools

import numpy as np
import pytest

from ranktron import DataError, Impressions, Rounds
from ranktron.learners.clicks.examination import Examination, power_law
from ranktron.learners.clicks.weighting import click_lists, click_weights, propensities

THETA = power_law(1.0, 3)


def weighted_loss(clicks, position, scores, examination):
    """Σ over lists of weight × hinge of the clicked document against each other one."""
    rounds = Rounds.from_arrays(scores[:, None], clicks)
    log = Impressions.from_arrays(clicks, np.zeros(len(clicks)), position)
    weights = click_weights(log, propensities(log, examination)).weights
    lists, own = click_lists(rounds, weights)
    total = 0.0
    for round, weight in zip(lists, own, strict=True):
        chosen = round.X[round.labels > 0, 0]
        total += weight * np.maximum(0.0, 1.0 - chosen + round.X[round.labels == 0, 0]).sum()
    return total


def test_the_weighted_loss_is_unbiased_over_all_clicks_that_users_may_make():
    relevance, scores, position = np.array([0.9, 0.2, 0.5]), np.array([0.3, 1.0, -0.5]), np.array([2, 1, 3])
    chance = THETA.at(position) * relevance
    expected = 0.0
    for clicks in itertools.product([0.0, 1.0], repeat=3):
        if any(clicks):
            likely = np.prod(np.where(np.array(clicks) > 0, chance, 1.0 - chance))
            expected += likely * weighted_loss(np.array(clicks), position, scores, THETA)
    full = sum(relevance[i] * sum(max(0.0, 1.0 - scores[i] + scores[j]) for j in range(3) if j != i) for i in range(3))
    assert expected == pytest.approx(full)


def test_of_several_rankers_the_mean_examination_counts_and_is_unbiased():
    """Two rankers in turn, one of which does not show the document at all: 0 of three impressions, then 1 and 1/2."""
    rows = {"qid": [0, 1, 2], "position": [1, 1, 2], "item": ["a", "b", "a"], "query": ["q"] * 3}
    log = Impressions.from_arrays([1, 1, 1], **rows)
    assert propensities(log, THETA).tolist() == pytest.approx([0.5, 1 / 3, 0.5])
    weights = click_weights(log, propensities(log, THETA)).weights
    of_a = log.item == "a"
    assert (THETA.at(log.position) * weights)[of_a].sum() / len(log) == pytest.approx(1.0)
    alone = Impressions.from_arrays([1, 1, 1], rows["qid"], rows["position"])
    assert propensities(alone, THETA).tolist() == [1.0, 1.0, 0.5]


def test_clipping_takes_what_it_says():
    log = Impressions.from_arrays([1, 2, 0, 1], [0, 0, 0, 0], [1, 2, 3, 4])
    found = click_weights(log, np.array([1.0, 0.5, 0.1, 0.1]), clip=0.2)
    assert found.weights.tolist() == [1.0, 4.0, 0.0, 5.0]
    assert found.clipped == 1
    assert found.lost == pytest.approx(5.0 / 15.0)
    assert click_weights(log, np.full(4, 0.5)).lost == 0.0


def test_every_click_is_a_list_of_its_own():
    rounds = Rounds.from_arrays(np.arange(6.0)[:, None], [1, 0, 1, 0, 0, 1], group=[3, 2, 1])
    lists, weights = click_lists(rounds, np.array([1.0, 0, 2.0, 0, 0, 4.0]))
    assert [round.X[:, 0].tolist() for round in lists] == [[0, 1, 2]] * 2
    assert [round.labels.tolist() for round in lists] == [[1, 0, 0], [0, 0, 1]]
    assert weights.tolist() == [1.0, 2.0]


def test_what_teaches_nothing_is_refused():
    log = Impressions.from_arrays([0, 0], [0, 0], [1, 2])
    with pytest.raises(DataError, match="no click in the log"):
        click_weights(log, np.ones(2))
    with pytest.raises(DataError, match="clip is the smallest propensity"):
        click_weights(log, np.ones(2), clip=2.0)
    with pytest.raises(DataError, match="nothing that it was preferred to"):
        click_lists(Rounds.from_arrays([[1.0]], [1]), np.ones(1))
    with pytest.raises(DataError, match="weights of clicks cannot undo it"):
        propensities(log, Examination([1.0, 0.5], offsets=[0.0, 0.1]))
