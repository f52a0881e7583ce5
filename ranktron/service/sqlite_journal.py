"""The journal in SQLite: a file in WAL mode, flushed to disk at every commit, in a folder that one server locks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ranktron.errors import DataError
from ranktron.service.folder_lock import FolderLock, OpenFiles
from ranktron.service.journal import JournalError
from ranktron.service.snapshots import Snapshots
from ranktron.service.sql_journal import SQLJournal

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rankers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, definition BLOB NOT NULL, next INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0, asked BLOB);
CREATE UNIQUE INDEX IF NOT EXISTS names ON rankers (name) WHERE NOT deleted;
CREATE TABLE IF NOT EXISTS entries (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER, round INTEGER);
CREATE TABLE IF NOT EXISTS rounds (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER);
CREATE TABLE IF NOT EXISTS owner (
    id INTEGER PRIMARY KEY, term INTEGER NOT NULL, commits INTEGER NOT NULL, facts TEXT NOT NULL,
    epoch INTEGER NOT NULL);
"""
_LATER = {"asked": "BLOB", "incarnation": "INTEGER", "epochs": "BLOB", "checksum": "INTEGER"}  # columns since 0.1.0


class SQLiteJournal(SQLJournal):
    """The journal of one folder, which it locks: a second server on the same folder is refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, FolderLock(folder), lambda lock: SQLiteDatabase(folder, lock))


class SQLiteDatabase:
    """The file `log.sqlite` of a folder."""

    mark_needed = True

    def __init__(self, folder: Path, lock: FolderLock) -> None:
        if (folder / "database").exists():
            where = f"{folder} belongs to a server whose journal is in PostgreSQL"
            raise DataError(f"{where}: name that with --journal, or choose another folder")
        self.folder, self.path, self._lock = folder, folder / "log.sqlite", lock
        self.connection = connect(self.path)
        self._files: OpenFiles | None = None

    def _paths(self) -> list[Path]:
        return [self.folder / f"log.sqlite{ending}" for ending in ("", "-wal")]

    def __str__(self) -> str:
        return str(self.folder)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.connection.executemany(statement, rows)

    def begin(self) -> None:
        self.rollback()  # the disk may not even have taken that it was to be forgotten
        self.connection.execute("BEGIN IMMEDIATE")

    def lock(self) -> None:
        """Has been done: there is one writer at a time."""

    def commit(self) -> None:
        self.connection.execute("COMMIT")
        if self._files is None:  # from the first commit on, both are there
            self._files = OpenFiles(self._paths())

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def explained(self) -> Any:
        return explain_sqlite_errors(self.path)

    def facts(self) -> str:
        return self._lock.facts(self.path)

    def check(self) -> None:
        if self._files is not None and self._files.are_gone():  # nobody could open again what is written there
            raise JournalError(f"{self.path} was removed or replaced while the server ran: stop it")

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return Snapshots(self.folder, ranker, keep)

    def close(self) -> None:
        self.connection.close()

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self._paths() if file.exists())


@contextmanager
def explain_sqlite_errors(path: Path) -> Iterator[None]:
    """Says in a sentence what SQLite says in a word."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise JournalError(f"{path}: the log cannot be opened for writing: {error}") from None
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} is damaged ({error}): restore it from a copy, or start in another folder") from None


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a journal, which is made if there is none, and gets the columns that 0.1.0 did not know."""
    with explain_sqlite_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(_SCHEMA)
            columns = {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}
            for column, kind in _LATER.items():
                if column not in columns:
                    connection.execute(f"ALTER TABLE rankers ADD COLUMN {column} {kind}")
        except BaseException:
            connection.close()
            raise
        return connection
