"""A pass in several shards at once, mixed several times: by threads, processes or machines.

A shard is played by a pure function of a state and queries, through the interface of `concurrent.futures`. States are
mixed in the order of the shards, so that neither workers nor timing change a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.loop import play
from ranktron.learners.mixing import start_from_mean
from ranktron.learners.schedule import Fit, next_snapshot
from ranktron.metrics import Metric
from ranktron.training.shards import Division, QueryPiece, starts_from_mean
from ranktron.types import Floats, Integers, State

MIXES = 10
"""How often shards are mixed in a pass, unless training asks for another number."""
MIXABLE = "slam, minimax, hinge, listnet and predtron"


class PlayedQueries(NamedTuple):
    """The state after the queries, and the loss and metrics of each of them before it was learnt from."""

    state: State
    losses: Floats
    values: Floats


def play_pieces(
    make: Callable[[], BaseLearner],
    state: State,
    pieces: Sequence[QueryPiece],
    load: Callable[[int], Rounds],
    metrics: tuple[Metric, ...] = (),
) -> PlayedQueries:
    """Plays pieces in order, from a state: a pure function if `load` is one.

    Parameters
    ----------
    make : callable
        Makes an untrained learner.
    state : State
        The state to start from.
    pieces : sequence of QueryPiece
        The queries to play.
    load : callable
        Loads the queries of a part as the learner takes them.
    metrics : tuple of Metric
        Computed for each ranking as it is shown.

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


class RunShard(Protocol):
    """Submits the pieces of one shard to a worker; `following` are the pieces that the shard plays next."""

    def __call__(
        self,
        shard: int,
        state: State,
        pieces: list[QueryPiece],
        following: list[QueryPiece],
        metrics: tuple[Metric, ...],
        /,
    ) -> Future[PlayedQueries]: ...


def check_mixable(kind: str, learner: BaseLearner) -> None:
    """Refuses learners whose states cannot be mixed.

    >>> from ranktron.learners import pairwise_perceptron
    >>> check_mixable("pairwise", pairwise_perceptron(2))
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: the states of pairwise cannot be mixed: train it in one shard, or take one of slam, \
minimax, hinge, listnet and predtron
    """
    if not learner.mixes:
        raise DataError(f"the states of {kind} cannot be mixed: train it in one shard, or take one of {MIXABLE}")


@dataclass(frozen=True, eq=False)
class MixedPass:
    """One epoch in shards, for `play_schedule`.

    Parameters
    ----------
    division : Division
        The queries that each shard plays between two mixes.
    run : RunShard
        Submits the pieces of one shard.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.learners import hinge_perceptron
    >>> from ranktron.learners.schedule import Schedule
    >>> lists, make = Separable().rounds(40), partial(hinge_perceptron, 20)
    >>> learner, parts = make(), [lists[:20], lists[20:]]
    >>> with ThreadPoolExecutor(2) as executor:
    ...     run = lambda shard, state, pieces, following, metrics: executor.submit(
    ...         play_pieces, make, state, pieces, parts.__getitem__, metrics
    ...     )
    ...     MixedPass(Division((20, 20), shards=2), run)(learner, Fit(lists, Schedule()), (), 10)
    >>> learner.rounds
    40
    """

    division: Division
    run: RunShard

    def __call__(self, learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
        """Plays the rest of an epoch, up to Ctrl-C."""
        history, weights = fit.history, self.division.weights()
        mixes = self.division.pieces(fit.schedule, history.epoch)
        sizes = [sum(len(piece.queries) for pieces in shards for piece in pieces) for shards in mixes]
        if history.position == 0 and starts_from_mean(learner, self.division, history.epoch):
            learner.restore(start_from_mean(learner.state()))
        end = 0
        for k, shards in enumerate(mixes):
            end += sizes[k]
            if end <= history.position:  # played before the run was interrupted
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
            if learner.rounds >= due:
                history.spread.note(learner.rounds, learner.coef)
            fit.advance(sizes[k])
            if fit.interrupted:
                break
