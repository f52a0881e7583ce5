"""What is only shown to people stops nothing, and what cannot be recovered stops one ranker: the others serve."""

import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from ranktron import DataError
from ranktron.data import serialization
from ranktron.service.service import RankingService
from ranktron.store.journal.integrity import Mark
from ranktron.store.journal.journal import CAPACITY
from ranktron.store.journal.tables import chain_checksum, own_half, read_rankers
from ranktron.store.rankers import apply_entry, recovery
from ranktron.store.rankers.stats import Stats
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

LIST = {"documents": [{"id": "a", "features": [1, 2, 3]}, {"id": "b", "features": [3, 2, 1]}]}
REQUESTS = [
    ("POST", "/rank", LIST),
    ("POST", "/feedback", {"round": 0, "labels": {"a": 1}}),
    ("POST", "/full", {**LIST, "labels": {"a": 1, "b": 0}}),
    ("POST", "/rank/batch", {"requests": [LIST]}),
    ("GET", "", None),
    ("GET", "/model", None),
    ("GET", "/versions", None),
    ("POST", "/versions", None),
    ("DELETE", "/versions/1", None),
    ("POST", "/rollback", {"version": 1}),
    ("GET", "/dashboard", None),
    ("GET", "/explain/0", None),
    ("PUT", "", {"features": ["f0", "f1", "f2"]}),
    ("PUT", "", {"features": ["another"]}),
]


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def left(serving, state):
    """The folder of a server that crashed, with two rankers; the models that it left."""
    talk = serving(state).__enter__()
    for name in ("shop", "other"):
        talk.make(name)
        talk.play(6, name)
        talk.ask("POST", f"/v1/rankers/{name}/versions")
        talk.play(6, name, seed=1)
    models = {name: talk.ask("GET", f"/v1/rankers/{name}/model") for name in ("shop", "other")}
    talk.crash()
    return models


def edit(state, *statements):
    connection = sqlite3.connect(state / "log.sqlite")
    with connection:
        for statement, values in statements:
            connection.execute(statement, values)
    connection.close()


def on_disk(state):
    """All that the first ranker has."""
    connection = sqlite3.connect(state / "log.sqlite")
    tables = [
        connection.execute(f"SELECT * FROM {table} WHERE key >= ? AND key < ?", (CAPACITY, 2 * CAPACITY)).fetchall()
        for table in ("entries", "rounds")
    ]
    tables.append(connection.execute("SELECT * FROM rankers WHERE id = 1").fetchall())
    tables.append(connection.execute("SELECT next FROM rankers WHERE id = 1").fetchone())
    connection.close()
    return tables, {path.name: path.read_bytes() for path in (state / "snapshots" / "1").glob("*")}


# What is only shown


@pytest.mark.parametrize("algorithm", ["topk", "hinge"])
def test_labels_that_the_shown_quality_is_not_defined_for_are_learnt_and_replayed(serving, state, algorithm):
    talk = serving(state, answer_seconds=20.0).__enter__()
    talk.make(labels=[0, 5000], algorithm=algorithm)
    assert talk.answer(talk.rank(np.eye(3)), (0, 1500)) == {"learned": True, "version": 1}
    board = talk.ask("GET", "/v1/rankers/shop/dashboard")
    assert (board["feedback"]["rounds"], board["curve"]) == (1, [])
    assert b"ranktron_observed_ndcg{" not in talk.ask("GET", "/metrics")
    for grades in ((1, 0), (1500, 0), (0, 1)):
        talk.answer(talk.rank(np.eye(3)), grades)
    curve = talk.ask("GET", "/v1/rankers/shop/dashboard")["curve"]
    assert [point["value"] for point in curve] == pytest.approx([1.0, 1.0 / np.log2(3.0)])
    assert b"ranktron_observed_ndcg{" in talk.ask("GET", "/metrics")
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    for _ in range(2):  # from the log, and from the snapshot of the first end
        with serving(state) as talk:
            assert talk.ask("GET", "/v1/rankers/shop/model") == model
            assert talk.ask("GET", "/v1/rankers/shop/dashboard")["curve"] == curve


@pytest.mark.parametrize("fault", ["quality", "step"])
def test_what_is_only_shown_never_stops_what_is_learnt(serving, state, monkeypatch, caplog, fault):
    def refuse(*_arguments):
        raise ZeroDivisionError

    if fault == "quality":
        monkeypatch.setattr(apply_entry, "observed_quality", refuse)
    else:
        monkeypatch.setattr(Stats, "moved", refuse)
    talk = serving(state, answer_seconds=20.0).__enter__()
    talk.make()
    assert talk.answer(talk.rank(np.eye(3))) == {"learned": True, "version": 1}
    assert "version 1 of ranker shop could not be counted" in caplog.text
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == model


def change_snapshot(state, **content):
    newest = max((state / "snapshots" / "1").iterdir())
    newest.write_bytes(serialization.serialize({**serialization.deserialize(newest.read_bytes()), **content}))


def test_counts_that_cannot_be_read_are_counted_anew(serving, state, left, caplog):
    change_snapshot(state, tally={"counts": [1]})
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == left["shop"]
        assert talk.ask("GET", "/v1/rankers/shop/dashboard")["feedback"]["rounds"] == 6  # those after the snapshot
        assert "the statistics of ranker shop cannot be read" in caplog.text


# What cannot be recovered


def damage_entry(state):
    edit(state, ("UPDATE entries SET checksum = 0 WHERE key = ?", [CAPACITY + 9]))
    edit(state, ("UPDATE entries SET checksum = 0 WHERE key = ?", [CAPACITY + 12]))  # the last one stays, too
    return 8, "its log is damaged at version 9"


def lose_round(state):
    lost = "DELETE FROM rounds WHERE key = (SELECT round FROM entries WHERE key = ?)"
    edit(state, (lost, [CAPACITY + 10]))
    return 9, "version 10 answers round 9, which is not open"


def confuse_entry(state):
    body = b"\xc1 no entry"
    for key in (CAPACITY + 11, CAPACITY + 12):  # as another program might have written them
        connection = sqlite3.connect(state / "log.sqlite")
        (before,) = connection.execute("SELECT checksum FROM entries WHERE key = ?", [key - 1]).fetchone()
        connection.close()
        change = "UPDATE entries SET body = ?, checksum = ?, round = NULL WHERE key = ?"
        edit(state, (change, [body, chain_checksum(key, body, None, own_half(before)), key]))
    mark = Mark(state / "mark")
    mark.write(mark.commits, [mark.rankers[1]._replace(version=0)])
    mark.close()
    return 10, "DecodeError: "


def define_otherwise(state, change):
    connection = sqlite3.connect(state / "log.sqlite")
    with connection:
        row = read_rankers(connection)[0][0]
        row._replace(definition=change(row.definition)).write(connection)
    connection.close()


def confuse_definition(state):
    define_otherwise(state, lambda definition: b'{"features": 3}')
    return 0, "ValidationError: "


def forget_algorithm(state):
    define_otherwise(state, lambda definition: definition.replace(b"topk", b"none"))
    return 0, "'none'"


def damage_row(state):
    changed = "CAST(replace(CAST(definition AS TEXT), 'f1', 'f9') AS BLOB)"
    edit(state, (f"UPDATE rankers SET definition = {changed} WHERE id = 1", []))
    return 12, "its row in the log is damaged"


def change_model(state):
    model = Model("hinge", {}, ALGORITHMS["hinge"].learner(3, {}).state(), 3)
    data = serialization.deserialize(model.to_bytes())
    data["state"] = {}
    change_snapshot(state, model=np.frombuffer(serialization.serialize(data), np.uint8))
    return 0, ""


DAMAGES = [damage_entry, lose_round, confuse_entry, confuse_definition, forget_algorithm, change_model, damage_row]


@pytest.mark.parametrize("damage", DAMAGES)
def test_one_ranker_is_set_aside_and_the_others_serve(serving, state, left, damage, caplog):
    version, reason = damage(state)
    before = on_disk(state)
    for _ in range(2):
        caplog.clear()
        with serving(state) as talk:
            (aside,) = talk.ask("GET", "/v1/rankers")["set_aside"]
            assert (aside["name"], aside["version"]) == ("shop", version)
            assert aside["message"].startswith(f"ranker 'shop' is set aside at version {version}: ")
            for part in (reason, "restore the folder from a copy", "DELETE /v1/rankers/shop"):
                assert part in aside["message"]
            (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
            assert line == aside["message"]
            for method, path, body in REQUESTS:
                assert talk.ask(method, f"/v1/rankers/shop{path}", body, status=409) == "set_aside"
            assert [ranker["name"] for ranker in talk.ask("GET", "/v1/rankers")["rankers"]] == ["other"]
            assert talk.ask("GET", "/readyz") == {"ready": True}
            assert b"\nranktron_rankers_set_aside 1.0\n" in talk.ask("GET", "/metrics")
            talk.play(1, "other")
        assert on_disk(state) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_ranker_that_is_set_aside_can_be_deleted_and_its_numbers_are_not_given_out_again(
    serving, state, left, damage
):
    damage(state)
    (*_, (reserved,)), _ = on_disk(state)
    with serving(state, max_rankers=2) as talk:
        assert talk.ask("PUT", "/v1/rankers/third", {"features": ["a"]}, status=409) == "too_many_rankers"
        talk.ask("DELETE", "/v1/rankers/shop")
        assert talk.ask("GET", "/v1/rankers")["set_aside"] == []
        assert talk.ask("GET", "/v1/rankers/shop", status=404) == "unknown_ranker"
        assert talk.ask("DELETE", "/v1/rankers/shop", status=404) == "unknown_ranker"
        assert on_disk(state)[0][:2] == [[], []]
        assert not (state / "snapshots" / "1").exists()
        talk.make()
        assert talk.rank(np.eye(3))["round"] % CAPACITY == reserved > 12
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers")["set_aside"] == []
        assert talk.ask("GET", "/v1/rankers/other/model") == left["other"]


def test_a_ranker_that_could_not_be_deleted_stays_set_aside(serving, state, left, monkeypatch):
    damage_entry(state)
    with serving(state) as talk:
        with monkeypatch.context() as patch:

            def refuse(jobs):
                raise sqlite3.OperationalError("disk I/O error")

            patch.setattr(talk.service.journal, "_write_batch", refuse)
            assert talk.ask("DELETE", "/v1/rankers/shop", status=503) == "not_written"
        assert talk.rank(np.eye(3), status=409) == "set_aside"


def test_what_was_put_right_serves_again(serving, state, left, monkeypatch):
    def refuse(*_arguments):
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "replay", refuse)
        with serving(state) as talk:
            asides = talk.ask("GET", "/v1/rankers")["set_aside"]
            assert ["version 6: MemoryError: no room" in aside["message"] for aside in asides] == [True, True]
    with serving(state) as talk:
        for name, model in left.items():
            assert talk.ask("GET", f"/v1/rankers/{name}/model") == model


def test_a_journal_that_is_damaged_as_a_whole_still_ends_the_start(state, left):
    connection = sqlite3.connect(state / "log.sqlite")
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'entries'").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with open(state / "log.sqlite", "r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    for _ in range(2):
        with pytest.raises(DataError, match=r"log\.sqlite is damaged .*malformed.*restore"):
            RankingService(state)
    assert not list(state.glob("crash-*"))


# A recovery that does not end

DIES = """
import os, signal, sys
from ranktron.store.rankers import apply_entry
from ranktron.service.http.server import run
apply = apply_entry.apply

def die(live, entry, version):
    if (live.name, version) == ("shop", 9):
        {how}
    return apply(live, entry, version)

apply_entry.apply = die
run(sys.argv[1], None, "127.0.0.1", 0)
"""


def started(state, how):
    code = DIES.format(how=how)
    return subprocess.run([sys.executable, "-c", code, str(state)], capture_output=True, text=True, check=False)


def test_a_recovery_that_was_killed_is_tried_again(serving, state, left):
    assert started(state, "os.kill(os.getpid(), signal.SIGKILL)").returncode == -signal.SIGKILL
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers")["set_aside"] == []
        assert talk.ask("GET", "/v1/rankers/shop/model") == left["shop"]
    assert not list(state.glob("crash-*"))


def test_a_recovery_that_crashed_the_process_is_not_tried_again_unasked(serving, state, left, caplog):
    before = on_disk(state)
    assert started(state, "import ctypes; ctypes.string_at(0)").returncode == -signal.SIGSEGV
    crash = state / "crash-1.txt"
    assert "Segmentation fault" in crash.read_text()
    for _ in range(2):
        with serving(state) as talk:
            (aside,) = talk.ask("GET", "/v1/rankers")["set_aside"]
            assert (aside["name"], aside["version"]) == ("shop", 6)  # where the replay started
            assert f"its recovery crashed the server the last time, {crash} says where" in aside["message"]
            assert "To try it again, delete that file" in aside["message"]
            assert talk.rank(np.eye(3), status=409) == "set_aside"
            assert talk.ask("GET", "/v1/rankers/other/model") == left["other"]
    assert on_disk(state) == before
    crash.unlink()
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == left["shop"]
    assert not crash.exists()


def test_a_ranker_that_the_process_died_of_can_be_deleted(serving, state, left):
    assert started(state, "os.abort()").returncode < 0
    assert (state / "crash-1.txt").exists()
    with serving(state) as talk:
        talk.ask("DELETE", "/v1/rankers/shop")
        talk.make()
    assert not list(state.glob("crash-*"))
    with serving(state) as talk:
        assert len(talk.ask("GET", "/v1/rankers")["rankers"]) == 2


def test_a_start_that_is_told_to_end_leaves_no_crash_file(serving, state, left, monkeypatch):
    ended = started(state, "os.kill(os.getpid(), signal.SIGTERM)")
    assert (ended.returncode, ended.stdout) == (0, ""), ended
    assert not list(state.glob("crash-*"))

    def interrupt(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(apply_entry, "apply", interrupt)
        with pytest.raises(KeyboardInterrupt):
            RankingService(state)
    assert not list(state.glob("crash-*"))
    with serving(state) as talk:
        assert talk.ask("GET", "/v1/rankers/shop/model") == left["shop"]
