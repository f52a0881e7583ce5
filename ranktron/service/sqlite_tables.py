"""The journal's tables in SQLite: how they are made, filled and emptied, and what is said when that fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ranktron.service.journal import CAPACITY, DropRounds, JournalError, Prune, RemoveRanker

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
CREATE TABLE IF NOT EXISTS identity (id INTEGER PRIMARY KEY, cluster TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS accepted (
    key INTEGER PRIMARY KEY, version INTEGER NOT NULL, digest BLOB NOT NULL, expires REAL NOT NULL);
"""
_LATER = {"asked": "BLOB", "incarnation": "INTEGER", "epochs": "BLOB", "checksum": "INTEGER"}  # columns since 0.1.0

ENTRIES = """
SELECT e.key, CAST(e.body AS BLOB), e.round, e.checksum, CAST(r.body AS BLOB), r.checksum
FROM entries e LEFT JOIN rounds r ON r.key = e.round WHERE e.key >= ? AND e.key < ? ORDER BY e.key LIMIT ?
"""
ANSWERS = "SELECT key, round FROM entries WHERE key >= ? AND key < ? AND round IS NOT NULL ORDER BY key DESC"
OPEN_ROUNDS = """
SELECT key, CAST(body AS BLOB), checksum FROM rounds WHERE key >= ?1 AND key < ?2
AND key NOT IN (SELECT round FROM entries WHERE key >= ?1 AND key < ?2 AND round IS NOT NULL) ORDER BY key
"""
ACCEPTED = "SELECT version, digest FROM accepted WHERE key = ?"
LAST_ROUNDS = """
SELECT key, CAST(body AS BLOB), checksum FROM rounds WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?
"""


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
            connection.execute("INSERT OR IGNORE INTO identity VALUES (1, lower(hex(randomblob(16))))")
            columns = {column[1] for column in connection.execute("PRAGMA table_info(rankers)")}
            for column, kind in _LATER.items():
                if column not in columns:
                    connection.execute(f"ALTER TABLE rankers ADD COLUMN {column} {kind}")
        except BaseException:
            connection.close()
            raise
        return connection


def deletions(write: RemoveRanker | DropRounds | Prune) -> list[tuple[str, list[Any]]]:
    """What a write deletes, as SQL: statements, each with the rows that it is executed for."""
    base = write.ranker * CAPACITY
    if isinstance(write, RemoveRanker):
        span = base, base + CAPACITY
        tables = ("entries", "rounds", "accepted")
        return [(f"DELETE FROM {table} WHERE key >= ? AND key < ?", [span]) for table in tables]
    if isinstance(write, DropRounds):
        return [("DELETE FROM rounds WHERE key = ?", [(base + number,) for number in write.numbers])]
    old = min(write.old, write.settled)
    answered = "SELECT round FROM entries WHERE key > ? AND key <= ?"
    oldest = "SELECT key, expires FROM accepted WHERE key >= ? AND key < ? ORDER BY key LIMIT 20000"
    last = "SELECT max(key) FROM entries WHERE key > ?1 AND key < ?3 AND round IS NOT NULL GROUP BY round"
    return [
        (f"DELETE FROM rounds WHERE key IN ({answered})", [(base, base + min(write.explained, write.settled))]),
        ("DELETE FROM entries WHERE key > ? AND key <= ?", [(base, base + min(write.remembered, old))]),
        (
            f"DELETE FROM entries WHERE key > ?1 AND key <= ?2 AND key NOT IN ({last})",
            [(base, base + old, base + CAPACITY)],
        ),
        (
            f"DELETE FROM accepted WHERE key IN (SELECT key FROM ({oldest}) WHERE expires <= ?)",
            [(base, base + CAPACITY, write.expired)],
        ),
    ]


def insert(connection: sqlite3.Connection, table: str, rows: list[Any]) -> None:
    """Inserts many rows with each statement: between statements the event loop's thread would have its turn."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            some, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * size)
            connection.execute(f"INSERT INTO {table} VALUES {values}", [value for row in some for value in row])
