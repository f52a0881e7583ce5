"""Rounds that wait for their feedback, and rounds that have been answered: what is known of them, in bounded space."""

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
from ranktron.store.errors import RequestError, foreign, of_deleted_ranker, round_gone
from ranktron.store.journal.journal import CAPACITY
from ranktron.types import Features, Floats, Matrix


class RoundIds:
    """From which number of a ranker's rounds on which epoch counts; clients see the number after the epoch.

    Numbers before the first are those of rankers of the same name that have been deleted.

    >>> ids = RoundIds(((0, 0), (20, 3)))
    >>> ids.public(19), ids.public(20) == 3 * 2**40 + 20, ids.number_of(3 * 2**40 + 20)
    (19, True, 20)
    >>> ids.number_of(20)  # which another copy of this ranker has shown
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: round 20 was not shown here: ...
    """

    def __init__(self, starts: tuple[tuple[int, int], ...] = ((0, 0),)) -> None:
        self.starts = starts

    def public(self, number: int) -> int:
        """What clients call a round."""
        epoch = next((epoch for first, epoch in reversed(self.starts) if number >= first), self.starts[0][1])
        return epoch * CAPACITY + number

    def number_of(self, public: int) -> int:
        """The number of a round that was shown here, or will be."""
        number = public % CAPACITY
        if number < self.starts[0][0]:
            raise of_deleted_ranker(public)
        if self.public(number) != public:
            raise foreign(public)
        return number


RECENT = 20  # rounds that are shown to people
BESIDE = 250  # bytes that a round takes in memory beside its own
_Waiting = TypeVar("_Waiting")
_Answer = TypeVar("_Answer")
_NONE: Any = object()
_BLOCK, _BLOCKS = 1 << 16, 64  # numbers of rounds in a block, and blocks that are kept: the last four million


class OpenRounds(MutableMapping[int, bytes]):
    """Open rounds by number, oldest first, and the bytes that they take.

    However many there are, the oldest is found at once; a dict would pass over the places of all that it has dropped.

    >>> rounds = OpenRounds({1: b"one", 2: b"two", 3: b"three"})
    >>> del rounds[1]
    >>> next(iter(rounds)), rounds.size - 2 * BESIDE
    (2, 8)
    """

    def __init__(self, rounds: Mapping[int, bytes] | None = None) -> None:
        self._rounds: OrderedDict[int, bytes] = OrderedDict(rounds or {})
        self.size = sum(len(body) + BESIDE for body in self._rounds.values())

    def __getitem__(self, number: int) -> bytes:
        return self._rounds[number]

    def __setitem__(self, number: int, body: bytes) -> None:
        self.pop(number, None)
        self._rounds[number] = body
        self.size += len(body) + BESIDE

    def pop(self, number: int, default: Any = _NONE) -> Any:
        body = self._rounds.pop(number, default)
        if body is _NONE:
            raise KeyError(number)
        if body is not default:
            self.size -= len(body) + BESIDE
        return body

    def __delitem__(self, number: int) -> None:
        self.size -= len(self._rounds.pop(number)) + BESIDE

    def __iter__(self) -> Iterator[int]:
        return iter(self._rounds)

    def __len__(self) -> int:
        return len(self._rounds)

    def __contains__(self, number: object) -> bool:
        return number in self._rounds

    def find_excess(
        self, most: int, bytes_over: int, before: float, shown_at: Callable[[bytes], float], busy: Container[int | None]
    ) -> list[int]:
        """The oldest rounds: beyond the most there may be, so many bytes too large, or shown before a time.

        Rounds that are busy, being answered, stay.

        >>> rounds = OpenRounds({1: b"1", 2: b"2", 3: b"3"})
        >>> rounds.find_excess(most=2, bytes_over=0, before=0.0, shown_at=float, busy=())
        [1]
        >>> rounds.find_excess(most=9, bytes_over=0, before=3.0, shown_at=float, busy={1})
        [2]
        """
        excess, found = len(self) - most, list[int]()
        for number, body in self._rounds.items():
            if len(found) >= excess and bytes_over <= 0 and shown_at(body) >= before:
                break
            if number not in busy:
                found.append(number)
                bytes_over -= len(body) + BESIDE
        return found

    def overdue(self, limit: float, shown_at: Callable[[bytes], float], busy: Container[int | None]) -> Iterator[int]:
        """The rounds shown at a time or before it, but for those that are busy.

        >>> list(OpenRounds({1: b"1", 2: b"2", 3: b"3"}).overdue(2.0, float, busy={1}))
        [2]
        """
        shown = takewhile(lambda item: shown_at(item[1]) <= limit, self._rounds.items())
        return (number for number, _ in shown if number not in busy)


class AnsweredRounds:
    """Which rounds have been answered: one bit for each of the last four million numbers.

    >>> answered = AnsweredRounds()
    >>> answered.add(7)
    >>> 7 in answered, 8 in answered, answered.knows(8)
    (True, False, True)
    """

    def __init__(self) -> None:
        self._blocks: dict[int, bytearray] = {}
        self._first = 0  # of numbers below it nothing is known

    def add(self, number: int) -> None:
        block, place = divmod(number, _BLOCK)
        bits = self._blocks.get(block)
        if bits is None:
            if number < self._first:
                return
            bits = self._blocks[block] = bytearray(_BLOCK // 8)
            while len(self._blocks) > _BLOCKS:
                oldest = min(self._blocks)
                del self._blocks[oldest]
                self.forget_below((oldest + 1) * _BLOCK)
        bits[place // 8] |= 1 << place % 8

    def __contains__(self, number: int) -> bool:
        block, place = divmod(number, _BLOCK)
        bits = self._blocks.get(block)
        return bits is not None and bool(bits[place // 8] >> place % 8 & 1)

    def knows(self, number: int) -> bool:
        """Whether it would know if this round had been answered."""
        return number >= self._first

    def forget_below(self, number: int) -> None:
        """Says that of rounds below a number nothing is known beyond what is noted."""
        self._first = max(self._first, number)

    def state(self) -> dict[str, Any]:
        """All of it, for a snapshot."""
        bits = b"".join(self._blocks[block] for block in sorted(self._blocks))
        return {"first": self._first, "blocks": sorted(self._blocks), "bits": np.frombuffer(bits, np.uint8)}

    def restore(self, state: Mapping[str, Any]) -> None:
        rows = state["bits"].reshape(-1, _BLOCK // 8)
        self._blocks = {int(block): bytearray(row.tobytes()) for block, row in zip(state["blocks"], rows, strict=True)}
        self._first = int(state["first"])


_NO_DRIFT = np.zeros(0)


class OpenRoundBook(Generic[_Waiting, _Answer]):
    """The rounds of a ranker or of an experiment: numbered, open, answered, dropped. It lives on the caller's thread.

    What waits for the disk is `_Waiting`; what is remembered of an answered round is `_Answer`.

    >>> book = OpenRoundBook(5, RoundIds(), StoreConfig(), float)
    >>> book.next, book.open[book.next] = 6, b"7.5"
    >>> book.set_clock(7.5)
    >>> list(book.overdue(0.0))
    [6]
    """

    def __init__(self, first: int, ids: RoundIds, config: StoreConfig, shown_at: Callable[[bytes], float]) -> None:
        self._config = config
        self._most_answered = config.most_remembered
        self._shown_at = shown_at  # when a round was shown, by its body
        self._offset = 0.0  # what the clock is ahead of the monotonic clock of the machine; set_clock
        self.ids = ids  # what clients call rounds; a start, a new ranker
        self.next = first  # the number that the next round gets; whoever shows or learns one
        self.reserved = first  # after a crash numbers from here on are given out; the journal's writer
        self.reserving = False  # whether more numbers are on their way to the disk; the journal's writer
        self.open = OpenRounds()  # shown and not answered, by number; shown: rank; answered: apply_entry
        self.unwritten: dict[int | None, _Waiting] = {}  # answers on their way to the disk; the journal's writer
        self.answered: OrderedDict[int, _Answer] = OrderedDict()  # the last answers, oldest first; remember
        self.past: OrderedDict[int, bytes] = OrderedDict()  # the last answered rounds, oldest first; remember
        self.answered_ever = AnsweredRounds()  # of the last four million numbers which were answered; remember
        self.recent: deque[int] = deque(maxlen=RECENT)  # the numbers shown last, for people; whoever shows one
        self.forgotten: list[int] = []  # dropped from `open`, still on disk: forget adds, the journal's writer empties
        self.barrier = 0  # rounds before it were shown by another kind of model and stay unanswered; apply_entry
        self.set_clock(time())

    def set_clock(self, at: float) -> None:
        """Says what time it is. From there on it only passes, whatever is done to the clock of the machine."""
        self._offset = at - monotonic()

    def now(self) -> float:
        """Seconds that go on, after a restart, from the last ones that the journal knows: a pause does not count."""
        return self._offset + monotonic()

    def remember(self, number: int, answer: _Answer, body: bytes | None) -> None:
        """Remembers that a round was answered, and, if it is known, what it showed."""
        self.answered.pop(number, None)  # it is the last one now
        self.past.pop(number, None)
        self.answered_ever.add(number)
        self.answered[number] = answer
        while len(self.answered) > self._most_answered:
            self.answered.popitem(last=False)
        if body is not None:
            self.past[number] = body
            while len(self.past) > self._config.explained_rounds:
                self.past.popitem(last=False)

    def gone(self, number: int, public: int) -> RequestError:
        """Why a round is neither open nor remembered."""
        if number >= self.next:
            return RequestError(404, "unknown_round", f"there has been no round {public}")
        return round_gone(public, number in self.answered_ever, self.answered_ever.knows(number))

    def excess(self, bytes_over: int = 0) -> list[int]:
        """The oldest open rounds: too many, too old, or so many bytes too large; not those that are being answered."""
        limit = self.now() - self._config.open_seconds
        return self.open.find_excess(self._config.max_open, bytes_over, limit, self._shown_at, self.unwritten)

    def overdue(self, after: float) -> Iterator[int]:
        """Open rounds that were shown so many seconds ago; not those that are being answered."""
        return self.open.overdue(self.now() - after, self._shown_at, self.unwritten)

    def forget(self, numbers: Iterable[int]) -> None:
        """Drops open rounds."""
        for number in numbers:
            del self.open[number]
            self.forgotten.append(number)


class StoredRound(Struct, array_like=True, frozen=True):
    """What was shown, and the pending round that its feedback will be learnt from.

    `rows` has the first shown documents, at least as many as the pending round needs; `weights` those that ranked, or,
    where a map makes more features of each, `parts` what each feature added to each score.
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

    @property
    def k(self) -> int:
        """How many of the shown documents may be labelled."""
        return len(self.shown) // 8

    def features(self) -> Matrix:
        return np.frombuffer(self.rows, np.float32).reshape(len(self.ids), -1)

    def shown_scores(self) -> Floats:
        return np.frombuffer(self.scores)

    def contributions(self) -> Floats | None:
        """What each feature added to each score; None where a ranker's scores are no such sums."""
        if self.parts:
            return np.frombuffer(self.parts).reshape(len(self.ids), -1)
        return self.features() * np.frombuffer(self.weights) if self.weights else None

    def pending(self, mapped: Callable[[Matrix], Features]) -> PendingRound:
        """The pending round, over the bytes of this one; arrays are copied where kernels may write them."""
        propensities = None
        if self.propensities is not None:
            propensities = np.frombuffer(bytearray(self.propensities)).reshape(self.shape)
        rows = mapped(self.features()[: self.k].copy())
        if isinstance(rows, Sparse):  # columns as learners keep them in their pending rounds
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
    """What a replay needs of a stored round: the same places, those that it passes over left as they are."""

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
    """When a round was shown, without unpacking the rest."""
    return _head.decode(data).at


def read_number(data: bytes) -> int:
    """The number of a round, without unpacking the rest."""
    return _head.decode(data).number


def read_shown(data: bytes) -> ShownRound:
    """A stored round without what only people look at."""
    return _shown.decode(data)
