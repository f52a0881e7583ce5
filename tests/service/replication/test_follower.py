"""Followers: the leader's weights to the bit, rounds that can be answered anywhere, and a leader that goes away."""

import asyncio
import shutil
import socket
from contextlib import asynccontextmanager
from datetime import date

import msgspec
import numpy as np
import pytest
import uvicorn

from ranktron.service.auth import Tokens, new_token
from ranktron.service.config import Config
from ranktron.service.http.app import application
from ranktron.service.replication import follower as followers
from ranktron.service.replication import journal_feed
from ranktron.service.replication.follower import Follower, LeaderClient
from ranktron.service.replication.follower_app import FollowerApplication
from ranktron.service.sealing_keys import SealingKeys, new_key
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model
from tests.service.conftest import call, some_lists

CONFIG = Config(answer_seconds=300.0, snapshot_every=20)


class Site:
    """A leader at a port of its own, and servers that follow it."""

    def __init__(self, folder, tokens=None, token=None, keys=None):
        self.folder, self.tokens, self.token, self.keys = folder, tokens or Tokens([]), token, keys
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.tasks = []

    async def lead(self):
        self.service = RankingService(self.folder, CONFIG, carry_keys=self.keys)
        self.service.start()
        if self.socket is None:
            self.socket = socket.create_server(("127.0.0.1", self.port))
        config = uvicorn.Config(application(self.service, self.tokens), log_level="error", lifespan="off")
        self.server = uvicorn.Server(config)
        self.serving = asyncio.create_task(self.server.serve(sockets=[self.socket]))
        while not self.server.started:
            await asyncio.sleep(0.01)

    async def leave(self):
        """The leader ends, as in a crash: no snapshot, and connections are cut."""
        self.server.should_exit = self.server.force_exit = True
        await self.serving
        self.service._close_task.cancel()
        await asyncio.to_thread(self.service.journal.close)
        self.socket.close()
        self.socket = None

    async def follow(self):
        follower = Follower(LeaderClient(f"http://127.0.0.1:{self.port}", self.token), CONFIG, self.keys)
        self.tasks.append((asyncio.create_task(follower.run()), follower))
        await follower.synchronised.wait()
        return Client(FollowerApplication(follower, self.tokens, Telemetry()), self.token), follower

    async def close(self):
        for task, follower in self.tasks:
            task.cancel()
            await asyncio.wait([task])
            await follower.close()
        await self.leave()


class Client:
    """Talks to an application."""

    def __init__(self, app, token=None):
        self.app, self.headers = app, {"authorization": f"Bearer {token}"} if token else {}

    async def ask(self, method, path, body=None, status=200, kind="application/json", **headers):
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        sent = {"host": "localhost", "content-type": kind, **self.headers, **headers}
        self.reply = await call(self.app, method, path, content, sent)
        assert self.reply.status == status, self.reply
        if self.reply.headers["content-type"] != "application/json":
            return self.reply.content
        told = msgspec.json.decode(self.reply.content)
        return told if status == 200 else told["error"]["code"]

    async def rank(self, X, status=200, name="shop", **more):
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(np.asarray(X, float).tolist())]
        return await self.ask("POST", f"/v1/rankers/{name}/rank", {"documents": documents, **more}, status)

    async def tell(self, shown, status=200, name="shop"):
        labels = {each["id"]: float(i == 0) for i, each in enumerate(shown["ranking"][:2])}
        body = {"round": shown["round"], "labels": labels, "carry": shown.get("carry")}
        return await self.ask("POST", f"/v1/rankers/{name}/feedback", body, status)


@asynccontextmanager
async def running(folder, *tokens, keys=None):
    site = Site(folder, *tokens, keys=keys)
    await site.lead()
    try:
        yield site
    finally:
        await site.close()


async def until(condition, seconds=30.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def same(site, follower, name="shop"):
    """Waits until a follower has the leader's version; then it has its model, to the bit."""
    live = site.service.live(name)
    await until(lambda: name in follower.rankers and follower.rankers[name].live.version == live.version)
    copy = follower.rankers[name].live
    assert copy.incarnation == live.incarnation
    assert copy.model.to_bytes() == live.model.to_bytes()
    return copy


DEFINITION = {"features": ["a", "b", "c"], "algorithm": "topk", "parameters": {"k": 2, "explore": 0.5, "seed": 3}}


def test_followers_have_the_leaders_weights_to_the_bit_and_their_rounds_are_answered_anywhere(tmp_path):
    async def run():
        async with running(tmp_path) as site:
            (one, first), (two, second) = await site.follow(), await site.follow()
            await one.ask("PUT", "/v1/rankers/shop", DEFINITION)  # handed on to the leader
            await until(lambda: "shop" in first.rankers and "shop" in second.rankers)
            leader = Client(application(site.service))
            numbers, lists, clients = [], list(some_lists(45)), (one, two, leader)
            for i, (X, _) in enumerate(lists):
                shown = await clients[i % 3].rank(X)
                numbers.append(shown["round"])
                if i % 3 < 2:
                    assert float(clients[i % 3].reply.headers["ranktron-lag"]) < 30.0
                assert (await clients[(i + 1) % 3].tell(shown))["version"] == i + 1
            assert len(set(numbers)) == len(numbers)
            for follower in (first, second):
                assert (await same(site, follower)).version == 45
            waiting = await one.rank(lists[0][0])
            assert waiting["version"] == 45
            assert (await two.ask("GET", f"/v1/rankers/shop/explain/{waiting['round']}"))["round"] == waiting["round"]
            await leader.ask("POST", "/v1/rankers/shop/rollback", {"version": 20})
            for follower in (first, second):
                await same(site, follower)
            assert (await leader.tell(waiting))["version"] == 47

    asyncio.run(run())


def test_the_rounds_of_followers_survive_the_leader(tmp_path):
    async def run():
        async with running(tmp_path) as site:
            client, follower = await site.follow()
            await client.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in follower.rankers)
            kept = [await client.rank(np.eye(3)) for _ in range(3)]
            await asyncio.sleep(0.1)  # they are written some milliseconds later
            await site.leave()
            assert await client.tell(kept[0], status=503) == "leader_away"
            away = await client.rank(np.eye(3))  # rankings go on, and are handed in later
            await site.lead()
            await until(lambda: not follower.rankers["shop"]._pending)
            for shown in (*kept, away):
                assert (await client.tell(shown))["learned"]
            await same(site, follower)

    asyncio.run(run())


def test_a_leader_that_was_set_back_is_followed_to_where_it_is_now(tmp_path):
    """The follower has versions that the leader has had, too, with other entries."""

    async def run():
        async with running(tmp_path / "state") as site:
            leader = Client(application(site.service))
            await leader.ask("PUT", "/v1/rankers/shop", DEFINITION)
            for X, _ in some_lists(5):
                await leader.tell(await leader.rank(X))
            await site.leave()
            shutil.copytree(tmp_path / "state", tmp_path / "backup")
            await site.lead()
            client, follower = await site.follow()
            leader = Client(application(site.service))
            for X, _ in some_lists(5, seed=1):
                await leader.tell(await leader.rank(X))
            assert (await same(site, follower)).version == 10
            await site.leave()
            shutil.rmtree(tmp_path / "state")
            shutil.copytree(tmp_path / "backup", tmp_path / "state")
            await site.lead()
            leader = Client(application(site.service))
            for X, _ in some_lists(6, seed=2):
                await leader.tell(await leader.rank(X))
            assert (await same(site, follower)).version == 11
            assert (await client.tell(await client.rank(np.eye(3))))["version"] == 12

    asyncio.run(run())


def test_a_follower_that_lacks_too_much_gets_a_copy(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_feed, "_BUFFER_BYTES", 3_000)
    monkeypatch.setattr(followers, "_LONG_POLL", 0.0)
    follow = followers.Follower.follow

    async def run():
        async with running(tmp_path) as site:
            client, follower = await site.follow()
            leader = Client(application(site.service))
            await leader.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in follower.rankers)
            copy = follower.rankers["shop"].live

            async def sleep(self):
                await asyncio.sleep(0.05)

            monkeypatch.setattr(followers.Follower, "follow", sleep)
            await asyncio.sleep(0.2)
            for X, _ in some_lists(30):
                await leader.tell(await leader.rank(X))
            monkeypatch.setattr(followers.Follower, "follow", follow)
            assert await same(site, follower) is not copy
            assert (await leader.tell(await client.rank(np.eye(3))))["version"] == 31

    asyncio.run(run())


def test_what_another_kind_of_model_has_shown_is_not_learnt(tmp_path, monkeypatch):
    """The follower has numbers from after the change, and still the model from before it."""
    other = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3).to_bytes()

    async def run():
        async with running(tmp_path) as site:
            client, follower = await site.follow()
            leader = Client(application(site.service))
            await leader.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in follower.rankers)
            before = await client.rank(np.eye(3))

            async def sleep(self):
                await asyncio.sleep(0.05)

            follow = followers.Follower.follow
            monkeypatch.setattr(followers.Follower, "follow", sleep)
            await asyncio.sleep(0.7)  # the request that waits is answered
            await leader.ask("POST", "/v1/rankers/shop/model", other, kind="application/octet-stream")
            assert await client.tell(before, status=410) == "round_gone"
            for _ in range(3):  # with numbers from before the change, and then from after it
                assert await client.rank(np.eye(3), status=503) == "busy"
            monkeypatch.setattr(followers.Follower, "follow", follow)
            await same(site, follower)
            assert (await client.tell(await client.rank(np.eye(3))))["learned"]
            await same(site, follower)

    asyncio.run(run())


def test_followers_let_clients_carry_their_rounds_and_the_leader_keeps_none(tmp_path):
    other = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3).to_bytes()

    async def run():
        async with running(tmp_path / "state", keys=SealingKeys([new_key("active", date(2026, 1, 1))])) as site:
            (one, first), (two, _) = await site.follow(), await site.follow()
            await one.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in first.rankers)
            shown = [await one.rank(X, carry=True) for X, _ in some_lists(5)]
            assert len({each["round"] for each in shown}) == 5
            assert not site.service.live("shop").rounds.open
            for number, each in enumerate(shown, 1):
                assert (await two.tell(each))["version"] == number
                assert (await one.tell(each))["version"] == number  # the same answer, and nothing more
            await same(site, first)
            stored = RankingService(tmp_path / "stored", CONFIG)
            stored.start()
            alone = Client(application(stored))
            await alone.ask("PUT", "/v1/rankers/shop", DEFINITION)
            kept = [await alone.rank(X) for X, _ in some_lists(5)]
            assert [each["ranking"] for each in kept] == [each["ranking"] for each in shown]
            for each in kept:
                await alone.tell(each)
            assert stored.live("shop").model.to_bytes() == site.service.live("shop").model.to_bytes()
            await stored.stop()
            await site.leave()
            away = await one.rank(np.eye(3), carry=True)  # it waits for nobody
            await site.lead()
            assert (await one.tell(away))["version"] == 6
            before = await one.rank(np.eye(3), carry=True)
            leader = Client(application(site.service))
            await leader.ask("POST", "/v1/rankers/shop/model", other, kind="application/octet-stream")
            assert await leader.tell(before, status=410) == "round_gone"
            first.sealed._keys = None
            assert await one.rank(np.eye(3), status=409, carry=True) == "no_keys"

    asyncio.run(run())


def test_a_ranker_that_is_deleted_and_made_again_is_another_one(tmp_path):
    async def run():
        async with running(tmp_path) as site:
            client, follower = await site.follow()
            await client.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in follower.rankers)
            old = await client.rank(np.eye(3))
            await client.ask("DELETE", "/v1/rankers/shop")
            await client.ask("PUT", "/v1/rankers/shop", {**DEFINITION, "features": ["a", "b"]})
            await until(lambda: len(follower.rankers["shop"].live.names) == 2 if "shop" in follower.rankers else False)
            shown = await client.rank(np.eye(2))
            assert await client.tell(old, status=410) == "round_gone"
            assert (await client.tell(shown))["version"] == 1
            await client.ask("DELETE", "/v1/rankers/shop")
            await until(lambda: not follower.rankers)
            assert await client.rank(np.eye(2), status=404) == "unknown_ranker"

    asyncio.run(run())


def test_who_may_follow_and_what_is_refused(tmp_path):
    made = {scope: new_token(scope, [scope]) for scope in ("rank", "admin")}
    tokens = Tokens([line for _, line in made.values()])

    async def run():
        async with running(tmp_path, tokens, made["admin"][0]) as site:
            client, follower = await site.follow()
            await client.ask("PUT", "/v1/rankers/shop", DEFINITION)
            await until(lambda: "shop" in follower.rankers)
            assert await client.ask("GET", "/readyz") == {"ready": True}
            user = Client(client.app, made["rank"][0])
            shown = await user.rank(np.eye(3))
            assert await user.tell(shown, status=403) == "wrong_scope"
            assert await Client(client.app).rank(np.eye(3), status=401) == "no_token"
            assert await user.ask("PUT", "/v1/rankers/shop", {}, 403, origin="http://evil.example") == "foreign_page"
            binary, leader = "application/octet-stream", Client(application(site.service, tokens), made["admin"][0])
            for path in ("/v1/follow", "/v1/follow/rounds"):
                assert await user.ask("POST", path, b"", 403, binary) == "wrong_scope"
                assert await leader.ask("POST", path, b"nonsense", 422, binary) == "invalid"
            live = site.service.live("shop")
            kept = live.rounds.open[live.rounds.ids.number_of(shown["round"])]
            kind, number = journal_feed.fingerprint(live), live.rounds.next
            for rounds in ({0: (kind, b"")}, {number: (kind, kept)}, {1: (kind, kept)}, {1: (kind + 1, kept)}):
                request = journal_feed.RoundsRequest("shop", live.incarnation, rounds)
                data = journal_feed.encode_message(request)
                answer = await leader.ask("POST", "/v1/follow/rounds", data, kind=binary)
                assert msgspec.msgpack.decode(answer)["refused"] == list(rounds)
            request = journal_feed.RoundsRequest("shop", 1, {})
            data = journal_feed.encode_message(request)
            assert await leader.ask("POST", "/v1/follow/rounds", data, 409, binary) == "replaced"

    asyncio.run(run())


def test_a_leaders_address_is_checked():
    from ranktron import DataError

    for url in ("10.0.0.5:8080", "ftp://leader", "http://leader/path"):
        with pytest.raises(DataError, match="is not the address of a server"):
            LeaderClient(url)
