"""Two servers on one folder, and copies of a folder: no feedback is learnt on a list that it was not given for."""

import shutil
import sqlite3

import numpy as np
import pytest

from ranktron import DataError
from ranktron.service.service import RankingService
from ranktron.store.journal import folder_lock
from ranktron.store.journal.journal import CAPACITY

ROUND = np.eye(3)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


# Two servers


def test_a_second_server_is_refused_though_the_lock_file_was_removed(serving, state):
    with serving(state):
        (state / "lock").unlink()
        with pytest.raises(DataError, match="in use by this process"):
            RankingService(state)


def test_a_server_that_another_one_has_followed_steps_down(serving, state, monkeypatch, caplog):
    """As where locks are not kept, on some network filesystems: both run, and one of them is told no."""
    monkeypatch.setattr(folder_lock.fcntl, "flock", lambda *_arguments: None)
    first = serving(state).__enter__()
    first.make()
    first.play(2)
    shown = [first.rank(ROUND) for _ in range(2)]
    first.ask("POST", "/v1/rankers/shop/versions")
    second = serving(state).__enter__()
    assert second.service.journal._term.number == first.service.journal._term.number + 1
    assert second.answer(shown[0])["version"] == 3
    assert first.tell(shown[1]["round"], {shown[1]["ranking"][0]["id"]: 1}, status=503) == "not_leader"
    refused = [
        first.rank(ROUND, status=503),
        first.ask("PUT", "/v1/rankers/new", {"features": ["a"]}, status=503),
        *(first.ask("GET", f"/{path}", status=503) for path in ("readyz", "v1/rankers", "v1/rankers/shop/model")),
        *(first.ask("GET", f"/v1/experiments{path}", status=503) for path in ("", "/page")),
    ]
    assert set(refused) == {"not_leader"}
    assert first.service.live_rankers == {}
    assert f"another server has taken over {state}: send requests there, and stop this one" in caplog.text
    first.__exit__()  # in good order, though it may write nothing
    assert second.answer(shown[1])["version"] == 4
    model = second.ask("GET", "/v1/rankers/shop/model")
    second.crash()
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 4
        assert talk.ask("GET", "/v1/rankers/shop/model") == model


def test_a_log_that_was_put_back_under_a_running_server_is_noticed(serving, state, tmp_path):
    """An older log of the same term, written over the file: its count of commits is not the one that is due."""
    talk = serving(state).__enter__()
    talk.make()
    talk.play(2)
    talk.written()
    older = sqlite3.connect(state / "log.sqlite")
    older.execute("UPDATE owner SET commits = commits - 1")
    older.commit()
    older.close()
    shown = talk.rank(ROUND)
    assert talk.tell(shown["round"], {shown["ranking"][0]["id"]: 1}, status=503) == "not_leader"
    talk.__exit__()


# Copies


def copied(state, to, how):
    """A folder as a backup holds it, or puts it back over what there is."""
    if how == "anew":
        shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(state, to, dirs_exist_ok=True)


@pytest.mark.parametrize("how", ["anew", "over"])
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_feedback_of_a_round_that_another_copy_showed_is_not_learnt(serving, state, tmp_path, how, end):
    with serving(state) as talk:
        talk.make()
        talk.play(5)
        open_then = talk.rank(ROUND)
        if end == "killed":
            talk.crash()
    copied(state, tmp_path / "backup", "anew")
    with serving(state) as talk:
        later = [talk.rank(ROUND) for _ in range(3)]
        assert talk.answer(later[0])["learned"]
    for file in state.glob("log.sqlite-*"):
        file.unlink()
    copied(tmp_path / "backup", state, how)
    with serving(state) as talk:
        again = [talk.rank(ROUND) for _ in range(3)]
        assert [each["round"] % CAPACITY for each in again] == [each["round"] % CAPACITY for each in later]
        assert not {each["round"] for each in again} & {each["round"] for each in later}
        for each in later:
            assert talk.tell(each["round"], {"d0": 1}, status=410) == "round_gone"
            assert talk.ask("GET", f"/v1/rankers/shop/explain/{each['round']}", status=410) == "round_gone"
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 5
        assert talk.answer(again[0])["learned"]
        assert talk.answer(again[0])["version"] == 6
        assert talk.ask("GET", f"/v1/rankers/shop/explain/{again[1]['round']}")["round"] == again[1]["round"]
        assert talk.answer(open_then)["learned"]  # which was shown before the copy was made
        assert again[2]["round"] < 2**53
    kept = [path.suffix for path in sorted((state / "snapshots" / "1").iterdir())]
    assert kept.count(".foreign") == (how == "over")
    with serving(state) as talk:  # a start of the same folder is no copy
        assert talk.rank(ROUND)["round"] == again[-1]["round"] + 1
        assert talk.answer(again[1])["version"] == 8


def test_an_older_log_under_a_newer_mark_is_not_served(serving, state, tmp_path):
    with serving(state) as talk:
        talk.make()
        talk.play(5)
    copied(state, tmp_path / "backup", "anew")
    with serving(state) as talk:
        later = talk.play(3)
    shutil.copy(tmp_path / "backup" / "log.sqlite", state / "log.sqlite")
    service = RankingService(state)
    service.journal.close()
    assert "version 8 was acknowledged, but its log ends at version 5" in service.engine.quarantined["shop"].message
    (state / "mark").unlink()
    newer = state / "snapshots" / "1" / f"{8:016d}.snapshot"  # without its mark, it says what the log has lost
    service = RankingService(state)
    service.journal.close()
    assert "ends at version 5, but there is a snapshot of version 8" in service.engine.quarantined["shop"].message
    newer.unlink()
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 5
        assert talk.rank(ROUND)["round"] not in later


def test_a_new_ranker_takes_no_weights_from_snapshots_that_another_one_left(serving, state, tmp_path, monkeypatch):
    with serving(state) as talk:
        talk.make("first")
    copied(state, tmp_path / "backup", "anew")
    with serving(state) as talk:
        talk.make()
        talk.play(5)
        talk.ask("POST", "/v1/rankers/shop/versions")
    left = state / "snapshots" / "2"
    shutil.copytree(left, tmp_path / "left")
    for name in ("log.sqlite", "mark"):
        shutil.copy(tmp_path / "backup" / name, state / name)
    with serving(state) as talk:
        talk.make()
        assert not talk.weights().any()
        talk.play(6, seed=1)
        model = talk.ask("GET", "/v1/rankers/shop/model")
        talk.crash()
    shutil.copytree(tmp_path / "left", left, dirs_exist_ok=True)
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model


def test_a_deletion_or_a_ranker_that_the_log_has_lost_is_named(serving, state, tmp_path):
    with serving(state) as talk:
        talk.make("first")
        talk.play(2, "first")
    copied(state, tmp_path / "backup", "anew")
    with serving(state) as talk:
        talk.ask("DELETE", "/v1/rankers/first")
        talk.make("second")
        numbers = talk.play(2, "second")
    shutil.copy(tmp_path / "backup" / "log.sqlite", state / "log.sqlite")
    with serving(state) as talk:
        asides = {each["name"]: each["message"] for each in talk.ask("GET", "/v1/rankers")["set_aside"]}
        assert "it was deleted, but is in the log" in asides["first"]
        assert "its row in the log is missing" in asides["second"]
        assert talk.rank(ROUND, "second", status=409) == "set_aside"
        for name in ("first", "second"):
            talk.ask("DELETE", f"/v1/rankers/{name}")
            talk.make(name)
        assert talk.rank(ROUND, "second")["round"] not in numbers
        talk.play(2, "first")
    with serving(state) as talk:
        assert [each["name"] for each in talk.ask("GET", "/v1/rankers")["rankers"]] == ["first", "second"]
        assert talk.ask("GET", "/v1/rankers")["set_aside"] == []
