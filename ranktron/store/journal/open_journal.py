"""Where the journal is: in the folder of the state, or in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from ranktron.errors import DataError
from ranktron.store.journal.journal import Journal
from ranktron.store.journal.sqlite_journal import SQLiteJournal


def open_journal(folder: Path, address: str | None = None) -> Journal:
    """The journal at an address, for the one server that may write it; without an address SQLite in the folder.

    >>> open_journal(Path("state"), "mysql://db/shop")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: the journal's address begins with postgresql://; without one it is SQLite in the folder
    """
    if address is None:
        return SQLiteJournal(folder)
    if not address.startswith(("postgresql://", "postgres://")):
        raise DataError("the journal's address begins with postgresql://; without one it is SQLite in the folder")
    from ranktron.store.journal.postgres_journal import PostgresJournal

    return PostgresJournal(folder, address)
