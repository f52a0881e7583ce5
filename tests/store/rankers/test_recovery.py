"""What a start finds: limits that were lowered, versions that someone wished to keep, counters of metrics."""

import re

import numpy as np
import pytest

from ranktron.store.journal.journal import CAPACITY
from ranktron.training.model import Model

ROUND = np.eye(3)
pytestmark = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


def test_lowered_limits_are_for_what_is_new(serving, tmp_path):
    with serving(tmp_path) as talk:
        talk.make(parameters={"k": 3})
        talk.play(5)
        shown = [talk.rank(ROUND) for _ in range(4)]
        model = talk.ask("GET", "/v1/rankers/shop/model")
    lowered = {"max_features": 2, "max_k": 1, "max_rankers": 1, "max_open": 2, "remembered": 2, "versions": 2}
    with serving(tmp_path, **lowered) as talk:
        assert talk.ask("GET", "/v1/rankers")["set_aside"] == []
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert talk.answer(shown[-1])["learned"]
        assert talk.ask("PUT", "/v1/rankers/new", {"features": ["a", "b", "c"]}, status=409) == "too_many_rankers"


def test_versions_that_someone_wished_to_keep_stay(serving, tmp_path, monkeypatch):
    with serving(tmp_path, snapshot_every=2, versions=2) as talk:
        talk.make()
        talk.play(3)
        assert 3 in talk.ask("POST", "/v1/rankers/shop/versions")["kept"]
        model = talk.ask("GET", "/v1/rankers/shop/model")
        talk.play(12)
        talk.written()
        kept = talk.ask("GET", "/v1/rankers/shop/versions")["kept"]
        assert kept[0] == 3
        assert len(kept) == 3
        talk.crash()
    with serving(tmp_path, snapshot_every=2, versions=2) as talk:
        monkeypatch.setattr("ranktron.store.engine.MAX_PINNED", 1)
        assert talk.ask("POST", "/v1/rankers/shop/versions", status=409) == "too_many_versions"
        talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 3})
        assert talk.weights().tolist() == Model.from_bytes(model).learner().w.tolist()


def counters(talk):
    lines = talk.ask("GET", "/metrics").decode()
    kinds = dict(re.findall(r"# TYPE (ranktron_\w+) (\w+)", lines))
    found = re.findall(r'(ranktron_\w+)\{ranker="shop"\} (\S+)', lines)
    return {name: float(value) for name, value in found if kinds[name] == "counter"}


def test_a_counter_starts_at_nothing_or_goes_on_after_a_crash(serving, tmp_path):
    """One that comes back smaller, but not at 0, would be taken for as many new events."""
    talk = serving(tmp_path, snapshot_every=4, max_open=3).__enter__()
    talk.make()
    for _ in range(10):
        talk.play(1)
        talk.rank(ROUND)
    before = counters(talk)
    assert before["ranktron_rounds_total"] == 20
    assert before["ranktron_rounds_dropped_total"] > 0
    talk.crash()
    with serving(tmp_path, snapshot_every=4, max_open=3) as talk:
        for name, value in counters(talk).items():
            assert value in (0.0, before[name]), name
        assert counters(talk)["ranktron_feedback_total"] == 10


def test_a_round_that_was_learnt_stays_answered_though_the_log_has_lost_the_answer(serving, tmp_path, caplog):
    """What a snapshot has learnt may be missing in the log, as what was pruned is; it is not learnt a second time."""
    with serving(tmp_path) as talk:
        talk.make()
        shown = [talk.rank(np.eye(3)) for _ in range(6)]
        for each in shown:
            talk.answer(each)
        left = talk.ask("GET", "/v1/rankers/shop/model")
    serving.edit(tmp_path, "DELETE FROM entries WHERE key = ?", CAPACITY + 3)
    with serving(tmp_path) as talk:
        assert "lost the answers to 1 rounds" in caplog.text
        assert talk.tell(shown[2]["round"], {shown[2]["ranking"][0]["id"]: 1}, status=410) == "round_gone"
        assert talk.ask("GET", "/v1/rankers/shop/model") == left
        assert talk.ask("GET", "/v1/rankers/shop")["open"] == 0
