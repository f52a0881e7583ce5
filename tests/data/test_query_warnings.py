import warnings

import numpy as np
import pytest

import ranktron
from ranktron import RankingWarning, Rounds
from ranktron.data.query_warnings import count_uninformative, warn_reused_query_ids
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import metric
from ranktron.training.cross_validation import Fold, cross_validate
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.sweep import sweep

LISTS = WebSearch(features=4, documents=6).rounds(20)
X, Y, QID = LISTS.X, LISTS.labels, np.repeat(LISTS.qids, np.diff(LISTS.offsets))
ALONE = Rounds.from_arrays(X, Y, np.arange(len(Y)))


def test_idle_queries_are_counted_as_a_loop_counts_them():
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes = rng.integers(1, 5, 12)
        rounds = Rounds.from_arrays(np.zeros((sizes.sum(), 1)), rng.integers(0, 2, sizes.sum()), group=sizes)
        single = sum(len(r.labels) < 2 for r in rounds)
        equal = sum(len(r.labels) > 1 and len(set(r.labels)) == 1 for r in rounds)
        assert count_uninformative(rounds) == (single, equal)


def test_fitting_says_that_nothing_can_be_learnt():
    with pytest.warns(
        RankingWarning, match="nothing can be learnt from 107 of 107 queries: 107 have a single document"
    ):
        ranktron.HingePerceptron().fit(X, Y, qid=np.arange(len(Y)))
    with pytest.warns(RankingWarning, match="from 20 of 20 queries: 20 have the same label everywhere"):
        ranktron.RankSVM().fit(X, Y * 0.0, qid=QID)
    with pytest.warns(RankingWarning, match="from 20 of 20 queries"):
        ranktron.HingePerceptron().partial_fit(X, Y * 0.0, qid=QID)
    with pytest.warns(RankingWarning, match="from 107 of 107 queries"):
        sweep(
            TrainingPlan("slam", schedule=ranktron.learners.schedule.Schedule(), metrics=[metric("ndcg@10")]),
            "eta",
            [0.1],
            ALONE,
        )


def test_a_few_idle_queries_are_no_reason_to_speak():
    some = np.where(np.isin(QID, LISTS.qids[:6]), 0.0, Y)
    half = Rounds.from_arrays(X, some, QID)
    assert 0 < sum(count_uninformative(half)) <= len(half) / 2
    ranktron.RankSVM().fit(X, some, qid=QID)
    one = LISTS[0]
    ranker = ranktron.HingePerceptron().partial_fit(one.X, one.labels * 0.0, qid=0)  # a stream has such lists
    assert ranker.learner_.rounds == 1


def test_evaluating_says_that_there_is_nothing_to_measure():
    with pytest.warns(RankingWarning, match="nothing to measure, in 107 of 107 queries"):
        assert ranktron.evaluate(ALONE, X[:, 0], "ndcg@10").means["ndcg@10"] == 1.0
    ranker = ranktron.RankSVM().fit(X, Y, qid=QID)
    with pytest.warns(RankingWarning, match="nothing to measure, in 107 of 107"):
        ranker.score(X, Y, qid=np.arange(len(Y)))


def test_ids_that_come_back_in_blocks_are_named():
    twice = np.concatenate([QID, QID[:50]])
    with pytest.warns(RankingWarning, match=f"of 20 query ids come back after other queries, first '{QID[0]}'"):
        ranktron.RankSVM().fit(np.concatenate([X, X[:50]]), np.concatenate([Y, Y[:50]]), qid=twice)
    shuffled = np.random.default_rng(0).permutation(len(Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_reused_query_ids(Rounds.from_arrays(X[shuffled], Y[shuffled], QID[shuffled]))
        dealt = np.argsort(np.arange(len(Y)) % 6, kind="stable")
        warn_reused_query_ids(Rounds.from_arrays(X[dealt], Y[dealt], QID[dealt]))


def test_cross_validation_says_so_too():
    alone = Rounds.from_arrays(X, Y, np.arange(len(Y)))
    with pytest.warns(RankingWarning, match="nothing can be learnt from 107 of 107"):
        cross_validate(TrainingPlan("hinge", scaling="auto"), [Fold("one", alone, LISTS, LISTS)])


def test_the_warning_points_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(TrainingPlan("hinge", schedule=ranktron.learners.schedule.Schedule()), ALONE)
        ranktron.evaluate(ALONE, X[:, 0], "ndcg@10")
        ranktron.HingePerceptron().fit(X, Y, qid=np.arange(len(Y)))
    assert [warning.filename for warning in caught] == [__file__] * 3
