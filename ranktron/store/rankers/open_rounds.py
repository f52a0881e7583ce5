"""Rounds that wait for their feedback, and rounds that have been answered: what is known of them, in bounded space."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, MutableMapping
from itertools import takewhile
from typing import Any

import numpy as np

BESIDE = 250  # bytes that a round takes in memory beside its own
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
