"""The interface of journals, and their writes as values.

`SQLiteJournal` and `PostgresJournal` are the implementations. A journal writes jobs in the order in which they are put,
calls back on its caller's thread when they are on disk, and loses nothing that it has called back for. README.md
defines the terms: entry, version, term, epoch, incarnation, mark, snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ranktron import __version__
from ranktron.errors import DataError
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.promises import CallerThread, Promise

Done = Callable[[Any], None]
Failed = Callable[[BaseException], None]
_T = TypeVar("_T")


FORMAT = 1  # of journals; other formats are refused
CAPACITY = 1 << 40  # upper bound of versions and of round numbers
PREFIX = "/"  # of experiments' names in the journal; invalid in names of rankers
EPOCHS = 1 << 13  # upper bound of epochs: epoch and number together fit into 2**53, an integer of JavaScript


class JournalError(DataError):
    """The journal as a whole cannot be read or written: no ranker can be served."""


class FormatError(JournalError):
    """The journal has another format; `version` is that of the program that wrote it, if recorded."""

    def __init__(self, where: object, version: str | None) -> None:
        writer = f"ranktron {version}" if version else "a ranktron before 0.3"
        super().__init__(f"{where} was written by {writer}, and ranktron {__version__} cannot read its format")


class MissingEntriesError(DataError):
    """The journal lacks acknowledged entries of a ranker."""

    remedy = "To accept the loss, delete the file mark in the folder"


class InUseError(DataError):
    """Another server is the leader."""


class TermError(JournalError):
    """Another server has begun a later term: this one may no longer write, and its state is stale."""


class UnknownOutcomeError(JournalError):
    """The connection was lost during a commit, and the outcome of the commit is unknown."""


class RemovedError(DataError):
    """An entry was appended to a removed ranker."""


class StoredRanker(NamedTuple):
    """A ranker as stored; `definition` is complete.

    `next` is the number of its next round. `epochs` holds pairs: the first number of an epoch, and the epoch. Entries
    up to version `last_acknowledged` have been acknowledged to clients; -1 if unknown. `wrong` is the reason to
    quarantine the ranker, if any. `at` is a lower bound of its clock.
    """

    id: int
    name: str
    definition: bytes
    next: int
    incarnation: int
    epochs: tuple[tuple[int, int], ...]
    last_acknowledged: int = -1
    wrong: DataError | None = None
    at: float = 0.0


class Logged(NamedTuple):
    """An entry of the journal, with the round that it answers, if stored. A damaged entry has no body."""

    version: int
    body: bytes | None
    shown: bytes | None


class AddRanker(NamedTuple):
    """Adds a ranker, with its first `entry`, if any, in the same transaction; the result is the `StoredRanker`.

    Round numbers continue those of a deleted ranker of that name and start at `rounds` or later; `reserve` of them are
    reserved.
    """

    name: str
    definition: bytes
    reserve: int
    rounds: int = 0
    entry: bytes = b""


class Reserve(NamedTuple):
    """Reserves round numbers below `next`: after a crash none of them is reused."""

    ranker: int
    next: int


class Settle(NamedTuple):
    """Records the number of the next round at a clean shutdown, which frees unused reservations."""

    ranker: int
    next: int


class RecordClock(NamedTuple):
    """Records a ranker's clock, so that open rounds expire even when nothing is written."""

    ranker: int
    at: float


class RemoveRanker(NamedTuple):
    """Removes a ranker and its data; its row stays, so that a new ranker of this name continues the round numbers."""

    ranker: int
    next: int


class DropRounds(NamedTuple):
    """Deletes expired rounds."""

    ranker: int
    numbers: Sequence[int]


class Prune(NamedTuple):
    """Deletes data that a snapshot of version `settled` supersedes.

    Deletes rounds answered up to version `explained`; entries up to version `remembered`, and those up to version `old`
    that are not the last answer to a round; and digests of sealed rounds that have expired at time `expired`.
    """

    ranker: int
    settled: int
    explained: int
    remembered: int
    old: int
    expired: float = 0.0


class AdvanceSource(NamedTuple):
    """Advances a source of feedback from `start` to `end`, and stores its dead letters."""

    source: str
    start: int
    end: int
    dead: tuple[tuple[int, str, bytes], ...] = ()


class Erase(NamedTuple):
    """Erases the bodies of entries and the rounds that a person has seen; checksums of entries stay, for the chain."""

    ranker: int
    versions: Sequence[int]
    rounds: Sequence[int]


class Call(NamedTuple):
    """Calls a function on the writer's thread, after all earlier jobs; a write that it returns is executed."""

    function: Callable[[], Write | None]


Write = AddRanker | Reserve | Settle | RecordClock | RemoveRanker | DropRounds | Prune | AdvanceSource | Erase | Call


@dataclass(frozen=True)
class Job:
    """A write with callbacks for the caller's thread. Without `failed` it is retried until it succeeds."""

    write: Write
    done: Done | None = None
    failed: Failed | None = None


class StoreRound(NamedTuple):
    """Stores an open round; it has no callback, and is retried until it succeeds."""

    ranker: int
    number: int
    body: bytes
    failed: None = None


class SealedRow(NamedTuple):
    """A sealed round, stored with its answer; `digest` is kept until `expires`, to recognise repeated feedback."""

    body: bytes
    digest: bytes
    expires: float


class Append(NamedTuple):
    """An entry to append, with its completion callbacks; `round` is the round that it answers, if any."""

    ranker: int
    round: int | None
    body: bytes
    done: Done
    failed: Failed
    sealed: SealedRow | None = None


class Journal(Protocol):
    """The interface of a journal."""

    ready: bool  # whether the last commit succeeded
    cluster: str  # identity of this state, shared by its copies

    @property
    def term(self) -> int:
        """The number of the present term; every start increments it."""
        ...

    # Reading, before the writer starts

    def rankers(self) -> list[StoredRanker]:
        """All rankers that have not been removed."""
        ...

    def last_version(self, ranker: int) -> int:
        """The version of the last entry; 0 if there is none."""
        ...

    def entries(self, ranker: int, after: int = 0) -> Iterator[Logged]:
        """The entries after a version in order, each with the round that it answers; read in pages.

        Once the writer has started, on any thread, as of the last commit.
        """
        ...

    def before_answers(self, ranker: int, count: int) -> int:
        """The version before the answers to the last `count` answered rounds; 0 if there are at most `count`."""
        ...

    def open_rounds(self, ranker: int) -> list[tuple[int, bytes | None]]:
        """Numbers and bodies of unanswered rounds; None for a damaged body."""
        ...

    def last_rounds(self, ranker: int, count: int) -> list[tuple[int, bytes | None]]:
        """The last stored rounds, answered or not, oldest first."""
        ...

    def checksum(self, ranker: int, version: int) -> int | None:
        """The chained checksum of the entries up to a version; None if that entry has been pruned."""
        ...

    def cut(self, ranker: int, version: int, entry: bytes, *, learnt: bool) -> None:
        """Replaces a damaged last entry by `entry`; deletes the round that it answered if a snapshot has learnt it."""
        ...

    def follow(self, ranker: int, version: int) -> None:
        """Sets a ranker's version after recovery; its next entry gets the next version."""
        ...

    def snapshots(self, ranker: int, keep: int) -> Snapshots:
        """The snapshots of a ranker."""
        ...

    def write_now(self, write: Write) -> None:
        """Writes synchronously; only before the writer has started."""
        ...

    # Writing

    def look_up(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Rows of the journal's tables, as of the last commit; on the caller's thread."""
        ...

    def accepted(self, ranker: int, number: int) -> tuple[int, bytes] | None:
        """Version and digest of the answer to a sealed round; None if it is unanswered or has expired."""
        ...

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        """Starts the writer; `superseded` is called when another server has begun a later term."""
        ...

    def create_future(self) -> Promise[Any]:
        """A promise of the caller's thread; only after the writer has started."""
        ...

    def offload(self, function: Callable[[], _T]) -> Promise[_T]:
        """Runs a function on another thread, for the caller's thread to wait for."""
        ...

    def put(self, *jobs: Job | Append) -> None:
        """Puts jobs, on the caller's thread; they are written in this order.

        Jobs put in one call are written together, all or none.
        """
        ...

    def put_later(self, job: StoreRound | Append) -> None:
        """Puts a job that may wait some milliseconds to share a commit."""
        ...

    def release_lock(self) -> None:
        """Lets go of the folder in a child after a fork, where the journal is not used."""
        ...

    def close(self) -> None:
        """Writes the queued jobs, then releases the journal."""
        ...

    def __len__(self) -> int:
        """The number of queued jobs."""
        ...

    @property
    def size(self) -> int:
        """Its size on disk, in bytes."""
        ...


def open_journal(folder: Path, address: str | None = None) -> Journal:
    """The journal at an address, for the one server that may write it; without an address SQLite in the folder.

    >>> open_journal(Path("state"), "mysql://db/shop")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: the journal's address begins with postgresql://; without one it is SQLite in the folder
    """
    if address is None:
        from ranktron.store.journal.sqlite_journal import SQLiteJournal

        return SQLiteJournal(folder)
    if not address.startswith(("postgresql://", "postgres://")):
        raise DataError("the journal's address begins with postgresql://; without one it is SQLite in the folder")
    from ranktron.store.journal.postgres_journal import PostgresJournal

    return PostgresJournal(folder, address)
