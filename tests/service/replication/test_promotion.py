"""A follower that is promoted: what it had is there to the bit, and the leader of before is not followed again."""

import asyncio
import re
import signal
import time
from datetime import date

import numpy as np
import pytest
from click.testing import CliRunner

from ranktron.cli.main import cli
from ranktron.service.auth import Tokens
from ranktron.service.config import Config
from ranktron.service.http.app import application
from ranktron.service.replication.follower import TERMS_PER_PROMOTION
from ranktron.service.replication.promotion import PromotableApplication
from ranktron.service.sealing_keys import SealingKeys, new_key
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from tests.service.conftest import some_lists
from tests.service.replication.test_follower import CONFIG, DEFINITION, Client, running, same, until
from tests.service.test_crash import User, define_ranker

KEYS = SealingKeys([new_key("active", date(2026, 1, 1))])


def promotable(site, follower, folder):
    """A server that follows beside the one that the site has made; `start` is not called: its task runs already."""

    def open_service(place):
        return RankingService(place, CONFIG, carry_keys=KEYS)

    return PromotableApplication(follower, Tokens([]), Telemetry(), folder, open_service)


async def followed(site, folder, feedbacks=8):
    """A client of a server that follows, which has a ranker that has learnt."""
    client, follower = await site.follow()
    client.app = app = promotable(site, follower, folder)
    app._follow_task = site.tasks.pop()[0]
    await client.ask("PUT", "/v1/rankers/shop", DEFINITION)
    await until(lambda: "shop" in follower.rankers)
    for X, _ in some_lists(feedbacks):
        await client.tell(await client.rank(X))
    await same(site, follower)
    return client, app, follower


def test_a_promoted_follower_goes_on_with_the_leaders_weights(tmp_path):
    async def run():
        async with running(tmp_path / "leader") as site:
            client, app, follower = await followed(site, tmp_path / "promoted")
            answered = await client.rank(np.eye(3))
            await client.tell(answered)
            await same(site, follower)
            model, term = site.service.live("shop").model.to_bytes(), site.service.journal.term
            handed_in = await client.rank(np.eye(3))
            await site.leave()
            waiting = await client.rank(np.eye(3))  # the leader never had this one
            told = await client.ask("POST", "/v1/promote", {})
            assert told["rankers"] == [{"name": "shop", "version": 9, "acknowledged": 9}]
            assert not told["reached"]
            assert told["term"] == TERMS_PER_PROMOTION + 1 > term
            assert app.service.live("shop").model.to_bytes() == model
            assert await client.tell(answered, status=410) == "round_gone"  # it was learnt from: not twice
            assert await client.tell(handed_in, status=410) == "round_gone"  # only the leader had it
            assert (await client.tell(waiting))["version"] == 11  # version 10 is the promotion
            shown = await client.rank(np.eye(3))
            assert shown["round"] > 2**40  # a new epoch
            assert (await client.tell(shown))["version"] == 12
            assert await client.ask("POST", "/v1/promote", {}, 409) == "leads_already"
            weights = app.service.live("shop").model.to_bytes()
            await app.stop()
            again = RankingService(tmp_path / "promoted", CONFIG)
            assert again.live("shop").model.to_bytes() == weights
            assert again.journal.term == TERMS_PER_PROMOTION + 2
            again.journal.close()
            await site.lead()
            old = Client(application(site.service))
            assert await old.tell(shown, status=410) == "round_gone"

    asyncio.run(run())


def test_the_gap_is_what_was_acknowledged_and_has_not_arrived(tmp_path):
    async def run():
        async with running(tmp_path / "leader") as site:
            client, app, _ = await followed(site, tmp_path / "promoted")
            await app._stop_following()
            for X, _ in some_lists(3):
                await client.tell(await client.rank(X))
            await site.leave()
            told = await client.ask("POST", "/v1/promote", {})
            assert told["rankers"] == [{"name": "shop", "version": 8, "acknowledged": 11}]
            assert app.service.live("shop").version == 9
            await app.stop()
            await site.lead()

    asyncio.run(run())


def test_a_leader_that_still_answers_and_a_folder_that_is_there_are_refused_and_nothing_changes(tmp_path):
    async def run():
        async with running(tmp_path / "leader") as site:
            folder = tmp_path / "promoted"
            client, app, follower = await followed(site, folder)
            assert await client.ask("POST", "/v1/promote", {}, 409) == "leader_alive"
            folder.mkdir()
            (folder / "something").touch()
            assert await client.ask("POST", "/v1/promote", {}, 409) == "folder_exists"
            (folder / "something").unlink()
            assert (await client.tell(await client.rank(np.eye(3))))["version"] == 9  # it follows, and hands in
            await same(site, follower)
            told = await client.ask("POST", "/v1/promote", {"force": True})
            assert told["reached"]
            assert told["rankers"] == [{"name": "shop", "version": 9, "acknowledged": 9}]
            assert (await client.tell(await client.rank(np.eye(3))))["version"] == 11
            assert site.service.live("shop").version == 9
            await app.stop()

    asyncio.run(run())


def test_the_leader_of_before_is_not_followed_by_accident(tmp_path):
    """Two leaders at one address, one after the other: as behind a load balancer."""

    async def run():
        async with running(tmp_path / "leader") as site:
            client, app, _ = await followed(site, tmp_path / "promoted")
            await site.leave()
            await client.ask("POST", "/v1/promote", {})
            await client.tell(await client.rank(np.eye(3)))
            await app.stop()
            site.folder = tmp_path / "promoted"
            await site.lead()
            other, follower = await site.follow()
            before = (await same(site, follower)).model.to_bytes()
            await site.leave()
            site.folder = tmp_path / "leader"
            for _ in range(2):  # each start increments its term
                await site.lead()
                await until(lambda: follower.lag > 0.8)  # of a leader that it follows it hears every half second
                assert follower.rankers["shop"].live.model.to_bytes() == before
                await site.leave()
            site.folder = tmp_path / "promoted"
            await site.lead()
            leader = Client(application(site.service))
            await leader.tell(await rank_when_heard(other))
            await same(site, follower)

    asyncio.run(run())


async def rank_when_heard(client):
    """A list of a follower as soon as it hears of its leader again: until then it answers 503, "try again"."""
    async with asyncio.timeout(30.0):
        while True:
            try:
                return await client.rank(np.eye(3))
            except AssertionError:
                assert client.reply.status == 503, client.reply
                await asyncio.sleep(0.05)


def test_a_carried_round_of_the_leader_of_before_is_learnt_once(tmp_path):
    async def run():
        async with running(tmp_path / "leader", keys=KEYS) as site:
            client, app, follower = await followed(site, tmp_path / "promoted")
            leader = Client(application(site.service))
            shown = [await leader.rank(np.eye(3), carry=True) for _ in range(2)]
            await leader.tell(shown[0])
            await same(site, follower)
            await site.leave()
            await client.ask("POST", "/v1/promote", {})
            assert await client.tell(shown[0], status=410) == "round_gone"
            assert (await client.tell(shown[1]))["learned"]
            assert app.service.live("shop").version == 11
            await app.stop()
            await site.lead()

    asyncio.run(run())


@pytest.mark.slow
def test_killing_the_leader_under_load_and_promoting_its_follower(Program, tmp_path):
    """Through the command: every feedback that it does not call lost is there once, and users go on."""
    with Program(tmp_path / "leader") as leader, Program(tmp_path / "promoted", "--follow", leader.url) as follower:
        users = [User(follower.port, seed) for seed in range(3)]
        define_ranker(leader.port)
        for user in users:
            user.start()
        while sum(len(user.acknowledged) for user in users) < 100:
            time.sleep(0.01)
        leader.stop(signal.SIGKILL)
        for user in users:
            user.over = True
        for user in users:
            user.join(timeout=60)
            user.connection.close()
            assert {status for status, *_ in user.wrong} <= {503}  # the leader is away
        done = CliRunner().invoke(cli, ["promote", follower.url])
        assert done.exit_code == 0, done.output
        found = re.search(r"shop: continues from version (\d+); the old leader had at least (\d+)", done.output)
        assert found, done.output
        version, known = int(found[1]), int(found[2])
        acknowledged = {told[1]: number for user in users for number, told in user.acknowledged.items()}
        assert max(acknowledged) <= known  # all of it went through this follower
        kept = {number for at, number in acknowledged.items() if at <= version}
        again = User(follower.port, 9)
        again.start()
        while len(again.acknowledged) < 20 and again.is_alive():
            time.sleep(0.01)
        again.over = True
        again.join(timeout=60)
        again.connection.close()
        assert not again.wrong
        follower.stop()
    service = RankingService(tmp_path / "promoted", Config())
    live = service.live("shop")
    assert all(number in live.rounds.answered_ever for number in kept)
    assert live.version == version + 1 + len(again.acknowledged)
    service.journal.close()
