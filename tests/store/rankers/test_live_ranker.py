"""One ranker at work: clocks that jump, and lists that no later one would get over."""

import asyncio
import time

import msgspec
import numpy as np
import pytest

from ranktron.service import service
from ranktron.store.rankers import open_rounds

ROUND = np.eye(3)


@pytest.mark.parametrize("jump", [30 * 86400.0, -30 * 86400.0])
def test_a_clock_that_jumps_closes_no_round(serving, tmp_path, monkeypatch, jump):
    talk = serving(tmp_path).__enter__()
    talk.make()
    shown = [talk.rank(ROUND) for _ in range(3)]
    monkeypatch.setattr(open_rounds, "time", lambda: time.time() + jump)
    assert talk.answer(shown[0])["learned"]
    talk.crash()
    with serving(tmp_path) as talk:
        assert talk.answer(shown[1])["learned"]
        later = talk.rank(ROUND)
    monkeypatch.undo()
    with serving(tmp_path) as talk:
        assert talk.answer(shown[2])["learned"]
        assert talk.answer(later)["learned"]


def test_time_goes_on_over_a_restart(serving, tmp_path, monkeypatch):
    """Rounds grow old by the time that servers run, however often one starts."""
    start, passed = time.monotonic(), [0.0]
    monkeypatch.setattr(open_rounds, "monotonic", lambda: start + passed[0])
    with serving(tmp_path, open_seconds=100.0) as talk:
        talk.make()
        shown = [talk.rank(ROUND) for _ in range(2)]
        passed[0] = 60.0
        talk.answer(talk.rank(ROUND))
    with serving(tmp_path, open_seconds=100.0) as talk:
        passed[0] += 30.0
        assert talk.answer(shown[0])["learned"]
        passed[0] += 20.0
        assert talk.tell(shown[1]["round"], {shown[1]["ranking"][0]["id"]: 1}, status=410) == "round_gone"


@pytest.mark.parametrize("ends", ["crash", "stop"])
def test_time_goes_on_though_nothing_is_logged(serving, tmp_path, monkeypatch, ends):
    start, passed = time.monotonic(), [0.0]
    monkeypatch.setattr(open_rounds, "monotonic", lambda: start + passed[0])
    talk = serving(tmp_path, open_seconds=100.0).__enter__()
    talk.make()
    shown = [talk.rank(ROUND) for _ in range(2)]
    talk.written()
    passed[0] = 90.0
    if ends == "crash":  # what is done once a minute

        async def note():
            talk.service.engine.record_clocks()

        talk.runner.run(note())
        talk.crash()
    else:
        talk.__exit__()
    with serving(tmp_path, open_seconds=100.0) as talk:
        passed[0] += 5.0
        assert talk.answer(shown[0])["learned"]
        passed[0] += 10.0
        assert talk.tell(shown[1]["round"], {shown[1]["ranking"][0]["id"]: 1}, status=410) == "round_gone"


def test_the_time_is_noted_by_itself(serving, tmp_path, monkeypatch):
    monkeypatch.setattr(service, "CLOSE_INTERVAL", 0.01)
    monkeypatch.setattr(service, "CLOCK_INTERVAL", 0.02)
    with serving(tmp_path) as talk:
        talk.make()

        async def wait():
            while not talk.service.journal._mark.rankers[1].at:
                await asyncio.sleep(0.01)

        talk.runner.run(asyncio.wait_for(wait(), 20.0))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_no_list_can_spoil_a_kernel_ranker(serving, tmp_path, kernel):
    with serving(tmp_path) as talk:
        talk.make(algorithm="kernel", parameters={"kernel": kernel})
        talk.play(5)
        for large in (3.4e38, 1e37, 1e20, 1e19, 5e18, 1e10):
            documents = [{"id": "a", "features": [large] * 3}, {"id": "b", "features": [-large] * 3}]
            full = {"documents": documents, "labels": {"a": 1, "b": 0}}
            for path, body in (("full", full), ("rank", {"documents": documents})):
                content = msgspec.json.encode(body)
                talk.request("POST", f"/v1/rankers/shop/{path}", content, content_type="application/json")
            assert talk.rank(ROUND)["ranking"]
        if kernel == "rbf":
            assert talk.rank(np.full((3, 3), 3.4e38), status=422) == "feature_too_large"
        model = talk.ask("GET", "/v1/rankers/shop/model")
        talk.crash()
    with serving(tmp_path) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert talk.rank(ROUND)["ranking"]
