"""The tables of a journal in SQLite, and how those of an older version become the present ones.

`PRAGMA user_version` says how many migrations a file has had. A migration is made once, in one transaction with that
number; each may also find what it would make, since files were written before they were numbered. To change the
tables, add a migration: those that are there stay as they are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from ranktron.store.journal.journal import JournalError

_COLUMNS = {"asked": "BLOB", "incarnation": "INTEGER", "epochs": "BLOB", "checksum": "INTEGER"}


def _make_tables_of_0_1_0(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS rankers (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, "
        "definition BLOB NOT NULL, next INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0)"
    )
    connection.execute("CREATE UNIQUE INDEX IF NOT EXISTS names ON rankers (name) WHERE NOT deleted")
    row = "key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER"
    connection.execute(f"CREATE TABLE IF NOT EXISTS entries ({row}, round INTEGER)")
    connection.execute(f"CREATE TABLE IF NOT EXISTS rounds ({row})")


def _notice_losses_and_copies(connection: sqlite3.Connection) -> None:
    columns = {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}
    for column, kind in _COLUMNS.items():
        if column not in columns:
            connection.execute(f"ALTER TABLE rankers ADD COLUMN {column} {kind}")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, term INTEGER NOT NULL, commits INTEGER NOT NULL, "
        "facts TEXT NOT NULL, epoch INTEGER NOT NULL)"
    )


def _accept_carried_rounds(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS identity (id INTEGER PRIMARY KEY, cluster TEXT NOT NULL)")
    connection.execute("INSERT OR IGNORE INTO identity VALUES (1, lower(hex(randomblob(16))))")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS accepted (key INTEGER PRIMARY KEY, version INTEGER NOT NULL, "
        "digest BLOB NOT NULL, expires REAL NOT NULL)"
    )


def _read_sources(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS sources (name TEXT PRIMARY KEY, next INTEGER NOT NULL)")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS dead_letters (source TEXT NOT NULL, place INTEGER NOT NULL, reason TEXT NOT NULL, "
        "body BLOB NOT NULL, PRIMARY KEY (source, place))"
    )


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _make_tables_of_0_1_0,
    _notice_losses_and_copies,
    _accept_carried_rounds,
    _read_sources,
)


def migrate(connection: sqlite3.Connection, path: Path) -> int:
    """Makes the tables those of this version, whatever they were; which number they had before.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(connection, Path("log.sqlite")), migrate(connection, Path("log.sqlite")) == len(MIGRATIONS)
    (0, True)
    >>> connection.close()
    """
    before: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if before > len(MIGRATIONS):
        newer = f"{path} was written by a newer version of ranktron (tables {before}, known here {len(MIGRATIONS)})"
        raise JournalError(f"{newer}: install that one, or restore a backup of before")
    for number, migration in enumerate(MIGRATIONS[before:], before + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            migration(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return before
