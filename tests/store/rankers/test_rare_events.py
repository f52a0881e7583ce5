"""What happens seldom: rankers made twice at once, writes that time out, models that have seen much, damage."""

import asyncio
import sqlite3
import time

import numpy as np
import pytest

from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import Call, Job
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest
from ranktron.store.rankers.feedback import check_feedback
from ranktron.store.rankers.models import MAX_ROUNDS
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

DEFINITION = Definition(["a", "b"])
LIST = RankRequest([Document("x", [1.0, 2.0]), Document("y", [0.0, 1.0])])


async def teach(service, count=3):
    for _ in range(count):
        shown = service.rank("shop", LIST)
        await service.feedback("shop", FeedbackRequest(shown.round, {shown.ranking[0].id: 1.0}))


def slow(service, seconds=0.3):
    """Keeps the disk busy."""
    service.journal.put(Job(Call(lambda: time.sleep(seconds)), lambda _result: None))


def fail(service, times):
    """A disk that refuses the next commits."""
    commit, left = service.journal._write_batch, [times]

    def do(jobs):
        left[0] -= 1
        if left[0] >= 0:
            raise sqlite3.OperationalError("disk I/O error")
        return commit(jobs)

    service.journal._write_batch = do


async def impatient(work):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await work


def left_in(folder):
    """The versions of the rankers that a start finds."""
    service = RankingService(folder)
    service.journal.close()
    return {name: live.version for name, live in service.live_rankers.items()}


def test_a_ranker_that_two_clients_make_at_once_is_one(tmp_path):
    async def session():
        async with RankingService(tmp_path, Config(max_rankers=1)) as service:
            made = await asyncio.gather(*(service.create("shop", DEFINITION) for _ in range(3)))
            assert made[0] == made[1] == made[2]
            with pytest.raises(RequestError, match="a different ranker"):
                await service.create("shop", Definition(["a"]))
            await teach(service)

    asyncio.run(session())
    assert left_in(tmp_path) == {"shop": 3}


def test_a_ranker_that_nobody_waited_for_is_there(tmp_path):
    async def session():
        async with RankingService(tmp_path) as service:
            slow(service)
            await impatient(service.create("shop", DEFINITION))
            await service.create("shop", DEFINITION)
            await teach(service)
            assert service.journal._database.execute("SELECT count(*) FROM rankers").fetchone() == (1,)

    asyncio.run(session())
    assert left_in(tmp_path) == {"shop": 3}


def test_a_ranker_that_could_not_be_deleted_stays_whole(tmp_path):
    async def session():
        async with RankingService(tmp_path) as service:
            await service.create("shop", DEFINITION)
            await teach(service)
            fail(service, 1)
            removed, made = await asyncio.gather(
                service.delete("shop"), service.create("shop", DEFINITION), return_exceptions=True
            )
            assert removed.code == "not_written"
            assert made.version == 3
            slow(service)
            fail(service, 1)
            await impatient(service.delete("shop"))
            await teach_when_it_is_back(service)

    async def teach_when_it_is_back(service):
        await service.create("shop", DEFINITION)
        await teach(service, 1)

    asyncio.run(session())
    assert left_in(tmp_path) == {"shop": 4}


def test_a_ranker_deleted_while_nobody_waited_and_made_again(tmp_path):
    async def session():
        async with RankingService(tmp_path, Config(snapshot_every=2)) as service:
            await service.create("shop", DEFINITION)
            await teach(service, 5)
            slow(service)
            waiting = service.rank("shop", LIST)
            received = asyncio.ensure_future(
                service.feedback("shop", FeedbackRequest(waiting.round, {waiting.ranking[0].id: 1.0}))
            )
            await asyncio.sleep(0)
            await impatient(service.delete("shop"))
            await service.create("shop", DEFINITION)
            assert (await received).version == 6
            with pytest.raises(RequestError, match="no longer open"):
                await service.feedback("shop", FeedbackRequest(waiting.round, {waiting.ranking[0].id: 1.0}))
            assert service.rank("shop", LIST).round == waiting.round + 1

    asyncio.run(session())
    assert left_in(tmp_path) == {"shop": 0}
    assert not (tmp_path / "snapshots" / "1").exists()


def trained(rounds):
    learner = ALGORITHMS["topk"].learner(3, {})
    learner.rounds = rounds
    return Model("topk", ALGORITHMS["topk"].complete({}), learner.state(), 3).to_bytes()


def post(talk, data, status=200):
    kind = "application/octet-stream"
    return talk.ask("POST", "/v1/rankers/shop/model", content=data, content_type=kind, status=status)


@pytest.mark.parametrize("keep", [False, True])
def test_a_model_that_has_seen_much_goes_on_counting(serving, tmp_path, keep):
    talk = serving(tmp_path).__enter__()
    talk.make()
    post(talk, trained(1_000_000))
    if keep:
        talk.ask("POST", "/v1/rankers/shop/versions")
    shown = talk.rank(np.eye(3))
    assert shown["round"] == 1_000_000
    talk.answer(shown)
    talk.crash()
    with serving(tmp_path) as talk:
        assert talk.rank(np.eye(3))["round"] > 1_000_000
        assert post(talk, trained(MAX_ROUNDS + 1), status=422) == "bad_model"
        assert post(talk, trained(2**62), status=422) == "bad_model"


def test_a_model_that_is_refused_leaves_the_ranker_open(serving, tmp_path):
    with serving(tmp_path, max_waiting=1) as talk:
        talk.make()
        model = talk.ask("GET", "/v1/rankers/shop/model")

        async def crowded():
            slow(talk.service, 0.1)
            with pytest.raises(RequestError, match="too many requests are waiting"):
                await talk.service.set_model("shop", model)

        talk.runner.run(crowded())
        talk.written()
        assert talk.rank(np.eye(3))


def test_scores_that_are_too_large_are_refused(talk):
    talk.make()
    learner = ALGORITHMS["hinge"].learner(3, {})
    learner.w[:] = 1e308
    post(talk, Model("hinge", {}, learner.state(), 3).to_bytes())
    assert talk.rank(np.ones((3, 3)), status=422) == "not_rankable"
    assert talk.ask("GET", "/v1/rankers/shop")["open"] == 0


def test_what_a_snapshot_has_learnt_is_not_learnt_again_when_its_entry_is_damaged(serving, tmp_path):
    talk = serving(tmp_path, snapshot_every=5).__enter__()
    talk.make()
    numbers = talk.play(5)
    weights = talk.weights().tolist()
    talk.crash()
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    with connection:
        connection.execute("UPDATE entries SET checksum = 0 WHERE key = (SELECT max(key) FROM entries)")
    connection.close()
    with serving(tmp_path) as talk:
        assert talk.service.cut == 1
        assert talk.tell(numbers[-1], {"d0": 1.0}, status=410) == "round_gone"
        assert talk.weights().tolist() == weights
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 5


def test_a_version_that_could_not_be_kept_is_not_said_to_be(talk, monkeypatch):
    talk.make()
    talk.play(2)

    def refuse(version, data, **more):
        raise OSError("too many open files")

    monkeypatch.setattr(talk.service.live("shop").snapshots, "write", refuse)
    assert talk.ask("POST", "/v1/rankers/shop/versions", status=503) == "not_written"
    assert talk.play(1)
    assert talk.ask("GET", "/readyz") == {"ready": True}


def test_one_who_cannot_be_told_keeps_nobody_else_waiting(talk, caplog):
    talk.make()
    shown = talk.rank(np.eye(3))

    async def session():
        talk.service.journal.put(Job(Call(lambda: None), lambda _result: 1 / 0))
        request = FeedbackRequest(shown["round"], {shown["ranking"][0]["id"]: 1.0})
        return await talk.service.feedback("shop", request)

    assert talk.runner.run(session()).learned
    assert "ZeroDivisionError" in caplog.text


def test_a_deleted_ranker_leaves_no_entries(tmp_path):
    """Not those that were written with the deletion, nor one that comes after it."""

    async def session():
        async with RankingService(tmp_path) as service:
            await service.create("shop", DEFINITION)
            await teach(service)
            shown = [service.rank("shop", LIST) for _ in range(2)]
            live = service.live("shop")
            first, late = (check_feedback(live, FeedbackRequest(each.round, {"x": 1.0})) for each in shown)
            told = service._writer.logged(live, first, first.round)
            gone = asyncio.ensure_future(service.delete("shop"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            with pytest.raises(RequestError, match="no ranker 'shop'"):
                await service._writer.logged(live, late, late.round)
            await gone
            assert (await told).version == 4
            count = "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM rounds)"
            assert service.journal._database.execute(count).fetchone() == (0, 0)

    asyncio.run(session())
    assert left_in(tmp_path) == {}
