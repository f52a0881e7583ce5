"""LambdaMART beside LightGBM itself: the same trees, scores and Shapley values, from a file that needs no LightGBM."""

import sys

import lightgbm
import numpy as np
import pytest

import ranktron
from ranktron import DataError, MissingExtra, Model, Rounds, evaluate, metric
from ranktron.data.synthetic import WebSearch
from ranktron.learners.batch.trees import TreeEnsemble
from ranktron.training.fit import TrainingPlan, train

ALL = WebSearch(features=5, documents=20).rounds(60)
LISTS, HELD_OUT = ALL[:40], ALL[40:]
PARAMETERS = {"n_rounds": 12, "num_leaves": 7, "learning_rate": 0.2, "min_data_in_leaf": 5}
OPTIONS = {"objective": "lambdarank", "num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}


def grow(lists, labels, weight=None, **more):
    options = {**OPTIONS, **{name: PARAMETERS[name] for name in PARAMETERS if name != "n_rounds"}, "seed": 0, **more}
    data = lightgbm.Dataset(lists.X, labels, group=np.diff(lists.offsets), weight=weight)
    return lightgbm.train(options, data, PARAMETERS["n_rounds"])


@pytest.fixture(scope="module")
def booster():
    return grow(LISTS, LISTS.labels.astype(int))


@pytest.fixture(scope="module")
def model():
    return train(TrainingPlan("lightgbm", PARAMETERS), LISTS).model


def test_scores_are_those_of_lightgbm(model, booster):
    assert model.score_rounds(HELD_OUT).tolist() == booster.predict(HELD_OUT.X).tolist()


def test_a_saved_model_scores_and_explains_without_lightgbm(model, booster, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    loaded = Model.from_bytes(model.to_bytes())
    assert loaded.score_rounds(HELD_OUT).tolist() == booster.predict(HELD_OUT.X).tolist()
    assert loaded.explain(HELD_OUT[0].X).contributions.shape == HELD_OUT[0].X.shape
    with pytest.raises(MissingExtra, match=r"ranktron\[trees\]"):
        train(TrainingPlan("lightgbm"), LISTS)


def test_contributions_are_the_shapley_values_of_lightgbm(model, booster):
    *_, X = (HELD_OUT[q].X for q in range(3))
    theirs = booster.predict(X, pred_contrib=True)
    learner = model.learner()
    assert learner.contributions(X) == pytest.approx(theirs[:, :-1], abs=1e-12)
    assert learner.constant == pytest.approx(theirs[0, -1])
    assert learner.contributions(X).sum(axis=1) + learner.constant == pytest.approx(learner.predict(X))


def test_labels_may_be_any_numbers_with_the_gain_that_metrics_have():
    labels = LISTS.labels * 0.7
    found = train(
        TrainingPlan("lightgbm", PARAMETERS), Rounds.from_arrays(LISTS.X, labels, group=np.diff(LISTS.offsets))
    ).model
    codes = np.unique(labels, return_inverse=True)[1]
    gains = (2.0 ** np.unique(labels) - 1.0).tolist()
    assert found.score_rounds(LISTS).tolist() == grow(LISTS, codes, label_gain=gains).predict(LISTS.X).tolist()


def test_weights_of_queries_are_those_of_their_documents():
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(LISTS))
    found = train(TrainingPlan("lightgbm", PARAMETERS), LISTS, weights=weights).model
    theirs = grow(LISTS, LISTS.labels.astype(int), np.repeat(weights, np.diff(LISTS.offsets)))
    assert found.score_rounds(LISTS).tolist() == theirs.predict(LISTS.X).tolist()


def test_held_out_lists_choose_how_many_trees_are_kept(booster):
    trained = train(TrainingPlan("lightgbm", PARAMETERS), LISTS, valid=HELD_OUT)
    scores = [booster.predict(HELD_OUT.X, num_iteration=n) for n in range(1, PARAMETERS["n_rounds"] + 1)]
    means = [evaluate(each, HELD_OUT, metric("ndcg@10")).means["ndcg@10"] for each in scores]
    assert [each["ndcg@10"] for each in trained.history.valid] == pytest.approx(means)
    assert trained.history.epoch == 1 + int(np.argmax(means)) == len(trained.model.state["roots"])
    assert trained.model.score_rounds(HELD_OUT) == pytest.approx(scores[trained.history.epoch - 1], abs=1e-12)


def test_going_on_equals_never_having_stopped(model):
    part = train(TrainingPlan("lightgbm", {**PARAMETERS, "n_rounds": 5}), LISTS).model
    plan = TrainingPlan("lightgbm", {**PARAMETERS, "n_rounds": 7})
    more = train(plan, LISTS, start=Model.from_bytes(part.to_bytes()))
    assert more.history.first_epoch == 5
    assert len(more.model.state["roots"]) == 10  # the number of trees is the started model's
    assert more.model.state["features"][: len(part.state["features"])].tolist() == part.state["features"].tolist()
    best = train(TrainingPlan("lightgbm", {**PARAMETERS, "n_rounds": 10}), LISTS).model
    assert more.model.score_rounds(LISTS) == pytest.approx(best.score_rounds(LISTS), abs=1e-9)


def test_lists_without_anything_to_learn_give_no_tree():
    few = Rounds.from_arrays(LISTS.X[:4], [0.0, 1.0, 0.0, 1.0])
    assert train(TrainingPlan("lightgbm"), few).model.score_rounds(few).tolist() == [0.0] * 4


TREES = {"roots": [0, 5], "features": [0, 1, -1, -1, -1, -1], "right": [4, 3, 0, 0, 0, 0], "thresholds": [0.0] * 6,
         "values": [0.0, 0.0, 1.0, 2.0, 3.0, 4.0], "covers": [3.0, 2.0, 1.0, 1.0, 1.0, 3.0]}  # fmt: skip


def test_a_state_is_restored_as_it_was():
    trees = TreeEnsemble(2)
    trees.restore(TREES)
    assert {name: array.tolist() for name, array in trees.state().items()} == TREES
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]], np.float32)
    assert trees.predict(X).tolist() == [5.0, 6.0, 7.0]
    assert trees.constant == pytest.approx(6.0)
    assert trees.contributions(X).sum(axis=1) == pytest.approx([-1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("roots", [0, 4]),
        ("roots", [1, 5]),
        ("roots", [0, 0]),
        ("features", [0, 2, -1, -1, -1, -1]),
        ("features", [0, 1, -2, -1, -1, -1]),
        ("features", [0, 1, -1, -1, -1, 0]),
        ("right", [5, 3, 0, 0, 0, 0]),
        ("right", [3, 3, 0, 0, 0, 0]),
        ("right", [0, 3, 0, 0, 0, 0]),
        ("right", [4, 2, 0, 0, 0, 0]),
        ("thresholds", [np.nan] * 6),
        ("values", [np.inf] * 6),
        ("covers", [0.0] * 6),
        ("covers", [1.0] * 5),
    ],
)
def test_forged_trees_are_refused(name, value):
    with pytest.raises(DataError, match="does not hold trees"):
        TreeEnsemble(2).restore({**TREES, name: value})


def test_an_estimator_chooses_by_its_evaluation_set_and_explains():
    X, y, group = HELD_OUT.X, HELD_OUT.labels, np.diff(HELD_OUT.offsets)
    ranker = ranktron.LambdaMART(n_rounds=12, num_leaves=7, min_data_in_leaf=5)
    ranker.fit(LISTS.X, LISTS.labels, group=np.diff(LISTS.offsets), eval_set=[(X, y)], eval_group=[group])
    assert 1 <= len(ranker.model_.state["roots"]) <= 12
    assert ranker.score(X, y, qid=np.repeat(HELD_OUT.qids, group)) > 0.5
