"""Pairwise perceptrons and committees on parts: each shard has a perceptron of its own, and their survivors are merged.

It is not what one machine learns. The perceptron of a shard sees the pairs of its own queries, those of one part after
the other, and nothing of other shards; after each pass a committee is made of the longest survivors of all shards.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ranktron.data.io.parts import FeatureNumbers
from ranktron.errors import DataError
from ranktron.learners.pairwise.hypothesis_history import HypothesisHistory, merge_histories
from ranktron.learners.pairwise.passes import Passes
from ranktron.learners.schedule import History, Schedule
from ranktron.training.model import Model
from ranktron.training.parts import Part, take_prepared

if TYPE_CHECKING:
    from ranktron.training.distributed import PartData


class VisitedParts(NamedTuple):
    """The hypotheses of a shard after a pass, the pairs that it misranked, and its queries without a pair."""

    hypotheses: HypothesisHistory
    mistakes: int
    idle: int


def visit_parts(
    token: str,
    parts: Sequence[Part],
    features: FeatureNumbers,
    model: Model,
    hypotheses: HypothesisHistory,
    schedule: Schedule,
    epoch: int,
    size: int,
    floor: int,
) -> VisitedParts:
    """One pass over the pairs of some parts, from a history to the next one: a pure function.

    The pairs of a part are mixed, and with `shuffle` the parts are shuffled, by seed and pass.
    """
    hypotheses, mistakes, idle = hypotheses.copy(), 0, 0
    for p in schedule.queries(len(parts), epoch).tolist():
        rounds, history = take_prepared(token, parts[p], features, model), History(epoch=epoch)
        passes = Passes(rounds, schedule, pairs_per_query=model.parameters["pairs_per_query"])
        hypotheses = passes.go(hypotheses, size, floor, history)
        mistakes, idle = mistakes + history.mistakes, idle + passes.idle
    return VisitedParts(hypotheses.copy(), mistakes, idle)


@dataclass(eq=False)
class ShardPasses:
    """Passes of several perceptrons, one for each shard; what `go` returns is merged from all of them.

    Parameters
    ----------
    data : PartData
        The parts and the workers.
    model : Model
        The untrained model.
    shards : sequence of range
        The parts of each shard.
    schedule : Schedule
        The passes.
    """

    data: PartData
    model: Model
    shards: Sequence[range]
    schedule: Schedule
    alpha_bound: float = field(default=1.0, init=False)
    removed: int = field(default=0, init=False)
    idle: int = field(default=0, init=False)
    _histories: list[HypothesisHistory] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        parameters = self.model.parameters
        if parameters["alpha_bound"] < 1.0:
            raise DataError(
                "alpha_bound counts how often each pair is misranked, which parts do not remember: leave it at 1, or "
                "train on one machine"
            )
        if parameters.get("output") == "last" and len(self.shards) > 1:
            raise DataError(
                "the last hypotheses of several shards are several: choose the output average, pocket or voted, or one "
                "shard"
            )
        self._token, self._parts = secrets.token_hex(8), self.data.prepare(self.model)

    @property
    def queries(self) -> int:
        """How many queries a pass has."""
        return sum(self.data.sizes)

    def go(
        self,
        hypotheses: HypothesisHistory,
        size: int,
        floor: int,
        history: History,
        stopping: Callable[[], bool] = lambda: False,
    ) -> HypothesisHistory:
        """Plays a pass in all shards.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            Where the first pass starts.
        size, floor : int
            The size of a pool, and the smallest counter in it.
        history : History
            Counts passes, queries and mistakes.
        stopping : callable
            Not asked: a pass is played to its end.
        """
        before = self._histories or [hypotheses] * len(self.shards)
        futures = [
            self.data.workers.submit(
                visit_parts, self._token, [self._parts[p] for p in own], self.data.features, self.model, start,
                self.schedule, history.epoch, size, floor, home=self.data.homes[own.start],
            )
            for own, start in zip(self.shards, before, strict=True)
        ]  # fmt: skip
        played: list[Any] = [future.result() for future in futures]
        self._histories, self.idle = [each.hypotheses for each in played], sum(each.idle for each in played)
        history.mistakes += sum(each.mistakes for each in played)
        history.epoch, history.rounds = history.epoch + 1, history.rounds + self.queries
        return merge_histories(self._histories, size, floor)
