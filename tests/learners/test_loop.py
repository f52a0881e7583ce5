import numpy as np
import pytest

from ranktron import DataError, metric, play
from ranktron.data.streams import each, repeat, shuffled, take
from ranktron.data.synthetic import Separable
from ranktron.learners import feedback, hinge_perceptron

LISTS = Separable(documents=6, features=4).rounds(20)


def test_turns_are_numbered_on():
    learner = hinge_perceptron(4)
    numbers = [turn.number for _ in range(2) for turn in play(learner, LISTS, feedback.full)]
    assert numbers == list(range(40))


def test_the_shown_ranking_is_measured_before_it_is_learnt():
    learner = hinge_perceptron(4)
    ndcg = metric("ndcg@3")
    for round, turn in zip(LISTS, play(learner, LISTS, feedback.full, [ndcg]), strict=True):
        assert turn.values == (ndcg(round.labels[turn.ranking.order]),)
    for single in ("ndcg@3", ndcg, lambda labels: ndcg(labels)):
        assert next(play(hinge_perceptron(4), LISTS, feedback.full, single)).values == (ndcg(LISTS[0].labels),)
    named = next(play(hinge_perceptron(4), LISTS, feedback.full, ["ndcg@3"]))
    assert named.values == (ndcg(LISTS[0].labels),)
    first = next(play(hinge_perceptron(4), LISTS, feedback.full, [ndcg]))
    assert first.ranking.order.tolist() == list(range(6))  # nothing was known yet: all scores tie


def test_delay_means_that_a_round_is_ranked_without_the_last_few():
    delay = 4
    learner = hinge_perceptron(4)
    shown = []
    rank = learner.rank
    learner.rank = lambda X, number: shown.append((number, learner.rounds)) or rank(X, number)
    turns = list(play(learner, LISTS, feedback.full, delay=delay))
    assert [t.number for t in turns] == list(range(20))
    assert shown == [(number, max(0, number - delay)) for number in range(20)]
    assert len(list(play(learner, LISTS, feedback.full, delay=np.int64(2)))) == 20
    for wrong in (-1, 1.5, True):
        with pytest.raises(DataError, match="delay"):
            next(play(learner, LISTS, feedback.full, delay=wrong))


def test_an_answer_that_is_no_feedback_is_refused():
    learner = hinge_perceptron(4)
    with pytest.raises(DataError, match="answers with Feedback"):
        next(play(learner, LISTS, lambda round, ranking: ([0], [1.0])))
    assert learner.rounds == 0
    for k in (0, 2.5):
        with pytest.raises(DataError, match="must be a whole number of at least 1"):
            feedback.top(k)


def test_streams_that_cannot_be_had_are_refused():
    for wrong in (lambda: repeat(iter(LISTS), 2), lambda: repeat((round for round in LISTS), 2)):
        with pytest.raises(DataError, match="an iterator cannot be repeated"):
            wrong()
    for wrong in (lambda: repeat(LISTS, -1), lambda: take(LISTS, 1.5), lambda: shuffled(LISTS, seed=-1)):
        with pytest.raises(DataError, match="must be a whole number of at least 0"):
            wrong()


def test_streams():
    assert [r.qid for r in take(repeat(LISTS, 2), 23)] == [*LISTS.qids, *LISTS.qids[:3]]
    assert [r.qid for r in each(LISTS, np.array([18, 3]))] == [LISTS.qids[18], LISTS.qids[3]]
    whole = [r.qid for r in shuffled(LISTS, 5, epoch=1)]
    assert sorted(whole) == sorted(LISTS.qids)
    assert whole == [r.qid for r in shuffled(LISTS, 5, epoch=1)]
    assert whole != [r.qid for r in shuffled(LISTS, 5, epoch=2)]
    assert whole[7:] == [r.qid for r in shuffled(LISTS, 5, epoch=1, start=7)]
    assert all(np.shares_memory(r.X, LISTS.X) for r in shuffled(LISTS, 5))
