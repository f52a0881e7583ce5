"""Models that fill in missing values: a feature may be null, or left out where features come by name."""

import numpy as np
import pytest

from ranktron.data.rounds import Rounds
from ranktron.store.errors import RequestError
from ranktron.store.messages import Document
from ranktron.store.rankers.features import document_matrix
from ranktron.store.rankers.models import warm
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model
from ranktron.types import Feedback

NAMES = ("f0", "f1", "f2")


@pytest.fixture
def served(talk, lists):
    seen = list(lists(20))
    X = np.concatenate([each for each, _ in seen])
    X[::3, 1] = np.nan
    labels, sizes = np.concatenate([labels for _, labels in seen]), [len(each) for each, _ in seen]
    rounds = Rounds.from_arrays(X, labels, group=sizes, feature_names=NAMES, missing=True)
    model = train(TrainingPlan("hinge", nan="indicator", scaling="standard"), rounds).model
    warm(model, 2)
    talk.make(algorithm="hinge")
    talk.ask("POST", "/v1/rankers/shop/model", content=model.to_bytes(), content_type="application/octet-stream")
    return talk, model


def ask(talk, features, status=200):
    documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(features)]
    return talk.ask("POST", "/v1/rankers/shop/rank", {"query": "q", "documents": documents}, status)


def test_null_and_features_left_out_are_missing(served):
    talk, model = served
    X = np.array([[1.0, np.nan, 2.0], [0.5, 1.5, -1.0], [np.nan, 0.0, 3.0]], np.float32)
    listed = [[1, None, 2], [0.5, 1.5, -1], [None, 0, 3]]
    by_name = [{"f2": 2, "f0": 1}, {"f0": 0.5, "f1": 1.5, "f2": -1}, {"f0": None, "f1": 0, "f2": 3}]
    for features in (listed, by_name):
        shown = ask(talk, features)["ranking"]
        scores = {ranked["id"]: ranked["score"] for ranked in shown}
        np.testing.assert_array_equal([scores[f"d{i}"] for i in range(3)], model.learner().scores(
            model.prepare(Rounds.from_arrays(X, np.zeros(3), missing=True)).X))  # fmt: skip


def test_what_is_missing_is_learnt_from_and_explained(served):
    talk, model = served
    shown = ask(talk, [[1, None, 2], [0.5, 1.5, -1], [None, 0, 3]])
    parts = talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")["documents"]
    told = {"f0", "f1", "f2", "f1 is missing"}
    assert all(set(each["contributions"]) == told for each in parts)
    for each in parts:
        assert sum(each["contributions"].values()) == pytest.approx(each["score"], abs=1e-6)
    worst = shown["ranking"][-1]["id"]
    grades = {ranked["id"]: float(ranked["id"] == worst) for ranked in shown["ranking"]}
    talk.tell(shown["round"], grades)
    after = Model.from_bytes(talk.ask("GET", "/v1/rankers/shop/model"))
    learner = model.learner()
    X = np.array([[1.0, np.nan, 2.0], [0.5, 1.5, -1.0], [np.nan, 0.0, 3.0]], np.float32)
    features = model.prepare(Rounds.from_arrays(X, np.zeros(3), missing=True)).X
    labels = np.array([float(f"d{i}" == worst) for i in range(3)])
    learner.learn(features, learner.rank(features, shown["round"]), Feedback(np.arange(3), labels))
    assert not np.array_equal(after.coef, model.coef)
    np.testing.assert_allclose(after.coef, learner.coef, rtol=1e-12)


def test_an_unknown_name_and_a_short_list_are_still_refused(served):
    talk, _ = served
    assert ask(talk, [{"f0": 1, "price": 2}], 422) == "wrong_features"
    assert ask(talk, [[1, None]], 422) == "wrong_features"


def test_a_model_without_a_rule_refuses_null(talk):
    talk.make(algorithm="hinge")
    assert ask(talk, [[1, None, 2]], 422) == "invalid"
    assert ask(talk, [{"f0": 1, "f1": 2}], 422) == "wrong_features"
    with pytest.raises(RequestError, match="got `null`; only a model that was trained with a rule for missing values"):
        document_matrix([Document("a", [1.0, None, 2.0])], NAMES)
