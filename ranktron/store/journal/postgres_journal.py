"""The journal in PostgreSQL, with one leader among many servers.

An advisory lock elects the leader and does no more: it ends with its session, which a leader may notice late. An old
leader is fenced off by the term, which every transaction checks in a row that it locks. The same row counts commits, so
that a commit whose answer was lost can be looked up.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from ranktron import __version__
from ranktron.errors import DataError, MissingExtra
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.journal import FORMAT, FormatError, InUseError, JournalError, UnknownOutcomeError
from ranktron.store.journal.snapshots import Snapshots, check_not_needed
from ranktron.store.journal.sql_journal import SQLJournal

_logger = logging.getLogger("ranktron.service")


_WRITE = """
INSERT INTO snapshots (ranker, version, pinned, body) VALUES (?, ?, ?, ?) ON CONFLICT (ranker, version)
DO UPDATE SET pinned = snapshots.pinned OR excluded.pinned, body = excluded.body, misfit = NULL
"""


class PostgresSnapshots(Snapshots):
    """The snapshots of one ranker, in a table; the list of them is cached."""

    def __init__(self, execute: Callable[..., list[Any]], ranker: int, keep: int) -> None:
        super().__init__(Path(), ranker, keep)
        self._execute, self._ranker = execute, ranker
        self._there: dict[int, bool] | None = None  # each version, and whether someone pinned to keep it

    def _known(self) -> dict[int, bool]:
        if self._there is None:
            query = "SELECT version, pinned FROM snapshots WHERE ranker = ? AND misfit IS NULL ORDER BY version"
            self._there = dict(self._execute(query, (self._ranker,)))
        return self._there

    def remove_drafts(self) -> None:
        """Nothing to do: transactions are atomic."""

    def versions(self) -> list[int]:
        return sorted(self._known())

    def pinned(self) -> list[int]:
        return sorted(version for version, pinned in self._known().items() if pinned)

    def write(self, version: int, data: bytes, *, pinned: bool = False) -> None:
        known = {**self._known(), version: pinned or self._known().get(version, False)}
        self._there = None  # unknown until read again
        self._execute(_WRITE, (self._ranker, version, pinned, data))
        for old in sorted(each for each, kept in known.items() if not kept)[: -self.keep]:
            self._delete(old)
            del known[old]
        self._there = known

    def pin(self, version: int) -> None:
        if version not in self._known():
            raise DataError(f"version {version} cannot be kept: it is not there")
        self._there = None
        self._execute("UPDATE snapshots SET pinned = true WHERE ranker = ? AND version = ?", (self._ranker, version))

    def remove(self, version: int) -> None:
        check_not_needed(version, self.versions())
        self._there = None
        self._delete(version)

    def _delete(self, version: int) -> None:
        self._execute("DELETE FROM snapshots WHERE ranker = ? AND version = ?", (self._ranker, version))

    def clear(self) -> None:
        self._there = {}
        try:
            self._execute("DELETE FROM snapshots WHERE ranker = ?", (self._ranker,))
        except JournalError as error:  # harmless: ids of rankers are not reused
            _logger.warning("snapshots of ranker %d could not be removed: %s", self._ranker, error)

    def _load(self, version: int) -> bytes:
        query = "SELECT body FROM snapshots WHERE ranker = ? AND version = ?"
        found = self._execute(query, (self._ranker, version))
        if not found:
            raise DataError(f"version {version} is not there")
        return bytes(found[0][0])

    def _put_away(self, version: int, why: str) -> None:
        self._there = None
        change = "UPDATE snapshots SET misfit = ? WHERE ranker = ? AND version = ?"
        self._execute(change, (why, self._ranker, version))

    def _name(self, version: int) -> str:
        return f"the snapshot of version {version}"


try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ModuleNotFoundError:
    raise MissingExtra("a journal in PostgreSQL", "postgres") from None

_SCHEMA = """
CREATE TABLE rankers (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL, definition BLOB NOT NULL, next BIGINT NOT NULL, deleted INTEGER NOT NULL,
    incarnation BIGINT NOT NULL, epochs BLOB NOT NULL, checksum BIGINT NOT NULL);
CREATE UNIQUE INDEX rankers_name ON rankers (name) WHERE deleted = 0;
CREATE TABLE entries (key BIGINT PRIMARY KEY, body BLOB NOT NULL, checksum BIGINT NOT NULL, round BIGINT);
CREATE TABLE rounds (key BIGINT PRIMARY KEY, body BLOB NOT NULL, checksum BIGINT NOT NULL);
CREATE TABLE owner (
    id INTEGER PRIMARY KEY, term BIGINT NOT NULL, commits BIGINT NOT NULL, facts TEXT NOT NULL, epoch INTEGER NOT NULL);
CREATE TABLE identity (
    id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, format INTEGER NOT NULL, version TEXT NOT NULL);
CREATE TABLE accepted (
    key BIGINT PRIMARY KEY, version BIGINT NOT NULL, digest BLOB NOT NULL, expires DOUBLE PRECISION NOT NULL);
CREATE TABLE sources (name TEXT PRIMARY KEY, next BIGINT NOT NULL);
CREATE TABLE dead_letters (
    source TEXT NOT NULL, place BIGINT NOT NULL, reason TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (source, place));
CREATE TABLE snapshots (
    ranker BIGINT, version BIGINT, pinned BOOLEAN NOT NULL, misfit TEXT, body BLOB NOT NULL,
    PRIMARY KEY (ranker, version));
"""
_MAKE_IDENTITY = "INSERT INTO identity VALUES (1, gen_random_uuid()::text, $1, $2)"
_FORMAT_COLUMNS = """
SELECT count(*) FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = 'identity' AND column_name IN ('format', 'version')
"""
_IDENTITY = """
SELECT system_identifier, d.oid, current_schema() FROM pg_control_system(), pg_database d
WHERE d.datname = current_database()
"""
_SIZE = """
SELECT sum(pg_total_relation_size(t::regclass))
FROM unnest(ARRAY['rankers', 'entries', 'rounds', 'accepted', 'snapshots']) t
"""
_CLASS = 0x72616E6B  # of the advisory locks: "rank"
_DEFAULTS = {  # a server that is unreachable is given up in seconds
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "ranktron",
}
_MEASURING = 30.0  # seconds between measurements of the tables' size


class PostgresJournal(SQLJournal):
    """The journal in a database, for the elected server; its folder, which it locks, holds only the mark.

    Parameters
    ----------
    folder : Path
        Where the mark is kept.
    address : str
        `postgresql://user@host/name`, or what else libpq takes.
    """

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder, FolderLock(folder), lambda _lock: PostgresDatabase(folder, address))


class PostgresDatabase:
    """The session of the elected server; a lost one is replaced when the next transaction begins."""

    def __init__(self, folder: Path, address: str) -> None:
        try:
            self._settings: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(address)}
        except psycopg.Error as error:
            raise DataError(f"the journal's address is not one of PostgreSQL: {_sentence(error)}") from None
        self.mark_needed = False
        self._elected, self._process = False, 0
        self._size, self._measured = 0, -_MEASURING
        self._connection = self._connect()
        try:
            self._make_tables()
            self._check_folder(folder)
            if not self._elected and not self._elect():
                raise InUseError(f"{self} is in use by another server: it is the leader")
            self._reader = _Reader(self)
        except BaseException:
            self._connection.close()
            raise

    def __str__(self) -> str:
        info = self._connection.info
        return f"database {info.dbname} at {info.host}"

    # The session

    def _connect(self) -> psycopg.Connection[Any]:
        connection = self.open_session()
        with _explained():
            self._elected, self._process = False, _value(connection, "SELECT pg_backend_pid()")
        return connection

    def open_session(self) -> psycopg.Connection[Any]:
        """A new connection; servers whose settings could lose commits are refused."""
        try:
            connection = psycopg.connect(**self._settings, autocommit=True, cursor_factory=psycopg.RawCursor)
        except psycopg.Error as error:
            raise JournalError(f"PostgreSQL cannot be reached: {_sentence(error)}") from None
        try:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                if _value(connection, f"SHOW {setting}") == "off":
                    danger = "what is acknowledged could be lost in a crash"
                    raise JournalError(f"PostgreSQL runs with {setting} = off, and {danger}: switch it on")
            if _value(connection, "SELECT pg_is_in_recovery()"):
                raise JournalError("this PostgreSQL server is a replica, which takes no writes: name the primary")
            connection.execute("SET work_mem = '256MB'")  # for queries over all open rounds
        except psycopg.Error as error:
            connection.close()
            raise JournalError(f"PostgreSQL cannot be used: {_sentence(error)}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_tables(self) -> None:
        with _explained(), self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock($1)", (_CLASS << 32,))  # one server at a time
            if _value(self._connection, "SELECT to_regclass('rankers')") is None:
                for statement in _SCHEMA.split(";"):
                    if statement.strip():
                        self._connection.execute(_translate(statement))
                self._connection.execute(_MAKE_IDENTITY, (FORMAT, __version__))
            if _value(self._connection, _FORMAT_COLUMNS) != 2:
                raise FormatError(self, None)
            found, version = self._connection.execute("SELECT format, version FROM identity").fetchone() or (0, None)
            if found != FORMAT:
                raise FormatError(self, version)

    def _check_folder(self, folder: Path) -> None:
        """Refuses the folder of another journal, whose mark would be taken for that of this database."""
        if (folder / "log.sqlite").exists():
            raise DataError(f"{folder} holds a journal in SQLite: choose another folder for one in PostgreSQL")
        with _explained():
            identity = " ".join(map(str, self._connection.execute(_IDENTITY).fetchone() or ()))
        file = folder / "database"
        if not file.exists():
            file.write_text(identity)
        elif file.read_text() != identity:
            raise DataError(f"{folder} belongs to a server of another database: choose another folder")

    def _elect(self) -> bool:
        """Tries to become the leader."""
        query = "SELECT pg_try_advisory_lock($1::bigint << 32 | 'owner'::regclass::oid::bigint)"
        with _explained():
            self._elected = bool(_value(self._connection, query, _CLASS))
        return self._elected

    # Statements

    def execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        with _explained():
            return self._connection.execute(_translate(statement), values, binary=True)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with _explained(), self._connection.cursor() as cursor:
            cursor.executemany(_translate(statement), rows)

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._reader.execute(statement, values)

    def begin(self) -> None:
        self.rollback()
        for last in (False, True):  # no transaction is open, so a lost session can be replaced
            if self._connection.closed:
                self._connection = self._connect()
            try:
                if not self._elected:
                    self._elect()  # its lost session may still hold the lock; the term decides
                self.execute("BEGIN")
                return
            except JournalError:
                if last or not self._connection.closed:
                    raise

    def lock(self) -> None:
        self.execute("LOCK TABLE owner IN EXCLUSIVE MODE")

    def check(self) -> None:
        """Refuses poolers that change sessions between transactions: the lock belongs to one session."""
        if self.execute("SELECT pg_backend_pid()").fetchone() != (self._process,):
            complaint = "transactions of one connection come to different sessions"
            raise JournalError(f"{complaint}: pool sessions, not transactions, or name PostgreSQL itself")

    def commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except psycopg.Error as error:
            if self._connection.closed:
                lost = "PostgreSQL was lost in the middle of a commit"
                raise UnknownOutcomeError(f"{lost}: {_sentence(error)}") from None
            raise JournalError(f"PostgreSQL: {_sentence(error)}") from None
        if monotonic() - self._measured > _MEASURING:
            with suppress(psycopg.Error):  # for display
                self._size, self._measured = int(_value(self._connection, _SIZE)), monotonic()

    def rollback(self) -> None:
        if not self._connection.closed and self._connection.info.transaction_status != 0:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._connection.close()

    def explained(self) -> Any:
        return nullcontext()

    def facts(self) -> str:
        """System, database and timeline: a restored dump is another database, point-in-time recovery another timeline.

        Promoting a replica begins another timeline as well.
        """
        timeline = "SELECT timeline_id FROM pg_control_checkpoint()"
        found = self.execute(_IDENTITY).fetchone(), self.execute(timeline).fetchone()
        return str(found)

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return PostgresSnapshots(self._reader.execute, ranker, keep)

    def close(self) -> None:
        self._connection.close()
        self._reader.close()

    @property
    def size(self) -> int:
        return self._size


class _Reader:
    """A second session, for statements outside of the journal's transactions; any thread may use it."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._connection: psycopg.Connection[Any] | None = None

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement, in a transaction of its own."""
        with _explained():
            if self._connection is not None and not self._connection.closed:
                with suppress(psycopg.OperationalError):  # a lost session: these statements can be repeated
                    return self._ask(self._connection, statement, values)
            self.close()
            self._connection = self._database.open_session()
            return self._ask(self._connection, statement, values)

    def _ask(self, connection: psycopg.Connection[Any], statement: str, values: Sequence[Any]) -> list[Any]:
        cursor = connection.execute(_translate(statement), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise JournalError(f"PostgreSQL: {_sentence(error)}") from None


def _sentence(error: Exception) -> str:
    """The first line of an error of PostgreSQL."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _value(connection: psycopg.Connection[Any], query: str, *values: Any) -> Any:
    found = connection.execute(query, values).fetchone()
    return None if found is None else found[0]


@lru_cache
def _translate(statement: str) -> str:
    """A statement in the dialect of PostgreSQL.

    >>> _translate("SELECT CAST(body AS BLOB) FROM rounds WHERE key > ? AND key < ?")
    'SELECT CAST(body AS BYTEA) FROM rounds WHERE key > $1 AND key < $2'
    """
    numbers = iter(range(1, 1 << 16))
    numbered = re.sub(r"\?", lambda _: f"${next(numbers)}", statement)
    return re.sub(r"\bBLOB\b", "BYTEA", numbered)
