"""Any linear model starts any online linear learner, with everything that its weights are for."""

import json

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Feedback, Rounds, linear_start, play, start_on_top
from ranktron.data.scaling import Global
from ranktron.data.synthetic import WebSearch
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model
from ranktron.training.starting import starting_algorithms

LISTS = WebSearch(features=4, documents=7).rounds(40)
NAMES = ("bm25", "price", "stars", "age")
NAMED = Rounds(LISTS.X, LISTS.labels, LISTS.offsets, LISTS.qids, feature_names=NAMES)


def with_gaps():
    X = np.array(LISTS.X)
    X[::3, 1] = np.nan
    group = np.diff(LISTS.offsets)
    return Rounds.from_arrays(X, LISTS.labels, group=group, feature_names=NAMES, missing=True)


PLANS = {
    "scaled": (TrainingPlan("ranksvm", scaling="standard"), NAMED),
    "averaged": (TrainingPlan("hinge", {"average": True}, scaling="minmax"), LISTS),
    "within lists": (TrainingPlan("hinge", scaling="minmax-query"), NAMED),
    "mapped": (TrainingPlan("ranksvm", map="bins:4", scaling="standard"), NAMED),
    "imputed": (TrainingPlan("hinge", nan="indicator", scaling="standard"), with_gaps()),
    "running": (TrainingPlan("hinge", scaling="running-standard"), NAMED),
    "started": (TrainingPlan("pdgd"), NAMED),
}


@pytest.fixture(scope="module")
def models():
    return {name: train(plan, lists).model for name, (plan, lists) in PLANS.items()}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("algorithm", ["pdgd", "topk", "hinge", "listnet", "slam", "minimax"])
def test_a_started_learner_scores_as_the_model_does(models, name, algorithm):
    model, lists = models[name], PLANS[name][1]
    begun = linear_start(model).model(algorithm, trust=0.5)
    assert begun.kind == algorithm
    assert begun.learner().rounds == 0
    assert not begun.record
    ours, theirs = begun.score_rounds(lists), model.score_rounds(lists)
    if name == "running":  # frozen as it stands
        assert isinstance(begun.scaler, Global)
        assert begun.scaler.name == "standard"
    lengthened = algorithm == "pdgd" and model.kind != "pdgd" and model.scaler is not None
    factor = 4.0 / np.linalg.norm(model.weights) if lengthened else 1.0
    assert ours == pytest.approx(factor * theirs, rel=1e-5, abs=1e-5)
    again = Model.from_bytes(begun.to_bytes())
    assert again.to_bytes() == begun.to_bytes()
    learner = again.learner()
    list(play(learner, again.prepare(lists), learner.simulated_feedback))
    assert 0.0 < np.linalg.norm(learner.w - factor * model.weights) <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("name", ["scaled", "imputed"])
def test_training_goes_on_from_the_start_with_its_scaling(models, name):
    model, lists = models[name], PLANS[name][1]
    begun = linear_start(model).model("hinge", {"eta": 0.01})
    trained = train(TrainingPlan("hinge", schedule=Schedule(2)), lists, start=begun).model
    assert trained.learner().rounds == 80
    assert trained.scaler is begun.scaler
    assert (trained.state["start"] == model.weights).all()
    assert begun.estimator().model_.learner().w.tolist() == model.weights.tolist()


def test_a_length_changes_no_order(models):
    model = models["averaged"]
    for length in (0.5, 7.0):
        begun = linear_start(model).model("pdgd", length=length)
        assert np.linalg.norm(begun.weights) == pytest.approx(length)
        assert begun.weights / length == pytest.approx(model.weights / np.linalg.norm(model.weights))
    assert (linear_start([3.0, 4.0]).model("pdgd").weights == [3.0, 4.0]).all()
    assert (linear_start([0.0, 0.0]).model("pdgd", length=2.0).weights == 0.0).all()
    for length in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(DataError, match="length"):
            linear_start([1.0]).model("pdgd", length=length)


def test_the_algorithms_that_start_are_those_of_the_error():
    assert starting_algorithms() == ["slam", "minimax", "listnet", "hinge", "topk", "pdgd"]
    with pytest.raises(DataError, match="slam, minimax, listnet, hinge, topk, pdgd"):
        linear_start([1.0]).model("committee")
    with pytest.raises(DataError, match="ranksvm"):
        linear_start([1.0]).model("ranksvm")


def test_weights_by_name_may_leave_features_out():
    start = linear_start({"age": -1, "bm25": 2.0}, NAMES)
    assert start.weights.tolist() == [2.0, 0.0, 0.0, -1.0]
    assert start.feature_names == NAMES
    assert linear_start({}, NAMES).weights.tolist() == [0.0] * 4
    assert linear_start({"age": -1, "bm25": 2.0}).feature_names == ("age", "bm25")
    with pytest.raises(DataError, match="did you mean 'bm25'"):
        linear_start({"bm52": 1.0}, NAMES)


def test_arrays_and_learners_start():
    learner = ranktron.learners.hinge_perceptron(4)
    learner.w = np.arange(4.0)
    for source in (learner, np.arange(4.0), [0, 1, 2, 3]):
        start = linear_start(source, NAMES)
        assert start.weights.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert start.feature_names == NAMES


def test_scikit_learn_starts():
    linear = pytest.importorskip("sklearn.linear_model")
    X, y = np.array(LISTS.X), LISTS.labels > 0
    classifier = linear.LogisticRegression().fit(X, y)
    start = linear_start(classifier)
    assert (start.weights == classifier.coef_[0]).all()
    assert start.model("pdgd").score_rounds(LISTS) == pytest.approx(X @ classifier.coef_[0], rel=1e-5)
    pandas = pytest.importorskip("pandas")
    named = linear.Ridge().fit(pandas.DataFrame(X, columns=NAMES), LISTS.labels)
    assert linear_start(named).feature_names == NAMES
    assert linear_start(named, NAMES[::-1]).weights.tolist() == named.coef_[::-1].tolist()
    three = linear.LogisticRegression().fit(X, LISTS.labels.astype(int) % 3)
    with pytest.raises(DataError, match="one finite weight"):
        linear_start(three)


def test_xgboost_starts(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    X, y = np.array(LISTS.X), LISTS.labels
    data = xgboost.DMatrix(X, y, feature_names=list(NAMES))
    booster = xgboost.train({"booster": "gblinear", "objective": "reg:squarederror"}, data, 5)
    expected = booster.predict(data)
    saved, dumped, text = (tmp_path / name for name in ("saved.json", "dump.json", "dump.txt"))
    booster.save_model(saved)
    booster.dump_model(text)
    dumped.write_text(booster.get_dump(dump_format="json")[0])
    for source in (booster, saved, dumped):
        scores = linear_start(source).model("pdgd").score_rounds(LISTS)
        assert scores - scores.mean() == pytest.approx(expected - expected.mean(), abs=1e-4)
    assert linear_start(text).weights == pytest.approx(linear_start(booster).weights, abs=1e-5)
    assert linear_start(saved).feature_names == linear_start(booster).feature_names == NAMES
    trees = xgboost.train({"objective": "reg:squarederror"}, data, 2)
    for source in (trees, xgboost.XGBRegressor(n_estimators=2).fit(X, y)):
        with pytest.raises(DataError, match="start_on_top"):
            linear_start(source)
    trees.save_model(saved)
    with pytest.raises(DataError, match="neither a model file"):
        linear_start(saved)


def test_files_and_estimators_start(tmp_path, models):
    path = tmp_path / "my.model"
    models["scaled"].save(path)
    for source in (path, str(path), models["scaled"], models["scaled"].estimator()):
        assert (linear_start(source).weights == models["scaled"].weights).all()
    assert linear_start(path, NAMES).feature_names == NAMES
    with pytest.raises(DataError, match="the start has the features"):
        linear_start(path, NAMES[::-1])
    for text in ("", "{}", "[]", "bias:\n1", json.dumps({"learner": {}})):
        path.write_text(text)
        with pytest.raises(DataError, match="neither a model file"):
            linear_start(path)
    with pytest.raises(DataError, match="cannot read"):
        linear_start(tmp_path / "nothing")


@pytest.mark.parametrize("weights", [[], [[1.0], [2.0]], [np.nan], [np.inf, 1.0], [[1.0, 2.0], [3.0, 4.0]]])
def test_what_is_no_vector_of_weights_is_refused(weights):
    with pytest.raises(DataError, match="one finite weight"):
        linear_start(weights)


def test_names_and_weights_must_fit():
    with pytest.raises(DataError, match="2 weights for 4 features"):
        linear_start([1.0, 2.0], NAMES)
    with pytest.raises(DataError, match="unique"):
        linear_start([1.0, 2.0], ["a", "a"])
    with pytest.raises(DataError, match="no weights to start from"):
        linear_start(object())


def test_other_scorers_are_the_first_feature():
    voting = train(TrainingPlan("kernel", {"budget": 20}), LISTS).model
    with pytest.raises(DataError, match="start_on_top"):
        linear_start(voting)
    start = start_on_top(NAMES)
    assert start.feature_names == ("score", *NAMES)
    scores = voting.score_rounds(LISTS)
    X = np.column_stack([scores, np.array(LISTS.X)])
    model = start.model("pdgd")
    assert model.predict(X) == pytest.approx(scores, rel=1e-5)
    with pytest.raises(DataError, match="unique"):
        start_on_top(["score"])


def memory_game(tastes, seed, uses=200):
    """As docs/agents.md has it: helpful notes handed out while it learns, by its weights alone, and by hand."""
    hand_set, rng = {"bm25": 8.0, "cosine": 8.0, "recency": 2.0, "use": 2.0}, np.random.default_rng(seed)
    learner = linear_start(hand_set).model("pdgd", {"k": 5, "eta": 1.0, "seed": seed}, trust=12.0).learner()
    found = []
    for number in range(uses):
        topic = rng.beta(1, 3, size=20)
        bm25, cosine = (np.clip(topic + noise * rng.normal(size=20), 0, 1) for noise in (0.2, 0.1))
        recency, use = 0.5 ** (rng.exponential(60, size=20) / 30), np.clip(rng.exponential(0.3, size=20), 0, 1)
        X = np.column_stack([bm25, cosine, recency, use]).astype(np.float32)
        helps = X @ tastes >= np.sort(X @ tastes)[-3]
        ranking = learner.rank(X, number)
        first = ranking.order[:5]
        orders = first, np.argsort(-learner.scores(X))[:5], np.argsort(-(X @ list(hand_set.values())))[:5]
        found.append([helps[order].sum() / 3 for order in orders])
        cited = (helps[first] & (rng.random(5) < 0.9)) | (rng.random(5) < 0.03)
        learner.learn(X, ranking, Feedback(first, cited.astype(float)))
    return np.array(found)


def test_hand_set_weights_are_overtaken_where_they_are_wrong_and_kept_where_they_are_right():
    wrong, right = (
        np.mean([memory_game(np.array(tastes), seed) for seed in range(6)], axis=0)
        for tastes in ([1.0, 3.0, 5.0, 3.0], [8.0, 8.0, 2.0, 2.0])
    )
    learning, _, by_hand = wrong[50:100].mean(axis=0)
    assert learning > by_hand + 0.1  # ahead after fifty uses
    assert wrong[150:, 0].mean() > by_hand + 0.25
    learning, alone, by_hand = right.mean(axis=0)
    assert by_hand == 1.0
    assert learning > 0.94
    assert alone > 0.99  # by its weights, without drawing
