"""Compiled passes of `TopK` against the loop of `play`."""

import numpy as np
import pytest

from ranktron import DataError, Rounds, metric, play
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import top_k_ranker
from ranktron.learners.checks import same
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import PairwiseHinge, Squared

LISTS = WebSearch(features=7, documents=40).rounds(150)
METRICS = (metric("ndcg@10"), metric("map"))
OURS = {"preset": "recommended", "explore": 1.0, "floor": 0.0}
SETTINGS = {
    "default": OURS,
    "labels of ten": OURS | {"k": 10, "floor": 0.3, "answered": 0.7},
    "paper": {"k": 3},
    "price": OURS | {"exploration_price": 0.05},
    "few": OURS | {"k": 60, "radius": 0.3},
}


def play_plainly(learner, lists):
    turns = list(play(learner, lists, learner.simulated_feedback, METRICS))
    return [turn.loss for turn in turns], [list(turn.values) for turn in turns]


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_compiled_pass_equals_play_to_the_bit(settings):
    plain, compiled = (top_k_ranker(7, **settings) for _ in range(2))
    for _ in range(2):
        losses, values = play_plainly(plain, LISTS)
        for part in (np.arange(90), np.arange(90, 150)):
            own, measured = compiled.compiled_pass(LISTS)(LISTS, part, METRICS)
            assert own.tolist() == losses[part[0] : part[-1] + 1]
            assert measured.tolist() == values[part[0] : part[-1] + 1]
    assert plain.w.any()
    assert same(plain.state(), compiled.state())


def test_what_a_pass_refuses_is_refused_as_in_play():
    short = Rounds.from_arrays(np.ones((5, 7)) * np.arange(5)[:, None], [1, 0, 1, 1, 0], group=[2, 1, 2])
    for lists, settings, metrics, complaint in (
        (short, {"k": 2}, (), "too short"),
        (short, OURS | {"highest": 0.5}, (), "0.5"),
        (Rounds.from_arrays(np.ones((4, 7)), [1, 0, 9, 9], group=[2, 2]), OURS, ("err",), "err is defined for labels"),
    ):
        plain, compiled = (top_k_ranker(7, **settings) for _ in range(2))
        with pytest.raises(DataError) as refused:
            for _ in play(plain, lists, plain.simulated_feedback, metrics):
                pass
        with pytest.raises(DataError, match=complaint) as again:
            compiled.compiled_pass(lists)(lists, np.arange(len(lists)), tuple(map(metric, metrics)))
        assert str(again.value) == str(refused.value)
        assert same(plain.state(), compiled.state())


def test_lists_of_one_document_are_played_as_well():
    lists = Rounds.from_arrays(np.arange(28.0).reshape(4, 7), [1, 0, 1, 0], group=[1, 2, 1])
    plain, compiled = top_k_ranker(7, **OURS), top_k_ranker(7, **OURS)
    losses, values = play_plainly(plain, lists)
    own, measured = compiled.compiled_pass(lists)(lists, np.arange(3), METRICS)
    assert (own.tolist(), measured.tolist()) == (losses, values)
    assert same(plain.state(), compiled.state())


def test_which_learners_have_one():
    assert top_k_ranker(7).compiled_pass(LISTS) is not None
    sparse = Rounds.from_arrays(Sparse.from_matrix(LISTS.X), LISTS.labels, group=np.diff(LISTS.offsets))
    assert top_k_ranker(7).compiled_pass(sparse) is None
    assert top_k_ranker(7, surrogate="squared", k=1).compiled_pass(LISTS) is None

    class Other(TopK):
        pass

    steps = {"explore": Constant(0.2), "step": Constant(0.1)}
    assert Other(7, PairwiseHinge(), 2, **steps).compiled_pass(LISTS) is None
    clicks = TopK(7, Squared(), 2, **steps, examination=Examination(np.array([1.0, 0.5])))
    assert clicks.compiled_pass(LISTS) is None
