"""What all learners have from their base."""

import copy
import pickle

import numpy as np

from ranktron.data.synthetic import Separable
from ranktron.learners import KernelLearner, PairSteps, feedback, slam_perceptron
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


def test_attributes_of_older_pickles_have_their_names_of_today():
    learner, older = KernelLearner(3, PairSteps()), KernelLearner.__new__(KernelLearner)
    former = {new: old for old, new in KernelLearner.renamed_attributes.items()}
    older.__setstate__({former.get(name, name): value for name, value in vars(learner).items()})
    assert set(vars(older)) == set(vars(learner))
    assert older.output is learner.output
    assert (older.predict(np.ones((2, 3), np.float32)) == 0.0).all()
