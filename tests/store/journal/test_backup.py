"""A backup while the server runs is the state of one moment; what is restored goes on from it, in a new epoch."""

import asyncio
import json
import shutil
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner

from ranktron import DataError
from ranktron.cli.main import cli
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.journal import backup as backups
from ranktron.store.journal.backup import back_up, restore
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

LIST = np.eye(3)


def model(talk):
    return talk.ask("GET", "/v1/rankers/shop/model")


def test_a_backup_is_the_state_of_its_moment(serving, tmp_path):
    with serving(tmp_path / "state", snapshot_every=4, versions=2) as talk:
        talk.make()
        talk.play(11)
        shown = talk.rank(LIST)
        talk.written()
        before = model(talk)
        made = back_up(tmp_path / "state", tmp_path / "backup")
        assert [(each.name, each.version) for each in made.rankers] == [("shop", 11)]
        talk.answer(shown)
        later = talk.rank(LIST)
        talk.play(10)
        after = model(talk)
    restore(tmp_path / "backup", tmp_path / "again")
    with serving(tmp_path / "again", snapshot_every=4, versions=2) as again:
        assert model(again) == before != after
        assert again.answer(shown)["version"] == 12  # which was open when the backup was made
        assert again.tell(later["round"], {"d0": 1}, status=410) == "round_gone"
        assert again.rank(LIST)["round"] > 2**40
    with serving(tmp_path / "state") as talk:
        assert model(talk) == after
        assert talk.rank(LIST)["round"] < 2**40


def test_backups_under_load_lose_nothing_that_was_acknowledged(tmp_path):
    """Four users learn as fast as they can, and snapshots come and go, while backups are made; each is restored."""
    config = Config(snapshot_every=25, versions=2, remembered=10, explained_rounds=5, answer_seconds=300.0)
    service = RankingService(tmp_path / "state", config)
    made, going, known = [], True, []

    def back_up_often():
        nonlocal going
        for number in range(3):
            least = service.live("shop").version
            made.append((least, back_up(tmp_path / "state", tmp_path / f"backup{number}")))
        going = False

    async def use():
        async with service:
            await service.create("shop", Definition(["a", "b"], "topk", {"k": 2}))
            rng = np.random.default_rng(0)

            async def user():
                while going:
                    rows = rng.normal(size=(4, 2)).tolist()
                    shown = service.rank("shop", RankRequest([Document(f"d{i}", row) for i, row in enumerate(rows)]))
                    await service.feedback("shop", FeedbackRequest(shown.round, {shown.ranking[0].id: 1.0}))

            async def watch():
                while going:
                    live = service.live("shop")
                    known.append((live.version, live.model.to_bytes()))
                    await asyncio.sleep(0)

            users = [asyncio.create_task(user()) for _ in range(4)]
            await asyncio.sleep(0.1)
            thread = threading.Thread(target=back_up_often)
            thread.start()
            await asyncio.gather(watch(), *users)
            thread.join()

    asyncio.run(use())
    models = dict(known)
    for number, (least, backup) in enumerate(made):
        restore(tmp_path / f"backup{number}", tmp_path / f"state{number}")
        again = RankingService(tmp_path / f"state{number}", config)
        live = again.live("shop")
        assert least <= live.version == backup.rankers[0].version
        assert live.version not in models or live.model.to_bytes() == models[live.version]
        again.journal.close()
    assert made[-1][1].rankers[0].version > made[0][1].rankers[0].version > 0


def test_a_stopped_server_can_be_backed_up_with_its_experiments(serving, tmp_path):
    with serving(tmp_path / "state") as talk:
        talk.make()
        talk.make("other")
        talk.ask("PUT", "/v1/experiments/which", {"arms": [{"ranker": "shop"}, {"ranker": "other"}]})
        talk.play(3)
    assert sorted(each.name for each in back_up(tmp_path / "state", tmp_path / "b").rankers) == [
        "/which",
        "other",
        "shop",
    ]
    restore(tmp_path / "b", tmp_path / "again")
    with serving(tmp_path / "again") as again:
        assert again.ask("GET", "/v1/experiments/which")["name"] == "which"


def test_nothing_is_written_over(serving, tmp_path):
    with serving(tmp_path / "state") as talk:
        talk.make()
        back_up(tmp_path / "state", tmp_path / "b")
        with pytest.raises(DataError, match="exists and is not overwritten"):
            back_up(tmp_path / "state", tmp_path / "b")
        with pytest.raises(DataError, match="exists and is not overwritten"):
            restore(tmp_path / "b", tmp_path / "state")
    with pytest.raises(DataError, match="not a state folder"):
        back_up(tmp_path, tmp_path / "c")
    with pytest.raises(DataError, match="not a backup"):
        restore(tmp_path / "state", tmp_path / "c")
    assert not [path for path in tmp_path.iterdir() if path.name not in ("state", "b")]


def test_a_backup_that_lacks_something_is_not_restored(serving, tmp_path):
    with serving(tmp_path / "state", snapshot_every=4, versions=2, remembered=1, explained_rounds=1) as talk:
        talk.make()
        talk.play(15)
        talk.written()
        back_up(tmp_path / "state", tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "snapshots")
    with pytest.raises(DataError, match="use another backup"):
        restore(tmp_path / "b", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_snapshots_that_go_too_fast_are_said_so(serving, tmp_path, monkeypatch):
    with serving(tmp_path / "state", snapshot_every=2, versions=2, remembered=1, explained_rounds=1) as talk:
        talk.make()
        talk.play(9)
        talk.written()
        monkeypatch.setattr(backups, "_copy_snapshots", lambda *_folders: None)
        with pytest.raises(DataError, match="deleted snapshots before they were copied"):
            back_up(tmp_path / "state", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_the_commands(serving, tmp_path):
    with serving(tmp_path / "state") as talk:
        talk.make()
        talk.play(2)
        done = CliRunner().invoke(cli, ["backup", str(tmp_path / "state"), str(tmp_path / "b"), "--json"])
        assert json.loads(done.output)["versions"] == {"shop": 2}
    done = CliRunner().invoke(cli, ["restore", str(tmp_path / "b"), str(tmp_path / "again")])
    assert done.exit_code == 0
    assert "shop at version 2" in done.output
    with closing(sqlite3.connect(tmp_path / "again" / "log.sqlite")) as connection, connection:
        assert connection.execute("SELECT facts FROM owner").fetchone() == ("restored",)
    connection.close()
