"""Rounds that carry themselves: learnt as stored ones are, once, by any process with the keys, and by nobody else."""

from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktron import Client
from ranktron.service import sealed_rounds
from ranktron.service.config import Config
from ranktron.service.sealed_rounds import SealedRound
from ranktron.service.sealing_keys import SealingKeys, change_keys, new_key, read_keys, write_keys
from ranktron.store.journal.journal import Prune
from ranktron.store.rankers import open_rounds
from tests.service.conftest import Talk, open_service, some_lists

KEYS = SealingKeys([new_key("active", date(2026, 1, 1))])
LIST = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0]])


def carrying(folder, keys=KEYS, address=None, **options):
    return Talk(open_service(folder, Config(**{"answer_seconds": 300.0, **options}), address, carry_keys=keys))


@pytest.fixture
def talk(tmp_path):
    with carrying(tmp_path / "state") as talk:
        talk.make(parameters={"k": 2, "seed": 3})
        yield talk


def rank(talk, X=LIST, name="shop", carry=True, status=200):
    documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(np.asarray(X, float).tolist())]
    return talk.ask("POST", f"/v1/rankers/{name}/rank", {"documents": documents, "carry": carry}, status)


def send(talk, shown, status=200, name="shop", **body):
    body = {"round": shown["round"], "carry": shown["carry"], **(body or {"labels": first_two(shown)})}
    return talk.ask("POST", f"/v1/rankers/{name}/feedback", body, status)


def first_two(shown, grades=(1.0, 0.0)):
    return {ranked["id"]: grade for ranked, grade in zip(shown["ranking"], grades, strict=False)}


def model(talk, name="shop"):
    return talk.ask("GET", f"/v1/rankers/{name}/model")


def rows(talk, table):
    return talk.service.journal._database.look_up(f"SELECT count(*) FROM {table}")[0][0]


@pytest.mark.parametrize("algorithm", ["topk", "pdgd", "slam"])
def test_both_forms_learn_the_same_to_the_bit(talk, algorithm):
    parameters = {"slam": {}}.get(algorithm, {"k": 2, "seed": 3})
    for name in ("stored", "carried"):
        talk.make(name, algorithm=algorithm, parameters=parameters)
    for X, _ in some_lists(12):
        stored, carried = rank(talk, X, "stored", carry=False), rank(talk, X, "carried")
        assert "carry" not in stored
        assert {**carried, "carry": ""} == {**stored, "carry": ""}
        assert send(talk, carried, name="carried") == talk.tell(stored["round"], first_two(stored), "stored")
    assert model(talk, "stored") == model(talk, "carried")
    assert talk.weights("carried").any()


def test_nothing_is_kept_of_lists_that_nobody_answers(talk):
    for X, _ in some_lists(30):
        last = rank(talk, X)
    talk.written()
    assert (rows(talk, "rounds"), talk.ask("GET", "/v1/rankers/shop")["open"]) == (0, 0)
    send(talk, last)
    assert (rows(talk, "rounds"), rows(talk, "accepted"), talk.ask("GET", "/v1/rankers/shop")["open"]) == (1, 1, 0)
    explained = talk.ask("GET", f"/v1/rankers/shop/explain/{last['round']}")
    assert (explained["labels"], explained["documents"][0]["contributions"]) == (first_two(last), None)


def test_a_crash_loses_none_and_the_replay_is_to_the_bit(talk, tmp_path):
    shown = [rank(talk, X) for X, _ in some_lists(8)]
    told = [send(talk, each) for each in shown[:5]]
    before = model(talk)
    talk.crash()
    with carrying(tmp_path / "state") as again:
        assert model(again) == before
        assert [send(again, each) for each in shown[:5]] == told
        assert model(again) == before
        assert [send(again, each)["version"] for each in shown[5:]] == [6, 7, 8]
        assert rank(again)["round"] > max(each["round"] for each in shown)


def test_a_round_is_answered_once_by_any_of_its_feedback(talk):
    shown = rank(talk)
    first = send(talk, shown)
    before = model(talk)
    assert send(talk, shown) == first
    assert talk.tell(shown["round"], first_two(shown)) == first  # what is remembered needs no `carry`
    assert send(talk, shown, 409, labels=first_two(shown, (0.0, 1.0))) == "already_answered"
    assert model(talk) == before
    assert talk.tell(rank(talk)["round"], {"d0": 1.0}, status=410) == "round_gone"


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_the_first_answer_stays_when_memory_has_forgotten_it(tmp_path, monkeypatch, serving):
    address = serving.address(tmp_path)
    options = {"remembered": 3, "explained_rounds": 2, "snapshot_every": 4, "versions": 2}
    monkeypatch.setattr(open_rounds, "_BLOCK_SIZE", 8)
    monkeypatch.setattr(open_rounds, "_MAX_BLOCKS", 2)
    with carrying(tmp_path, address=address, **options) as talk:
        talk.make(parameters={"k": 2})
        shown = [rank(talk, X) for X, _ in some_lists(60)]
        late = [shown.pop(each) for each in (40, 20, 3)]
        told = [send(talk, each) for each in shown]
        talk.written()
        assert rows(talk, "rounds") < 20
        before = model(talk)
        assert [send(talk, each) for each in shown] == told
        assert send(talk, shown[0], 410, labels=first_two(shown[0], (0.0, 1.0))) == "round_gone"
        assert model(talk) == before
        assert [send(talk, each)["version"] for each in late] == [58, 59, 60]
        talk.written()
        before = model(talk)
        talk.crash()
    with carrying(tmp_path, address=address, **options) as again:
        assert [send(again, each) for each in shown] == told
        assert [send(again, each)["version"] for each in late] == [58, 59, 60]
        assert model(again) == before


def test_later_gains_bring_their_page(talk):
    talk.make("clicks", algorithm="pdgd", parameters={"k": 2})
    talk.make("stored", algorithm="pdgd", parameters={"k": 2})
    for _ in range(3):
        shown, stored = rank(talk, name="clicks"), rank(talk, name="stored", carry=False)
        click, _ = first_two(shown)
        talk.service.live("clicks").rounds.past.clear()
        for told in ({"clicks": []}, {"clicks": [click]}, {"gains": {click: 3.0}}, {"gains": {click: 3.0}}):
            answer = send(talk, shown, name="clicks", **told)
            assert answer == talk.ask("POST", "/v1/rankers/stored/feedback", {"round": stored["round"], **told})
            talk.service.live("clicks").rounds.past.clear()
    assert model(talk, "clicks") == model(talk, "stored")


def test_an_expired_round_is_gone_and_its_number_forgotten(talk, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(open_rounds, "monotonic", lambda: now[0])
    live = talk.service.live("shop")
    live.rounds.set_clock(0.0)
    answered, shown = rank(talk), rank(talk)
    first = send(talk, answered)
    limit = live.config.open_seconds
    now[0] += limit - 1.0
    assert send(talk, answered) == first
    now[0] += 1.0
    before = model(talk)
    assert send(talk, shown, 410) == "round_gone"
    assert send(talk, answered, 410) == "round_gone"
    assert model(talk) == before
    for at, left in ((limit, 1), (limit + sealed_rounds.CLOCK_MARGIN, 0)):
        talk.runner.run(prune(talk, live, at))
        assert rows(talk, "accepted") == left


async def prune(talk, live, at):
    await talk.service._writer.written(Prune(live.id, 0, 0, 0, 0, at))


def test_rounds_of_others_are_refused(talk, tmp_path):
    talk.make("other", parameters={"k": 2})
    shown = rank(talk)
    rank(talk, name="other")
    before = model(talk), model(talk, "other")
    assert send(talk, shown, 422, name="other") == "wrong_carry"
    assert send(talk, {**shown, "carry": rank(talk)["carry"]}, 422) == "wrong_carry"
    with carrying(tmp_path / "another") as another:
        another.make(parameters={"k": 2, "seed": 3})
        for _ in range(3):
            rank(another)
        assert send(another, shown, 422) == "wrong_carry"
    with carrying(tmp_path / "keyless", keys=None) as keyless:
        keyless.make()
        assert rank(keyless, status=409) == "no_keys"
        assert send(keyless, shown, 409) == "no_keys"
    with carrying(tmp_path / "other keys", SealingKeys([new_key("active", date(2026, 1, 1))])) as keyed:
        keyed.make()
        assert send(keyed, shown, 422) == "unknown_key"
    assert (model(talk), model(talk, "other")) == before
    talk.ask("DELETE", "/v1/rankers/shop")
    talk.make(parameters={"k": 2, "seed": 3})
    assert send(talk, shown, 410) == "round_gone"


def test_rounds_of_another_epoch_are_refused(talk, tmp_path):
    shown = rank(talk)
    talk.crash()
    (tmp_path / "state").rename(tmp_path / "moved")
    import shutil

    shutil.copytree(tmp_path / "moved", tmp_path / "copy")  # the same cluster, in another epoch
    with carrying(tmp_path / "copy") as copy:
        after = rank(copy)
        assert send(copy, after)["learned"]
        assert send(copy, shown)["learned"]  # which it had reserved before it was a copy
    with carrying(tmp_path / "moved") as moved:
        assert send(moved, after, 410) == "round_gone"


def test_a_number_that_was_never_given_out_is_refused(talk):
    live, journal = talk.service.live("shop"), talk.service.journal
    shown = rank(talk)
    opened = sealed_rounds._decoder.decode(KEYS.open(shown["carry"], 10_000))
    forged = SealedRound(journal.cluster, live.id, live.incarnation, live.rounds.next, opened.expires, opened.shown)
    text = KEYS.seal(sealed_rounds._encoder.encode(forged))
    assert send(talk, {**shown, "round": live.rounds.next, "carry": text}, 404) == "unknown_round"


def test_rounds_of_another_kind_of_model_are_gone(talk, tmp_path):
    talk.make("source", algorithm="pdgd", parameters={"k": 2})
    shown = rank(talk)
    talk.ask("POST", "/v1/rankers/shop/model", content=model(talk, "source"), content_type="application/octet-stream")
    assert send(talk, shown, 410) == "round_gone"


def test_what_closes_rounds_must_keep_them(talk):
    talk.make("closing", parameters={"k": 2}, close_after=10.0)
    assert rank(talk, name="closing", status=409) == "closes_rounds"


def test_pages_of_experiments_are_kept(talk):
    talk.make("other", parameters={"k": 2})
    talk.ask("PUT", "/v1/experiments/which", {"arms": [{"ranker": "shop"}, {"ranker": "other"}]})
    body = {"user": "u", "documents": [{"id": "a", "features": [1, 2, 3]}], "carry": True}
    assert talk.ask("POST", "/v1/experiments/which/rank", body, 422) == "no_carry"
    shown = talk.ask("POST", "/v1/experiments/which/rank", {**body, "carry": False})
    body = {"round": shown["round"], "clicks": [], "carry": "x"}
    assert talk.ask("POST", "/v1/experiments/which/feedback", body, 422) == "no_carry"


def test_too_large_a_round_is_not_carried(tmp_path):
    with carrying(tmp_path, max_carry=300) as talk:
        talk.make()
        assert rank(talk, status=413) == "carry_too_large"
        body = {"round": 0, "labels": {"d0": 1}, "carry": "A" * 301}
        assert talk.ask("POST", "/v1/rankers/shop/feedback", body, 413) == "carry_too_large"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_forged_round_changes_anything(talk, data):
    shown = rank(talk)
    before, text = model(talk), shown["carry"]
    place = data.draw(st.integers(0, len(text) - 1))
    forged = data.draw(st.one_of(st.text(max_size=50), st.just(text[:place]), st.text("AZaz09-_=", min_size=1)))
    forged = forged if len(forged) > 60 else text[:place] + forged + text[place + max(len(forged), 1) :]
    if forged != text:
        assert send(talk, {**shown, "carry": forged}, 422) in ("bad_carry", "unknown_key")
        assert model(talk) == before
    assert send(talk, shown)["learned"]


def test_batches_carry(talk):
    one = {"documents": [{"id": "a", "features": [1, 2, 3]}, {"id": "b", "features": [3, 2, 1]}], "carry": True}
    shown = talk.ask("POST", "/v1/rankers/shop/rank/batch", {"requests": [one] * 3})["answers"]
    told = [{"round": each["round"], "carry": each["carry"], "labels": first_two(each)} for each in shown]
    answers = talk.ask("POST", "/v1/rankers/shop/feedback/batch", {"requests": [*told, told[0]]})["answers"]
    assert [each["version"] for each in answers] == [1, 2, 3, 1]


def test_a_server_reads_its_keys_again(Program, tmp_path):
    import signal
    import time

    path = tmp_path / "carry.keys"
    write_keys(path, change_keys([], date(2026, 1, 1), 8, prepare=False))
    (tmp_path / "config.toml").write_text('carry_keys = "carry.keys"\n')
    with Program(tmp_path / "state", "--config", str(tmp_path / "config.toml")) as program:
        with Client(program.url, timeout=60) as client:
            client.create("shop", ["a"])
            shown = [client.rank("shop", {"x": [1.0], "y": [2.0]}, carry=True)]
            write_keys(path, change_keys(read_keys(path), date(2026, 1, 2), 8, prepare=False))
            program.process.send_signal(signal.SIGHUP)
            for _ in range(100):
                shown.append(client.rank("shop", {"x": [1.0], "y": [2.0]}, carry=True))
                if shown[-1]["carry"][:6] != shown[0]["carry"][:6]:
                    break
                time.sleep(0.1)
            for each in (shown[0], shown[-1]):
                assert client.feedback("shop", each["round"], {"x": 1, "y": 0}, carry=each["carry"])["learned"]
        assert shown[-1]["carry"][:6] != shown[0]["carry"][:6]
