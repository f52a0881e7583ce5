"""The journal: what a store asks of the place where it keeps rankers, entries and rounds; its writes, as values.

`SQLiteJournal` and `PostgresJournal` are the implementations. A journal writes jobs in the order in which they are put,
calls back on its caller's thread when they are on disk, and loses nothing that it has called back for. README.md has
the words: entry, version, term, epoch, incarnation, mark, snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from ranktron import __version__
from ranktron.errors import DataError
from ranktron.store.journal.snapshots import Snapshots

Done = Callable[[Any], None]
Failed = Callable[[BaseException], None]
_T = TypeVar("_T")


class Promise(Protocol[_T]):
    """The future of a write: one of asyncio or of concurrent.futures."""

    def done(self) -> bool: ...

    def result(self) -> _T: ...

    def set_result(self, result: _T, /) -> None: ...

    def set_exception(self, exception: BaseException, /) -> None: ...


class CallerThread(Protocol):
    """The thread that puts jobs and runs their callbacks: an event loop of asyncio, or anything with these methods."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> object:
        """Calls back on this thread, after its present work."""
        ...

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> object:
        """Calls back on this thread after `delay` seconds."""
        ...

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> object:
        """The same as `call_soon`, from another thread."""
        ...


FORMAT = 1  # of journals: another one is refused
CAPACITY = 1 << 40  # upper bound of versions and of round numbers
PREFIX = "/"  # of the names of experiments in the journal; names of rankers cannot begin with it
EPOCHS = 1 << 13  # upper bound of epochs: an epoch and a number fit into 2**53


class JournalError(DataError):
    """The journal as a whole cannot be read or written, so no ranker can be served from it."""


class FormatError(JournalError):
    """The journal has another format; `version` is the one that wrote it, if it says so."""

    def __init__(self, where: object, version: str | None) -> None:
        writer = f"ranktron {version}" if version else "a ranktron before 0.3"
        super().__init__(f"{where} was written by {writer}, and ranktron {__version__} cannot read its format")


class MissingEntriesError(DataError):
    """The journal lacks acknowledged entries of a ranker."""

    remedy = "To go on without what is missing, delete the file mark in the folder"


class InUseError(DataError):
    """Another server is the leader."""


class TermError(JournalError):
    """Another server has begun a later term: this one may write nothing more, and its state is out of date."""


class UnknownOutcomeError(JournalError):
    """The connection was lost during a commit, and whether the commit was made is not known yet."""


class RemovedError(DataError):
    """An entry was put for a ranker that has been removed."""


class StoredRanker(NamedTuple):
    """A ranker as the journal knows it; `definition` is complete.

    `epochs` has the first round number of each epoch. Clients have been answered for entries up to
    version `last_acknowledged` at least; it is -1 where that is not known. `wrong` is what is wrong with the ranker, if
    anything. Its clock was at `at` or later.
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
    """An entry in the journal, None if it is damaged, and the round that it answers, if that is there."""

    version: int
    body: bytes | None
    shown: bytes | None


class AddRanker(NamedTuple):
    """Adds a ranker, with its first `entry`, if any, in the same transaction; the result is the `StoredRanker`.

    Round numbers continue those of a deleted ranker of that name and are at least `rounds`; `reserve` are reserved.
    """

    name: str
    definition: bytes
    reserve: int
    rounds: int = 0
    entry: bytes = b""


class Reserve(NamedTuple):
    """Reserves round numbers below `next`: after a crash none of them is given out again."""

    ranker: int
    next: int


class Settle(NamedTuple):
    """Records which number the next round gets, at the end of a server that is not killed."""

    ranker: int
    next: int


class RecordClock(NamedTuple):
    """Records a ranker's clock, so that open rounds expire even when nothing is written."""

    ranker: int
    at: float


class RemoveRanker(NamedTuple):
    """Removes a ranker with everything it has; its name keeps the number that its rounds have reached."""

    ranker: int
    next: int


class DropRounds(NamedTuple):
    """Deletes expired rounds."""

    ranker: int
    numbers: Sequence[int]


class Prune(NamedTuple):
    """Deletes what a snapshot of version `settled` makes needless.

    These are rounds answered up to version `explained`; entries up to version `remembered`, and those up to version
    `old` that are not the last answer to a round; and numbers of sealed rounds that have expired at time `expired`.
    """

    ranker: int
    settled: int
    explained: int
    remembered: int
    old: int
    expired: float = 0.0


class AdvanceSource(NamedTuple):
    """Advances a source of feedback from `start` to `end`, and keeps the messages that could not be used."""

    source: str
    start: int
    end: int
    dead: tuple[tuple[int, str, bytes], ...] = ()


class Call(NamedTuple):
    """Calls a function on the writer's thread, after all earlier jobs; a write that it returns is done as well."""

    function: Callable[[], Write | None]


Write = AddRanker | Reserve | Settle | RecordClock | RemoveRanker | DropRounds | Prune | AdvanceSource | Call


@dataclass(frozen=True)
class Job:
    """A write with callbacks for the caller's thread. Without `failed` it is tried until it succeeds."""

    write: Write
    done: Done | None = None
    failed: Failed | None = None


class StoreRound(NamedTuple):
    """A round to keep until its feedback comes; it has no callback."""

    ranker: int
    number: int
    body: bytes
    failed: None = None


class SealedRow(NamedTuple):
    """A sealed round that feedback brought: stored with its answer, its number known until it expires."""

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
    """What a store asks of its journal."""

    ready: bool
    cluster: str  # identity of this state; copies have the same

    @property
    def term(self) -> int:
        """The number of the present term; every start increments it."""
        ...

    # Reading, before it starts

    def rankers(self) -> list[StoredRanker]:
        """All rankers that have not been removed."""
        ...

    def last_version(self, ranker: int) -> int:
        """The version of the last entry; 0 if there is none."""
        ...

    def entries(self, ranker: int) -> Iterator[Logged]:
        """The entries in order, each with the round that it answers, read page by page."""
        ...

    def before_answers(self, ranker: int, count: int) -> int:
        """The version before the answers to the last `count` answered rounds; 0 if there are no more than these."""
        ...

    def open_rounds(self, ranker: int) -> list[tuple[int, bytes | None]]:
        """Numbers and bodies of the rounds that no entry answers; None for a body that is damaged."""
        ...

    def last_rounds(self, ranker: int, count: int) -> list[tuple[int, bytes | None]]:
        """The last stored rounds, answered or not, oldest first."""
        ...

    def checksum(self, ranker: int, version: int) -> int | None:
        """The checksum of all entries up to a version, if the journal still has that entry."""
        ...

    def cut(self, ranker: int, version: int, entry: bytes, *, learnt: bool) -> None:
        """Replaces a damaged last entry; the round that it answered is deleted if a snapshot has learnt it."""
        ...

    def follow(self, ranker: int, version: int) -> None:
        """Sets the version that a ranker has reached; its next entry gets the next one."""
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
        """Version and digest of the answer to a sealed round; None if unanswered, or expired."""
        ...

    def start(self, caller: CallerThread, superseded: Failed) -> None:
        """Starts the writer; `superseded` is called when its term is over."""
        ...

    def put(self, *jobs: Job | Append) -> None:
        """Puts jobs, on the caller's thread; they are written in this order.

        Jobs put in one call are written together, all or none.
        """
        ...

    def put_later(self, job: StoreRound) -> None:
        """Puts a job without a callback; it may wait some milliseconds to share a commit."""
        ...

    def close(self) -> None:
        """Writes the jobs that wait, then releases the journal."""
        ...

    def __len__(self) -> int:
        """How many jobs wait."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it takes on disk."""
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
