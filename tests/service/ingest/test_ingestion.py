"""Feedback from a source is learnt from exactly once, whichever side dies, and what cannot be used is kept."""

import json
import signal
import subprocess
import sys
import time
from datetime import date

import numpy as np
import pytest

from ranktron import Client
from ranktron.service.client import ServiceError
from ranktron.service.ingest.sources import JsonLinesFile, ingest
from ranktron.service.sealing_keys import SealingKeys, new_key
from ranktron.service.service import RankingService
from ranktron.store.journal import tables
from tests.service.conftest import Talk

GAINS = {"click": 1.0, "purchase": 3.0}
LIST = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0], [2.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
both = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


class Direct:
    """A client in the same process; `cut` says what happens to the requests that send something."""

    def __init__(self, talk, cut=lambda count: None):
        self.talk, self.cut, self.count = talk, cut, 0

    def source(self, name):
        return self.talk.ask("GET", f"/v1/sources/{name}")

    def ingest(self, name, batch):
        self.count += 1
        how = self.cut(self.count)
        if how == "before":
            raise ServiceError(0, "no_answer", "lost")
        body = json.dumps(batch).encode()
        reply = self.talk.request("POST", f"/v1/rankers/{name}/ingest", body, content_type="application/json")
        told = json.loads(reply.content)
        if reply.status != 200:
            raise ServiceError(reply.status, told["error"]["code"], told["error"]["message"])
        if how == "after":
            raise ServiceError(0, "no_answer", "lost")
        if how == "killed":
            raise KeyboardInterrupt
        return told


def event(number, document, action="click", **more):
    about = {"object": {"object_id": document}, **more}
    return json.dumps({"query_id": str(number), "action_name": action, "event_attributes": about})


def shown_events(talk, count, **options):
    """Shows lists, and what users did then: a click, and sometimes a purchase."""
    lines = []
    for each in range(count):
        shown = talk.rank(LIST, **options)
        first, second = (ranked["id"] for ranked in shown["ranking"][:2])
        lines.append(event(shown["round"], first if each % 3 else second))
        if each % 4 == 0:
            lines.append(event(shown["round"], second, "purchase"))
        lines.append(event(shown["round"], first, "impression"))
    return lines


def write(path, lines):
    with open(path, "a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def model(talk):
    return talk.ask("GET", "/v1/rankers/shop/model")


def made(talk):
    talk.make(algorithm="pdgd", parameters={"k": 2, "seed": 1})


@both
def test_each_event_is_learnt_once_and_a_second_reading_finds_nothing_new(serving, tmp_path):
    path = tmp_path / "events.jsonl"
    with serving(tmp_path / "state") as talk:
        made(talk)
        write(path, shown_events(talk, 10))
        done = ingest(Direct(talk), "shop", JsonLinesFile(path), GAINS, batch=4)
        assert (done.messages, done.learned, done.repeated, done.dead) == (23, 10, 0, 0)
        assert done.next == path.stat().st_size
        before = model(talk)
        assert ingest(Direct(talk), "shop", JsonLinesFile(path), GAINS).messages == 0
        write(path, shown_events(talk, 1))
        path.rename(tmp_path / "rotated")
        assert ingest(Direct(talk), "shop", JsonLinesFile(tmp_path / "rotated"), GAINS).learned == 1
        assert model(talk) != before


@pytest.mark.parametrize("how", ["before", "after"])
def test_an_answer_that_gets_lost_changes_nothing(serving, tmp_path, how, monkeypatch):
    monkeypatch.setattr("ranktron.service.ingest.sources._RETRY_INTERVAL", 0.0)
    models = []
    for name, cut in (("whole", lambda count: None), ("cut", lambda count: how if count in (1, 3, 4) else None)):
        path = tmp_path / f"{name}.jsonl"
        with serving(tmp_path / name) as talk:
            made(talk)
            write(path, shown_events(talk, 12))
            ingest(Direct(talk, cut), "shop", JsonLinesFile(path), GAINS, batch=3)
            assert talk.ask("GET", "/v1/rankers/shop")["version"] == 12
            models.append(model(talk))
    assert models[0] == models[1]


@both
def test_a_reader_and_a_service_that_are_killed_go_on(serving, tmp_path):
    models = []
    for name in ("whole", "killed"):
        path = tmp_path / f"{name}.jsonl"
        talk = serving(tmp_path / name).__enter__()
        made(talk)
        write(path, shown_events(talk, 12))
        while True:
            cut = (lambda count: "killed") if name == "killed" else (lambda count: None)
            try:
                done = ingest(Direct(talk, cut), "shop", JsonLinesFile(path), GAINS, batch=3)
                break
            except KeyboardInterrupt:  # the batch was written, and the reader does not know
                talk.crash()
                talk = serving(tmp_path / name).__enter__()
        assert done.next == path.stat().st_size
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 12
        models.append(model(talk))
        talk.__exit__()
    assert models[0] == models[1]


def test_what_cannot_be_used_is_kept_with_its_reason(talk, tmp_path, monkeypatch):
    path = tmp_path / "events.jsonl"
    made(talk)
    shown = talk.rank(LIST)
    good = event(shown["round"], shown["ranking"][0]["id"])
    bad = ["nonsense", "[1]", "{}", event("x", "a"), event(999, "a"), event(shown["round"], "strange"), "\x00"]
    bad += ['{"action_name": "click", "query_id": 1, "event_attributes": {"object": 3}}', "[" * 5000]
    write(path, [bad[0], good, *bad[1:]])
    done = ingest(Direct(talk), "shop", JsonLinesFile(path), GAINS)
    assert (done.messages, done.dead, done.next) == (len(bad) + 1, 8, path.stat().st_size)  # {} is no action of ours
    dead = Direct(talk).source(JsonLinesFile(path).name)["dead"]
    assert [letter["place"] for letter in dead] == sorted({letter["place"] for letter in dead})
    reasons = [letter["reason"] for letter in dead]
    assert any("unknown_round" in reason for reason in reasons)
    assert dead[0]["body"] == "nonsense"
    monkeypatch.setattr(tables, "MAX_DEAD_LETTERS", 5)
    write(path, ["again"])
    ingest(Direct(talk), "shop", JsonLinesFile(path), GAINS)
    assert [letter["body"] for letter in Direct(talk).source(JsonLinesFile(path).name)["dead"]][-1] == "again"
    assert len(Direct(talk).source(JsonLinesFile(path).name)["dead"]) == 5


def test_a_batch_that_is_not_at_its_place_changes_nothing(talk):
    made(talk)
    shown = talk.rank(LIST)
    told = {"round": shown["round"], "gains": {shown["ranking"][0]["id"]: 1.0}}
    batch = {"source": "s", "start": 0, "end": 10, "feedback": [told], "places": [0]}
    before = model(talk)
    for wrong in ({"start": 5}, {"start": 3, "end": 2}):
        assert talk.ask("POST", "/v1/rankers/shop/ingest", {**batch, **wrong}, 409) == "wrong_place"
    twice = {**batch, "feedback": [told, told], "places": [0, 1]}
    assert talk.ask("POST", "/v1/rankers/shop/ingest", twice, 422) == "round_twice"
    assert talk.ask("POST", "/v1/rankers/shop/ingest", {**batch, "places": []}, 422) == "invalid"
    assert (model(talk), talk.ask("GET", "/v1/sources/s")["next"]) == (before, 0)
    answer = talk.ask("POST", "/v1/rankers/shop/ingest", batch)
    assert answer == {"next": 10, "learned": 1, "repeated": 0, "dead": 0}
    assert talk.ask("POST", "/v1/rankers/shop/ingest", batch, 409) == "wrong_place"


def test_a_disk_that_refuses_advances_nothing(talk, tmp_path, monkeypatch):
    made(talk)
    path = tmp_path / "events.jsonl"
    write(path, shown_events(talk, 2))
    talk.written()
    before = model(talk)

    def refuse(*_arguments):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ranktron.store.journal.sql_journal.advance_source", refuse)
        with pytest.raises(ServiceError) as error:
            Direct(talk).ingest("shop", batch_of(path))
        assert error.value.status == 503
    assert (model(talk), Direct(talk).source(JsonLinesFile(path).name)["next"]) == (before, 0)
    assert ingest(Direct(talk), "shop", JsonLinesFile(path), GAINS).learned == 2


def batch_of(path):
    from ranktron.service.ingest.sources import Batch

    batch, source = Batch(0, 0), JsonLinesFile(path)
    for message in source.read(0):
        assert batch.add(message, GAINS, 100)
    return batch.content(source.name)


def test_carried_rounds_are_ingested(tmp_path):
    keys = SealingKeys([new_key("active", date(2026, 1, 1))])
    with Talk(RankingService(tmp_path / "state", carry_keys=keys)) as talk:
        made(talk)
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(LIST.tolist())]
        lines = []
        for _ in range(3):
            shown = talk.ask("POST", "/v1/rankers/shop/rank", {"documents": documents, "carry": True})
            lines.append(event(shown["round"], shown["ranking"][0]["id"], carry=shown["carry"]))
        write(tmp_path / "events", [*lines, lines[0]])
        done = ingest(Direct(talk), "shop", JsonLinesFile(tmp_path / "events"), GAINS)
        assert (done.learned, done.repeated, done.dead) == (3, 0, 0)
        write(tmp_path / "events", [lines[1]])
        assert ingest(Direct(talk), "shop", JsonLinesFile(tmp_path / "events"), GAINS).repeated == 1


def test_files_are_known_by_identity_and_beginning(tmp_path):
    path = tmp_path / "a"
    write(path, ["one", "two"])
    first = JsonLinesFile(path).name
    write(path, ["three"])
    assert JsonLinesFile(path).name == first
    path.write_text("two\n")  # the same file with another beginning
    assert JsonLinesFile(path).name != first
    with pytest.raises(Exception, match="truncated"):
        list(JsonLinesFile(path).read(100))
    (tmp_path / "b").write_text("no end")
    with pytest.raises(Exception, match="no complete line"):
        JsonLinesFile(tmp_path / "b")


@pytest.mark.slow
def test_both_sides_are_killed(Program, tmp_path, broker):
    """kill -9 of readers of a file and of a topic, and of the service, by turns, at moments that nobody foresees."""
    path, state = tmp_path / "events.jsonl", tmp_path / "state"
    program = Program(state)
    with Client(program.url, timeout=60) as client:
        client.create("shop", ["a", "b", "c"], "pdgd", {"k": 2, "seed": 1})
        lines = []
        for _ in range(600):
            shown = client.rank("shop", {f"d{i}": row for i, row in enumerate(LIST.tolist())})
            lines.append(event(shown["round"], shown["ranking"][0]["id"]))
    write(path, lines[:300])
    sources = [str(path), broker.topic("killed", lines[300:])]

    def command(source):
        return [sys.executable, "-m", "ranktron", "ingest", source, "--ranker", "shop", "--json", "--url", program.url]

    for kill in range(4):
        reader = subprocess.Popen(command(sources[kill // 2]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.7 + 0.1 * kill)
        reader.kill() if kill % 2 else None
        program.stop(signal.SIGKILL) if not kill % 2 else None
        reader.kill()
        reader.wait()
        program = program if kill % 2 else Program(state)
    with program:
        done = [subprocess.run(command(each), capture_output=True, text=True, check=True) for each in sources]
        assert json.loads(done[0].stdout)["next"] == path.stat().st_size
        assert not any(json.loads(each.stdout)["dead"] for each in done)
        with Client(program.url, timeout=60) as client:
            assert {each["name"]: each["version"] for each in client.rankers()} == {"shop": 600}
            assert client.source(JsonLinesFile(path).name)["dead"] == []
