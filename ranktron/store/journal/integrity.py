"""What a log has lost, by its mark: all of it together, and ranker by ranker."""

from __future__ import annotations

from collections.abc import Iterable

from ranktron.errors import DataError
from ranktron.store.journal.high_water_mark import Mark, RankerMark
from ranktron.store.journal.journal import CAPACITY, MissingEntriesError, StoredRanker
from ranktron.store.journal.ranker_rows import RankerRow, own_half, whole
from ranktron.store.journal.sql_database import Database

_LOST = "it has lost its end, or is an older copy"


def integrity_problems(mark: Mark, commits: int, new: bool) -> list[str]:
    """What speaks against the log being all that was written; a new one, or one of 0.1.0, has no mark yet."""
    doubts = []
    if mark.missing and not new:
        doubts.append("the file mark is missing: whether the log has lost its end cannot be told")
    if mark.damaged and not mark.missing:
        doubts.append(f"the file mark is damaged in {mark.damaged} places: the log may have lost its end")
    if mark.commits > commits:
        lost = f"the last {mark.commits - commits} commits of the log are missing: {_LOST}"
        doubts.append(f"{lost}; rounds that were shown last may be gone")
    return doubts


def missing_entries(database: Database, rows: Iterable[RankerRow], damaged: set[int], mark: Mark) -> list[StoredRanker]:
    """The rankers that the log has lost something of that was told of, and what."""
    lost, seen = [], set()
    for row in rows:
        seen.add(row.id)
        marked = mark.rankers.get(row.id)
        wrong: DataError | None = None
        if row.id in damaged:
            removed = row.deleted if marked is None else marked.removed
            wrong = None if removed else DataError("its row in the log is damaged")
        elif marked is not None and not row.deleted:
            wrong = _loss(database, row.id, marked)
        if wrong is not None:
            lost.append(_describe_stored(row, marked, wrong))
    for marked in mark.rankers.values():
        if marked.ranker not in seen and not marked.removed:
            row = RankerRow(marked.ranker, marked.name, b"", 0, 0, b"", 0, ((0, 0),))
            lost.append(_describe_stored(row, marked, MissingEntriesError(f"its row in the log is missing: {_LOST}")))
    return lost


def _loss(database: Database, ranker: int, marked: RankerMark) -> MissingEntriesError | None:
    if marked.removed:
        return MissingEntriesError(f"it was deleted, but is in the log: {_LOST}")
    first, version = ranker * CAPACITY, marked.version
    span = first, first + CAPACITY
    (last,) = database.execute("SELECT max(key) FROM entries WHERE key >= ? AND key < ?", span).fetchone()
    last = 0 if last is None else last - first
    if last < version:
        return MissingEntriesError(f"version {version} was acknowledged, but its log ends at version {last}: {_LOST}")
    query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
    found = database.execute(query, (first + version,)).fetchone()
    if found and whole(first + version, *found) and own_half(found[2]) != marked.checksum:
        return MissingEntriesError(f"version {version} in its log is not the one that was acknowledged: {_LOST}")
    return None


def _describe_stored(row: RankerRow, marked: RankerMark | None, wrong: DataError) -> StoredRanker:
    name, version, following = (row.name, -1, 0) if marked is None else (marked.name, marked.version, marked.next)
    following = max(row.next, following)
    return StoredRanker(row.id, name, row.definition, following, row.asked, row.incarnation, row.epochs, version, wrong)
