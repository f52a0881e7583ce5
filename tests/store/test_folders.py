"""Folders that are damaged, forged or not ours get one error; a folder goes from the store to the service and back."""

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import ranktron
from ranktron.errors import DataError, RanktronError
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import CAPACITY
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

NAMES, IDS = ["a", "b", "c"], [f"d{i}" for i in range(5)]


def lists(seed, count):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(5, 3)).astype(np.float32) for _ in range(count)]


def use(store, seed, count=10):
    shop = store.ranker("shop", features=NAMES)
    told = []
    for X in lists(seed, count):
        ranking = shop.rank(X, IDS)
        shop.feedback(ranking.id, clicked=ranking.items[:1])
        told.append((ranking.id, ranking.items, ranking.scores))
    return told


def serve(folder, seed, count=10):
    """The same as `use`, in a service."""

    async def session():
        told = []
        async with RankingService(folder, Config()) as service:
            await service.create("shop", Definition(NAMES))
            for X in lists(seed, count):
                shown = service.rank("shop", RankRequest([Document(id, row) for id, row in zip(IDS, X, strict=True)]))
                items = [each.id for each in shown.ranking]
                await service.feedback("shop", FeedbackRequest(shown.round, clicks=items[:1]))
                told.append((shown.round, items, [each.score for each in shown.ranking]))
        return told

    return asyncio.run(session())


def edit(folder, statement, *values):
    with closing(sqlite3.connect(folder / "log.sqlite")) as log, log:
        log.execute(statement, values)


def test_a_folder_goes_from_one_to_the_other_and_gives_the_same_answers(tmp_path):
    """Store, service and store again on one folder, beside the other way round on another: the same to the bit."""
    one, two = tmp_path / "one", tmp_path / "two"
    with ranktron.open(one) as store:
        told = use(store, 1)
    told += serve(one, 2)
    with ranktron.open(one) as store:
        told += use(store, 3)
        model, version = store.ranker("shop").model.to_bytes(), store.ranker("shop").version
    other = serve(two, 1)
    with ranktron.open(two) as store:
        other += use(store, 2)
    other += serve(two, 3)
    with ranktron.open(two) as store:
        assert (store.ranker("shop").model.to_bytes(), store.ranker("shop").version) == (model, version)
    assert other == told
    assert version == 30


def test_experiments_stay_as_they_are(tmp_path):
    from ranktron.store.experiments.messages import ArmDefinition, ExperimentDefinition

    async def session(create):
        async with RankingService(tmp_path, Config()) as service:
            if create:
                await service.create("shop", Definition(NAMES))
                await service.create("other", Definition(NAMES))
                arms = (ArmDefinition("shop"), ArmDefinition("other"))
                await service.experiments.create("test", ExperimentDefinition(arms))
            return service.experiments.answer("test")

    before = asyncio.run(session(True))
    with ranktron.open(tmp_path) as store:
        use(store, 1)
        with pytest.raises(RequestError, match="arm of experiment 'test'"):
            store.delete("shop")
    assert asyncio.run(session(False)) == before


def unreadable(folder):
    (folder / "log.sqlite").write_bytes(b"not a database" * 1000)


def truncated(folder):
    data = (folder / "log.sqlite").read_bytes()
    (folder / "log.sqlite").write_bytes(data[: len(data) // 2])


def foreign(folder):
    shutil.rmtree(folder)
    folder.mkdir()
    with closing(sqlite3.connect(folder / "log.sqlite")) as log, log:
        log.execute("CREATE TABLE customers (id INTEGER)")


def of_another_format(folder):
    edit(folder, "UPDATE identity SET format = 99")


def of_a_server(folder):
    (folder / "database").write_text("postgresql://db/shop")


def file(folder):
    shutil.rmtree(folder)
    folder.write_text("a file")


@pytest.mark.parametrize("spoil", [unreadable, truncated, foreign, of_another_format, of_a_server, file])
def test_folders_that_cannot_be_opened_get_one_error(tmp_path, spoil):
    folder = tmp_path / "state"
    with ranktron.open(folder) as store:
        use(store, 1)
    spoil(folder)
    with pytest.raises(DataError, match=str(folder)) as refused:
        ranktron.open(folder)
    assert "\n" not in str(refused.value)
    if spoil is not file:
        with pytest.raises(DataError):  # and nothing holds the folder
            ranktron.open(folder)


@pytest.mark.parametrize(
    "forge",
    [
        f"UPDATE entries SET body = x'00' WHERE key % {CAPACITY} = 7",
        f"UPDATE entries SET checksum = checksum + 1 WHERE key % {CAPACITY} = 5",
        f"DELETE FROM entries WHERE key % {CAPACITY} = 6",
        f"DELETE FROM entries WHERE key % {CAPACITY} >= 9",
        f"UPDATE rounds SET body = zeroblob(20) WHERE key % {CAPACITY} = 4",
    ],
)
def test_forged_entries_set_their_ranker_aside(tmp_path, forge):
    """The others go on; the ranker gets one error that says what is wrong, and nothing was written."""
    with ranktron.open(tmp_path) as store:
        use(store, 1)
        store.ranker("other", features=NAMES)
    shutil.rmtree(tmp_path / "snapshots", ignore_errors=True)
    edit(tmp_path, forge)
    with ranktron.open(tmp_path) as store:
        assert store.rankers == ["other", "shop"]
        store.ranker("other").rank(lists(1, 1)[0], IDS)
        with pytest.raises(RequestError, match="'shop' is set aside at version") as refused:
            store.ranker("shop", features=NAMES)
        assert "\n" not in str(refused.value)
        with pytest.raises(RequestError, match="set aside"):
            store.ranker("shop")


def test_any_byte_may_be_wrong(tmp_path):
    """Whatever byte of the log is another one, opening, ranking and learning work or raise an error of ours."""
    with ranktron.open(tmp_path / "state") as store:
        use(store, 1)
    data, chance = (tmp_path / "state" / "log.sqlite").read_bytes(), random.Random(0)
    for number in range(15):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "state", folder)
        spoilt = bytearray(data)
        for _ in range(3):
            spoilt[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        (folder / "log.sqlite").write_bytes(spoilt)
        try:
            with ranktron.open(folder) as store:
                use(store, 2, 2)
        except RanktronError:
            pass
