"""The journal in PostgreSQL: one leader, commits whose outcome is unknown, and what is refused at a start.

What it has in common with SQLite is tested with both, in the tests that are marked so.
"""

import json
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest

from ranktron import DataError
from ranktron.service.service import RankingService
from ranktron.store.journal.journal import InUseError, JournalError, open_journal

ROUND = np.eye(3)


@pytest.fixture
def backend():
    return "postgres"


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def rival(serving, state, tmp_path):
    """Opens the same journal from another server, with a folder of its own."""

    address = serving.address(state)

    def open(name="rival"):
        return open_journal(tmp_path / name, address)

    return open


def end_sessions(postgres):
    """Ends every session of an ordinary user, as a network does that fails for a moment."""
    postgres.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'shop'")


def body(shown):
    return {"round": shown["round"], "labels": {shown["ranking"][0]["id"]: 1}}


# One leader


def test_a_second_server_stands_by_and_takes_over_where_the_first_one_ended(serving, state, rival, tmp_path):
    talk = serving(state, snapshot_every=4).__enter__()
    talk.make()
    talk.play(10)
    waiting = talk.rank(ROUND)
    model = talk.ask("GET", "/v1/rankers/shop/model")
    with pytest.raises(InUseError, match="in use by another server"):
        rival()
    term = talk.service.journal._term
    talk.crash()
    service = RankingService(tmp_path / "elsewhere", journal=serving.address(state))
    assert service.journal._term.number == term.number + 1
    assert service.journal._term.epoch == term.epoch  # it is no copy, though the folder is another one
    assert service.live("shop").snapshots.versions() == [4, 8]
    assert service.model("shop").to_bytes() == model
    assert service.live("shop").rounds.ids.number_of(waiting["round"]) in service.live("shop").rounds.open
    service.journal.close()


def test_of_many_that_start_at_once_one_is_elected(serving, state, rival):
    found = []

    def start(name):
        try:
            found.append(rival(name))
        except InUseError:
            found.append(None)

    threads = [threading.Thread(target=start, args=(f"server{i}",)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 5
    (leader,) = [journal for journal in found if journal is not None]
    leader.close()


def test_a_leader_that_lost_its_session_goes_on_if_nobody_took_over(serving, state, postgres, rival):
    with serving(state) as talk:
        talk.make()
        talk.play(3)
        shown = [talk.rank(ROUND) for _ in range(2)]
        talk.written()
        end_sessions(postgres)
        assert talk.answer(shown[0])["version"] == 4
        with pytest.raises(InUseError):  # it has the lock again
            rival()
        assert talk.ask("POST", "/v1/rankers/shop/versions")["kept"] == [4]


def test_a_leader_that_another_one_has_followed_steps_down(serving, state, postgres, rival):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(3)
    shown = talk.rank(ROUND)
    talk.written()
    end_sessions(postgres)
    other = rival()
    assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown), status=503) == "not_leader"
    assert talk.rank(ROUND, status=503) == "not_leader"
    assert talk.service.superseded.is_set()
    talk.__exit__()
    assert other.last_version(1) == 3
    other.close()


# A commit of which nobody knows


@pytest.mark.parametrize("made", [True, False])
def test_a_commit_whose_answer_was_lost_is_looked_up(serving, state, monkeypatch, made):
    talk = serving(state).__enter__()
    talk.make()
    talk.play(2)
    shown = talk.rank(ROUND)
    talk.written()
    database = talk.service.journal._database
    commit, lost = database.commit, []

    def lose():
        """The network fails just after the COMMIT was sent, or just before."""
        if not lost:
            lost.append(True)
            if made:
                database._connection.execute("COMMIT")
            database._connection.close()
        commit()

    monkeypatch.setattr(database, "commit", lose)
    if not made:
        assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown), status=503) == "not_written"
        assert talk.ask("GET", "/v1/rankers/shop")["version"] == 2
    assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown)) == {"learned": True, "version": 3}
    assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown)) == {"learned": True, "version": 3}
    assert lost
    assert talk.ask("GET", "/readyz") == {"ready": True}
    model = talk.ask("GET", "/v1/rankers/shop/model")
    talk.crash()
    service = serving.service(state)
    assert [entry.version for entry in service.journal.entries(1)] == [1, 2, 3]
    assert service.model("shop").to_bytes() == model
    service.journal.close()


def test_an_outcome_is_not_known_while_the_transaction_is_still_under_way(serving, state, monkeypatch):
    """The session is lost, and the server has not noticed yet: it may still commit. To look waits for that."""
    talk = serving(state).__enter__()
    talk.make()
    shown = talk.rank(ROUND)
    talk.written()
    database, committed, ending = talk.service.journal._database, [], threading.Event()
    commit = database.commit

    def lose():
        if committed:
            return commit()
        session, database._connection = database._connection, database._connect()

        def end():
            ending.set()
            session.execute("COMMIT")
            session.close()

        committed.append(threading.Timer(0.4, end))
        committed[0].start()
        monkeypatch.setattr(type(database), "rollback", lambda self: None)
        database._connection.close()
        return commit()

    monkeypatch.setattr(database, "commit", lose)
    rollback = type(database).rollback
    monkeypatch.setattr(database, "rollback", lambda: rollback(database))
    assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown)) == {"learned": True, "version": 1}
    assert ending.is_set()  # nothing was answered before
    committed[0].join()
    talk.crash()


def test_a_database_that_is_killed_loses_nothing_that_was_acknowledged(serving, state, postgres):
    with serving(state, snapshot_every=2) as talk:
        talk.make()
        talk.play(5)
        shown = talk.rank(ROUND)
        talk.written()
        postgres.kill()
        try:
            assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown), status=503) == "not_written"
            assert talk.ask("GET", "/readyz", status=503) == "not_ready"
            assert talk.rank(ROUND)  # rankings go on
            assert talk.ask("GET", "/v1/rankers/shop/versions")["kept"] == [2, 4]  # which is remembered
            assert talk.ask("POST", "/v1/rankers/shop/rollback", {"version": 4}, status=503) == "journal_away"
        finally:
            postgres.start()
        assert talk.ask("POST", "/v1/rankers/shop/feedback", body(shown))["version"] == 6
        assert talk.ask("GET", "/readyz") == {"ready": True}


# What is refused


def wait_for(postgres, setting, value):
    """Until the server has read its configuration again."""
    while postgres.execute(f"SHOW {setting}") != [(value,)]:
        time.sleep(0.01)


def test_settings_that_lose_what_was_acknowledged_are_refused(serving, state, postgres):
    address = serving.address(state)
    with pytest.raises(DataError, match="runs with synchronous_commit = off, so that a crash could lose acknowledged"):
        open_journal(state, f"{address}%20-csynchronous_commit%3Doff")
    for setting in ("fsync", "full_page_writes"):
        postgres.execute(f"ALTER SYSTEM SET {setting} = off")
        postgres.execute("SELECT pg_reload_conf()")
        try:
            wait_for(postgres, setting, "off")
            with pytest.raises(DataError, match=f"runs with {setting} = off"):
                open_journal(state, address)
        finally:
            postgres.execute(f"ALTER SYSTEM RESET {setting}")
            postgres.execute("SELECT pg_reload_conf()")
            wait_for(postgres, setting, "on")
    open_journal(state, address).close()


def test_sessions_that_a_pool_changes_are_refused(serving, state):
    with serving(state) as talk:
        talk.make()
        shown = talk.rank(ROUND)
        talk.written()
        database = talk.service.journal._database
        process, database._backend = database._backend, 1
        answer = talk.request(
            "POST", "/v1/rankers/shop/feedback", json.dumps(body(shown)).encode(), content_type="application/json"
        )
        assert answer.status == 503
        assert b"use session pooling" in answer.content
        database._backend = process


def test_a_server_that_cannot_be_reached_is_named_without_its_password(tmp_path):
    with pytest.raises(DataError, match="PostgreSQL cannot be reached") as refused:
        open_journal(tmp_path, "postgresql://shop:secret@127.0.0.1:1/shop")
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(DataError, match="address is not valid for PostgreSQL"):
        open_journal(tmp_path, "postgresql://shop?colour=red")


def test_a_folder_belongs_to_one_journal(serving, state, tmp_path):
    address = serving.address(state)
    open_journal(tmp_path / "lite").close()
    with pytest.raises(DataError, match="contains an SQLite journal"):
        open_journal(tmp_path / "lite", address)
    open_journal(state, address).close()
    with pytest.raises(DataError, match="belongs to a server whose journal is in PostgreSQL"):
        open_journal(state)
    with pytest.raises(DataError, match="belongs to a server of another database"):
        open_journal(state, serving.address(tmp_path / "other"))


# Copies and losses


def test_a_copy_of_the_database_begins_a_new_epoch(serving, state, postgres, tmp_path, caplog):
    with serving(state) as talk:
        talk.make()
        talk.play(3)
        before = talk.rank(ROUND)["round"]
    postgres.execute("DROP DATABASE IF EXISTS copy")
    postgres.execute("CREATE DATABASE copy TEMPLATE postgres", database="template1")
    service = RankingService(tmp_path / "copy", journal=serving.address(state).replace("/postgres?", "/copy?"))
    live = service.live("shop")
    assert "it is a copy, or was restored from one; rounds are numbered in a new epoch" in caplog.text
    assert live.rounds.ids.number_of(before) in live.rounds.open
    assert live.rounds.ids.public(live.rounds.next) > before + 1000
    service.journal.close()


def test_a_database_that_was_set_back_is_named(serving, state):
    with serving(state) as talk:
        talk.make()
        talk.play(3)
    serving.edit(state, "DELETE FROM entries WHERE key = (SELECT max(key) FROM entries)")
    service = serving.service(state)
    assert "version 3 was acknowledged, but its log ends at version 2" in service.engine.quarantined["shop"].message
    service.journal.close()


def test_a_closed_journal_opens_no_session_for_those_that_still_read(serving, state):
    journal = serving.service(state).journal
    journal.look_up("SELECT 1")
    journal.close()
    with pytest.raises(JournalError, match="the journal is closed"):
        journal.look_up("SELECT 1")


def test_threads_that_read_at_once_share_one_session(serving, state, monkeypatch):
    service = serving.service(state)
    database = service.journal._database
    opened, open_session = [], database.open_session
    monkeypatch.setattr(database, "open_session", lambda: opened.append(open_session()) or opened[-1])
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: service.journal.look_up("SELECT 1"), range(64))) == [[(1,)]] * 64
    assert len(opened) <= 1
    service.journal.close()


# Snapshots


def test_snapshots_are_kept_removed_and_put_away(serving, state, caplog):
    with serving(state, snapshot_every=3, versions=2) as talk:
        talk.make()
        talk.play(4)
        assert talk.ask("POST", "/v1/rankers/shop/versions")["kept"] == [3, 4]
        talk.play(9)
        talk.written()
        assert talk.ask("GET", "/v1/rankers/shop/versions")["kept"] == [4, 10, 13]
        assert talk.ask("DELETE", "/v1/rankers/shop/versions/13", status=409) == "needed_version"
        assert talk.ask("DELETE", "/v1/rankers/shop/versions/4")["kept"] == [10, 13]
        model = talk.ask("GET", "/v1/rankers/shop/model")
        talk.crash()
    serving.edit(state, "UPDATE snapshots SET body = substr(body, 1, 100) WHERE version = 13")
    with serving(state) as talk:
        assert "an older snapshot is used" in caplog.text
        assert talk.ask("GET", "/v1/rankers/shop/model") == model
        talk.crash()
    serving.edit(state, "UPDATE rankers SET name = name")
    with psycopg.connect(serving.address(state), autocommit=True) as connection:
        (before,) = connection.execute("SELECT count(*) FROM snapshots").fetchone()
    assert before == 2
    with serving(state) as talk:
        talk.ask("DELETE", "/v1/rankers/shop")
        assert talk.service.engine._snapshots(1).versions() == []


def test_a_snapshot_of_another_ranker_is_marked_and_an_older_one_used(serving, state):
    with serving(state, snapshot_every=3) as talk:
        talk.make()
        talk.play(7)
        talk.written()
        snapshots = talk.service.live("shop").snapshots
        *older, newest = snapshots.versions()
        found = snapshots.newest(lambda snapshot: "is foreign" if snapshot["version"] == newest else "")
        assert (found["version"], snapshots.versions()) == (older[-1], older)
    with psycopg.connect(serving.address(state), autocommit=True) as connection:
        marked = connection.execute("SELECT version, misfit FROM snapshots WHERE misfit IS NOT NULL").fetchall()
    assert marked == [(newest, "is foreign")]


# The program


def ready(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            return answer.status, None
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)["error"]["code"]


def test_a_program_that_stands_by_takes_over_when_the_leader_is_gone(Program, serving, state, rival, tmp_path):
    leader = rival()
    with Program(tmp_path / "two", RANKTRON_JOURNAL=serving.address(state)) as program:
        assert program.line.startswith("Standing by at http://")
        assert ready(program.url) == (503, "not_leader")
        leader.close()
        assert program.process.stdout.readline().startswith("Serving 0 rankers")
        assert ready(program.url) == (200, None)
