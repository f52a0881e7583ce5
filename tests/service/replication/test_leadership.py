"""Leaders and those who stand by: one leads at a time, and one that was followed stands by again."""

import asyncio

import msgspec
import pytest

from ranktron import DataError
from ranktron.service.http.app import application
from ranktron.service.replication.leadership import Leadership
from ranktron.service.service import RankingService
from ranktron.store.journal.journal import Call, JournalError
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest
from tests.service.conftest import call

DOCUMENTS = [Document("a", [1.0]), Document("b", [3.0])]


async def status(app, path="/readyz"):
    answer = await call(app, "GET", path, headers={"host": "localhost"})
    return msgspec.json.decode(answer.content)["error"]["code"] if answer.status != 200 else 200


async def until(condition, seconds=20.0):
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


def lose():
    raise JournalError("the network is gone")


async def begun(_service):
    """Nothing has to be done when a term begins."""


def test_one_leads_and_the_other_takes_over_and_the_first_stands_by_again(tmp_path, postgres):
    address = postgres.address(tmp_path)

    def server(name):
        leadership = Leadership(lambda: RankingService(tmp_path / name, journal=address), application)
        return leadership, asyncio.create_task(leadership.run(begun))

    async def run():
        one, first = server("one")
        await one.settled.wait()
        await one.service.create("shop", Definition(["price"]))
        shown = one.service.rank("shop", RankRequest(DOCUMENTS))
        await one.service.feedback("shop", FeedbackRequest(shown.round, {"a": 0.0, "b": 1.0}))
        waiting = one.service.rank("shop", RankRequest(DOCUMENTS))
        weights = one.service.live("shop").weights.tolist()
        two, second = server("two")
        await two.settled.wait()
        assert [await status(one), await status(two), await status(two, "/healthz")] == [200, "not_leader", 200]
        assert await status(two, "/v1/rankers") == "not_leader"
        old, database = one.service, one.service.journal._database
        connect, database._connect = database._connect, lose
        await old._writer.written(Call(database._connection.close), patient=True)  # between two transactions
        await until(lambda: _leads(two))
        database._connect = connect
        assert two.service.live("shop").weights.tolist() == weights
        with pytest.raises(Exception, match="stepped down"):
            await old.feedback("shop", FeedbackRequest(waiting.round, {"a": 1.0}))
        assert (await two.service.feedback("shop", FeedbackRequest(waiting.round, {"a": 1.0}))).version == 2
        await until(lambda: _stands_by(one))
        assert old.live_rankers == {}
        second.cancel()
        await asyncio.wait([second])
        await until(lambda: _leads(one))  # it comes back as one that has read everything
        assert one.service.live("shop").version == 2
        first.cancel()
        await asyncio.wait([first])

    async def _leads(leadership):
        return leadership.service is not None and await status(leadership) == 200

    async def _stands_by(leadership):
        return await status(leadership) == "not_leader"

    asyncio.run(run())


def test_a_database_that_cannot_be_reached_ends_a_start(tmp_path):
    address = "postgresql://shop@127.0.0.1:1/shop"

    async def run():
        leadership = Leadership(lambda: RankingService(tmp_path, journal=address), application)
        await leadership.run(begun)

    with pytest.raises(DataError, match="cannot be reached"):
        asyncio.run(run())
