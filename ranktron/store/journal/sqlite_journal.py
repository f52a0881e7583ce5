"""The journal in SQLite: a file in WAL mode, flushed at every commit, in a folder that one server locks."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ranktron import __version__
from ranktron.errors import DataError
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.journal import FORMAT, FormatError, JournalError
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.journal.sql_journal import SQLJournal


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
            raise DataError(f"{where}: give its address with --journal, or choose another folder")
        self.folder, self.path, self._lock = folder, folder / "log.sqlite", lock  # fixed
        self.connection = connect(self.path)  # writes; after start the writer's thread alone uses it
        self._files: OpenFiles | None = None  # the identities of log and WAL; set by the first commit
        self._reader: sqlite3.Connection | None = None  # for `look_up`, which opens it

    def _paths(self) -> list[Path]:
        return [self.folder / f"log.sqlite{ending}" for ending in ("", "-wal")]

    def __str__(self) -> str:
        return str(self.folder)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        return self.connection.execute(statement, values)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.connection.executemany(statement, rows)

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self.explained():
            if self._reader is None:
                self._reader = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            return self._reader.execute(statement, values).fetchall()

    def begin(self) -> None:
        self.rollback()  # the last rollback itself may have failed
        self.connection.execute("BEGIN IMMEDIATE")

    def lock(self) -> None:
        """Nothing to do: `BEGIN IMMEDIATE` admits one writer."""

    def commit(self) -> None:
        self.connection.execute("COMMIT")
        if self._files is None:  # the WAL exists from the first commit on
            self._files = OpenFiles(self._paths())

    def rollback(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def explained(self) -> Any:
        return explain_sqlite_errors(self.path)

    def facts(self) -> str:
        return self._lock.facts(self.path)

    def check(self) -> None:
        if self._files is not None and self._files.are_gone():  # commits to a deleted file would be lost
            raise JournalError(f"{self.path} was removed or replaced while the server ran: stop it")

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return Snapshots(self.folder, ranker, keep)

    def overwrite_deleted(self) -> None:
        self.connection.execute("PRAGMA secure_delete = ON")

    def scrub(self) -> None:
        with suppress(sqlite3.Error):  # the WAL is also emptied by the last close
            self.connection.execute("PRAGMA secure_delete = OFF")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self.connection.close()
        if self._reader is not None:
            self._reader.close()

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self._paths() if file.exists())


class OpenFiles:
    """The identities of open files, to detect when one was removed or replaced."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._identities = [_identity(path) for path in paths]

    def are_gone(self) -> bool:
        """Whether a file was removed or replaced."""
        return [_identity(path) for path in self._paths] != self._identities


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def explain_sqlite_errors(path: Path) -> Iterator[None]:
    """Turns errors of SQLite into JournalErrors."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise JournalError(f"{path}: the log cannot be opened for writing: {error}") from None
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} is damaged ({error}): restore it from a copy, or start in another folder") from None


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a journal, which is created if missing."""
    with explain_sqlite_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            make_tables(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


_TABLES = """
CREATE TABLE rankers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, definition BLOB NOT NULL, next INTEGER NOT NULL,
    deleted INTEGER NOT NULL, incarnation INTEGER NOT NULL, epochs BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE UNIQUE INDEX names ON rankers (name) WHERE NOT deleted;
CREATE TABLE entries (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL, round INTEGER);
CREATE TABLE rounds (key INTEGER PRIMARY KEY, body BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE accepted (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, digest BLOB NOT NULL, expires REAL NOT NULL);
CREATE TABLE owner (
    id INTEGER PRIMARY KEY, term INTEGER NOT NULL, commits INTEGER NOT NULL, facts TEXT NOT NULL,
    epoch INTEGER NOT NULL);
CREATE TABLE identity (
    id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, format INTEGER NOT NULL, version TEXT NOT NULL);
CREATE TABLE sources (name TEXT PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE dead_letters (
    source TEXT NOT NULL, place INTEGER NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (source, place));
"""
_MAKE_IDENTITY = "INSERT INTO identity VALUES (1, lower(hex(randomblob(16))), ?, ?)"


def make_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Creates the tables of a new journal; one of another format is refused.

    >>> connection = sqlite3.connect(":memory:", isolation_level=None)
    >>> make_tables(connection, Path("log.sqlite"))
    >>> check_format(connection, Path("log.sqlite"))
    >>> connection.close()
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(_MAKE_IDENTITY, (FORMAT, __version__))
        check_format(connection, path)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuses a journal of another format."""
    columns = {column[1] for column in connection.execute("PRAGMA table_info(identity)")}
    if not {"format", "version"} <= columns:
        raise FormatError(path, None)
    format, version = connection.execute("SELECT format, version FROM identity").fetchone()
    if format != FORMAT:
        raise FormatError(path, version)
