"""The beginning of a term: what a journal holds, what it has lost, and whether its folder is still the one it was."""

from __future__ import annotations

import logging
from random import SystemRandom
from typing import NamedTuple

from ranktron import __version__
from ranktron.store.journal.integrity import Mark, RankerMark, integrity_problems, missing_entries
from ranktron.store.journal.journal import CAPACITY, EPOCHS, StoredRanker
from ranktron.store.journal.ranker_rows import RankerRow, own_half, read_rankers
from ranktron.store.journal.sql_database import Database

_BEGIN_TERM = """
INSERT INTO owner (id, term, commits, facts, epoch) VALUES (1, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
SET term = excluded.term, commits = excluded.commits, facts = excluded.facts, epoch = excluded.epoch
"""
_random = SystemRandom()
_logger = logging.getLogger("ranktron.service")


class Known(NamedTuple):
    """A ranker as far as it is written: its row, its last version, the checksum of that entry, and its time."""

    row: RankerRow
    version: int
    checksum: int
    at: float = 0.0

    @property
    def mark(self) -> RankerMark:
        row = self.row
        own = own_half(self.checksum)
        return RankerMark(row.id, row.name, self.version, own, row.next, bool(row.deleted), self.at)


class Term(NamedTuple):
    """One server's time with a journal: its number, which a later one increments, and what it found."""

    number: int
    commits: int
    epoch: int
    known: dict[int, Known]
    lost: list[StoredRanker]


def begin_term(database: Database, mark: Mark) -> Term:
    """Begins a term, and a new epoch if the folder is not provably the one that it was."""
    facts = database.facts()
    database.begin()
    database.lock()  # two that begin at the same time have different terms
    owner = database.execute("SELECT term, commits, facts, epoch FROM owner WHERE id = 1").fetchone()
    rows, damaged = read_rankers(database)
    before, commits, facts_before, epoch = owner or (0, 0, facts, 0)
    doubts = integrity_problems(mark, commits, owner is None or not database.mark_needed)
    if facts != facts_before:
        doubts.append("it is a copy, or was restored from one")
    if damaged:
        doubts.append("rows of rankers are damaged")
    if doubts:
        used = {each for row in rows for _, each in row.epochs} | {epoch}
        epoch = _random.choice([each for each in range(1, EPOCHS) if each not in used] or [epoch])
        _logger.warning("%s: %s; rounds are numbered in a new epoch", database, "; ".join(doubts))
    known = {}
    for row in rows:
        marked = mark.rankers.get(row.id)
        following = max(row.next, 0 if marked is None else marked.next)
        epochs = (*row.epochs, (following, epoch)) if doubts and not row.deleted else row.epochs
        at = 0.0 if marked is None else marked.at
        known[row.id] = Known(row._replace(next=following, epochs=epochs), *find_end(database, row), at)
    term = Term(
        before + 1,
        max(commits, mark.commits),
        epoch,
        known,
        missing_entries(database, rows, damaged, mark),
    )
    for ranker, each in known.items():
        if ranker not in damaged:  # which stays as it is
            each.row.write(database)
    database.execute(_BEGIN_TERM, (*term[:2], facts, epoch))
    database.execute("UPDATE identity SET version = ?", (__version__,))
    database.commit()
    return term


def find_end(database: Database, row: RankerRow) -> tuple[int, int]:
    """The last version of a ranker, and the checksum of that entry."""
    query = "SELECT key, checksum FROM entries WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1"
    found = database.execute(query, (row.id * CAPACITY, (row.id + 1) * CAPACITY)).fetchone()
    if found is None:
        return 0, row.incarnation
    key, checksum = found
    return key - row.id * CAPACITY, checksum if isinstance(checksum, int) else 0
