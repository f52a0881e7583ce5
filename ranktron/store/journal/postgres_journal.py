"""The journal in PostgreSQL, shared by several servers of which one leads.

An advisory lock elects the leader. It ends with its session, which the old leader may notice late; so every transaction
also checks the term, in a row that it locks (fencing). The same row counts commits: after a connection is lost during a
commit, the count tells whether it was made.
"""

from __future__ import annotations

import logging
import re
import threading
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

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ModuleNotFoundError:
    raise MissingExtra("a journal in PostgreSQL", "postgres") from None

_WRITE = """
INSERT INTO snapshots (ranker, version, pinned, body) VALUES (?, ?, ?, ?) ON CONFLICT (ranker, version)
DO UPDATE SET pinned = snapshots.pinned OR excluded.pinned, body = excluded.body, misfit = NULL
"""


class PostgresSnapshots(Snapshots):
    """The snapshots of one ranker, in a table; the list of them is cached."""

    def __init__(self, execute: Callable[..., list[Any]], ranker: int, keep: int) -> None:
        super().__init__(Path(), ranker, keep)
        self._execute, self._ranker = execute, ranker
        # Cache of the table: whether each version is pinned. Every change sets it to None first, so that it is read
        # again after a failed statement.
        self._pinned_by_version: dict[int, bool] | None = None

    def _list(self) -> dict[int, bool]:
        if self._pinned_by_version is None:
            query = "SELECT version, pinned FROM snapshots WHERE ranker = ? AND misfit IS NULL ORDER BY version"
            self._pinned_by_version = dict(self._execute(query, (self._ranker,)))
        return self._pinned_by_version

    def remove_drafts(self) -> None:
        """Nothing to do: transactions are atomic."""

    def versions(self) -> list[int]:
        return sorted(self._list())

    def pinned(self) -> list[int]:
        return sorted(version for version, pinned in self._list().items() if pinned)

    def write(self, version: int, data: bytes, *, pinned: bool = False) -> None:
        listed = {**self._list(), version: pinned or self._list().get(version, False)}
        self._pinned_by_version = None
        self._execute(_WRITE, (self._ranker, version, pinned, data))
        for old in sorted(each for each, is_pinned in listed.items() if not is_pinned)[: -self.keep]:
            self._delete(old)
            del listed[old]
        self._pinned_by_version = listed

    def pin(self, version: int) -> None:
        if version not in self._list():
            raise DataError(f"version {version} cannot be kept: it does not exist")
        self._pinned_by_version = None
        self._execute("UPDATE snapshots SET pinned = true WHERE ranker = ? AND version = ?", (self._ranker, version))

    def remove(self, version: int) -> None:
        check_not_needed(version, self.versions())
        self._pinned_by_version = None
        self._delete(version)

    def _delete(self, version: int) -> None:
        self._execute("DELETE FROM snapshots WHERE ranker = ? AND version = ?", (self._ranker, version))

    def clear(self) -> None:
        self._pinned_by_version = {}
        try:
            self._execute("DELETE FROM snapshots WHERE ranker = ?", (self._ranker,))
        except JournalError as error:  # harmless: ids of rankers are not reused
            _logger.warning("snapshots of ranker %d could not be removed: %s", self._ranker, error)

    def _load(self, version: int) -> bytes:
        query = "SELECT body FROM snapshots WHERE ranker = ? AND version = ?"
        rows = self._execute(query, (self._ranker, version))
        if not rows:
            raise DataError(f"version {version} does not exist")
        return bytes(rows[0][0])

    def _reject(self, version: int, reason: str) -> None:
        self._pinned_by_version = None
        change = "UPDATE snapshots SET misfit = ? WHERE ranker = ? AND version = ?"
        self._execute(change, (reason, self._ranker, version))

    def _name(self, version: int) -> str:
        return f"the snapshot of version {version}"


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
_LOCK_CLASS = 0x72616E6B  # namespace of the advisory locks: "rank"
_DEFAULTS = {  # timeouts that detect a dead network within seconds
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "ranktron",
}
_SIZE_INTERVAL = 30.0  # seconds between measurements of the tables' size
_logger = logging.getLogger("ranktron.service")


class PostgresJournal(SQLJournal):
    """The journal in a PostgreSQL database, of the elected leader. The state folder is locked and holds only the mark.

    Parameters
    ----------
    folder : Path
        State folder, for the high-water mark.
    address : str
        `postgresql://user@host/name`, or another connection string of libpq.
    """

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder, FolderLock(folder), lambda _lock: PostgresDatabase(folder, address))


class PostgresDatabase:
    """The leader's session; `begin` replaces it if it was lost."""

    def __init__(self, folder: Path, address: str) -> None:
        try:
            self._settings: dict[str, Any] = {**_DEFAULTS, **conninfo_to_dict(address)}
        except psycopg.Error as error:
            raise DataError(f"the journal's address is not valid for PostgreSQL: {_first_line(error)}") from None
        self.mark_needed = False  # a server that has never led has no mark; fixed
        self._elected = False  # whether this session holds the advisory lock; `_connect` clears, `_elect` sets
        self._backend = 0  # process id of the session, checked by `check`; set by `_connect`
        self._size, self._measured_at = 0, -_SIZE_INTERVAL  # updated by `commit`
        self._connection = self._connect()  # replaced by `begin`
        try:
            self._create_tables()
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
        with _journal_errors():
            self._elected, self._backend = False, _value(connection, "SELECT pg_backend_pid()")
        return connection

    def open_session(self) -> psycopg.Connection[Any]:
        """Connects to a server that is durable and accepts writes; refuses others."""
        try:
            connection = psycopg.connect(**self._settings, autocommit=True, cursor_factory=psycopg.RawCursor)
        except psycopg.Error as error:
            raise JournalError(f"PostgreSQL cannot be reached: {_first_line(error)}") from None
        try:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                if _value(connection, f"SHOW {setting}") == "off":
                    message = f"PostgreSQL runs with {setting} = off, so that a crash could lose acknowledged feedback"
                    raise JournalError(f"{message}: switch it on")
            if _value(connection, "SELECT pg_is_in_recovery()"):
                raise JournalError("this PostgreSQL server is a read-only replica: give the address of the primary")
            connection.execute("SET work_mem = '256MB'")  # for queries over all open rounds
        except psycopg.Error as error:
            connection.close()
            raise JournalError(f"PostgreSQL cannot be used: {_first_line(error)}") from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _create_tables(self) -> None:
        with _journal_errors(), self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock($1)", (_LOCK_CLASS << 32,))  # one server at a time
            if _value(self._connection, "SELECT to_regclass('rankers')") is None:
                for statement in _SCHEMA.split(";"):
                    if statement.strip():
                        self._connection.execute(_translate(statement))
                self._connection.execute(_MAKE_IDENTITY, (FORMAT, __version__))
            if _value(self._connection, _FORMAT_COLUMNS) != 2:
                raise FormatError(self, None)
            format, version = self._connection.execute("SELECT format, version FROM identity").fetchone() or (0, None)
            if format != FORMAT:
                raise FormatError(self, version)

    def _check_folder(self, folder: Path) -> None:
        """Refuses a folder with the high-water mark of another journal."""
        if (folder / "log.sqlite").exists():
            raise DataError(f"{folder} contains an SQLite journal: choose another folder for one in PostgreSQL")
        with _journal_errors():
            identity = " ".join(map(str, self._connection.execute(_IDENTITY).fetchone() or ()))
        file = folder / "database"
        if not file.exists():
            file.write_text(identity)
        elif file.read_text() != identity:
            raise DataError(f"{folder} belongs to a server of another database: choose another folder")

    def _elect(self) -> bool:
        """Tries to become the leader."""
        query = "SELECT pg_try_advisory_lock($1::bigint << 32 | 'owner'::regclass::oid::bigint)"
        with _journal_errors():
            self._elected = bool(_value(self._connection, query, _LOCK_CLASS))
        return self._elected

    # Statements

    def execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        with _journal_errors():
            return self._connection.execute(_translate(statement), values, binary=True)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with _journal_errors(), self._connection.cursor() as cursor:
            cursor.executemany(_translate(statement), rows)

    def overwrite_deleted(self) -> None:
        """Nothing to do: what is deleted goes with the next `VACUUM`."""

    def scrub(self) -> None:
        """Nothing to do."""

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        return self._reader.execute(statement, values)

    def begin(self) -> None:
        self.rollback()
        for final_attempt in (False, True):  # before BEGIN, a lost session can safely be replaced
            if self._connection.closed:
                self._connection = self._connect()
            try:
                if not self._elected:
                    self._elect()  # may fail while the lost session still holds the lock: the term is what fences
                self.execute("BEGIN")
                return
            except JournalError:
                if final_attempt or not self._connection.closed:
                    raise

    def lock(self) -> None:
        self.execute("LOCK TABLE owner IN EXCLUSIVE MODE")

    def check(self) -> None:
        """Refuses a proxy with transaction pooling: the advisory lock belongs to one session."""
        if self.execute("SELECT pg_backend_pid()").fetchone() != (self._backend,):
            message = "the connection pool spreads one connection's transactions over several sessions"
            raise JournalError(f"{message}: use session pooling, or connect to PostgreSQL directly")

    def commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except psycopg.Error as error:
            if self._connection.closed:
                message = f"the connection to PostgreSQL was lost during a commit: {_first_line(error)}"
                raise UnknownOutcomeError(message) from None
            raise JournalError(f"PostgreSQL: {_first_line(error)}") from None
        if monotonic() - self._measured_at > _SIZE_INTERVAL:
            with suppress(psycopg.Error):  # a metric only
                self._size, self._measured_at = int(_value(self._connection, _SIZE)), monotonic()

    def rollback(self) -> None:
        if not self._connection.closed and self._connection.info.transaction_status != 0:
            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._connection.close()

    def explained(self) -> Any:
        return nullcontext()

    def facts(self) -> str:
        """System, database and timeline, which tell whether the database was restored.

        A restored dump is another database; point-in-time recovery or a replica's promotion starts another timeline.
        """
        timeline = "SELECT timeline_id FROM pg_control_checkpoint()"
        return str((self.execute(_IDENTITY).fetchone(), self.execute(timeline).fetchone()))

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        return PostgresSnapshots(self._reader.execute, ranker, keep)

    def close(self) -> None:
        self._connection.close()
        self._reader.close()

    @property
    def size(self) -> int:
        return self._size


class _Reader:
    """A second session, for statements outside the journal's transactions; thread-safe."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._lock = threading.Lock()  # held while the session is opened or closed, not while it executes
        self._connection: psycopg.Connection[Any] | None = None  # replaced by `_session` if it was lost
        self._closed = False  # no session is opened any more; set once, by `close`

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a statement, in a transaction of its own."""
        with _journal_errors():
            with suppress(psycopg.OperationalError):  # the session may be lost: these statements are idempotent
                return self._fetch(statement, values)
            return self._fetch(statement, values)

    def _fetch(self, statement: str, values: Sequence[Any]) -> list[Any]:
        cursor = self._session().execute(_translate(statement), values, binary=True)
        return cursor.fetchall() if cursor.description else []

    def _session(self) -> psycopg.Connection[Any]:
        with self._lock:
            if self._closed:  # a snapshot may still be on its way
                raise JournalError("the journal is closed")
            if self._connection is None or self._connection.closed:
                self._connection = self._database.open_session()
            return self._connection

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()


@contextmanager
def _journal_errors() -> Iterator[None]:
    """Turns psycopg's errors into JournalErrors."""
    try:
        yield
    except psycopg.Error as error:
        raise JournalError(f"PostgreSQL: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _value(connection: psycopg.Connection[Any], query: str, *values: Any) -> Any:
    row = connection.execute(query, values).fetchone()
    return None if row is None else row[0]


@lru_cache
def _translate(statement: str) -> str:
    """A statement of SQLite's dialect in PostgreSQL's.

    >>> _translate("SELECT CAST(body AS BLOB) FROM rounds WHERE key > ? AND key < ?")
    'SELECT CAST(body AS BYTEA) FROM rounds WHERE key > $1 AND key < $2'
    """
    numbers = iter(range(1, 1 << 16))
    numbered = re.sub(r"\?", lambda _: f"${next(numbers)}", statement)
    return re.sub(r"\bBLOB\b", "BYTEA", numbered)
