"""A pass over some queries as a function: from a state and queries to another state, without side effects.

Threads, processes and machines run it alike; the result depends on its arguments alone. `Division` says which queries
are played together: parts of the data, dealt to shards, whose passes are cut into pieces between two mixes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.loop import play
from ranktron.learners.schedule import Schedule, repetitions
from ranktron.metrics import Metric
from ranktron.types import Floats, Integers, State
from ranktron.types.validation import check_count

MIXES = 10
"""How often the shards are mixed in a pass, where nothing else is said."""
FEW_SHARDS = 4
"""Up to so many shards may begin at once; more of them begin with what one learner has learnt in a first pass."""


class PlayedQueries(NamedTuple):
    """The state after some queries, and the loss and the metrics of each of them, before it was learnt from."""

    state: State
    losses: Floats
    values: Floats


class QueryPiece(NamedTuple):
    """Queries of one part of the data, in the order in which they are played."""

    part: int
    queries: Integers


def play_pieces(
    make: Callable[[], BaseLearner],
    state: State,
    pieces: Sequence[QueryPiece],
    load: Callable[[int], Rounds],
    metrics: tuple[Metric, ...] = (),
) -> PlayedQueries:
    """Plays pieces one after the other, from a state: a pure function, if `load` is one.

    Parameters
    ----------
    make : callable
        Makes an untrained learner.
    state : State
        Where it starts.
    pieces : sequence of QueryPiece
        What it plays.
    load : callable
        The queries of a part, as the learner takes them.
    metrics : tuple of Metric
        Computed for each ranking, as it was shown.

    Examples
    --------
    >>> from functools import partial
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.learners import hinge_perceptron
    >>> make, parts = partial(hinge_perceptron, 20), [Separable().rounds(30)]
    >>> played = play_pieces(make, make().state(), [QueryPiece(0, np.arange(10, 30))], parts.__getitem__)
    >>> played.state["rounds"], len(played.losses)
    (20, 20)
    """
    learner = make()
    learner.restore(state)
    played = [_play_piece(learner, load(piece.part), piece.queries, metrics) for piece in pieces]
    empty = np.empty(0), np.empty((0, len(metrics)))
    losses, values = zip(*played, strict=True) if played else zip(empty, strict=True)
    return PlayedQueries(learner.state(), np.concatenate(losses), np.concatenate(values))


def _play_piece(
    learner: BaseLearner, rounds: Rounds, queries: Integers, metrics: tuple[Metric, ...]
) -> tuple[Floats, Floats]:
    compiled = partial(play_pass, learner) if can_fuse(learner) else learner.compiled_pass(rounds)
    if compiled is not None:
        return compiled(rounds, queries, metrics)
    turns = list(play(learner, (rounds[q] for q in queries.tolist()), learner.simulated_feedback, metrics))
    values = np.array([turn.values for turn in turns], float)
    return np.array([turn.loss for turn in turns]), values.reshape(len(turns), len(metrics))


@dataclass(frozen=True)
class Division:
    """Which queries a shard plays, and where its pass is cut: a function of data, seed and number of shards.

    Queries stay in their part, and parts in their shard. With `shuffle`, each pass shuffles the queries of a part and
    the parts of a shard. A shard's pass is cut into `mixes` pieces of as many queries, give or take one. One shard is
    cut where its parts end: there is nothing to mix.

    Parameters
    ----------
    parts : tuple of int
        The number of queries of each part.
    shards : int
        The number of shards: neighbouring parts belong together, about as many queries to each shard.
    mixes : int
        How often the shards are mixed in a pass.
    sequential : int, optional
        How many passes, the first ones, one learner plays over all parts. By default 1 for more than 4 shards, whose
        mean would otherwise need more passes to come as far.

    Examples
    --------
    >>> division = Division((4, 4), shards=2, mixes=2)
    >>> division.pieces(Schedule(shuffle=False), 0)[0]
    [[QueryPiece(part=0, queries=array([0, 1]))], [QueryPiece(part=1, queries=array([0, 1]))]]
    """

    parts: tuple[int, ...]
    shards: int = 1
    mixes: int = MIXES
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

    @classmethod
    def evenly(cls, queries: int, shards: int, mixes: int = MIXES) -> Division:
        """Divides queries into parts of as many neighbours, one for each shard."""
        if check_count(shards, "the number of shards", 1) > queries:
            raise DataError(f"{shards} shards of {queries} queries would have none: choose fewer jobs")
        return cls(tuple(np.diff(np.arange(shards + 1) * queries // shards).tolist()), shards, mixes)

    @property
    def offsets(self) -> Integers:
        """Where each part begins among all queries, and where the last one ends."""
        return np.concatenate(([0], np.cumsum(self.parts))).astype(np.int64)

    @property
    def shard_parts(self) -> list[range]:
        """The parts of each shard: as many queries as neighbouring parts allow, and at least one part."""
        ends = np.cumsum(self.parts)
        goals = ends[-1] * np.arange(1, self.shards) / self.shards
        cuts = [0, *(int(np.abs(ends - goal).argmin()) + 1 for goal in goals), len(self.parts)]
        for s in range(1, self.shards):  # no shard without a part, from the front and from the back
            cuts[s] = max(cuts[s], cuts[s - 1] + 1)
        for s in range(self.shards - 1, 0, -1):
            cuts[s] = min(cuts[s], cuts[s + 1] - 1)
        return [range(a, b) for a, b in itertools.pairwise(cuts)]

    def weights(self, queries: Floats | None = None) -> Floats:
        """How much each shard counts when it is mixed, in all passes alike: its number of queries, or their weights."""
        by_query = np.ones(sum(self.parts)) if queries is None else queries
        offsets = self.offsets
        totals = [by_query[offsets[parts.start] : offsets[parts.stop]].sum() for parts in self.shard_parts]
        return np.array(totals)

    def pieces(self, schedule: Schedule, epoch: int, weights: Floats | None = None) -> list[list[list[QueryPiece]]]:
        """The pieces of epoch `epoch`: for each mix, for each shard, what it plays."""
        times = None if weights is None else repetitions(weights, epoch)
        assert self.sequential is not None
        if self.shards == 1 or epoch < self.sequential:
            return [[[piece]] for piece in self._order(schedule, epoch, 0, range(len(self.parts)), times)]
        shards = [self._order(schedule, epoch, s, parts, times) for s, parts in enumerate(self.shard_parts)]
        cut = [_cut(pieces, self.mixes) for pieces in shards]
        return [[each[k] for each in cut] for k in range(self.mixes)]

    def _order(
        self, schedule: Schedule, epoch: int, shard: int, own: range, times: Integers | None
    ) -> list[QueryPiece]:
        """The pass of a shard over its own parts, in order, each with its queries in order."""
        parts, offsets = list(own), self.offsets
        if schedule.shuffle:
            drawn = np.random.default_rng((schedule.seed, epoch, 0, shard)).permutation(len(parts))
            parts = [parts[j] for j in drawn]
        pieces = []
        for part in parts:
            queries = np.arange(self.parts[part])
            if times is not None:
                queries = np.repeat(queries, times[offsets[part] : offsets[part + 1]])
            if len(self.parts) == 1:  # as one machine has it
                queries = queries[schedule.queries(len(queries), epoch)]
            elif schedule.shuffle:
                queries = np.random.default_rng((schedule.seed, epoch, 1, part)).permutation(queries)
            pieces.append(QueryPiece(part, queries))
        return pieces


def _cut(pieces: list[QueryPiece], count: int) -> list[list[QueryPiece]]:
    """Cuts a pass into `count` runs of as many queries, give or take one."""
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
