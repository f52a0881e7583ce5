"""Predtron as a learner of lists: what it makes of feedback on some of the documents."""

import numpy as np
import pytest

from ranktron.learners import predtron_ranker
from ranktron.types import Feedback, Ranking

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
LABELS = np.array([0.0, 2.0, 1.0, 0.0, 2.0])


@pytest.mark.parametrize("items", [[0, 1, 2, 3, 4], [4, 2, 0, 1, 3], [0, 2, 4], [3, 1]])
def test_what_was_observed_is_a_list_of_its_own(items):
    learner, other = predtron_ranker(3), predtron_ranker(3)
    items = np.array(items)
    loss = learner.learn(X, learner.rank(X, 0), Feedback(items, LABELS[items]))
    some = np.ascontiguousarray(X[items])
    whole = other.learn(some, Ranking(np.arange(len(items)), np.zeros(len(items)), 0),
                        Feedback(np.arange(len(items)), LABELS[items]))  # fmt: skip
    assert loss == pytest.approx(whole)
    assert loss > 0.0
    assert learner.coef == pytest.approx(other.coef)
