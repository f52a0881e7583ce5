"""The integrity of a journal: its high-water mark, entries missing below it, the start of a term.

The high-water mark is the last position of the journal acknowledged to a client, in a small file beside the log. A
commit is on disk before the mark moves, and the mark moves before any client is answered. So a log that ends below its
mark has lost entries; a crash between the two leaves a mark that is a little low, which is harmless. Each ranker has a
slot of its own in the file, with a checksum, which one write replaces. The write is in the kernel's page cache at once,
so it survives the process. A power cut may undo the last `_FLUSH_INTERVAL` seconds, since a thread flushes the file
independently of commits.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from struct import Struct
from threading import Event, Thread
from typing import NamedTuple
from zlib import crc32

from ranktron import __version__
from ranktron.errors import DataError
from ranktron.store.journal.journal import CAPACITY, EPOCHS, MissingEntriesError, StoredRanker
from ranktron.store.journal.tables import Database, RankerRow, is_intact, own_half, read_rankers

_logger = logging.getLogger("ranktron.service")


SLOT_SIZE = 256  # bytes of a slot: a disk writes it atomically
_SLOT = Struct("<QQQIB64sd")
_FLUSH_INTERVAL = 0.1  # seconds between flushes
_MAX_REMOVED = 64  # slots of removed rankers; beyond this they are reused


class RankerMark(NamedTuple):
    """The mark of one ranker: its last version with the checksum of that entry, its reserved numbers, its clock."""

    ranker: int
    name: str
    version: int
    checksum: int
    next: int
    removed: bool
    at: float = 0.0


class Mark:
    """The file with the marks of one journal.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mark = Mark(Path(folder) / "mark")
    ...     mark.write(7, [RankerMark(1, "shop", 3, 99, 20_000, False)])
    ...     mark.close()
    ...     again = Mark(Path(folder) / "mark")
    ...     again.commits, again.rankers[1].version
    (7, 3)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.commits = 0  # acknowledged commits of the journal; write
        self.damaged = 0  # damaged slots in the file; fixed once read
        self.rankers: dict[int, RankerMark] = {}  # by ranker; write
        self._slots: dict[int, int] = {0: 0}  # index of each ranker's slot; slot 0 is the journal's; write
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        self.missing = not data  # there was no file, or an empty one; fixed
        self._end = -(-len(data) // SLOT_SIZE) or 1  # the number of slots; _allocate_slot
        for slot in range(len(data) // SLOT_SIZE):
            self._read(slot, data[slot * SLOT_SIZE : (slot + 1) * SLOT_SIZE])
        self.damaged += len(data) % SLOT_SIZE > 0
        self._moved, self._closing = Event(), Event()  # wake and end the flushing thread; write and close
        self._thread = Thread(target=self._flush_periodically, name="ranktron-mark", daemon=True)
        self._thread.start()

    def _read(self, slot: int, data: bytes) -> None:
        if not any(data):
            self.damaged += slot == 0
            return
        if crc32(data[4:]) != int.from_bytes(data[:4], "little"):
            self.damaged += 1
            return
        ranker, version, next_round, checksum, removed, name, at = _SLOT.unpack_from(data, 4)
        self._slots[ranker] = slot
        if ranker == 0:
            self.commits = version
        else:
            self.rankers[ranker] = RankerMark(
                ranker, name.rstrip(b"\0").decode(), version, checksum, next_round, bool(removed), at
            )

    def write(self, commits: int, rankers: list[RankerMark]) -> None:
        """Moves the marks of rankers, then that of the journal."""
        for mark in rankers:
            slot = self._slots.get(mark.ranker)
            if slot is None:
                slot = self._slots[mark.ranker] = self._allocate_slot()
            self.rankers[mark.ranker] = mark
            self._write_slot(slot, mark)
        self._write_slot(0, RankerMark(0, "", commits, 0, 0, False))
        self.commits = commits
        self._moved.set()

    def _allocate_slot(self) -> int:
        """A new slot; beyond `_MAX_REMOVED` the slot of the oldest removed ranker."""
        removed = [mark.ranker for mark in self.rankers.values() if mark.removed]
        if len(removed) > _MAX_REMOVED:
            oldest = min(removed)
            del self.rankers[oldest]
            return self._slots.pop(oldest)
        self._end += 1
        return self._end - 1

    def _write_slot(self, slot: int, mark: RankerMark) -> None:
        name = mark.name.encode()
        body = _SLOT.pack(mark.ranker, mark.version, mark.next, mark.checksum, mark.removed, name, mark.at)
        body = body.ljust(SLOT_SIZE - 4, b"\0")
        os.pwrite(self._file, crc32(body).to_bytes(4, "little") + body, slot * SLOT_SIZE)

    def _flush_periodically(self) -> None:
        while not self._closing.is_set():
            self._moved.wait()
            self._moved.clear()
            with suppress(OSError):  # the kernel has the bytes; the next flush may succeed
                os.fdatasync(self._file)
            self._closing.wait(_FLUSH_INTERVAL)

    def close(self) -> None:
        self._closing.set()
        self._moved.set()
        self._thread.join()
        with suppress(OSError):
            os.fsync(self._file)
        os.close(self._file)


_LOST = "it has lost its end, or is an older copy"


def integrity_problems(mark: Mark, commits: int, new: bool) -> list[str]:
    """Reasons to believe that the log is incomplete; a new one has no mark yet."""
    problems = []
    if mark.missing and not new:
        problems.append("the file mark is missing: the log may have lost its end")
    if mark.damaged and not mark.missing:
        problems.append(f"the file mark is damaged in {mark.damaged} places: the log may have lost its end")
    if mark.commits > commits:
        loss = f"the last {mark.commits - commits} commits of the log are missing: {_LOST}"
        problems.append(f"{loss}; the latest rounds may be lost")
    return problems


def missing_entries(database: Database, rows: Iterable[RankerRow], damaged: set[int], mark: Mark) -> list[StoredRanker]:
    """The rankers whose acknowledged entries are missing from the log, each with the error."""
    lost, seen = [], set()
    for row in rows:
        seen.add(row.id)
        marked = mark.rankers.get(row.id)
        wrong: DataError | None = None
        if row.id in damaged:
            removed = row.deleted if marked is None else marked.removed
            wrong = None if removed else DataError("its row in the log is damaged")
        elif marked is not None and not row.deleted:
            wrong = _find_loss(database, row.id, marked)
        if wrong is not None:
            lost.append(_describe_stored(row, marked, wrong))
    for marked in mark.rankers.values():
        if marked.ranker not in seen and not marked.removed:
            row = RankerRow(marked.ranker, marked.name, b"", 0, 0, 0, ((0, 0),))
            lost.append(_describe_stored(row, marked, MissingEntriesError(f"its row in the log is missing: {_LOST}")))
    return lost


def _find_loss(database: Database, ranker: int, marked: RankerMark) -> MissingEntriesError | None:
    if marked.removed:
        return MissingEntriesError(f"it was deleted, but is in the log: {_LOST}")
    first, version = ranker * CAPACITY, marked.version
    span = first, first + CAPACITY
    (last,) = database.execute("SELECT max(key) FROM entries WHERE key >= ? AND key < ?", span).fetchone()
    last = 0 if last is None else last - first
    if last < version:
        return MissingEntriesError(f"version {version} was acknowledged, but its log ends at version {last}: {_LOST}")
    query = "SELECT CAST(body AS BLOB), round, checksum FROM entries WHERE key = ?"
    row = database.execute(query, (first + version,)).fetchone()
    if row and is_intact(first + version, *row) and own_half(row[2]) != marked.checksum:
        return MissingEntriesError(f"version {version} in its log is not the one that was acknowledged: {_LOST}")
    return None


def _describe_stored(row: RankerRow, marked: RankerMark | None, wrong: DataError) -> StoredRanker:
    name, version, next_round = (row.name, -1, 0) if marked is None else (marked.name, marked.version, marked.next)
    next_round = max(row.next, next_round)
    return StoredRanker(row.id, name, row.definition, next_round, row.incarnation, row.epochs, version, wrong)


_BEGIN_TERM = """
INSERT INTO owner (id, term, commits, facts, epoch) VALUES (1, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
SET term = excluded.term, commits = excluded.commits, facts = excluded.facts, epoch = excluded.epoch
"""
_random = SystemRandom()


class Known(NamedTuple):
    """A ranker's state on disk: its row, its last version with the checksum of that entry, and its clock."""

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
    """A server's term with a journal: its number, and the journal's state at its start."""

    number: int
    commits: int
    epoch: int
    known: dict[int, Known]
    lost: list[StoredRanker]


def begin_term(database: Database, mark: Mark) -> Term:
    """Begins a term, and a new epoch unless the log is provably complete and no copy."""
    facts = database.facts()
    database.begin()
    database.lock()  # servers that start concurrently get different terms
    owner = database.execute("SELECT term, commits, facts, epoch FROM owner WHERE id = 1").fetchone()
    rows, damaged = read_rankers(database)
    last_term, commits, last_facts, epoch = owner or (0, 0, facts, 0)
    problems = integrity_problems(mark, commits, owner is None or not database.mark_needed)
    if facts != last_facts:
        problems.append("it is a copy, or was restored from one")
    if damaged:
        problems.append("rows of rankers are damaged")
    if problems:
        used = {used_epoch for row in rows for _, used_epoch in row.epochs} | {epoch}
        epoch = _random.choice([number for number in range(1, EPOCHS) if number not in used] or [epoch])
        _logger.warning("%s: %s; rounds are numbered in a new epoch", database, "; ".join(problems))
    known = {}
    for row in rows:
        marked = mark.rankers.get(row.id)
        next_round = max(row.next, 0 if marked is None else marked.next)
        epochs = (*row.epochs, (next_round, epoch)) if problems and not row.deleted else row.epochs
        at = 0.0 if marked is None else marked.at
        known[row.id] = Known(row._replace(next=next_round, epochs=epochs), *find_end(database, row), at)
    term = Term(
        last_term + 1,
        max(commits, mark.commits),
        epoch,
        known,
        missing_entries(database, rows, damaged, mark),
    )
    for ranker, state in known.items():
        if ranker not in damaged:  # damaged rows stay as they are
            state.row.write(database)
    database.execute(_BEGIN_TERM, (*term[:2], facts, epoch))
    database.execute("UPDATE identity SET version = ?", (__version__,))
    database.commit()
    return term


def find_end(database: Database, row: RankerRow) -> tuple[int, int]:
    """The last version of a ranker, and the checksum of that entry."""
    query = "SELECT key, checksum FROM entries WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT 1"
    last = database.execute(query, (row.id * CAPACITY, (row.id + 1) * CAPACITY)).fetchone()
    if last is None:
        return 0, row.incarnation
    key, checksum = last
    return key - row.id * CAPACITY, checksum if isinstance(checksum, int) else 0
