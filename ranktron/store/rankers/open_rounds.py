"""Open and answered rounds of a ranker or an experiment, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from itertools import takewhile
from time import monotonic, time
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct

from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.pending_rounds import EVERY, PendingRound
from ranktron.store.config import StoreConfig
from ranktron.store.errors import RequestError, deleted_rankers_round, foreign_round, round_gone, unknown_round
from ranktron.store.journal.journal import CAPACITY
from ranktron.types import Features, Floats, Matrix


class RoundIds:
    """Public ids of rounds: the epoch, then the number. `starts` holds pairs of an epoch's first number and the epoch.

    Numbers below the first start belong to deleted rankers of the same name.

    >>> ids = RoundIds(((0, 0), (20, 3)))
    >>> ids.public(19), ids.public(20) == 3 * 2**40 + 20, ids.number_of(3 * 2**40 + 20)
    (19, True, 20)
    >>> ids.number_of(20)  # an id of another copy of this ranker
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: round 20 was not shown here: ...
    """

    def __init__(self, starts: tuple[tuple[int, int], ...] = ((0, 0),)) -> None:
        self.starts = starts

    def public(self, number: int) -> int:
        """The public id of a round."""
        epoch = next((epoch for first, epoch in reversed(self.starts) if number >= first), self.starts[0][1])
        return epoch * CAPACITY + number

    def number_of(self, public: int) -> int:
        """The number of a round by its public id; ids of other copies of the ranker are refused."""
        number = public % CAPACITY
        if number < self.starts[0][0]:
            raise deleted_rankers_round(public)
        if self.public(number) != public:
            raise foreign_round(public)
        return number


RECENT = 20  # rounds that the dashboard lists
OVERHEAD = 250  # bytes of memory of a round beyond its body
_Waiting = TypeVar("_Waiting")
_Answer = TypeVar("_Answer")
_MISSING: Any = object()
_BLOCK_SIZE, _MAX_BLOCKS = 1 << 16, 64  # round numbers per block, and blocks held: the last four million


class OpenRounds(MutableMapping[int, bytes]):
    """Open rounds by number, oldest first, with their total size in bytes.

    The oldest is found in constant time, where a dict would scan the slots of deleted ones.

    >>> rounds = OpenRounds({1: b"one", 2: b"two", 3: b"three"})
    >>> del rounds[1]
    >>> next(iter(rounds)), rounds.size - 2 * OVERHEAD
    (2, 8)
    """

    def __init__(self, rounds: Mapping[int, bytes] | None = None) -> None:
        self._rounds: OrderedDict[int, bytes] = OrderedDict(rounds or {})
        self.size = sum(len(body) + OVERHEAD for body in self._rounds.values())

    def __getitem__(self, number: int) -> bytes:
        return self._rounds[number]

    def __setitem__(self, number: int, body: bytes) -> None:
        self.pop(number, None)
        self._rounds[number] = body
        self.size += len(body) + OVERHEAD

    def pop(self, number: int, default: Any = _MISSING) -> Any:
        body = self._rounds.pop(number, default)
        if body is _MISSING:
            raise KeyError(number)
        if body is not default:
            self.size -= len(body) + OVERHEAD
        return body

    def __delitem__(self, number: int) -> None:
        self.size -= len(self._rounds.pop(number)) + OVERHEAD

    def __iter__(self) -> Iterator[int]:
        return iter(self._rounds)

    def __len__(self) -> int:
        return len(self._rounds)

    def __contains__(self, number: object) -> bool:
        return number in self._rounds

    def find_excess(
        self,
        max_rounds: int,
        bytes_over: int,
        before: float,
        shown_at: Callable[[bytes], float],
        busy: Container[int | None],
    ) -> list[int]:
        """The oldest rounds beyond `max_rounds`, or to free `bytes_over`, or shown before a time; busy rounds stay.

        >>> rounds = OpenRounds({1: b"1", 2: b"2", 3: b"3"})
        >>> rounds.find_excess(max_rounds=2, bytes_over=0, before=0.0, shown_at=float, busy=())
        [1]
        >>> rounds.find_excess(max_rounds=9, bytes_over=0, before=3.0, shown_at=float, busy={1})
        [2]
        """
        excess, dropped = len(self) - max_rounds, list[int]()
        for number, body in self._rounds.items():
            if len(dropped) >= excess and bytes_over <= 0 and shown_at(body) >= before:
                break
            if number not in busy:
                dropped.append(number)
                bytes_over -= len(body) + OVERHEAD
        return dropped

    def overdue(self, limit: float, shown_at: Callable[[bytes], float], busy: Container[int | None]) -> Iterator[int]:
        """The rounds shown at or before a time, except busy ones.

        >>> list(OpenRounds({1: b"1", 2: b"2", 3: b"3"}).overdue(2.0, float, busy={1}))
        [2]
        """
        shown = takewhile(lambda item: shown_at(item[1]) <= limit, self._rounds.items())
        return (number for number, _ in shown if number not in busy)


class AnsweredRounds:
    """Which rounds have been answered, as one bit for each of the last four million numbers.

    >>> answered = AnsweredRounds()
    >>> answered.add(7)
    >>> 7 in answered, 8 in answered, answered.knows(8)
    (True, False, True)
    """

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}  # by number // block size, a bit for each number; add and restore
        self._first = 0  # numbers below it are unknown; add, forget_below and restore

    def add(self, number: int) -> None:
        block, place = divmod(number, _BLOCK_SIZE)
        bits = self._blocks.get(block)
        if bits is None:
            if number < self._first:
                return
            bits = self._blocks[block] = bytearray(_BLOCK_SIZE // 8)
            while len(self._blocks) > _MAX_BLOCKS:
                oldest = min(self._blocks)
                del self._blocks[oldest]
                self.forget_below((oldest + 1) * _BLOCK_SIZE)
        bits[place // 8] |= 1 << place % 8

    def __contains__(self, number: int) -> bool:
        block, place = divmod(number, _BLOCK_SIZE)
        bits = self._blocks.get(block)
        return bits is not None and bool(bits[place // 8] >> place % 8 & 1)

    def knows(self, number: int) -> bool:
        """Whether the number is recent enough to be known."""
        return number >= self._first

    def forget_below(self, number: int) -> None:
        """Makes numbers below this one unknown, except those recorded as answered."""
        self._first = max(self._first, number)

    def state(self) -> dict[str, Any]:
        """The complete state, for a snapshot."""
        bits = b"".join(self._blocks[block] for block in sorted(self._blocks))
        return {"first": self._first, "blocks": sorted(self._blocks), "bits": np.frombuffer(bits, np.uint8)}

    def restore(self, state: Mapping[str, Any]) -> None:
        rows = state["bits"].reshape(-1, _BLOCK_SIZE // 8)
        self._blocks = {int(block): bytearray(row.tobytes()) for block, row in zip(state["blocks"], rows, strict=True)}
        self._first = int(state["first"])


_NO_DRIFT = np.zeros(0)


class OpenRoundBook(Generic[_Waiting, _Answer]):
    """The rounds of a ranker or an experiment: numbered, open, answered, dropped. Used on the caller's thread only.

    `_Waiting` is the type of an answer that is not on disk yet, `_Answer` of one that is. The comment on a field says
    what it holds and who changes it.

    >>> book = OpenRoundBook(5, RoundIds(), StoreConfig(), float)
    >>> book.next, book.open[book.next] = 6, b"7.5"
    >>> book.set_clock(7.5)
    >>> list(book.overdue(0.0))
    [6]
    """

    def __init__(self, first: int, ids: RoundIds, config: StoreConfig, shown_at: Callable[[bytes], float]) -> None:
        self._config = config  # limits and retention; fixed
        self._max_answered = config.max_remembered  # size of `answered`; fixed
        self._shown_at = shown_at  # reads the time of a ranking from a round's body; fixed
        self._offset = 0.0  # its clock minus the monotonic clock of the machine; set_clock
        self.ids = ids  # public ids of rounds; recovery and creation
        self.next = first  # number of the next round; rank, check_full, recovery, a lease of a follower
        self.reserved = first  # numbers below it are reserved on disk; the journal's writer
        self.reserving = False  # a reservation is on its way to the disk; the journal's writer
        self.open = OpenRounds()  # shown, not answered, by number; rank adds, applying an entry removes
        self.unwritten: dict[int | None, _Waiting] = {}  # answers not on disk yet; the journal's writer
        self.answered: OrderedDict[int, _Answer] = OrderedDict()  # latest answers, oldest first; remember
        self.past: OrderedDict[int, bytes] = OrderedDict()  # latest answered rounds, oldest first; remember
        self.answered_ever = AnsweredRounds()  # which of the last four million numbers are answered; remember
        self.recent: deque[int] = deque(maxlen=RECENT)  # latest numbers, for the dashboard; rank
        self.forgotten: list[int] = []  # dropped, still on disk; forget adds, the journal's writer clears
        self.barrier = 0  # lower numbers were shown by another kind of model, and are refused; apply_entry
        self.set_clock(time())

    def set_clock(self, at: float) -> None:
        """Sets the clock, which from then on ignores changes of the machine's clock."""
        self._offset = at - monotonic()

    def now(self) -> float:
        """The time in seconds; a restart continues from the latest time in the journal, so downtime does not count."""
        return self._offset + monotonic()

    def remember(self, number: int, answer: _Answer, body: bytes | None) -> None:
        """Remembers a round's answer and, if known, its body."""
        self.answered.pop(number, None)  # to move it to the end
        self.past.pop(number, None)
        self.answered_ever.add(number)
        self.answered[number] = answer
        while len(self.answered) > self._max_answered:
            self.answered.popitem(last=False)
        if body is not None:
            self.past[number] = body
            while len(self.past) > self._config.explained_rounds:
                self.past.popitem(last=False)

    def gone(self, number: int, public: int) -> RequestError:
        """The error for a round that is neither open nor remembered."""
        if number >= self.next:
            return unknown_round(public)
        return round_gone(public, number in self.answered_ever, self.answered_ever.knows(number))

    def excess(self, bytes_over: int = 0) -> list[int]:
        """The oldest open rounds beyond the limits of number, age and bytes, except those being answered."""
        limit = self.now() - self._config.open_seconds
        return self.open.find_excess(self._config.max_open, bytes_over, limit, self._shown_at, self.unwritten)

    def overdue(self, after: float) -> Iterator[int]:
        """Open rounds shown at least `after` seconds ago, except those being answered."""
        return self.open.overdue(self.now() - after, self._shown_at, self.unwritten)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops open rounds."""
        for number in numbers:
            del self.open[number]
            self.forgotten.append(number)


class StoredRound(Struct, array_like=True, frozen=True):
    """An open round as stored: the ranking, and the pending round of the learner.

    `rows` are the features of the top documents, at least as many as the pending round needs. `weights` are the weights
    of `version`; with a feature map, `parts` has the contribution of each feature to each score instead.
    """

    number: int
    at: float
    version: int
    explored: bool
    query: str
    size: int
    ids: list[str]
    scores: bytes
    rows: bytes
    weights: bytes
    shown: bytes
    drift: bytes
    constant: float
    propensities: bytes | None
    shape: tuple[int, ...]
    parts: bytes = b""
    columns: bytes = b""
    user: str = ""

    @property
    def k(self) -> int:
        """The number of top documents that may be labelled."""
        return len(self.shown) // 8

    def features(self) -> Matrix:
        return np.frombuffer(self.rows, np.float32).reshape(len(self.ids), -1)

    def shown_scores(self) -> Floats:
        return np.frombuffer(self.scores)

    def contributions(self) -> Floats | None:
        """The contribution of each feature to each score; None if the scores are not additive."""
        if self.parts:
            return np.frombuffer(self.parts).reshape(len(self.ids), -1)
        return self.features() * np.frombuffer(self.weights) if self.weights else None

    def pending(self, mapped: Callable[[Matrix], Features]) -> PendingRound:
        """The learner's pending round; arrays that kernels may write are copies."""
        propensities = None
        if self.propensities is not None:
            propensities = np.frombuffer(bytearray(self.propensities)).reshape(self.shape)
        rows = mapped(self.features()[: self.k].copy())
        if isinstance(rows, Sparse):  # the type of columns in pending rounds
            rows = replace(rows, columns=rows.columns.astype(np.int32))
        return PendingRound(
            rows,
            np.frombuffer(bytearray(self.shown)),
            self.number,
            self.size,
            np.frombuffer(bytearray(self.drift)) if self.drift else _NO_DRIFT,
            self.constant,
            propensities,
            np.frombuffer(bytearray(self.columns), np.int32) if self.columns else EVERY,
        )


class _Head(Struct, array_like=True, frozen=True):
    number: int
    at: float


class ShownRound(Struct, array_like=True, frozen=True, gc=False):
    """The fields of a stored round that a replay needs; the others stay encoded."""

    number: int
    at: float
    version: Raw
    explored: bool
    query: Raw
    size: int
    ids: Raw
    scores: Raw
    rows: bytes
    weights: Raw
    shown: bytes
    drift: bytes
    constant: float
    propensities: bytes | None
    shape: tuple[int, ...]


_head = msgspec.msgpack.Decoder(_Head)
_shown = msgspec.msgpack.Decoder(ShownRound)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StoredRound)


def pack(round: StoredRound) -> bytes:
    return _encoder.encode(round)


def unpack(data: bytes) -> StoredRound:
    return _decoder.decode(data)


def shown_at(data: bytes) -> float:
    """The time at which a round was shown, without decoding the rest."""
    return _head.decode(data).at


def read_number(data: bytes) -> int:
    """The number of a round, without decoding the rest."""
    return _head.decode(data).number


def read_shown(data: bytes) -> ShownRound:
    """A stored round without the fields for display."""
    return _shown.decode(data)
