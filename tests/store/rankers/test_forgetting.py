"""Forgetting a user: the weights of a replay without them, to the bit, and nothing of them on disk."""

import asyncio
import shutil
import threading

import numpy as np
import pytest

import ranktron
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import decode_feedback, decode_gains
from ranktron.store.messages import Definition
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.models import blank_model
from ranktron.store.rankers.recovery import _entry
from ranktron.types import Feedback

NAMES, IDS = ["a", "b", "c"], [f"d{i}" for i in range(6)]
CONFIG = StoreConfig(snapshot_every=20, remembered=10, explained_rounds=5, versions=3)


def shop_of(store, algorithm="pdgd"):
    return store.ranker("shop", features=NAMES, algorithm=algorithm, scale="none", history="keep")


def use(shop, users, seed=0):
    """Each user sees a list and clicks; every fifth buys later, and every seventh never answers."""
    rng, shown = np.random.default_rng(seed), []
    for number, user in enumerate(users):
        ranking = shop.rank(rng.normal(size=(6, 3)).astype(np.float32), IDS, user=user)
        shown.append((user, ranking))
        if number % 7 != 6:
            shop.feedback(ranking.id, clicked=ranking.items[:1])
        if number % 5 == 4 and number % 7 != 6:
            shop.feedback(ranking.id, gains={ranking.items[1]: 3.0})
    return shown


def users(count, seed=0):
    return [f"user-{number}" for number in np.random.default_rng(seed).integers(5, size=count)]


def entries(store):
    live = store._engine.live("shop")
    return [(version, _entry.decode(body), shown) for version, body, shown in store._engine.journal.entries(live.id)]


def without(store, log, forgotten):
    """The model of a learner that plays the log without some users, by the library alone."""
    live = store._engine.live("shop")
    learner = blank_model(live.definition, live.config).learner()
    for _, entry, shown in log:
        if entry.kind not in ("feedback", "gains"):
            continue
        gains = decode_gains(entry.body) if entry.kind == "gains" else None
        round = open_rounds.unpack(shown if gains is None else gains.shown)
        if round.user in forgotten:
            continue
        items = decode_feedback(entry.body) if gains is None else gains.new
        places, labels, _ = zip(*items, strict=True)
        learner.learn_pending(round.pending(live.mapped), Feedback(np.array(places), np.array(labels, float)))
    return learner.ranking_weights.tolist(), learner.coef.tolist()


def weights(store):
    learner = store._engine.live("shop").learner
    return learner.ranking_weights.tolist(), learner.coef.tolist()


@pytest.mark.parametrize("algorithm", ["pdgd", "topk", "hinge"])
def test_the_weights_are_those_of_a_replay_without_the_user(tmp_path, algorithm):
    if algorithm == "hinge":
        with ranktron.open(tmp_path, config=CONFIG) as store:
            shop = shop_of(store, algorithm)
            for number, user in enumerate(users(40)):
                X = np.random.default_rng(number).normal(size=(6, 3)).astype(np.float32)
                ranking = shop.rank(X, IDS, user=user)
                shop.feedback(ranking.id, labels={item: float(i % 3) for i, item in enumerate(ranking.items)})
            log = entries(store)
            shop.forget("user-3")
            assert weights(store) == without(store, log, {"user-3"}) != without(store, log, set())
        return
    with ranktron.open(tmp_path, config=CONFIG) as store:
        shop = shop_of(store, algorithm)
        use(shop, users(60))
        log = entries(store)
        assert len(log) == shop.version
        assert weights(store) == without(store, log, set())
        answer = shop.forget("user-3")
        theirs = [entry for _, entry, shown in log if shown and open_rounds.unpack(shown).user == "user-3"]
        assert (answer.version, answer.entries) == (len(log) + 1, len(theirs))
        assert weights(store) == without(store, log, {"user-3"}) != without(store, log, set())
        use(shop, users(30, seed=1), seed=1)
        log = entries(store)  # in which user-3 has come back
        shop.forget("user-1")
        assert weights(store) == without(store, log, {"user-1"})
        left, version = weights(store), shop.version
    for _ in range(2):
        with ranktron.open(tmp_path, config=CONFIG) as store:
            shop = shop_of(store, algorithm)
            assert (weights(store), shop.version) == (left, version)
    with ranktron.open(tmp_path, config=CONFIG) as store:
        shutil.rmtree(tmp_path / "snapshots")  # and a replay of the whole log ends there, too
    with ranktron.open(tmp_path, config=CONFIG) as store:
        assert weights(store) == left
        assert shop_of(store, algorithm).forget("user-1").entries == 0
        assert weights(store) == left


def test_nothing_of_the_user_is_left_on_disk(tmp_path):
    def files():
        return b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())

    with ranktron.open(tmp_path, config=CONFIG) as store:
        shop = shop_of(store)
        use(shop, users(60))
        shop.rank(np.zeros((6, 3), np.float32), ["only-theirs", *IDS[1:]], user="user-3", query="their words")
        store.flush()
        assert b"user-3" in files()
        assert shop.forget("user-3").open > 0
        store.flush()
        assert all(each not in files() for each in (b"user-3", b"only-theirs", b"their words"))
        assert b"user-1" in files()


@pytest.mark.parametrize("when", ["before the snapshots are gone", "after"])
def test_a_crash_just_after_the_commit_forgets_too(tmp_path, when, monkeypatch):
    with ranktron.open(tmp_path / "state", config=CONFIG) as store:
        shop = shop_of(store)
        use(shop, users(60))
        log, snapshots = entries(store), store._engine.live("shop").snapshots
        with monkeypatch.context() as patch:
            if when != "after":
                patch.setattr(type(snapshots), "remove_unpinned", lambda self, before: None)
                patch.setattr(store._engine.writer, "snapshot", lambda live, **_: None)
            shop.forget("user-3")
            old = snapshots.versions()
            shutil.copytree(tmp_path / "state", tmp_path / "copy")
    assert old != []
    with ranktron.open(tmp_path / "copy", config=CONFIG) as store:
        assert weights(store) == without(store, log, {"user-3"})
        assert all(version > len(log) for version in store._engine.live("shop").snapshots.versions())


def test_their_rankings_are_gone_and_those_of_others_stay(tmp_path):
    with ranktron.open(tmp_path) as store:
        shop = shop_of(store)
        shown = use(shop, users(60))
        shop.forget("user-3")
        for number, (user, ranking) in enumerate(shown):
            if user == "user-3":
                with pytest.raises(RequestError, match="no longer open"):
                    shop.feedback(ranking.id, clicked=ranking.items[:1])
                with pytest.raises(RequestError, match="no longer open"):
                    shop.explain(ranking.id)
            elif number % 7 == 6:
                assert shop.feedback(ranking.id, clicked=[]).learned
            else:
                shop.feedback(ranking.id, clicked=ranking.items[:1])  # known: it comes again


def test_what_is_not_reached_is_listed(tmp_path):
    with ranktron.open(tmp_path) as store:
        shop = shop_of(store)
        use(shop, users(10))
        kept = shop.keep()
        shop.rollback(kept)
        answer = shop.forget("user-3")
        assert (answer.kept, answer.models) == ([kept], [kept + 1])
        assert shop.versions[0] == kept


def test_who_cannot_forget_says_so(tmp_path):
    with ranktron.open(tmp_path) as store:
        plain = store.ranker("plain", features=NAMES)
        with pytest.raises(RequestError, match="history='keep'"):
            plain.forget("user-3")
        shop = shop_of(store)
        with pytest.raises(RequestError, match="every ranking needs `user`"):
            shop.rank(np.zeros((6, 3), np.float32), IDS)
        with pytest.raises(RequestError, match="`user` is empty"):
            shop.forget("")
        assert shop.state.rounds == 0


def test_others_go_on_meanwhile(tmp_path):
    with ranktron.open(tmp_path, config=CONFIG) as store:
        shop = shop_of(store)
        use(shop, users(100))
        stop, refused = threading.Event(), []

        def go_on(seed):
            rng = np.random.default_rng(seed)
            while not stop.is_set():
                try:
                    ranking = shop.rank(rng.normal(size=(6, 3)).astype(np.float32), IDS, user=f"user-{seed}")
                    shop.feedback(ranking.id, clicked=ranking.items[:1])
                except RequestError as error:
                    refused.append(error.code)

        threads = [threading.Thread(target=go_on, args=(seed,)) for seed in (7, 8)]
        for thread in threads:
            thread.start()
        shop.forget("user-3")
        stop.set()
        for thread in threads:
            thread.join()
        assert set(refused) <= {"busy"}
        log = entries(store)
        assert not any(shown and open_rounds.unpack(shown).user == "user-3" for _, _, shown in log)
        assert weights(store) == without(store, log, set())


def test_the_service_forgets_and_refuses_arms_and_sealed_rounds(talk):
    definition = {"algorithm": "pdgd", "history": "keep"}
    talk.make(**definition)
    talk.make("other", **definition)
    body = {"documents": [{"id": "x", "features": [1, 2, 3]}, {"id": "y", "features": [3, 2, 1]}]}
    assert talk.ask("POST", "/v1/rankers/shop/rank", body, status=422) == "no_user"
    shown = talk.ask("POST", "/v1/rankers/shop/rank", {**body, "user": "u/1"})
    talk.ask("POST", "/v1/rankers/shop/feedback", {"round": shown["round"], "clicks": ["x"]})
    answer = talk.ask("DELETE", "/v1/rankers/shop/users/u%2F1")
    assert answer == {"version": 2, "entries": 1, "open": 0, "kept": [], "models": []}
    assert not talk.weights().any()
    talk.ask("PUT", "/v1/experiments/test", {"arms": [{"ranker": "shop"}, {"ranker": "other"}]})
    assert talk.ask("DELETE", "/v1/rankers/shop/users/u1", status=409) == "in_experiment"


def test_followers_load_anew(tmp_path):
    from ranktron.service.replication.journal_feed import FollowRequest
    from ranktron.store.messages import Document, FeedbackRequest, RankRequest

    async def session():
        async with RankingService(tmp_path, Config()) as service:
            await service.create("shop", Definition(["x"], history="keep"))
            feed = (await service.feed.follow(FollowRequest(0, {}))).feed
            for user in "ab":
                shown = service.rank("shop", RankRequest([Document("x", [1.0]), Document("y", [2.0])], user=user))
                await service.feedback("shop", FeedbackRequest(shown.round, clicks=["x"]))
            have = {"shop": (service.live("shop").incarnation, 1)}
            update = (await service.feed.follow(FollowRequest(feed, have))).rankers["shop"]
            assert len(update.entries) == 1
            await service.forget("shop", "a")
            have["shop"] = (have["shop"][0], 2)
            update = (await service.feed.follow(FollowRequest(feed, have))).rankers["shop"]
            return update.copy is not None and not update.entries

    assert asyncio.run(session())
