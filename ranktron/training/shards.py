"""The division of a training set into shards: which queries each shard plays between two mixes, and in which order.

It is a function of the data, the seed and the number of shards, and is stored in the record of a model.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.schedule import Schedule
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count

FEW_SHARDS = 4
"""With more shards than this, one learner plays the first pass over all parts."""


class QueryPiece(NamedTuple):
    """Queries of one part of the data, in the order in which they are played."""

    part: int
    queries: Integers


@dataclass(frozen=True)
class Division:
    """The queries that each shard plays, and the points at which its pass is cut.

    Queries stay in their part, and parts in their shard. With `shuffle`, each pass shuffles the queries of a part and
    the parts of a shard. A shard's pass is cut into `mixes` pieces of equal size, give or take one query. A single
    shard, which is never mixed, is cut at the ends of its parts.

    Parameters
    ----------
    parts : tuple of int
        The number of queries of each part.
    shards : int
        The number of shards: runs of neighbouring parts, of about the same number of queries.
    mixes : int
        The number of mixes in a pass.
    sequential : int, optional
        The number of first passes that one learner plays over all parts. By default 1 for more than 4 shards, whose
        mean would otherwise need more passes to get as far.

    Examples
    --------
    >>> division = Division((4, 4), shards=2, mixes=2)
    >>> division.pieces(Schedule(shuffle=False), 0)[0]
    [[QueryPiece(part=0, queries=array([0, 1]))], [QueryPiece(part=1, queries=array([0, 1]))]]
    """

    parts: tuple[int, ...]
    shards: int = 1
    mixes: int = 1
    sequential: int | None = None

    def __post_init__(self) -> None:
        if self.sequential is None:
            object.__setattr__(self, "sequential", int(self.shards > FEW_SHARDS))
        check_count(self.sequential, "the number of sequential passes", 0)
        check_count(self.shards, "the number of shards", 1)
        check_count(self.mixes, "the number of mixes in a pass", 1)
        if self.shards > len(self.parts):
            raise DataError(
                f"{self.shards} shards need as many parts, and there are {len(self.parts)}: choose fewer shards, or "
                "divide the data into more parts"
            )

    @property
    def offsets(self) -> Integers:
        """The index of the first query of each part, and the number of queries."""
        return np.concatenate(([0], np.cumsum(self.parts))).astype(np.int64)

    @property
    def shard_parts(self) -> list[range]:
        """The parts of each shard: at least one, and about the same number of queries for each shard."""
        ends = np.cumsum(self.parts)
        goals = ends[-1] * np.arange(1, self.shards) / self.shards
        cuts = [0, *(int(np.abs(ends - goal).argmin()) + 1 for goal in goals), len(self.parts)]
        for s in range(1, self.shards):  # no shard without a part, from the front and from the back
            cuts[s] = max(cuts[s], cuts[s - 1] + 1)
        for s in range(self.shards - 1, 0, -1):
            cuts[s] = min(cuts[s], cuts[s + 1] - 1)
        return [range(a, b) for a, b in itertools.pairwise(cuts)]

    def weights(self) -> Floats:
        """The weight of each shard in a mix: its number of queries."""
        sizes = np.array(self.parts)
        return np.array([sizes[own.start : own.stop].sum() for own in self.shard_parts], float)

    def pieces(self, schedule: Schedule, epoch: int) -> list[list[list[QueryPiece]]]:
        """The pieces of an epoch: for each mix, for each shard, the queries it plays."""
        assert self.sequential is not None
        if self.shards == 1 or epoch < self.sequential:
            return [[[piece]] for piece in self._order(schedule, epoch, 0, range(len(self.parts)))]
        shards = [self._order(schedule, epoch, s, own) for s, own in enumerate(self.shard_parts)]
        runs = [_cut(pieces, self.mixes) for pieces in shards]
        return [[shard[k] for shard in runs] for k in range(self.mixes)]

    def _order(self, schedule: Schedule, epoch: int, shard: int, own: range) -> list[QueryPiece]:
        """The pass of a shard over its own parts, in order, each with its queries in order."""
        parts = list(own)
        if schedule.shuffle:
            drawn = np.random.default_rng((schedule.seed, epoch, 0, shard)).permutation(len(parts))
            parts = [parts[j] for j in drawn]
        pieces = []
        for part in parts:
            queries = np.arange(self.parts[part])
            if len(self.parts) == 1:  # the order of one machine
                queries = queries[schedule.queries(len(queries), epoch)]
            elif schedule.shuffle:
                queries = np.random.default_rng((schedule.seed, epoch, 1, part)).permutation(queries)
            pieces.append(QueryPiece(part, queries))
        return pieces


def _cut(pieces: list[QueryPiece], count: int) -> list[list[QueryPiece]]:
    """Cuts a pass into `count` runs of equal size, give or take one query."""
    ends = np.cumsum([len(piece.queries) for piece in pieces])
    borders = np.arange(count + 1) * ends[-1] // count
    runs: list[list[QueryPiece]] = []
    for a, b in zip(borders.tolist(), borders[1:].tolist(), strict=False):
        run = []
        for piece, end in zip(pieces, ends.tolist(), strict=True):
            start = end - len(piece.queries)
            within = piece.queries[max(a - start, 0) : max(b - start, 0)]
            if len(within):
                run.append(QueryPiece(piece.part, within))
        runs.append(run)
    return runs


def starts_from_mean(learner: BaseLearner, division: Division, epoch: int) -> bool:
    """Whether the shards of an epoch begin with the mean weights of the sequential pass before it.

    >>> from ranktron.learners import hinge_perceptron, minimax_perceptron
    >>> division = Division((4,) * 6, shards=6)
    >>> [starts_from_mean(minimax_perceptron(2), division, epoch) for epoch in range(3)]
    [False, True, False]
    >>> starts_from_mean(hinge_perceptron(2), division, 1)
    False
    """
    return learner.scale_free and division.shards > 1 and division.sequential == epoch > 0


def record_division(division: Division) -> dict[str, Any]:
    """The division as stored in the record of a model.

    >>> record_division(Division((3, 4), shards=2, mixes=5))
    {'shards': 2, 'mixes': 5, 'sequential': 0, 'parts': [3, 4]}
    """
    numbers = {"shards": division.shards, "mixes": division.mixes, "sequential": division.sequential}
    return {**numbers, "parts": list(division.parts)}


def recorded_division(record: Mapping[str, Any]) -> Division | None:
    """The division in the record of a model; None if it was trained in one piece.

    >>> recorded_division({"division": {"parts": [3, 4], "shards": 2, "mixes": 5, "sequential": 0}})
    Division(parts=(3, 4), shards=2, mixes=5, sequential=0)
    """
    stored = record.get("division")
    if stored is None:
        return None
    numbers = (int(stored[name]) for name in ("shards", "mixes", "sequential"))
    return Division(tuple(map(int, stored["parts"])), *numbers)
