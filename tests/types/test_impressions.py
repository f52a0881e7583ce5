import numpy as np
import pytest

import ranktron
from ranktron import DataError, Feedback, Impression, Ranking, Round
from ranktron.learners import feedback, pdgd_ranker
from ranktron.learners.checks import same


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (([0, 1], [1.0]), "2 documents with 1 gains"),
        (([0, 0], [1.0, 0.0]), "each document once"),
        (([-1], [1.0]), "index from 0"),
        (([0.5], [1.0]), "places in the list"),
        (([0], [-1.0]), "at least 0"),
        (([0], [np.nan]), "finite"),
        (([0], [1.0], [0.0]), "above 0 and at most 1"),
        (([0], [1.0], [1.5]), "above 0 and at most 1"),
        (([0, 1], [1.0, 0.0], [0.5]), "one for each document"),
    ],
)
def test_an_impression_that_cannot_be_is_refused(given, complaint):
    with pytest.raises(DataError, match=complaint):
        Impression(*given)


def test_an_impression_has_what_was_shown_and_what_came_of_it():
    impression = Impression([4, 0, 2], [0, 2.5, 1], [0.5, 0.25, 1.0])
    assert impression.clicked.tolist() == [0, 2]
    assert impression.propensities.tolist() == [0.5, 0.25, 1.0]
    assert impression.feedback.labels.tolist() == [0.0, 2.5, 1.0]
    assert Impression([], []).clicked.tolist() == []


def test_feedback_that_leaves_out_what_was_shown_is_no_impression():
    ranking = Ranking(np.array([2, 0, 1]), np.zeros(3), 0)
    assert Impression.of(ranking, Feedback([0, 2], [1, 0])).items.tolist() == [2, 0]
    with pytest.raises(DataError, match="a gain for each document from the top"):
        Impression.of(ranking, Feedback([0, 1], [1, 0]))


def test_users_answer_with_impressions_and_learners_learn_from_them():
    lists = ranktron.synthetic.Separable(grades=2).rounds(5)
    played, told = pdgd_ranker(lists.n_features), pdgd_ranker(lists.n_features)
    user = feedback.cascade("informational", k=4)
    for number, turn in enumerate(ranktron.play(played, lists, user)):
        impression = Impression.of(turn.ranking, turn.feedback)
        assert impression.items.tolist() == turn.ranking.order[:4].tolist()
        round: Round = lists[number]
        told.learn(round.X, told.rank(round.X, number), impression.feedback)
    assert same(played.state(), told.state())
