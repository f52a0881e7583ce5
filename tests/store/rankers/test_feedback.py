"""Gains, clicks that come one by one, and rounds that close in time."""

import asyncio
import json
import time

import numpy as np
import pytest

from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest
from ranktron.store.rankers import open_rounds
from ranktron.training.model import Model
from ranktron.types import Feedback

LIST = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0]])


def send(talk, number, status=200, name="shop", **body):
    return talk.ask("POST", f"/v1/rankers/{name}/feedback", {"round": number, **body}, status)


def page(shown, k=3):
    return [ranked["id"] for ranked in shown["ranking"][:k]]


def model(talk, name="shop"):
    return talk.ask("GET", f"/v1/rankers/{name}/model")


@pytest.mark.parametrize("algorithm", ["topk", "pdgd"])
def test_gains_are_labels_and_what_is_not_named_gained_nothing(talk, algorithm):
    for name in ("gains", "labels"):
        talk.make(name, algorithm=algorithm, parameters={"k": 3})
    for _ in range(4):
        first, second = (talk.rank(LIST, name=name) for name in ("gains", "labels"))
        a, b, c = page(first)
        assert send(talk, first["round"], name="gains", gains={b: 2.5})["learned"]
        talk.tell(second["round"], {a: 0, b: 2.5, c: 0}, name="labels")
    assert (talk.weights("gains") == talk.weights("labels")).all()
    assert talk.weights("gains").any()


@pytest.mark.parametrize("algorithm", ["topk", "pdgd"])
def test_a_purchase_after_a_click_is_a_further_lesson_on_the_same_page(talk, algorithm):
    """What a learner of the library learns from two lessons on one pending round, the second with what was added."""
    talk.make(algorithm=algorithm, parameters={"k": 3, "seed": 2})
    learner = Model.from_bytes(model(talk)).learner()
    X = LIST.astype(np.float32)
    for number in range(6):
        shown, ranking = talk.rank(LIST), learner.rank(X, number)
        pending = learner.pending(X, ranking, 3)
        first, second, third = page(shown)
        told = send(talk, shown["round"], clicks=[second])
        learner.learn_pending(pending, Feedback(np.arange(3), np.array([0.0, 1.0, 0.0])))
        assert talk.weights().tolist() == learner.w.tolist()
        later = send(talk, shown["round"], gains={second: 4.0})
        assert later == {"learned": True, "version": told["version"] + 1}
        learner.learn_pending(pending, Feedback(np.arange(3), np.array([0.0, 3.0, 0.0])))
        assert talk.weights().tolist() == learner.w.tolist()
        assert send(talk, shown["round"], clicks=[third])["version"] == later["version"] + 1
        learner.learn_pending(pending, Feedback(np.arange(3), np.array([0.0, 0.0, 1.0])))
        assert talk.weights().tolist() == learner.w.tolist()
    labels = talk.ask("GET", f"/v1/rankers/shop/explain/{shown['round']}")["labels"]
    assert labels == {first: 0.0, second: 4.0, third: 1.0}


def test_what_adds_nothing_gets_the_answer_of_before(talk):
    talk.make(algorithm="pdgd", parameters={"k": 3})
    shown = talk.rank(LIST)
    number, (a, b, c) = shown["round"], page(shown)
    first = send(talk, number, clicks=[b])
    assert send(talk, number, clicks=[b]) == first
    later = send(talk, number, gains={b: 3})
    before = model(talk)
    for body in ({"gains": {b: 3}}, {"gains": {b: 2, a: 0}}, {"gains": {}}, {"clicks": [b]}, {"clicks": []}):
        assert send(talk, number, **body) == later
    for labels in ({a: 0, b: 3, c: 0}, {a: 0, b: 1, c: 0}):  # what is known now, and what came first
        assert talk.tell(number, labels) == later
    assert talk.tell(number, {a: 1, b: 1, c: 0}, status=409) == "already_answered"
    assert send(talk, number, 422, gains={b: 5}) == "label_out_of_range"
    assert send(talk, number, 422, gains={b: 4, "unknown": 1}) == "not_shown"
    assert send(talk, number, 422, gains={b: -1}) == "invalid"
    assert send(talk, number, 422, gains={b: 4}, clicks=[b]) == "invalid"
    assert model(talk) == before


def test_labels_that_come_twice_are_known_though_there_were_gains_in_between(serving, tmp_path):
    talk = serving(tmp_path).__enter__()
    talk.make(parameters={"k": 3})
    shown = talk.rank(LIST)
    number, (a, b, _) = shown["round"], page(shown)
    talk.tell(number, {a: 1, b: 0})
    later = send(talk, number, gains={b: 2})
    for _ in range(2):
        assert talk.tell(number, {a: 1, b: 0}) == later
        assert talk.tell(number, {a: 0, b: 1}, status=409) == "already_answered"
        later = send(talk, number, gains={b: 3})
    talk.crash()
    with serving(tmp_path) as talk:
        assert talk.tell(number, {a: 1, b: 0}) == later
        assert send(talk, number, gains={b: 1}) == later


def test_gains_survive_a_crash_and_a_restart(serving, tmp_path):
    config = {"snapshot_every": 4, "explained_rounds": 6, "remembered": 12}
    talk = serving(tmp_path, **config).__enter__()
    talk.make(algorithm="pdgd", parameters={"k": 3})
    rounds = []
    for _ in range(12):
        shown = talk.rank(LIST)
        rounds.append((shown["round"], page(shown)))
        send(talk, shown["round"], clicks=page(shown)[:1])
        send(talk, shown["round"], gains={page(shown)[0]: 2})
    before = model(talk)
    talk.crash()
    (oldest, documents), (number, (first, *_)) = rounds[0], rounds[-2]
    for turn, ends in enumerate(("crash", "stop", "crash")):
        talk = serving(tmp_path, **config).__enter__()
        assert model(talk) == before
        later = send(talk, number, gains={first: 2.5 + turn / 2})
        assert later == {"learned": True, "version": 25 + turn}
        assert send(talk, number, gains={first: 2}) == later
        assert send(talk, oldest, 410, gains={documents[0]: 3}) == "round_gone"
        before = model(talk)
        talk.crash() if ends == "crash" else talk.__exit__()
    with serving(tmp_path, **config) as talk:
        assert model(talk) == before
        assert send(talk, number, clicks=[first]) == later


def test_a_later_gain_waits_for_the_first_signal(tmp_path):
    """Sent at the same time, they are learnt one after the other; of twins one is."""

    async def session():
        async with RankingService(tmp_path) as service:
            await service.create("shop", Definition(["a", "b", "c"], "pdgd", {"k": 3}))
            documents = [Document(f"d{i}", row) for i, row in enumerate(LIST.astype(np.float32))]
            shown = service.rank("shop", RankRequest(documents))
            first = shown.ranking[0].id
            requests = [
                FeedbackRequest(shown.round, clicks=[first]),
                FeedbackRequest(shown.round, gains={first: 2.0}),
                FeedbackRequest(shown.round, gains={first: 2.0}),
                FeedbackRequest(shown.round, clicks=[first]),
            ]
            answers = await asyncio.gather(*[service.feedback("shop", request) for request in requests])
            return [answer.version for answer in answers], service.live("shop").version

    assert asyncio.run(session()) == ([1, 2, 2, 1], 2)


@pytest.fixture
def clock(monkeypatch):
    passed, start = [0.0], time.monotonic()
    monkeypatch.setattr(open_rounds, "monotonic", lambda: start + passed[0])
    return passed


def close(talk):
    async def now():
        talk.service.close_rounds()

    talk.runner.run(now())
    talk.written()


@pytest.mark.parametrize("algorithm", ["topk", "pdgd"])
def test_a_round_closes_in_time_as_one_without_clicks(serving, tmp_path, clock, algorithm):
    talk = serving(tmp_path).__enter__()
    made = talk.make("timed", algorithm=algorithm, parameters={"k": 3}, close_after=60)
    assert made["close_after"] == 60
    assert "close_after" not in talk.make("told", algorithm=algorithm, parameters={"k": 3})
    early = [talk.rank(LIST, name=name) for name in ("timed", "told")]
    clock[0] += 30.0
    late = [talk.rank(LIST, name=name) for name in ("timed", "told")]
    close(talk)
    assert talk.ask("GET", "/v1/rankers/timed")["open"] == 2
    clock[0] += 31.0
    close(talk)
    timed = talk.ask("GET", "/v1/rankers/timed")
    assert (timed["open"], timed["version"]) == (1, 1)
    send(talk, early[1]["round"], name="told", clicks=[])
    first, *_ = page(early[0])
    assert talk.tell(early[0]["round"], {first: 1}, name="timed", status=409) == "already_answered"
    for name in ("timed", "told"):  # a click that comes after all is a later gain
        assert send(talk, early[0]["round"], name=name, clicks=[first])["version"] == 2
        assert send(talk, late[0]["round"], name=name, clicks=page(late[0])[:1])["version"] == 3
    assert (talk.weights("timed") == talk.weights("told")).all()
    models = [model(talk, name) for name in ("timed", "told")]
    waiting = talk.rank(LIST, name="timed")
    talk.crash()
    talk = serving(tmp_path).__enter__()
    assert [model(talk, name) for name in ("timed", "told")] == models
    assert talk.ask("GET", "/v1/rankers/timed")["open"] == 1
    clock[0] += 61.0
    close(talk)
    assert talk.ask("GET", "/v1/rankers/timed")["open"] == 0
    assert send(talk, waiting["round"], name="timed", clicks=[])["version"] == 4
    talk.__exit__()


def test_rounds_close_by_themselves(tmp_path):
    async def session():
        async with RankingService(tmp_path, Config()) as service:
            await service.create("shop", Definition(["a", "b", "c"], "pdgd", {"k": 3}, close_after=0.2))
            documents = [Document(f"d{i}", row) for i, row in enumerate(LIST.astype(np.float32))]
            service.rank("shop", RankRequest(documents))
            for _ in range(100):
                await asyncio.sleep(0.1)
                if service.live("shop").version:
                    return service.live("shop").rounds.open.size
            return None

    assert asyncio.run(session()) == 0


def test_many_rounds_close_a_few_at_a_time(serving, tmp_path, clock, monkeypatch):
    monkeypatch.setattr("ranktron.store.engine.MAX_CLOSED", 3)
    with serving(tmp_path) as talk:
        talk.make(algorithm="pdgd", parameters={"k": 3}, close_after=60)
        for _ in range(8):
            talk.rank(LIST)
        clock[0] += 61.0
        for left in (5, 2, 0):
            close(talk)
            assert talk.ask("GET", "/v1/rankers/shop")["open"] == left


def test_a_disk_that_refuses_leaves_rounds_open(serving, tmp_path, clock, monkeypatch):
    with serving(tmp_path) as talk:
        talk.make(algorithm="pdgd", parameters={"k": 3}, close_after=60)
        talk.rank(LIST)
        talk.written()
        clock[0] += 61.0
        with monkeypatch.context() as patch:
            patch.setattr(
                "ranktron.store.journal.sql_journal.insert", lambda *_: (_ for _ in ()).throw(OSError("full"))
            )
            close(talk)
            assert talk.ask("GET", "/v1/rankers/shop") | {"open": 1, "version": 0} == talk.ask(
                "GET", "/v1/rankers/shop"
            )
        close(talk)
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 1


def test_closing_is_for_those_who_know_what_users_saw(talk):
    body = {"features": ["a"], "algorithm": "hinge", "close_after": 5}
    assert talk.ask("PUT", "/v1/rankers/shop", body, status=422) == "bad_close_after"
    body = {"features": ["a"], "labels": [1, 4], "close_after": 5}
    assert talk.ask("PUT", "/v1/rankers/shop", body, status=422) == "bad_close_after"
    for wrong in (0, -1, "5"):
        body = {"features": ["a"], "close_after": wrong}
        assert talk.ask("PUT", "/v1/rankers/shop", body, status=422) == "invalid"
    talk.make("any", algorithm="hinge")
    shown = talk.rank(LIST, name="any")
    assert send(talk, shown["round"], 409, name="any", gains={page(shown)[0]: 1}) == "learns_from_labels"


def test_rounds_are_closed_before_they_are_dropped(serving, tmp_path):
    body = {"features": ["a"], "close_after": 100}
    with serving(tmp_path, open_seconds=100.0) as talk:
        answer = talk.request("PUT", "/v1/rankers/shop", json.dumps(body).encode(), content_type="application/json")
        assert answer.status == 422
        assert b"rounds are dropped after 100 seconds (`open_seconds`): `close_after` must be less" in answer.content
        talk.make(close_after=99)
    with serving(tmp_path, open_seconds=10.0) as talk:  # lowered limits are for what is new
        assert talk.ask("GET", "/v1/rankers/shop")["close_after"] == 99


def test_a_gain_of_nothing_adds_nothing(talk):
    """A document that labels did not name has gained 0, as far as is known."""
    talk.make(parameters={"k": 3})
    shown = talk.rank(LIST)
    number, (a, b, c) = shown["round"], page(shown)
    told = talk.tell(number, {a: 1})
    before = model(talk)
    for body in ({"gains": {b: 0}}, {"gains": {a: 1, b: 0, c: 0}}, {"gains": {a: 0}}):
        assert send(talk, number, **body) == told
    assert send(talk, number, 422, gains={"unknown": 0}) == "not_shown"
    assert model(talk) == before
    assert send(talk, number, gains={b: 1})["version"] == told["version"] + 1


def test_the_first_labels_are_known_after_later_gains_and_a_restart(serving, tmp_path):
    """However little of the log is left: the first labels named one document, the gains another."""
    config = {"snapshot_every": 3, "explained_rounds": 4, "remembered": 4}
    talk = serving(tmp_path, **config).__enter__()
    talk.make(parameters={"k": 3})
    shown = talk.rank(LIST)
    number, (a, b, _) = shown["round"], page(shown)
    talk.tell(number, {a: 1})
    for _ in range(3):
        talk.answer(talk.rank(LIST))
    later = send(talk, number, gains={b: 2})
    for _ in range(3):
        talk.answer(talk.rank(LIST))
    for ends in ("crash", "stop", "stop"):
        assert talk.tell(number, {a: 1}) == later
        assert talk.tell(number, {a: 1, b: 0}, status=409) == "already_answered"
        talk.crash() if ends == "crash" else talk.__exit__()
        talk = serving(tmp_path, **config).__enter__()
    assert talk.tell(number, {a: 1}) == later
    talk.__exit__()


@pytest.mark.parametrize("ends", ["crash", "stop"])
@pytest.mark.parametrize("snapshot_every", [3, 1000])
def test_answers_are_counted_and_not_versions(serving, tmp_path, ends, snapshot_every):
    """The last five rounds that were answered are known, however often they have gained more since."""
    config = {"snapshot_every": snapshot_every, "explained_rounds": 3, "remembered": 5}
    talk = serving(tmp_path, **config).__enter__()
    talk.make(parameters={"k": 3})
    rounds = []
    for _ in range(8):
        shown = talk.rank(LIST)
        rounds.append((shown["round"], page(shown)))
        talk.tell(shown["round"], {page(shown)[0]: 1})
    for gain in range(1, 30):  # of the last one
        send(talk, rounds[-1][0], gains={rounds[-1][1][1]: gain / 10})
    for again in range(3):
        answers = [talk.request("GET", f"/v1/rankers/shop/explain/{number}").status for number, _ in rounds]
        assert answers == [410] * 5 + [200] * 3, again
        versions = [talk.tell(number, {first: 1})["version"] for number, (first, *_) in rounds[3:]]
        assert versions == [4, 5, 6, 7, 37]
        assert talk.tell(rounds[2][0], {rounds[2][1][0]: 1}, status=410) == "round_gone"
        talk.crash() if ends == "crash" else talk.__exit__()
        talk = serving(tmp_path, **config).__enter__()
    talk.__exit__()


def test_a_round_that_can_be_explained_is_known_to_be_answered(serving, tmp_path):
    with serving(tmp_path, remembered=1, explained_rounds=3) as talk:
        talk.make()
        shown = [talk.rank(LIST) for _ in range(3)]
        for each in shown:
            talk.answer(each)
        assert talk.ask("GET", f"/v1/rankers/shop/explain/{shown[0]['round']}")["answered"]


def test_clicks_where_0_is_no_label(talk):
    talk.make(labels=[1, 4], parameters={"k": 3})
    shown = talk.rank(LIST)
    body = json.dumps({"round": shown["round"], "clicks": page(shown)[:1]}).encode()
    answer = talk.request("POST", "/v1/rankers/shop/feedback", body, content_type="application/json")
    assert answer.status == 422
    assert (
        b"documents that clicks and gains do not name have gained 0, and the lowest label here is 1" in answer.content
    )
    assert send(talk, shown["round"], clicks=page(shown))["learned"]


def test_rounds_close_though_only_one_request_may_wait(serving, tmp_path, clock):
    with serving(tmp_path, max_waiting=1) as talk:
        talk.make(algorithm="pdgd", parameters={"k": 3}, close_after=60)
        talk.rank(LIST)
        talk.rank(LIST)
        talk.written()
        clock[0] += 61.0
        for left in (1, 0):
            close(talk)
            assert talk.ask("GET", "/v1/rankers/shop")["open"] == left
