"""A journal says in which format it is and which version wrote it; one of another format is refused."""

import sqlite3
from contextlib import closing

import pytest

from ranktron import DataError, __version__
from ranktron.service.service import RankingService
from ranktron.store.journal.backup import back_up
from ranktron.store.journal.journal import FORMAT

both = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture
def state(serving, tmp_path):
    """A journal that has been written."""
    with serving(tmp_path / "state") as talk:
        talk.make()
    return tmp_path / "state"


@both
def test_a_journal_says_its_format_and_who_wrote_it(serving, state, backend):
    with serving(state) as talk:
        assert talk.service.journal.look_up("SELECT format, version FROM identity") == [(FORMAT, __version__)]


@both
def test_the_version_is_that_of_the_last_writer(serving, state):
    serving.edit(state, "UPDATE identity SET version = ?", "0.3.0")
    with serving(state) as talk:
        assert talk.service.journal.look_up("SELECT version FROM identity") == [(__version__,)]


@both
def test_another_format_is_refused_and_left_alone(serving, state):
    serving.edit(state, "UPDATE identity SET format = ?, version = ?", FORMAT + 1, "9.1.0")
    for _ in range(2):
        with pytest.raises(DataError, match=f"was written by ranktron 9.1.0, and ranktron {__version__} cannot read"):
            serving.service(state)


@both
def test_a_journal_without_a_format_is_from_before_there_was_one(serving, state):
    serving.edit(state, "ALTER TABLE identity DROP COLUMN format")
    with pytest.raises(DataError, match=r"was written by a ranktron before 0\.3, and"):
        serving.service(state)


def test_a_file_without_an_identity_is_refused_and_not_backed_up(tmp_path):
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection:
        connection.execute("CREATE TABLE rankers (id INTEGER PRIMARY KEY)")
    with pytest.raises(DataError, match=r"before 0\.3"):
        RankingService(tmp_path)
    with pytest.raises(DataError, match=r"before 0\.3"):
        back_up(tmp_path, tmp_path / "copy")
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [("rankers",)]


def test_tables_that_cannot_be_made_leave_none(tmp_path, monkeypatch):
    monkeypatch.setattr("ranktron.store.journal.sqlite_journal._TABLES", "CREATE TABLE half (a); CREATE nonsense")
    with pytest.raises(DataError, match="cannot be opened"):
        RankingService(tmp_path)
    with closing(sqlite3.connect(tmp_path / "log.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
