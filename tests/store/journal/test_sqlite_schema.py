"""Migrations: a journal of any version becomes one of this version, once, and a newer one is left alone."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ranktron import DataError
from ranktron.service.service import RankingService
from ranktron.store.journal import sqlite_schema
from ranktron.store.journal.sqlite_schema import MIGRATIONS, migrate

OLD = Path(__file__).parents[2] / "compatibility" / "0.1.0" / "state"


def opened(path):
    return closing(sqlite3.connect(path, isolation_level=None))


def tables(connection):
    query = "SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'"
    return sorted(connection.execute(query).fetchall())


def test_a_journal_of_0_1_0_gets_the_same_tables_as_a_new_one(tmp_path):
    shutil.copy(OLD / "log.sqlite", tmp_path / "old")
    with opened(tmp_path / "old") as old, opened(tmp_path / "new") as new:
        before = old.execute("SELECT * FROM entries").fetchall()
        assert migrate(old, tmp_path / "old") == migrate(new, tmp_path / "new") == 0
        assert tables(old) == tables(new)
        assert old.execute("SELECT * FROM entries").fetchall() == before
        cluster = old.execute("SELECT cluster FROM identity").fetchall()
        assert migrate(old, tmp_path / "old") == len(MIGRATIONS)
        assert old.execute("SELECT cluster FROM identity").fetchall() == cluster
        assert len(cluster) == 1


def test_tables_that_were_not_numbered_are_taken_for_what_they_are(tmp_path):
    with opened(tmp_path / "log") as connection:
        migrate(connection, tmp_path / "log")
        wanted = tables(connection), connection.execute("SELECT * FROM identity").fetchall()
        connection.execute("PRAGMA user_version = 0")
        assert migrate(connection, tmp_path / "log") == 0
        assert (tables(connection), connection.execute("SELECT * FROM identity").fetchall()) == wanted


def test_a_migration_that_fails_leaves_what_was(tmp_path, monkeypatch):
    def fail(connection):
        connection.execute("CREATE TABLE half (a)")
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*MIGRATIONS, fail))
    with opened(tmp_path / "log") as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, tmp_path / "log")
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert "half" not in {table for table, _, _ in tables(connection)}


def test_a_newer_journal_is_left_alone(tmp_path):
    RankingService(tmp_path).journal.close()
    with opened(tmp_path / "log.sqlite") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(DataError, match="newer version of ranktron"):
        RankingService(tmp_path)
