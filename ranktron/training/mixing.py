"""Passes in several shards at once, mixed several times a pass: by threads, processes or machines.

The interface is that of `concurrent.futures`: whoever runs the shards is given a function and its arguments and answers
with a future. States are mixed in the order of the shards, so that neither workers nor timing change a bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.mixing import start_from_mean
from ranktron.learners.schedule import Fit
from ranktron.learners.weight_spread import next_snapshot
from ranktron.metrics import Metric
from ranktron.training.passes import Division, PlayedQueries, QueryPiece, play_pieces
from ranktron.types import FeedbackModel, State

MIXED = "slam, minimax, hinge, listnet and predtron"


class RunShard(Protocol):
    """Plays the pieces of one shard from a state, elsewhere; `following` is what the shard plays next."""

    def __call__(
        self,
        shard: int,
        state: State,
        pieces: list[QueryPiece],
        following: list[QueryPiece],
        metrics: tuple[Metric, ...],
        /,
    ) -> Future[PlayedQueries]: ...


def refuse_unmixable(kind: str, learner: BaseLearner, feedback: FeedbackModel | str | None = None) -> None:
    """Refuses learners whose states cannot be mixed.

    >>> from ranktron.learners import pairwise_perceptron
    >>> refuse_unmixable("pairwise", pairwise_perceptron(2))
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: pairwise cannot learn in several shards, because its states cannot be mixed: train it \
with one job, or take one of slam, minimax, hinge, listnet and predtron
    """
    if not learner.mixes:
        raise DataError(
            f"{kind} cannot learn in several shards, because its states cannot be mixed: train it with one job, or "
            f"take one of {MIXED}"
        )
    if feedback is not None:
        raise DataError(
            "a simulated user answers one round after the other, by their numbers, which shards would share: train "
            "with one job, or from labels"
        )


def _itself(learner: BaseLearner) -> BaseLearner:
    return learner


def run_in(executor: Executor, make: Callable[[], BaseLearner], rounds: Rounds, division: Division) -> RunShard:
    """Runs shards of queries that are in memory by an executor, such as a pool of threads."""
    offsets = division.offsets.tolist()
    parts = [rounds[a:b] for a, b in itertools.pairwise(offsets)]
    learners = [partial(_itself, make()) for _ in range(division.shards)]  # to make one takes as long as some queries

    def run(
        shard: int, state: State, pieces: list[QueryPiece], following: list[QueryPiece], metrics: tuple[Metric, ...]
    ) -> Future[PlayedQueries]:
        return executor.submit(play_pieces, learners[shard], state, pieces, parts.__getitem__, metrics)

    return run


@dataclass(frozen=True, eq=False)
class MixedPass:
    """One pass in shards, for `play_schedule`.

    Parameters
    ----------
    division : Division
        Which queries each shard plays between two mixes.
    run : RunShard
        Plays the pieces of one shard.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from functools import partial
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.learners import hinge_perceptron
    >>> from ranktron.learners.schedule import Schedule
    >>> lists, make = Separable().rounds(40), partial(hinge_perceptron, 20)
    >>> learner, division = make(), Division.evenly(40, shards=4)
    >>> with ThreadPoolExecutor(2) as executor:
    ...     MixedPass(division, run_in(executor, make, lists, division))(learner, Fit(lists, Schedule()), (), 10)
    >>> learner.rounds
    40
    """

    division: Division
    run: RunShard

    def __call__(self, learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
        """Plays the rest of an epoch, or as much of it as comes before Ctrl-C."""
        history, weights = fit.history, self.division.weights(fit.weights)
        mixes = self.division.pieces(fit.schedule, history.epoch, fit.weights)
        sizes = [sum(len(piece.queries) for pieces in shards for piece in pieces) for shards in mixes]
        if history.position == 0 and starts_from_mean(learner, self.division, history.epoch):
            learner.restore(start_from_mean(learner.state()))
        before = 0
        for k, shards in enumerate(mixes):
            before += sizes[k]
            if before <= history.position:
                continue
            following = mixes[k + 1] if k + 1 < len(mixes) else [[] for _ in shards]
            state, due = learner.state(), next_snapshot(learner.rounds)
            futures = [
                self.run(shard, state, *pieces, metrics)
                for shard, pieces in enumerate(zip(shards, following, strict=True))
            ]
            played = [future.result() for future in futures]
            if len(played) == 1:
                learner.restore(played[0].state)
            else:
                learner.restore(learner.mix(state, [each.state for each in played], weights))
            for each in played:
                history.note_all(each.losses, each.values, every)
            if learner.rounds >= due and learner.coef is not None:
                history.spread.note(learner.rounds, learner.coef)
            fit.advance(sizes[k])
            if fit.stopping:
                break


def starts_from_mean(learner: BaseLearner, division: Division, epoch: int) -> bool:
    """Whether the shards of an epoch, the first after those of one learner, begin with the mean of its weights.

    >>> from ranktron.learners import hinge_perceptron, minimax_perceptron
    >>> division = Division((4,) * 6, shards=6)
    >>> [starts_from_mean(minimax_perceptron(2), division, epoch) for epoch in range(3)]
    [False, True, False]
    >>> starts_from_mean(hinge_perceptron(2), division, 1)
    False
    """
    return learner.scale_free and division.shards > 1 and division.sequential == epoch > 0


def record_division(division: Division) -> dict[str, Any]:
    """The division as a model's record stores it.

    >>> record_division(Division((3, 4), shards=2, mixes=5))
    {'shards': 2, 'mixes': 5, 'sequential': 0, 'parts': [3, 4]}
    """
    numbers = {"shards": division.shards, "mixes": division.mixes, "sequential": division.sequential}
    return {**numbers, "parts": list(division.parts)}


def recorded_division(record: Mapping[str, Any]) -> Division | None:
    """The division of a model's record; None if it was trained in one piece.

    >>> recorded_division({"division": {"parts": [3, 4], "shards": 2, "mixes": 5, "sequential": 0}})
    Division(parts=(3, 4), shards=2, mixes=5, sequential=0)
    """
    kept = record.get("division")
    if kept is None:
        return None
    numbers = (int(kept[name]) for name in ("shards", "mixes", "sequential"))
    return Division(tuple(map(int, kept["parts"])), *numbers)
