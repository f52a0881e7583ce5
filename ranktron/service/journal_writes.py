"""What is written to the log, as functions of its connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any
from zlib import crc32

SHIFT = 1 << 40  # a key is a ranker's number times this, plus the version of an entry or the number of a round

Do = Callable[[sqlite3.Connection], Any]


def drop_rounds(ranker: int, numbers: list[int]) -> Do:
    """Rounds that nobody may answer any more."""
    keys = [(ranker * SHIFT + number,) for number in numbers]
    return lambda connection: connection.executemany("DELETE FROM rounds WHERE key = ?", keys) and None


def reserve(ranker: int, next: int) -> Do:
    """The number that the next round may have after a crash; what is set aside stays so."""
    statement = "UPDATE rankers SET next = max(next, ?) WHERE id = ?"
    return lambda connection: connection.execute(statement, (next, ranker)) and None


def define(ranker: int, definition: bytes, asked: bytes) -> Do:
    """The complete definition of a ranker beside the one that its client sent."""
    statement = "UPDATE rankers SET definition = ?, asked = ? WHERE id = ?"
    return lambda connection: connection.execute(statement, (definition, asked, ranker)) and None


def settle(ranker: int, next: int) -> Do:
    """The number that the next round will have: there will be no other before."""
    return lambda connection: connection.execute("UPDATE rankers SET next = ? WHERE id = ?", (next, ranker)) and None


def remove_ranker(ranker: int, next: int) -> Do:
    """A ranker with all that it has; its name remembers how far its rounds have counted."""

    def do(connection: sqlite3.Connection) -> None:
        connection.execute("UPDATE rankers SET deleted = 1, next = ? WHERE id = ?", (next, ranker))
        for table in ("entries", "rounds"):
            span = (ranker * SHIFT, (ranker + 1) * SHIFT)
            connection.execute(f"DELETE FROM {table} WHERE key >= ? AND key < ?", span)

    return do


def prune(ranker: int, settled: int, remembered: int) -> Do:
    """Rounds that entries up to version `settled` answered, and entries up to version `remembered`."""

    def do(connection: sqlite3.Connection) -> None:
        base = ranker * SHIFT
        connection.execute(
            "DELETE FROM rounds WHERE key IN (SELECT round FROM entries WHERE key > ? AND key <= ?)",
            (base, base + settled),
        )
        connection.execute("DELETE FROM entries WHERE key > ? AND key <= ?", (base, base + min(remembered, settled)))

    return do


def row(key: int, body: bytes) -> tuple[int, bytes, int]:
    return key, body, crc32(body, key & 0xFFFFFFFF)


def insert(connection: sqlite3.Connection, table: str, rows: list[Any]) -> None:
    """Inserts many rows with each statement: between statements the event loop's thread would have its turn."""
    for size in (64, 8, 1):
        while len(rows) >= size:
            some, rows = rows[:size], rows[size:]
            values = ", ".join([f"({', '.join('?' * len(some[0]))})"] * size)
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES {values}", [v for row in some for v in row])
