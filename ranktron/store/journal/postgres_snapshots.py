"""Snapshots in PostgreSQL: whichever server takes over finds them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ranktron.errors import DataError
from ranktron.store.journal.journal import JournalError
from ranktron.store.journal.snapshots import Snapshots, check_not_needed

_WRITE = """
INSERT INTO snapshots (ranker, version, wished, body) VALUES (?, ?, ?, ?) ON CONFLICT (ranker, version)
DO UPDATE SET wished = snapshots.wished OR excluded.wished, body = excluded.body, misfit = NULL
"""
_logger = logging.getLogger("ranktron.service")


class PostgresSnapshots(Snapshots):
    """The snapshots of one ranker, in a table; which there are is remembered, so that nobody waits to be told."""

    def __init__(self, execute: Callable[..., list[Any]], ranker: int, keep: int) -> None:
        super().__init__(Path(), ranker, keep)
        self._execute, self._ranker = execute, ranker
        self._there: dict[int, bool] | None = None  # each version, and whether someone wished to keep it

    def _known(self) -> dict[int, bool]:
        if self._there is None:
            query = "SELECT version, wished FROM snapshots WHERE ranker = ? AND misfit IS NULL ORDER BY version"
            self._there = dict(self._execute(query, (self._ranker,)))
        return self._there

    def remove_drafts(self) -> None:
        """There are none: a transaction is there complete or not at all."""

    def versions(self) -> list[int]:
        return sorted(self._known())

    def wished(self) -> list[int]:
        return sorted(version for version, wished in self._known().items() if wished)

    def write(self, version: int, data: bytes, *, wished: bool = False) -> None:
        known = {**self._known(), version: wished or self._known().get(version, False)}
        self._there = None  # until it is known again
        self._execute(_WRITE, (self._ranker, version, wished, data))
        for old in sorted(each for each, kept in known.items() if not kept)[: -self.keep]:
            self._delete(old)
            del known[old]
        self._there = known

    def keep_for_good(self, version: int) -> None:
        if version not in self._known():
            raise DataError(f"version {version} cannot be kept: it is not there")
        self._there = None
        self._execute("UPDATE snapshots SET wished = true WHERE ranker = ? AND version = ?", (self._ranker, version))

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
        except JournalError as error:  # they are in nobody's way: no other ranker will have this number
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
