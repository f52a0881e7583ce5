import signal
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Rounds
from ranktron.data.synthetic import Separable
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.schedule import Schedule
from ranktron.training import tune as tuning
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.tune import ONLINE, families, tune_rounds

LISTS = Separable(documents=8, features=4).rounds(30)


def settings(rows):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def noisy(queries, seed=0):
    """Lists whose labels follow one feature and chance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5 * queries, 3)).astype(np.float32)
    labels = np.digitize(X[:, 0] + rng.normal(size=5 * queries), [0.0, 1.0])
    return Rounds.from_arrays(X, labels, group=[5] * queries)


def test_the_same_seed_finds_the_same():
    one, two = (tune_rounds(LISTS, learners=["hinge"], minutes=60.0) for _ in range(2))
    assert one.model.to_bytes() == two.model.to_bytes()
    assert settings(one.table) == settings(two.table)
    assert one.test == two.test
    assert one.stopped == two.stopped == ""
    other = tune_rounds(noisy(30), learners=["hinge"], seed=1, minutes=60.0)
    assert settings(other.table) != settings(tune_rounds(noisy(30), learners=["hinge"], minutes=60.0).table)


def test_units_do_not_matter():
    lists = noisy(30)
    others = replace(lists, X=lists.X * np.array([2.0**11, 2.0**-9, 0.5], np.float32))  # nothing is rounded
    one, two = (tune_rounds(each, learners=["hinge", "ranksvm"], minutes=60.0) for each in (lists, others))
    assert settings(one.table) == settings(two.table)
    assert one.test == two.test


def test_the_best_of_the_table_is_trained_on_everything():
    lists = noisy(40)
    found = tune_rounds(lists, learners=["listnet", "ranksvm"], minutes=60.0)
    best = found.table[0]
    most = [row for row in found.table if row["folds"] == max(row["folds"] for row in found.table)]
    assert best["mean"] == max(row["mean"] for row in most)
    assert all(row["low"] <= row["mean"] <= row["high"] for row in found.table)
    schedule = Schedule(best["epochs"], 0)
    again = train(
        TrainingPlan(best["learner"], best["parameters"], schedule, scaling=best["scale"], map=best["map"]), lists
    )
    assert found.model.to_bytes() == again.model.to_bytes()


def test_the_queries_of_the_final_number_choose_nothing():
    lists = noisy(30)
    aside = np.random.default_rng((0, 20)).permutation(30)[:6]
    labels = lists.labels.copy()
    for query in aside:
        labels[5 * query : 5 * query + 5] = labels[5 * query : 5 * query + 5][::-1]
    changed = Rounds.from_arrays(lists.X, labels, group=[5] * 30)
    one, two = (tune_rounds(each, learners=["hinge"], minutes=60.0) for each in (lists, changed))
    assert settings(one.table) == settings(two.table)
    assert one.test["queries"] == 6
    assert one.test["mean"] != two.test["mean"]


def test_families_are_halved_once_enough_queries_have_been_seen():
    few = tune_rounds(noisy(30), learners=["hinge", "ranksvm"], exportable=True, minutes=60.0)
    assert {row["folds"] for row in few.table} == {4}
    many = tune_rounds(noisy(110), learners=["hinge", "ranksvm", "rankboost"], minutes=60.0)
    assert {row["folds"] for row in many.table} > {4}
    assert many.table[0]["folds"] == 4
    folds = [row["folds"] for row in many.table]
    assert folds == sorted(folds, reverse=True)


def test_of_many_queries_a_sample_is_looked_at_first(monkeypatch):
    monkeypatch.setattr(tuning, "SAMPLE", 15)
    found = tune_rounds(noisy(60), learners=["hinge", "ranksvm", "rankboost"], minutes=60.0)
    by_folds = {row["folds"]: row for row in found.table}
    assert set(by_folds) == {0, 4}
    assert found.table[0]["folds"] == 4


def test_the_sample_decides_where_there_is_no_time_for_a_fold(monkeypatch):
    monkeypatch.setattr(tuning, "SAMPLE", 15)
    lists, told = noisy(60), []
    tried = families(lists, ["hinge", "ranksvm", "rankboost"])

    def watch(now):
        told.append(now)
        if len(told) == len(tried) + 1:  # the first family of the first fold
            signal.raise_signal(signal.SIGINT)

    found = tune_rounds(lists, learners=["hinge", "ranksvm", "rankboost"], minutes=60.0, watch=watch)
    assert found.stopped == "interrupt"
    assert {row["folds"] for row in found.table} == {0}
    assert len(found.table) == sum(len(family.candidates) for family in tried)
    assert found.table[0]["mean"] == max(row["mean"] for row in found.table)
    assert found.model.kind == found.table[0]["learner"]


def test_curves_are_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3)).astype(np.float32)
    labels = np.digitize(np.abs(X[:, 0]), [0.5, 1.0, 1.5])
    found = tune_rounds(Rounds.from_arrays(X, labels, group=[10] * 120), learners=["hinge"], minutes=60.0)
    assert found.model.map.name.startswith("bins")
    assert found.test["low"] > 0.9


def test_what_does_not_fit_is_not_tried(monkeypatch):
    ticks = count()
    monkeypatch.setattr(tuning, "perf_counter", lambda: float(next(ticks)))
    found = tune_rounds(LISTS, learners=["hinge", "ranksvm"], minutes=0.5)
    assert found.stopped == "time"
    assert 0 < len(found.table) < len([c for f in families(LISTS, ["hinge", "ranksvm"]) for c in f.candidates])
    least = tune_rounds(LISTS, learners=["hinge"], minutes=1e-9)
    assert len(least.table) == 1
    assert least.model.learner().rounds == 30


def test_an_interrupt_ends_with_the_best_so_far():
    told = []

    def watch(now):
        told.append(now)
        signal.raise_signal(signal.SIGINT)

    found = tune_rounds(LISTS, learners=["hinge"], minutes=60.0, watch=watch)
    assert found.stopped == "interrupt"
    assert len(told) == len(found.table) == 1
    assert told[0].family == "hinge standard"
    assert found.model.kind == "hinge"


def test_progress_is_told():
    told = []
    tune_rounds(LISTS, learners=["ranksvm"], exportable=True, minutes=60.0, watch=told.append)
    assert [(now.fold, now.folds) for now in told] == [(fold, 4) for fold in (1, 2, 3, 4)]
    assert [now.tried for now in told] == [0, 4, 4, 4]
    assert told[-1].best.startswith("ranksvm, C=")
    assert 0.0 < told[-1].seconds_left < 60.0 * 60.0


def test_the_estimator_is_fitted_and_knows_what_was_tried():
    X, y, qid = LISTS.X, LISTS.labels, np.repeat(np.arange(30), 8)
    ranker = ranktron.tune(X, y, qid=qid, learners=["hinge"], minutes=60.0)
    assert type(ranker) is ranktron.HingePerceptron
    assert ranker.score(X, y, qid=qid) > 0.95
    assert ranker.get_params()["eta"] == ranker.table_[0]["parameters"]["eta"]
    assert ranker.test_["queries"] == 6
    assert ranker.partial_fit(X[:8], y[:8], qid=0).learner_.rounds == 30 * ranker.table_[0]["epochs"] + 1


def test_candidates_fit_the_data():
    names = [str(family) for family in families(LISTS)]
    assert names[:3] == ["listnet/hinge/slam standard", "listnet/hinge/slam standard-query", "rankboost"]
    assert names[-1] == "smoothrank standard-query"  # takes most time
    assert {"listnet/hinge/slam standard bins-linear:8", "listnet/hinge/slam standard-query leaves:60"} < set(names)
    sparse = replace(LISTS, X=Sparse.from_matrix(LISTS.X))
    exportable = [str(family) for family in families(LISTS, exportable=True)]
    learners = ("listnet/hinge/slam", "ranksvm", "smoothrank")
    both = [f"{name} {scale}" for name in learners for scale in ("range", "standard")]
    assert [str(family) for family in families(sparse)] == [*both[:2], "rankboost", *both[2:]]
    assert exportable == ["listnet/hinge/slam standard", "rankboost", "ranksvm standard", "smoothrank standard"]
    played = [each for family in families(LISTS) for each in family.candidates if each.learner in ONLINE]
    assert {each.epochs for each in played} == {1, 3, 10, 30}
    assert all(ALGORITHMS[each.learner].complete(each.parameters)["average"] for each in played)


def test_one_training_evaluates_every_number_of_trees(monkeypatch):
    monkeypatch.setattr(tuning, "NUMBERS", (2, 5))
    monkeypatch.setattr(tuning, "GROWN", [{"num_leaves": 3, "learning_rate": 0.3, "min_data_in_leaf": 5}])
    (family,) = families(LISTS, ["lightgbm"])
    assert [str(each) for each in family.candidates] == [
        f"lightgbm, num_leaves=3, learning_rate=0.3, min_data_in_leaf=5, n_rounds={number}" for number in (2, 5)
    ]
    for candidate, scores in family.scores(LISTS[:20], LISTS[20:], 0, "error"):
        alone = train(candidate.plan(0, "error"), LISTS[:20]).model
        assert scores.tolist() == alone.score_rounds(LISTS[20:]).tolist()
    found = tune_rounds(LISTS, learners=["lightgbm"], minutes=60.0)
    assert (found.model.kind, len(found.table)) == ("lightgbm", 2)


def test_data_that_teach_nothing_are_refused():
    for lists in (
        replace(LISTS, labels=np.ones(len(LISTS.labels))),
        Rounds.from_arrays(LISTS.X, LISTS.labels, np.arange(240)),
    ):
        with pytest.raises(DataError, match="no query has documents with different labels"):
            tune_rounds(lists)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"minutes": 0.0}, "minutes must be a number above 0, not 0.0"),
        ({"minutes": float("nan")}, "minutes must be"),
        (
            {"learners": ["trees"]},
            "tuning chooses among listnet, hinge, slam, ranksvm, smoothrank, rankboost, lightgbm, not 'trees'",
        ),
        ({"learners": ["lightgbm"], "exportable": True}, "no search engine gets trees of lightgbm from here"),
        ({"learners": []}, "at least one learner"),
        ({"seed": -1}, "the seed"),
        ({"metric": "best"}, "best"),
    ],
)
def test_what_makes_no_sense_is_refused(asked, message):
    with pytest.raises(DataError, match=message):
        tune_rounds(LISTS, **asked)


def test_too_few_queries_are_refused():
    with pytest.raises(DataError, match="at least 10 of them, not 9"):
        tune_rounds(LISTS[:9])


def test_tuning_needs_query_ids_and_warns_of_labels_among_the_features():
    X, y = LISTS.X, LISTS.labels
    with pytest.raises(DataError, match="there are no query ids: pass qid="):
        ranktron.tune(X, y)
    with pytest.warns(ranktron.RankingWarning, match="the feature 4 equals the labels in all 240 rows"):
        ranktron.tune(np.column_stack([X, y]), y, group=[8] * 30, learners=["hinge"])
