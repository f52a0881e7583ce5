"""Pending rounds: what is kept of a round is enough to learn from it, to the bit, and does not grow with the list."""

import numpy as np
import pytest

from ranktron import Feedback
from ranktron.data.synthetic import Separable
from ranktron.kernels.dense import pull_back
from ranktron.learners import TopK, checks
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.steps import Constant
from ranktron.surrogates import Squared
from ranktron.training.algorithms import ALGORITHMS
from tests.learners.top_k.test_estimator import SURROGATES

LISTS = list(Separable(documents=12, features=6, margin=0.1).rounds(80))
ONLINE = [name for name in ALGORITHMS if name not in ("ranksvm", "smoothrank", "rankboost", "rankmm", "lightgbm")]


class Plain:
    """A loss of one's own that only decomposes: it has neither `estimate` nor `outline`."""

    coordinates = 1

    def __repr__(self):
        return "Plain()"

    def __call__(self, scores, labels):
        return Squared()(scores, labels)

    def known(self, scores):
        return Squared().known(scores)

    def term(self, scores, items, labels):
        return Squared().term(scores, items, labels)


def learner_of(surrogate, **more):
    return TopK(6, surrogate, 3, explore=Constant(0.4), step=Constant(0.001), radius=2.0, **more)


def heard(round, ranking, k, rng):
    """The labels of some of the first k documents: by document, and by place."""
    places = np.sort(rng.permutation(k)[: rng.integers(1, k + 1)])
    items = ranking.order[places]
    return Feedback(items, round.labels[items]), Feedback(places, round.labels[items])


def both_ways(make, k):
    """One learner that hears of whole lists, one that has only pending rounds; feedback is late and partial."""
    whole, pending, rng, late = make(), make(), np.random.default_rng(0), []
    for number, round in enumerate(LISTS):
        ranking = whole.rank(round.X, number)
        assert (pending.rank(round.X, number).order == ranking.order).all()
        late.append((round, ranking, pending.pending(round.X, ranking, k), heard(round, ranking, k, rng)))
        if len(late) > 5:
            round, ranking, kept, (documents, places) = late.pop(int(rng.integers(5)))
            losses = whole.learn(round.X, ranking, documents), pending.learn_pending(kept, places)
            assert losses[0] == losses[1] or np.isnan(losses).all()
    assert whole.rounds > 50
    return whole, pending


@pytest.mark.parametrize(
    "more", [{}, {"adaptive": True, "shortlist": 5, "floor": 0.05, "weighted_average": True}], ids=str
)
@pytest.mark.parametrize("surrogate", [*SURROGATES, Plain()], ids=repr)
def test_a_pending_round_teaches_what_the_list_teaches(surrogate, more):
    whole, pending = both_ways(lambda: learner_of(surrogate, **more), 3)
    assert checks.same(whole.state(), pending.state())


@pytest.mark.parametrize("name", ONLINE)
def test_every_online_learner_can_learn_from_pending_rounds(name):
    whole, pending = both_ways(lambda: ALGORITHMS[name].learner(6, {}), 4 if name != "topk" else 2)
    assert checks.same(whole.state(), pending.state())


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_the_step_is_that_of_the_estimated_gradient(surrogate):
    learner, rng = learner_of(surrogate), np.random.default_rng(1)
    learner.w = rng.normal(size=6) * 0.1
    for number, round in enumerate(LISTS[:20]):
        ranking = learner.rank(round.X, number)
        documents, _ = heard(round, ranking, 3, rng)
        loss, gradient = learner.estimate(round.X, ranking, documents)
        direction, before = np.empty(6), learner.w.copy()
        pull_back(round.X, ranking.order[: len(gradient)], gradient, direction, 0)
        assert learner.learn(round.X, ranking, documents) == pytest.approx(loss, rel=1e-12)
        assert learner.w == pytest.approx(before - 0.001 * direction, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_a_pending_round_does_not_grow_with_the_list(surrogate):
    learner, rng = learner_of(surrogate), np.random.default_rng(2)
    sizes = set()
    for m in (10, 1000):
        X = rng.normal(size=(m, 6)).astype(np.float32)
        kept = learner.pending(X, learner.rank(X, 0), 3)
        assert isinstance(kept, PendingRound)
        sizes.add(sum(part.nbytes for part in kept if isinstance(part, np.ndarray)))
    assert len(sizes) == 1
