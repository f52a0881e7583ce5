"""The routes: what they take and give, how they refuse, and that feedback may come late, in part, and twice."""

import json
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from ranktron import Rounds, load
from ranktron.data.synthetic import Separable
from ranktron.store.messages import Document
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import Schedule, TrainingPlan, train
from ranktron.training.model import Model

ROUND = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]])


def test_a_session(talk):
    made = talk.make(labels=[0, 4])
    assert (made["name"], made["algorithm"], made["k"], made["version"]) == ("shop", "topk", 2, 0)
    shown = talk.rank(ROUND)
    assert set(shown) == {"round", "ranking", "explored", "version"}
    assert [ranked["position"] for ranked in shown["ranking"]] == [1, 2, 3]
    assert {ranked["id"] for ranked in shown["ranking"]} == {"d0", "d1", "d2"}
    assert talk.answer(shown) == {"learned": True, "version": 1}
    assert np.abs(talk.weights()).max() > 0.0
    assert talk.ask("GET", "/v1/rankers") == {"rankers": [talk.ask("GET", "/v1/rankers/shop")], "set_aside": []}
    assert talk.ask("GET", "/v1/rankers/shop")["rounds"] == 1


def test_features_by_name_are_the_features_in_order(talk):
    talk.make(features=["a", "b"])
    by_name = [{"id": "x", "features": {"b": 2.0, "a": 1.0}}, {"id": "y", "features": {"a": 3.0, "b": 4}}]
    shown = talk.ask("POST", "/v1/rankers/shop/rank", {"documents": by_name})
    rows = talk.service.live("shop").matrix
    assert rows([Document(**each) for each in by_name]).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert len(shown["ranking"]) == 2


def test_feedback_twice_is_learnt_once_and_answered_alike(talk):
    talk.make()
    shown = talk.rank(ROUND)
    first = talk.answer(shown)
    weights = talk.weights().tolist()
    talk.play(3)
    later = talk.weights().tolist()
    assert talk.answer(shown) == first
    assert talk.weights().tolist() == later != weights
    assert talk.tell(shown["round"], {shown["ranking"][0]["id"]: 2}, status=409) == "already_answered"


def test_feedback_may_be_late_partial_and_out_of_order(talk, lists):
    talk.make()
    shown = [talk.rank(X) for X, _ in lists(5)]
    for turn in reversed(shown):
        assert talk.tell(turn["round"], {turn["ranking"][1]["id"]: 1})["learned"]
    assert talk.ask("GET", "/v1/rankers/shop")["open"] == 0


BAD_RANKS = {
    "wrong_features": {"documents": [{"id": "a", "features": [1.0]}]},
    "wrong_features by name": {"documents": [{"id": "a", "features": {"f0": 1.0}}]},
    "wrong_features too many": {"documents": [{"id": "a", "features": {"f0": 1, "f1": 1, "f2": 1, "f3": 1}}]},
    "duplicate_document": {"documents": [{"id": "a", "features": [1, 2, 3]}, {"id": "a", "features": [1, 2, 3]}]},
    "feature_too_large": {"documents": [{"id": "a", "features": [1e39, 0, 0]}]},
    "invalid": {"documents": []},
    "invalid text": {"documents": [{"id": "a", "features": [1, 2, "3"]}]},
    "invalid null": {"documents": [{"id": "a", "features": [1, 2, None]}]},
    "invalid id": {"documents": [{"id": 7, "features": [1, 2, 3]}]},
    "invalid field": {"documents": [{"id": "a", "features": [1, 2, 3]}], "limit": 3},
}


@pytest.mark.parametrize("what", BAD_RANKS)
def test_bad_lists_are_refused_and_change_nothing(talk, what):
    talk.make()
    assert talk.ask("POST", "/v1/rankers/shop/rank", BAD_RANKS[what], status=422) == what.split()[0]
    assert talk.ask("GET", "/v1/rankers/shop")["rounds"] == 0


def message(talk, method, path, json=None, content=b"", **headers):
    """What is said of a request that is refused."""
    if json is not None:
        content, headers = msgspec.json.encode(json), {"content_type": "application/json"}
    return msgspec.json.decode(talk.request(method, path, content, **headers).content)["error"]["message"]


def test_messages_say_which_one_is_wrong(talk):
    talk.make()
    assert message(talk, "POST", "/v1/rankers/shop/rank", BAD_RANKS["duplicate_document"]) == (
        "two documents have the id 'a': ids must be unique"
    )
    assert message(talk, "PUT", "/v1/rankers/x", {"features": ["a", "b", "b", "a"]}) == "two features have the name 'b'"
    shown = talk.rank(ROUND)
    last, number = shown["ranking"][-1]["id"], shown["round"]
    path, first = "/v1/rankers/shop/feedback", f"not among the first 2 shown in round {number}"
    assert message(talk, "POST", path, {"round": number, "labels": {last: 1}}) == (
        f"document {last!r} is {first}: feedback is on these alone (the ranker's k)"
    )
    assert message(talk, "POST", path, {"round": number, "labels": {"nobody": 1}}) == f"document 'nobody' is {first}"
    table = message(
        talk, "PUT", "/v1/rankers/x", content=b"qid,label,price\n" * 9, content_type="application/octet-stream"
    )
    assert table.startswith("the model is not a Ranktron model")


BAD_DEFINITIONS = {
    "bad_parameters": {"parameters": {"k": 0}},
    "bad_parameters unknown": {"parameters": {"depth": 3}},
    "bad_parameters algorithm": {"algorithm": "trees"},
    "bad_parameters large": {"parameters": {"k": 1000}},
    "bad_parameters seed": {"parameters": {"seed": 2**63}},
    "not_online": {"algorithm": "ranksvm"},
    "bad_labels": {"labels": [2, 2]},
    "duplicate_feature": {"features": ["a", "a"]},
    "invalid": {"features": []},
}


@pytest.mark.parametrize("what", BAD_DEFINITIONS)
def test_bad_definitions_are_refused(talk, what):
    definition = {"features": ["a"], **BAD_DEFINITIONS[what]}
    assert talk.ask("PUT", "/v1/rankers/shop", definition, status=422) == what.split()[0]
    assert talk.ask("GET", "/v1/rankers") == {"rankers": [], "set_aside": []}


def test_bad_feedback_is_refused_and_the_round_stays_open(talk):
    talk.make(labels=[0, 2])
    shown = talk.rank(ROUND)
    number, last = shown["round"], shown["ranking"][2]["id"]
    first = shown["ranking"][0]["id"]
    assert talk.tell(number, {last: 1}, status=422) == "not_shown"
    assert talk.tell(number, {"nobody": 1}, status=422) == "not_shown"
    assert talk.tell(number, {first: 3}, status=422) == "label_out_of_range"
    assert talk.tell(number, {first: -1}, status=422) == "invalid"
    assert talk.tell(number, {}, status=422) == "invalid"
    assert talk.tell(number + 1, {first: 1}, status=404) == "unknown_round"
    assert talk.tell(number, {first: 1}, name="nobody", status=404) == "unknown_ranker"
    assert not talk.weights().any()
    assert talk.tell(number, {first: 1})["learned"]


def test_names_are_limited(talk):
    for name in ("a" * 65, "-a", "a%20b", "%2e%2e", "a%00"):
        talk.ask("PUT", f"/v1/rankers/{name}", {"features": ["a"]}, status=422)
    assert talk.ask("PUT", "/v1/rankers/a/b", {"features": ["a"]}, status=404) == "not_found"


def test_a_ranker_is_made_once(talk):
    talk.make()
    talk.play(2)
    assert talk.make()["version"] == 2
    assert talk.ask("PUT", "/v1/rankers/shop", {"features": ["other"]}, status=409) == "exists"


def test_a_deleted_ranker_is_gone_and_its_rounds_are_never_counted_again(talk):
    talk.make()
    shown = talk.rank(ROUND)
    talk.ask("DELETE", "/v1/rankers/shop")
    assert talk.rank(ROUND, status=404) == "unknown_ranker"
    talk.make()
    again = talk.rank(ROUND)
    assert again["round"] > shown["round"]
    assert talk.tell(shown["round"], {"d0": 1}, status=410) == "round_gone"


def test_nothing_is_said_of_what_a_deleted_ranker_has_learnt(serving, tmp_path):
    """Its feedback, sent again, is neither learnt nor called lost: the ranker that knew is gone."""
    with serving(tmp_path) as talk:
        talk.make()
        shown = talk.rank(ROUND)
        talk.answer(shown)
        talk.ask("DELETE", "/v1/rankers/shop")
        talk.make()
        told = {"round": shown["round"], "labels": {shown["ranking"][0]["id"]: 1}}
    for _ in range(2):
        with serving(tmp_path) as talk:
            body = json.dumps(told).encode()
            answer = talk.request("POST", "/v1/rankers/shop/feedback", body, content_type="application/json")
            assert answer.status == 410
            assert b"it belongs to a deleted ranker of the same name" in answer.content
            assert b"nothing was learnt" not in answer.content
            talk.answer(talk.rank(ROUND))


SOLVED = ("ranksvm", "smoothrank", "rankboost", "rankmm", "lightgbm")
ONLINE = [name for name in ALGORITHMS if name not in ("topk", "pdgd", *SOLVED)]


@pytest.mark.parametrize("name", ONLINE)
def test_full_feedback(talk, lists, name):
    talk.make(algorithm=name)
    for X, labels in lists(5):
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        given = {f"d{i}": float(label) for i, label in enumerate(labels)}
        answer = talk.ask("POST", "/v1/rankers/shop/full", {"documents": documents, "labels": given})
        assert answer["learned"]
    assert answer["version"] == 5
    assert name == "kernel" or talk.weights().any()
    lacking = {"documents": documents, "labels": {"d0": 1}}
    assert talk.ask("POST", "/v1/rankers/shop/full", lacking, status=422) == "wrong_labels"


def test_a_learner_from_the_top_does_not_take_full_feedback(talk):
    talk.make()
    request = {"documents": [{"id": "a", "features": [1, 2, 3]}], "labels": {"a": 1}}
    assert talk.ask("POST", "/v1/rankers/shop/full", request, status=409) == "learns_from_the_top"


def test_batches(talk):
    talk.make()
    one = {"documents": [{"id": "a", "features": [1, 2, 3]}, {"id": "b", "features": [0, 0, 0]}]}
    bad = {"documents": [{"id": "a", "features": [1]}]}
    answers = talk.ask("POST", "/v1/rankers/shop/rank/batch", {"requests": [one, bad, one]})["answers"]
    assert [answer.get("round") for answer in answers] == [0, None, 1]
    assert answers[1]["error"]["code"] == "wrong_features"
    feedback = [{"round": n, "labels": {answers[2]["ranking"][0]["id"]: 1}} for n in (1, 1, 9)]
    told = talk.ask("POST", "/v1/rankers/shop/feedback/batch", {"requests": feedback})["answers"]
    assert told[0] == told[1] == {"learned": True, "version": 1}
    assert told[2]["error"]["code"] == "unknown_round"
    talk.make("all", algorithm="hinge")
    full = {**one, "labels": {"a": 0, "b": 1}}
    answers = talk.ask("POST", "/v1/rankers/all/full/batch", {"requests": [full, full]})["answers"]
    assert [answer["version"] for answer in answers] == [1, 2]
    many = {"requests": [one] * 101}
    assert talk.ask("POST", "/v1/rankers/shop/rank/batch", many, status=413) == "too_many_requests_in_batch"


def test_explanations_add_up_to_the_scores(talk):
    talk.make()
    talk.play(5)
    shown = talk.rank(ROUND)
    for explanation in (talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}"),):
        for ranked, document in zip(shown["ranking"], explanation["documents"], strict=True):
            assert document["id"] == ranked["id"]
            assert sum(document["contributions"].values()) == pytest.approx(ranked["score"])
        first, second, last = explanation["documents"]
        assert sum(first["because"].values()) == pytest.approx(first["lead"])
        assert first["lead"] == pytest.approx(first["score"] - second["score"])
        assert last["lead"] is None
    before = explanation["documents"]
    talk.answer(shown)
    after = talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")
    assert after["answered"]
    assert after["documents"] == before  # by the weights that ranked, not by those of today
    assert talk.ask("GET", "/v1/rankers/shop/explain/99", status=404) == "unknown_round"
    assert talk.ask("GET", "/v1/rankers/shop/explain/x", status=404) == "unknown_round"


def test_the_model_file_is_the_state(talk, tmp_path):
    talk.make()
    talk.play(20)
    data = talk.ask("GET", "/v1/rankers/shop/model")
    assert data == talk.ask("GET", "/v1/rankers/shop/model")
    (tmp_path / "shop.model").write_bytes(data)
    model = load(tmp_path / "shop.model")
    assert model.learner().w.tolist() == talk.weights().tolist()
    assert model.names == ("f0", "f1", "f2")


def posted(talk, data, status=200):
    path = "/v1/rankers/shop/model"
    return talk.ask("POST", path, status=status, content=data, content_type="application/octet-stream")


def as_rounds(some, by=1.0, plus=0.0):
    X, labels = np.concatenate([X for X, _ in some]), np.concatenate([labels for _, labels in some])
    return Rounds.from_arrays(X * by + plus, labels, group=[len(each) for _, each in some])


def test_a_ranker_goes_on_from_a_trained_model_with_its_scaling(talk, lists):
    rounds = as_rounds(list(lists(20)))
    talk.make()
    for name in ("ranksvm", "rankboost"):
        model = train(TrainingPlan(name, schedule=Schedule(epochs=1)), rounds).model
        assert posted(talk, model.to_bytes())["learns"] == "nothing"
        shown = talk.rank(rounds[0].X)
        assert [f"d{i}" for i in model.rank(rounds[0].X)] == [ranked["id"] for ranked in shown["ranking"]]
        assert talk.tell(shown["round"], {"d0": 1}, status=409) == "does_not_learn"
        assert talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")["documents"]


def put(talk, data, name="shop", status=200):
    kind = "application/octet-stream"
    return talk.ask("PUT", f"/v1/rankers/{name}", status=status, content=data, content_type=kind)


@pytest.mark.parametrize("kind", ["ranksvm", "rankboost", "lightgbm", "rankmm", "slam", "topk", "pairwise"])
def test_a_ranker_is_made_from_a_model_file(tmp_path, serving, lists, kind):
    rounds = as_rounds(list(lists(20)))
    model = train(TrainingPlan(kind, schedule=Schedule(epochs=1)), rounds).model
    other = train(TrainingPlan(kind, schedule=Schedule(epochs=1)), as_rounds(list(lists(20, seed=1)))).model.to_bytes()
    with serving(tmp_path) as talk:
        made = put(talk, model.to_bytes())
        assert (made["algorithm"], made["features"], made["version"]) == (kind, list(model.names), 1)
        served = talk.ask("GET", "/v1/rankers/shop/model")
        assert Model.from_bytes(served).predict(rounds[0].X).tolist() == model.predict(rounds[0].X).tolist()
        if made["learns"] == "top":
            talk.play(3)
        left = put(talk, model.to_bytes())  # whatever it has learnt since
        assert left == talk.ask("GET", "/v1/rankers/shop")
        assert put(talk, other, status=409) == "exists"
        served = talk.ask("GET", "/v1/rankers/shop/model")
    with serving(tmp_path) as talk:
        assert talk.ask("GET", "/v1/rankers/shop") == left
        assert talk.ask("GET", "/v1/rankers/shop/model") == served
        assert put(talk, model.to_bytes()) == left


def test_advice_leads_somewhere(talk, lists):
    definition = {"features": ["1", "2", "3"], "algorithm": "ranksvm"}
    refused = talk.request("PUT", "/v1/rankers/shop", json.dumps(definition).encode(), content_type="application/json")
    assert b"then PUT the model file here instead" in refused.content
    model = train(TrainingPlan("ranksvm", schedule=Schedule(epochs=1)), as_rounds(list(lists(20)))).model.to_bytes()
    kind = "application/octet-stream"
    refused = talk.request("POST", "/v1/rankers/shop/model", model, content_type=kind)
    assert b"PUT /v1/rankers/shop makes one, from a definition or from a model file" in refused.content
    assert put(talk, model)["learns"] == "nothing"


def test_a_model_of_another_kind_is_said_to_be_one_and_can_be_undone(talk, lists):
    talk.make()
    talk.play(4)
    weights = talk.weights().tolist()
    model = train(TrainingPlan("ranksvm", schedule=Schedule(epochs=1)), as_rounds(list(lists(20)))).model.to_bytes()
    answer = posted(talk, model)
    assert answer["note"] == (
        "ranker 'shop' was topk and is now ranksvm: its open rounds were dropped; to go back, roll back to version 4"
    )
    assert "note" not in posted(talk, model)
    assert talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 4})["algorithm"] == "topk"
    assert talk.weights().tolist() == weights


def test_what_no_ranker_can_be_made_from(talk):
    long = Model("hinge", {}, ALGORITHMS["hinge"].learner(1, {}).state(), 1, feature_names=("x" * 300,))
    mapped = train(TrainingPlan("hinge", map="rff:4"), Separable(documents=5, features=3).rounds(9)).model
    wide = Model("hinge", {}, ALGORITHMS["hinge"].learner(2_000, {}).state(), 2_000)
    for data in (b"", b"x" * 100, long.to_bytes(), mapped.to_bytes(), wide.to_bytes()):
        assert put(talk, data, status=422) == "bad_model"
    good = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3).to_bytes()
    assert put(talk, good, name="a%20b", status=422) == "bad_name"
    made = {"features": ["a"], "model": "0" * 64}
    assert talk.ask("PUT", "/v1/rankers/shop", made, status=422) == "invalid"
    assert talk.ask("GET", "/v1/rankers") == {"rankers": [], "set_aside": []}


def test_bad_models_are_refused(talk):
    talk.make()
    wide = Model("hinge", {}, ALGORITHMS["hinge"].learner(4, {}).state(), 4)
    named = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3, feature_names=("x", "y", "z"))
    lists = Separable(documents=5, features=3).rounds(9)
    mapped = train(TrainingPlan("hinge", map="rff:4"), lists).model.to_bytes()
    for data in (b"", b"ranktron\n", b"x" * 100, wide.to_bytes(), named.to_bytes(), named.to_bytes()[:-9], mapped):
        assert posted(talk, data, status=422) == "bad_model"
    assert talk.ask("GET", "/v1/rankers/shop")["version"] == 0


def test_rolling_back(talk):
    talk.make()
    talk.play(5)
    kept = talk.ask("POST", "/v1/rankers/shop/versions")
    assert kept == {"version": 5, "kept": [5]}
    weights, data = talk.weights().tolist(), talk.ask("GET", "/v1/rankers/shop/model")
    waiting = talk.rank(ROUND)
    talk.play(5, seed=1)
    assert talk.weights().tolist() != weights
    answer = talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 5})
    assert (answer["version"], answer["rounds"]) == (11, 11)
    assert talk.weights().tolist() == weights
    assert talk.ask("GET", "/v1/rankers/shop/model") == data
    assert talk.answer(waiting) == {"learned": True, "version": 12}  # the round was open, and still is
    assert talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 6}, status=404) == "unknown_version"


def test_a_model_of_another_kind_drops_open_rounds(talk):
    talk.make()
    shown = talk.rank(ROUND)
    posted(talk, Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3).to_bytes())
    assert talk.tell(shown["round"], {"d0": 1}, status=410) == "round_gone"
    shown = talk.rank(ROUND)
    assert talk.answer(shown)["learned"]


def test_the_dashboard(talk):
    talk.make()
    talk.play(30)
    waiting = talk.rank(ROUND, query="late")
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert (board["rounds"], board["open"], board["version"]) == (31, 1, 30)
    assert board["feedback"]["rounds"] == 30
    assert 0.0 <= board["feedback"]["delay"]["p50"] <= board["feedback"]["delay"]["p99"]
    assert [point["round"] for point in board["curve"]] == list(range(30))
    assert all(0.0 <= point["value"] <= 1.0 for point in board["curve"])
    assert [weight["feature"] for weight in board["weights"]] == ["f0", "f1", "f2"]
    assert [weight["weight"] for weight in board["weights"]] == talk.weights().tolist()
    assert [weight["drift"] for weight in board["weights"]] == talk.weights().tolist()  # since version 0
    assert board["updates"]["window"] == 30
    newest = board["recent"][0]
    assert (newest["round"], newest["query"], newest["answered"]) == (waiting["round"], "late", False)
    assert len(board["recent"]) == 20
    assert board["recent"][1]["labels"]
    assert board["health"]["ready"]
    talk.ask("POST", "/v1/rankers/shop/versions")
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert board["updates"]["window"] == 30  # a snapshot is no beginning
    assert board["health"]["snapshot_age"] >= 0.0


def test_drift_is_counted_over_the_last_hundred_updates_of_one_model(talk):
    talk.make()
    talk.play(20)
    kept = talk.ask("POST", "/v1/rankers/shop/versions")["version"]
    weights = talk.weights()
    talk.play(100, seed=1)
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert board["updates"]["window"] == 100
    assert [weight["drift"] for weight in board["weights"]] == (talk.weights() - weights).tolist()
    talk.ask("POST", "/v1/rankers/shop/rollback", {"version": kept})
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert board["updates"]["window"] == 0
    assert {weight["drift"] for weight in board["weights"]} == {0.0}
    talk.play(1, seed=2)
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert board["updates"]["window"] == 1
    assert [weight["drift"] for weight in board["weights"]] == (talk.weights() - weights).tolist()


def test_methods_and_paths(talk):
    assert talk.ask("GET", "/nothing", status=404) == "not_found"
    assert talk.ask("PATCH", "/v1/rankers/shop", status=405) == "method_not_allowed"
    assert talk.ask("GET", "/healthz") == {"ready": True}
    assert talk.ask("GET", "/readyz") == {"ready": True}
    assert talk.ask("GET", "/openapi.json")["openapi"] == "3.1.0"


def test_the_page(talk):
    answer = talk.request("GET", "/")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for path in ("/static/nothing.js", "/static/..%2f..%2ftypes.py", "/static/%2e%2e", "/static/index.py"):
        assert talk.request("GET", path).status == 404


def test_the_same_definition_is_the_same_with_and_without_its_defaults(talk):
    talk.make(algorithm="hinge")
    assert talk.make(algorithm="hinge", parameters={"eta": 0.1})["parameters"]["eta"] == 0.1
    names = ["f0", "f1", "f2"]
    other = {"features": names, "algorithm": "hinge", "parameters": {"eta": 2.0}}
    assert talk.ask("PUT", "/v1/rankers/shop", other, status=409) == "exists"


def test_a_ranker_keeps_its_parameters_when_a_default_changes(tmp_path, serving, monkeypatch):
    with serving(tmp_path / "state") as talk:
        talk.make(algorithm="hinge")
        before = talk.ask("GET", "/v1/rankers/shop")
    hinge = ALGORITHMS["hinge"]
    later = tuple(replace(p, recommended=0.25) if p.name == "eta" else p for p in hinge.parameters)
    monkeypatch.setitem(ALGORITHMS, "hinge", replace(hinge, parameters=later))
    with serving(tmp_path / "state") as talk:
        assert talk.ask("GET", "/v1/rankers/shop") == before
        assert talk.make(algorithm="hinge", parameters=before["parameters"]) == before
        definition = {"features": ["f0", "f1", "f2"], "scale": "none", "algorithm": "hinge"}
        assert talk.ask("PUT", "/v1/rankers/shop", definition, status=409) == "exists"  # which means another eta now
        assert talk.make(name="new", algorithm="hinge")["parameters"]["eta"] == 0.25


def test_a_name_that_is_no_text_is_refused_alone(talk):
    talk.make(features=["a"])
    good = b'{"documents": [{"id": "x", "features": {"a": 1}}]}'
    bad = b'{"documents": [{"id": "x", "features": {"a\xff": 1}}]}'
    answer = talk.request("POST", "/v1/rankers/shop/rank", bad, content_type="application/json")
    assert answer.status == 400, answer
    batch = b'{"requests": [' + b", ".join([good, bad, good]) + b"]}"
    answers = talk.ask("POST", "/v1/rankers/shop/rank/batch", content=batch, content_type="application/json")["answers"]
    assert [answer.get("round") for answer in answers] == [0, None, 1]
    assert answers[1]["error"]["code"] == "malformed"


def clicked(talk, number, ids, status=200):
    return talk.ask("POST", "/v1/rankers/shop/feedback", {"round": number, "clicks": ids}, status)


@pytest.mark.parametrize("algorithm", ["pdgd", "topk"])
def test_clicks_are_labels_of_the_page_that_was_shown(talk, lists, algorithm):
    parameters = {"k": 3, "seed": 4}
    talk.make("clicks", algorithm=algorithm, parameters=parameters)
    talk.make("labels", algorithm=algorithm, parameters=parameters)
    for X, _ in lists(6):
        shown = talk.rank(X, name="clicks")
        also = talk.rank(X, name="labels")
        page = [ranked["id"] for ranked in shown["ranking"][:3]]
        ids = page[1:2] if shown["round"] % 3 else []  # now and then nobody clicks
        body = {"round": shown["round"], "clicks": ids}
        assert talk.ask("POST", "/v1/rankers/clicks/feedback", body)["learned"]
        talk.tell(also["round"], {document: float(document in ids) for document in page}, name="labels")
    assert (talk.weights("clicks") == talk.weights("labels")).all()
    assert talk.weights("clicks").any()


def test_clicks_that_cannot_be_are_refused(talk, lists):
    talk.make(algorithm="pdgd", parameters={"k": 2})
    ((X, _),) = lists(1)
    shown = talk.rank(X)
    first, second, third = (ranked["id"] for ranked in shown["ranking"][:3])
    number = shown["round"]
    assert clicked(talk, number, [third], 422) == "not_shown"
    for body in ({}, {"clicks": [first], "labels": {first: 1}}, {"clicks": first}, {"clicks": None}):
        assert talk.ask("POST", "/v1/rankers/shop/feedback", {"round": number, **body}, 422) == "invalid"
    told = clicked(talk, number, [first, first])  # twice is once
    assert told["learned"]
    assert clicked(talk, number, [first]) == told
    assert talk.tell(number, {first: 1, second: 0}) == told
    assert clicked(talk, number, []) == told  # which says nothing new
    assert clicked(talk, number, [first, third], 422) == "not_shown"
    assert talk.tell(number, {first: 0, second: 1}, status=409) == "already_answered"


def test_learners_without_a_page_take_labels(talk, lists):
    talk.make(algorithm="hinge")
    ((X, _),) = lists(1)
    shown = talk.rank(X)
    assert clicked(talk, shown["round"], [shown["ranking"][0]["id"]], 409) == "learns_from_labels"
    assert talk.answer(shown)["learned"]


def test_what_is_wrong_with_a_request_names_the_fix(talk):
    def complaint(what, body):
        answer = talk.request(
            "POST", f"/v1/rankers/shop/{what}", msgspec.json.encode(body), content_type="application/json"
        )
        return msgspec.json.decode(answer.content)["error"]["message"]

    talk.make()
    documents = [{"id": "a", "features": [1.0, 2.0, 3.0]}]
    for wrong, meant in (("docs", "documents"), ("Documents", "documents"), ("xyz", None)):
        hint = f" (did you mean `{meant}`?)" if meant else ""
        assert complaint("rank", {wrong: documents}) == f"Object contains unknown field `{wrong}`{hint}"
    unknown = complaint("feedback", {"round": 99, "labels": {"a": 1}})
    assert unknown == "round 99 does not exist: send the `round` that came with the ranking"
