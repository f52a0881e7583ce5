"""Rankers that start from given weights: in a definition, or from a model file with `?as=`."""

import json
from contextlib import ExitStack

import numpy as np
import pytest

from ranktron.data.synthetic import WebSearch
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model

BYTES = "application/octet-stream"
LISTS = WebSearch(features=3, documents=6).rounds(30)
START = {"features": ["price", "age", "size"], "algorithm": "pdgd", "start": {"age": 2.0}, "trust": 0.05}


def send(talk, method, path, data):
    answer = talk.request(method, path, data, content_type=BYTES)
    return answer.status, json.loads(answer.content)


def model_of(talk, name="shop"):
    return Model.from_bytes(talk.ask("GET", f"/v1/rankers/{name}/model"))


def play(talk, rounds, name="shop"):
    """Ranks lists, and clicks what is relevant."""
    for round in rounds:
        documents = [{"id": str(i), "features": row.tolist()} for i, row in enumerate(np.array(round.X))]
        shown = talk.ask("POST", f"/v1/rankers/{name}/rank", {"documents": documents})
        first = [each["id"] for each in shown["ranking"][:10]]
        clicks = [id for id in first if round.labels[int(id)] > 0]
        talk.ask("POST", f"/v1/rankers/{name}/feedback", {"round": shown["round"], "clicks": clicks})


@pytest.fixture
def restart(serving, tmp_path):
    """A function that crashes a service and opens its folder again."""
    with ExitStack() as stack:

        def again(talk):
            talk.crash()
            return stack.enter_context(serving(tmp_path / "state"))

        yield again


@pytest.fixture(scope="module")
def trained():
    return train(TrainingPlan("ranksvm", scaling="standard"), LISTS).model


def test_a_definition_starts_from_weights_and_stays_near_them(talk, restart):
    talk.ask("PUT", "/v1/rankers/shop", START)
    begun = model_of(talk)
    assert begun.weights.tolist() == [0.0, 2.0, 0.0]
    assert begun.scaler is None  # features as given
    play(talk, LISTS)
    weights = model_of(talk).learner().w
    assert 0.04 < np.linalg.norm(weights - [0.0, 2.0, 0.0]) <= 0.05 * (1 + 1e-12)
    again = restart(talk)
    assert (model_of(again).learner().w == weights).all()
    play(again, LISTS)
    assert np.linalg.norm(model_of(again).learner().w - [0.0, 2.0, 0.0]) <= 0.05 * (1 + 1e-12)
    again.ask("PUT", "/v1/rankers/shop", START)  # the same definition
    status, _ = send_json(again, {**START, "trust": 0.5})
    assert status == 409


def send_json(talk, definition, name="shop"):
    answer = talk.request(
        "PUT", f"/v1/rankers/{name}", json.dumps(definition).encode(), content_type="application/json"
    )
    return answer.status, json.loads(answer.content)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"start": {"ag": 1.0}}, "bad_start"),
        ({"algorithm": "pairwise"}, "bad_start"),
        ({"trust": 0.0}, "invalid"),
        ({"per": "ranker"}, "invalid"),
        ({"per": "user", "algorithm": "topk", "start": None, "trust": None}, "bad_per"),
        ({"trust": -1.0}, "invalid"),
        ({"start": {"age": "much"}}, "invalid"),
    ],
)
def test_impossible_starts_are_refused_in_a_sentence(talk, change, code):
    status, answer = send_json(talk, {**START, **change})
    assert (status, answer["error"]["code"]) == (422, code)
    assert talk.ask("GET", "/v1/rankers")["rankers"] == []


def test_a_scaling_within_lists_can_be_asked_for(talk):
    talk.ask("PUT", "/v1/rankers/shop", {**START, "scale": "standard-query"})
    assert model_of(talk).scaler.name == "standard-query"


def test_trust_alone_is_around_0(talk):
    talk.ask("PUT", "/v1/rankers/shop", {**START, "start": None})
    play(talk, LISTS)
    assert 0.0 < np.linalg.norm(model_of(talk).learner().w) <= 0.05 * (1 + 1e-12)


@pytest.mark.parametrize(("method", "suffix"), [("PUT", ""), ("POST", "/model")])
def test_a_model_file_starts_a_learner_with_its_scaling(talk, restart, trained, method, suffix):
    if method == "POST":
        talk.ask("PUT", "/v1/rankers/shop", {"features": ["1", "2", "3"]})
    status, answer = send(talk, method, f"/v1/rankers/shop{suffix}?as=pdgd&trust=0.25", trained.to_bytes())
    assert status == 200, answer
    assert (answer["algorithm"], answer["learns"], answer["scale"]) == ("pdgd", "top", "standard")
    begun = model_of(talk)
    start = begun.learner().w
    assert start == pytest.approx(4.0 / np.linalg.norm(trained.weights) * trained.weights)
    assert begun.learner().rounds == 0
    play(talk, LISTS)
    weights = model_of(talk).learner().w
    assert 0.0 < np.linalg.norm(weights - start) <= 0.25 * (1 + 1e-12)
    assert (model_of(restart(talk)).learner().w == weights).all()


def test_the_same_start_twice_is_one_ranker(talk, trained):
    path = "/v1/rankers/shop?as=pdgd"
    assert send(talk, "PUT", path, trained.to_bytes())[0] == 200
    assert send(talk, "PUT", path, trained.to_bytes())[0] == 200
    status, answer = send(talk, "PUT", "/v1/rankers/shop?as=hinge", trained.to_bytes())
    assert (status, answer["error"]["code"]) == (409, "exists")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("as=committee", "bad_model"),
        ("as=nothing", "bad_model"),
        ("as=pdgd&trust=0", "bad_query"),
        ("as=pdgd&trust=much", "bad_query"),
        ("as=pdgd&trust=inf", "bad_query"),
        ("trust=2", "bad_query"),
        ("as=pdgd&per=ranker", "bad_query"),
        ("as=pdgd&as=topk", "bad_query"),
        ("like=pdgd", "bad_query"),
    ],
)
def test_impossible_questions_are_refused_in_a_sentence(talk, trained, query, code):
    status, answer = send(talk, "PUT", f"/v1/rankers/shop?{query}", trained.to_bytes())
    assert (status, answer["error"]["code"]) == (422, code)
    assert talk.ask("GET", "/v1/rankers")["rankers"] == []


def test_a_model_file_starts_a_learner_with_weights_of_users_own(talk, trained):
    assert send(talk, "PUT", "/v1/rankers/shop?as=pdgd&per=user", trained.to_bytes())[0] == 200
    assert model_of(talk).users == 100_000
    assert send(talk, "PUT", "/v1/rankers/other?as=topk&per=user", trained.to_bytes())[0] == 422


def test_a_definition_takes_no_question(talk):
    assert talk.ask("PUT", "/v1/rankers/shop?as=pdgd", START, status=422) == "bad_query"
