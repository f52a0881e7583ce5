"""What all learners have from their base."""

import copy
import pickle

from ranktron.data.synthetic import Separable
from ranktron.learners import feedback, slam_perceptron
from ranktron.learners.loop import play

LISTS = Separable(documents=5, features=4).rounds(12)


def test_copies_and_pickles_learn_on_as_the_learner_does():
    learner = slam_perceptron(4)
    list(play(learner, LISTS[:6], feedback.full))
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        list(play(other, LISTS[6:], feedback.full))
        assert other.rounds == 12
    list(play(learner, LISTS[6:], feedback.full))
    assert (other.w == learner.w).all()
