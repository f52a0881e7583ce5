"""Many pending rounds at once teach what they teach one after the other."""

import numpy as np
import pytest

from ranktron.errors import DataError
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.learner import TopK
from ranktron.learners.top_k.passes import PendingBatch, can_learn_many, learn_many
from ranktron.surrogates import PairwiseHinge, Squared
from ranktron.types import Feedback


def learner(**settings):
    return TopK(4, PairwiseHinge(0.7), 3, explore=Constant(0.4), step=Constant(settings.pop("eta", 0.3)), **settings)


def pending_rounds(taught, count, large=1.0):
    """Rounds that a learner showed, as many rows; one of them with features that are too large to step along."""
    rng = np.random.default_rng(5)
    pendings, places, labels = [], [], []
    for number in range(count):
        X = rng.normal(size=(6, 4)).astype(np.float32)
        X[:] *= np.float32(large) if number == count // 2 else np.float32(1.0)
        ranking = taught.rank(X, number)
        pendings.append(taught.pending(X, ranking, 3))
        places.append(np.sort(rng.choice(3, size=2, replace=False)))
        labels.append(rng.integers(0, 3, size=2).astype(float))
    return pendings, np.array(places), np.array(labels)


def stacked(pendings, places, labels):
    rows, shown, propensities = (
        np.stack([getattr(each, name) for each in pendings]) for name in ("rows", "shown", "propensities")
    )
    numbers, sizes = [each.number for each in pendings], [each.size for each in pendings]
    return PendingBatch(numbers, sizes, rows, shown, propensities, places, labels)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"adaptive": True, "weighted_average": True},
        {"radius": 0.5, "response_rate": 0.5},
        {"eta": 1e120},
        {"floor": 0.3},
    ],
)
def test_it_learns_the_same_to_the_bit(settings):
    one, many = learner(**settings), learner(**settings)
    pendings, places, labels = pending_rounds(learner(), 40, 1e36)
    labels[20] = 2.0, 0.0
    refused = []
    for n, (pending, place, label) in enumerate(zip(pendings, places, labels, strict=True)):
        try:
            one.learn_pending(pending, Feedback(place, label))
        except DataError:
            refused.append(n)
    learnt = learn_many(many, stacked(pendings, places, labels))
    assert np.flatnonzero(~learnt).tolist() == refused
    assert bool(refused) == (settings.get("eta") == 1e120)
    for (name, mine), other in zip(one.state().items(), many.state().values(), strict=True):
        assert np.array_equal(mine, other), name
    assert one.w.any()


@pytest.mark.parametrize("harm", ["twice", "below", "beyond", "negative", "nan", "high"])
def test_feedback_that_one_would_refuse_is_left_to_it(harm):
    taught = learner(max_label=2.0)
    pendings, places, labels = pending_rounds(learner(), 5)
    if harm in ("twice", "below", "beyond"):
        places[3] = {"twice": (1, 1), "below": (-1, 1), "beyond": (1, 3)}[harm]
    else:
        labels[3, 0] = {"negative": -1.0, "nan": np.nan, "high": 2.5}[harm]
    assert learn_many(taught, stacked(pendings, places, labels)) is None
    assert not taught.w.any()
    assert taught.rounds == 0


def test_who_can():
    assert can_learn_many(learner())
    assert can_learn_many(learner(floor=0.1))
    assert not can_learn_many(learner(require_full_lists=True))
    assert not can_learn_many(TopK(4, Squared(), 3, explore=Constant(0.4), step=Constant(0.3)))
