"""The pairs of documents with different grades, represented by indices, never by differences of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers

Documents = npt.NDArray[np.int32]

_MOST = 2**31 - 1


@jit
def _rank_by_grade(labels: Floats, offsets: Integers) -> tuple[Integers, Integers, Integers]:
    """Documents of each query by ascending label; for each position the pairs before it, and its query's start."""
    n = labels.shape[0]
    ranked = np.empty(n, np.int64)
    before = np.zeros(n + 1, np.int64)
    starts = np.empty(n, np.int64)
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        order = argsort_ascending(labels[start:stop])
        lower = 0
        for at in range(start, stop):
            ranked[at] = start + order[at - start]
            if at > start and labels[ranked[at]] > labels[ranked[at - 1]]:
                lower = at - start
            before[at + 1] = before[at] + lower
            starts[at] = start
    return ranked, before, starts


@jit
def _decode(
    numbers: Integers, ranked: Integers, before: Integers, starts: Integers, upper: Documents, lower: Documents
) -> None:
    at = 0
    for k in range(numbers.shape[0]):
        number = numbers[k]
        if not (before[at] <= number < before[at + 1]):
            at = np.searchsorted(before, number, side="right") - 1
        upper[k] = ranked[at]
        lower[k] = ranked[starts[at] + number - before[at]]


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs (upper, lower) of documents of the same query with different labels, numbered query by query.

    A pair is represented by its number: memory is a few integers per document, and two per pair only when `decode` is
    called.

    Examples
    --------
    >>> pairs = Pairs.of(np.array([0.0, 2.0, 1.0, 1.0, 1.0]), np.array([0, 3, 5]))
    >>> pairs.counts
    array([3, 0])
    >>> pairs.decode(np.arange(3))
    (array([2, 1, 1], dtype=int32), array([0, 0, 2], dtype=int32))
    """

    counts: Integers
    ranked: Integers
    before: Integers
    starts: Integers

    @classmethod
    def of(cls, labels: Floats, offsets: Integers) -> Pairs:
        """The pairs of some queries."""
        ranked, before, starts = _rank_by_grade(labels, offsets)
        return cls(np.diff(before[offsets]), ranked, before, starts)

    def __len__(self) -> int:
        return int(self.before[-1])

    @property
    def firsts(self) -> Integers:
        """The number of each query's first pair."""
        return np.cumsum(self.counts) - self.counts

    def decode(self, numbers: Integers) -> tuple[Documents, Documents]:
        """The documents of the pairs of these numbers."""
        upper, lower = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.int32)
        _decode(numbers, self.ranked, self.before, self.starts, upper, lower)
        return upper, lower

    def all(self) -> Integers:
        """The numbers of all pairs; an error if there are too many for memory."""
        if len(self) > _MOST:
            raise DataError(f"{len(self):,} pairs are too many to hold: draw some of them with pairs_per_query")
        return np.arange(len(self))

    def sample(self, per_query: int, rng: np.random.Generator) -> Integers:
        """The numbers of `per_query` pairs of each query, drawn with replacement; all if a query has no more."""
        sizes = np.minimum(self.counts, per_query)
        drawn = np.repeat(self.firsts, sizes) + rng.integers(np.repeat(self.counts, sizes))
        few = self.counts <= per_query
        place = np.arange(len(drawn)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.where(np.repeat(few, sizes), np.repeat(self.firsts, sizes) + place, drawn)

    def steps(self, per_query: int = 0) -> Floats:
        """The step size of each query, one over the number of its pairs that a pass visits: η_q = 1/|S_q|."""
        visited = np.minimum(self.counts, per_query) if per_query else self.counts
        steps: Floats = 1.0 / np.maximum(visited, 1)
        return steps
