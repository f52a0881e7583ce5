"""Nothing lost: restarts, damage, full and read-only disks, a second server, clocks that go backwards."""

import os
import re
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pytest

from ranktron import DataError
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.journal import sqlite_journal as logs
from ranktron.store.rankers.journal_writer import RESERVE

ROUND = np.eye(3)
both = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


def leave(service):
    """Lets go of a folder as a crash would: nothing is drained, no snapshot is taken."""
    service.journal.close()


def set_aside(serving, state):
    """What a start says of the only ranker, which it sets aside."""
    service = serving.service(state)
    leave(service)
    assert not service.live_rankers
    return service.engine.quarantined["shop"].message


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@both
def test_a_restart_changes_nothing(serving, state):
    with serving(state) as talk:
        talk.make()
        talk.play(30)
        waiting = talk.rank(ROUND)
        answered = talk.rank(ROUND)
        told = talk.answer(answered)
        before = talk.ask("GET", "/v1/rankers/shop"), talk.ask("GET", "/v1/rankers/shop/model")
        curve = talk.ask("GET", "/v1/rankers/shop/dashboard")["curve"]
    with serving(state) as talk:
        assert (talk.ask("GET", "/v1/rankers/shop"), talk.ask("GET", "/v1/rankers/shop/model")) == before
        assert talk.answer(answered) == told
        assert talk.answer(waiting)["learned"]
        assert talk.ask("GET", "/v1/rankers/shop/dashboard")["curve"][:-1] == curve
        assert talk.rank(ROUND)["round"] == before[0]["rounds"]


@pytest.mark.parametrize("snapshot_every", [4, 1000])
@pytest.mark.parametrize("algorithm", ["topk", "pdgd", "hinge", "committee", "predtron"])
def test_a_replay_gives_the_same_weights_to_the_bit(serving, state, algorithm, snapshot_every):
    talk = serving(state, snapshot_every=snapshot_every).__enter__()
    talk.make(algorithm=algorithm)
    talk.play(30)
    waiting = [talk.rank(ROUND) for _ in range(3)]
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    with serving(state, snapshot_every=snapshot_every) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert talk.ask("GET", "/v1/rankers/shop")["open"] == 3
        for shown in waiting:
            assert talk.answer(shown)["learned"]


@both
def test_after_a_crash_no_number_is_given_out_again(serving, state):
    talk = serving(state).__enter__()
    talk.make()
    shown = talk.rank(ROUND)
    lost = talk.service.live("shop").rounds.next
    talk.crash()
    with serving(state) as talk:
        assert talk.tell(lost, {"d0": 1}, status=410) == "round_gone"
        assert talk.rank(ROUND)["round"] == RESERVE > lost
        assert talk.answer(shown)["learned"]


@both
def test_models_and_rollbacks_are_replayed(serving, state):
    talk = serving(state, snapshot_every=5).__enter__()
    talk.make()
    talk.play(12)
    kept = talk.ask("GET", "/v1/rankers/shop/versions")["kept"]
    assert kept == [5, 10]
    talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 5})
    talk.play(2, seed=3)
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 15


@both
def test_rounds_of_another_kind_of_model_stay_closed_after_a_crash(serving, state):
    from ranktron.training.algorithms import ALGORITHMS
    from ranktron.training.model import Model

    talk = serving(state).__enter__()
    talk.make()
    before = talk.rank(ROUND)
    data = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3).to_bytes()
    talk.ask("POST", "/v1/rankers/shop/model", content=data, content_type="application/octet-stream")
    after = talk.rank(ROUND)
    talk.crash()
    with serving(state) as talk:
        assert talk.tell(before["round"], {"d0": 1}, status=410) == "round_gone"
        assert talk.answer(after)["learned"]


@both
def test_a_damaged_last_entry_is_cut_off_and_reported_once_that_is_wished(serving, state, caplog):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(9)
    weights = talk.weights().tolist()
    talk.play(1, seed=5)
    talk.crash()
    change = "UPDATE entries SET body = substr(body, 1, length(body) - 1) || ?"
    serving.edit(state, f"{change} WHERE key = (SELECT max(key) FROM entries)", b"\xff")
    aside = set_aside(serving, state)
    assert "at version 9: its log is damaged at version 10, which was acknowledged" in aside
    assert "To accept the loss, delete the file mark" in aside
    (state / "mark").unlink()
    with serving(state) as talk:
        assert talk.weights().tolist() == weights
        assert talk.service.cut == 1
        assert "version 10, was damaged and is cut off" in caplog.text
        talk.play(2)
    with serving(state) as talk:
        assert talk.service.cut == 0
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 12  # version 10 is not given to another entry


@both
def test_damage_in_the_middle_is_not_passed_over(serving, state):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(9)
    talk.crash()
    serving.edit(state, "UPDATE entries SET checksum = 0 WHERE key & 65535 = 4")
    assert re.search(
        r"'shop' is set aside at version 3: its log is damaged at version 4.*restore", set_aside(serving, state)
    )
    serving.edit(state, "DELETE FROM entries WHERE key & 65535 = 4")
    assert "damaged at version 4" in set_aside(serving, state)
    serving.edit(state, "DELETE FROM entries WHERE key & 65535 BETWEEN 5 AND 8")
    serving.edit(
        state, "UPDATE entries SET checksum = 0 WHERE key & 65535 = 9"
    )  # the last one, but more is missing before it
    assert "damaged at version 4" in set_aside(serving, state)


@both
def test_a_round_that_an_entry_needs_must_be_there(serving, state):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(3)
    talk.crash()
    serving.edit(state, "DELETE FROM rounds WHERE key = (SELECT min(key) FROM rounds)")
    assert "version 1 answers round 0, which is not open" in set_aside(serving, state)


def test_an_older_snapshot_is_used_where_the_newest_is_damaged(serving, state, caplog):
    talk = serving(state, snapshot_every=5, explained_rounds=1).__enter__()
    talk.make()
    talk.play(22)
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    files = sorted((state / "snapshots" / "1").iterdir())
    assert [int(file.stem) for file in files] == [5, 10, 15, 20]
    data = bytearray(files[-1].read_bytes())
    data[len(data) // 2] ^= 1
    files[-1].write_bytes(data)
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        assert "an older snapshot is used" in caplog.text
        assert talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 20}, status=409) == "damaged_version"
    files[-2].write_bytes(b"")
    files[-1].write_bytes(b"")
    (state / "snapshots" / "1" / f"{22:016d}.snapshot").write_bytes(b"")
    assert "damaged" in set_aside(serving, state)  # the log no longer reaches back to version 10


def test_a_log_that_is_none_is_refused(state):
    state.mkdir()
    (state / "log.sqlite").write_bytes(b"not a data base " * 100)
    with pytest.raises(DataError, match=r"log.sqlite is damaged .*restore"):
        RankingService(state)
    (state / "log.sqlite").unlink()
    leave(RankingService(state))


def test_a_write_ahead_log_with_a_torn_end_is_read_up_to_there_unless_what_was_torn_had_been_told(serving, state):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(10)
    talk.written()
    wal, main, mark = ((state / name).read_bytes() for name in ("log.sqlite-wal", "log.sqlite", "mark"))
    talk.crash()

    def put_back(written):
        (state / "log.sqlite").write_bytes(main)
        (state / "mark").write_bytes(mark)
        (state / "log.sqlite-wal").write_bytes(written)

    put_back(wal[: len(wal) * 3 // 4] + b"\xff" * 100)
    lost = r"version 10 was acknowledged, but its log ends at version [0-9]: it has lost its end"
    assert re.search(lost, set_aside(serving, state))
    put_back(wal + wal[-5000:])  # a commit that did not end: nobody was told of it
    service = RankingService(state)
    assert service.live("shop").version == 10
    leave(service)


def test_a_second_server_on_one_folder_is_refused(serving, state):
    with serving(state), pytest.raises(DataError, match="in use by this process"):
        RankingService(state)
    leave(RankingService(state))


@both
def test_clocks_may_go_backwards(serving, state, monkeypatch):
    from ranktron.store.rankers import open_rounds

    talk = serving(state).__enter__()
    talk.make()
    shown = talk.rank(ROUND)
    monkeypatch.setattr(open_rounds, "time", lambda: time.time() - 1e6)
    assert talk.answer(shown)["learned"]
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert 0.0 < board["feedback"]["delay"]["p50"] < 600.0  # the time that passed, whatever the clock says
    shown = talk.rank(ROUND)
    talk.crash()
    monkeypatch.setattr(open_rounds, "time", lambda: time.time() - 2e6)
    with serving(state) as talk:
        assert talk.answer(shown)["learned"]


@both
def test_open_rounds_are_bounded_by_number_and_age(serving, state, monkeypatch):
    from ranktron.store.rankers import open_rounds

    with serving(state, max_open=5, open_seconds=100.0) as talk:
        talk.make()
        shown = [talk.rank(ROUND) for _ in range(8)]
        assert talk.ask("GET", "/v1/rankers/shop")["open"] == 5
        assert talk.tell(shown[2]["round"], {"d0": 1}, status=410) == "round_gone"
        assert talk.ask("GET", "/v1/rankers/shop/dashboard")["health"]["dropped"] == 3
        talk.answer(shown[3])
        monkeypatch.setattr(open_rounds, "monotonic", lambda: time.monotonic() + 101.0)
        assert talk.tell(shown[5]["round"], {"d0": 1}, status=410) == "round_gone"
    service = serving.service(state)
    assert len(service.live("shop").rounds.open) == 4
    assert len(service.journal.last_rounds(1, 100)) == 5  # the dropped are off the disk too; one was answered
    leave(service)


@both
def test_the_log_and_the_snapshots_stay_short(serving, state):
    with serving(state, snapshot_every=10, versions=3, remembered=15, explained_rounds=5) as talk:
        talk.make()
        numbers = talk.play(100)
        talk.written()
        assert talk.ask("GET", "/v1/rankers/shop/versions")["kept"] == [80, 90, 100]
        assert talk.tell(numbers[0], {"d0": 1}, status=410) == "round_gone"
    service = serving.service(state)
    assert [entry.version for entry in service.journal.entries(1)] == list(range(86, 101))
    assert len(service.journal.last_rounds(1, 100)) == 10
    leave(service)


class FullDisk:
    """A disk that takes nothing while it is full."""

    def __init__(self, log):
        self.journal = log

    def __enter__(self):
        (self.pages,) = self.journal._database.execute("PRAGMA page_count").fetchone()
        self.journal._database.execute(f"PRAGMA max_page_count = {self.pages}")

    def __exit__(self, *error):
        self.journal._database.execute("PRAGMA max_page_count = 1000000")


def test_a_full_disk_loses_nothing_and_admits_it(serving, state):
    with serving(state) as talk:
        talk.make()
        talk.play(3)
        waiting = talk.rank(ROUND)
        talk.written()
        with FullDisk(talk.service.journal):
            shown = []
            for _ in range(10_000):  # until the last page is full
                shown.append(talk.rank(ROUND))
                if not talk.service.journal.ready:
                    break
                talk.written()
            weights = talk.weights().tolist()
            assert talk.tell(waiting["round"], {waiting["ranking"][0]["id"]: 1}, status=503) == "not_written"
            assert talk.tell(shown[-1]["round"], {shown[-1]["ranking"][0]["id"]: 1}, status=503) == "not_written"
            assert talk.weights().tolist() == weights
            assert talk.ask("GET", "/readyz", status=503) == "not_ready"
            assert talk.ask("GET", "/healthz") == {"ready": True}
            assert talk.rank(ROUND)  # rankings go on
        for turn in (waiting, shown[-1]):  # those who try again are heard
            assert talk.answer(turn)["learned"]
        assert talk.ask("GET", "/readyz") == {"ready": True}
        model = talk.ask("GET", "/v1/rankers/shop/model")
        talk.crash()
        service = RankingService(state)
        assert service.model("shop").to_bytes() == model
        leave(service)


def test_a_disk_that_is_really_full(tmp_path):
    """The limit on the size of files, in a process of its own, does what a full disk does: writes fail half-way."""
    code = """
import asyncio, resource, signal, sys
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.messages import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

async def main():
    service = RankingService(sys.argv[1])
    service.start()
    await service.create("shop", Definition(["a", "b"]))
    documents = [Document("x", [1.0, 2.0]), Document("y", [0.0, 1.0])]
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    told = 0
    for _ in range(5000):
        shown = service.rank("shop", RankRequest(documents))
        try:
            await service.feedback("shop", FeedbackRequest(shown.round, {shown.ranking[0].id: 1.0}))
            told += 1
        except RequestError as refused:
            assert refused.code == "not_written", refused
            break
    else:
        raise SystemExit("never full")
    assert not service.journal.ready
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    answer = await service.feedback("shop", FeedbackRequest(shown.round, {shown.ranking[0].id: 1.0}))
    assert answer.version == told + 1, (answer, told)
    print(answer.version, service.live("shop").weights.tolist())
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    service = RankingService(tmp_path)
    live_ranker = service.live("shop")
    assert f"{live_ranker.version} {live_ranker.weights.tolist()}" == done.stdout.strip()
    leave(service)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="the state cannot be stored there"):
        RankingService(tmp_path / "file" / "state")
    leave(RankingService(tmp_path / "state"))
    monkeypatch.setattr(logs.sqlite3, "connect", lambda path, **more: _read_only(path))
    with pytest.raises(DataError, match="cannot be opened for writing: attempt to write a readonly database"):
        RankingService(tmp_path / "state")


_connect = sqlite3.connect


def _read_only(path):
    return _connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become someone else")
def test_a_read_only_folder(tmp_path):
    imports = (
        "import os, sys\nfrom pathlib import Path\nfrom ranktron.store.journal.sqlite_journal import SQLiteJournal\n"
    )
    code = imports + "os.setuid(65534)\nSQLiteJournal(Path(sys.argv[1]))"
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and parent.name.startswith("pytest"):
            parent.chmod(0o755)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "the state cannot be stored there: Permission denied" in done.stderr


@both
def test_a_snapshot_that_cannot_be_written_costs_no_feedback(serving, state, monkeypatch, caplog):
    with serving(state, snapshot_every=5) as talk:
        talk.make()

        def refuse(version, data, **more):
            raise DataError("no room")

        monkeypatch.setattr(talk.service.live("shop").snapshots, "write", refuse)
        talk.play(12)
        assert "no snapshot of shop: no room" in caplog.text
        assert talk.ask("GET", "/readyz") == {"ready": True}
        model = talk.ask("GET", "/v1/rankers/shop/model")
    service = serving.service(state)
    assert service.model("shop").to_bytes() == model
    leave(service)


def test_many_rankers_share_a_folder(serving, state):
    with serving(state, max_rankers=2) as talk:
        talk.make("one")
        talk.make("two", algorithm="hinge")
        assert talk.ask("PUT", "/v1/rankers/three", {"features": ["a"]}, status=409) == "too_many_rankers"
        talk.play(5, "one")
        talk.play(4, "two")
        models = [talk.ask("GET", f"/v1/rankers/{name}/model") for name in ("one", "two")]
        talk.ask("DELETE", "/v1/rankers/one")
    service = RankingService(state, Config())
    assert list(service.live_rankers) == ["two"]
    assert service.model("two").to_bytes() == models[1]
    assert not (state / "snapshots" / "1").exists()
    leave(service)
