"""The hypotheses of a pairwise perceptron over time, and what is kept of them.

A hypothesis lasts from one misranked pair to the next and counts the pairs that it ranked correctly. All outputs of the
family are derived from one history: last, pocket, average, voted and committees of every size up to that of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.dispatch import FeatureArrays, add_one_row, dot_rows, in_kernels, slice_rows
from ranktron.kernels.jit import jit, jit_dot
from ranktron.learners.linear import LARGEST_COUNT, as_weights
from ranktron.types import Floats, Integers, Matrix, State

Documents = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int32]

HYPOTHESIS, COUNTER, KEPT, WEAKEST, SUCCESSES = range(5)
"""The places of `Trail.tally`: number and counter of the current hypothesis, hypotheses kept and the weakest of them,
and the sum of all counters before the current one."""

CHUNK = 1 << 16
MOST_NUMBERS = 1 << 28
"""What a pool may hold at most: two gigabytes."""


class HypothesisHistory(NamedTuple):
    """The current hypothesis w, the sum Σ c_i wⁱ of those before it, and the pool of those that survived longest.

    Of hypotheses with equal counters the older one is kept, so that a smaller pool is always part of a larger one.
    `values` are the validation metrics of the pool's members, `value` that of the current hypothesis; NaN if they
    were not computed.
    """

    w: Floats
    total: Floats
    tally: Integers
    members: Floats
    counters: Integers
    born: Integers
    values: Floats
    value: Floats

    @property
    def kept(self) -> int:
        return int(self.tally[KEPT])

    def copy(self) -> HypothesisHistory:
        """A copy, with a pool that is no larger than needed."""
        kept, tally = self.kept, self.tally.copy()
        # while there is room nobody asks for the weakest, and what stands there tells how the pool has grown
        tally[WEAKEST] = _weakest(self.counters[:kept], self.born[:kept])
        return HypothesisHistory(
            self.w.copy(),
            self.total.copy(),
            tally,
            self.members[:kept].copy(),
            self.counters[:kept].copy(),
            self.born[:kept].copy(),
            self.values[:kept].copy(),
            self.value.copy(),
        )

    def with_room(self, size: int, visits: int) -> HypothesisHistory:
        """The same history with a pool that has room for the hypotheses of that many visits, or for `size` at most."""
        room, most = min(size, max(self.kept + visits, 1)), MOST_NUMBERS // max(len(self.w), 1)
        if room <= len(self.counters):
            return self
        if room > most:
            raise DataError(
                f"{self.kept:,} hypotheses of {len(self.w)} weights are too many to keep: raise selective, make fewer "
                "passes, or take a smaller committee"
            )
        room = min(size, most, max(room, 2 * len(self.counters)))
        more = blank_history(len(self.w), room)
        for name in ("members", "counters", "born", "values"):
            getattr(more, name)[: self.kept] = getattr(self, name)[: self.kept]
        return self._replace(members=more.members, counters=more.counters, born=more.born, values=more.values)

    def settled(self, size: int, floor: int) -> HypothesisHistory:
        """A copy in which the current hypothesis has been offered to the pool and added to the sum as well."""
        settled = self.copy().with_room(size, 1)
        _settle(settled, floor)
        return settled.copy()

    def state(self) -> State:
        kept = self.copy()
        return {name: getattr(kept, name) for name in self._fields}


def blank_history(n_features: int, room: int = 0) -> HypothesisHistory:
    """The history before the first pair: w⁰ = 0 and nothing kept."""
    return HypothesisHistory(
        w=np.zeros(n_features),
        total=np.zeros(n_features),
        tally=np.zeros(5, np.int64),
        members=np.zeros((room, n_features)),
        counters=np.zeros(room, np.int64),
        born=np.zeros(room, np.int64),
        values=np.full(room, np.nan),
        value=np.full(1, np.nan),
    )


def counts_fit(tally: Integers, counters: Integers, born: Integers) -> bool:
    """Whether stored counts are valid; kernels use some of them as indices."""
    if tally.shape != (5,) or tally.min() < 0 or tally.max() > LARGEST_COUNT:
        return False
    kept = int(tally[KEPT])
    if not counters.shape == born.shape == (kept,) or not tally[WEAKEST] < max(kept, 1):
        return False
    return kept == 0 or bool(min(counters.min(), born.min()) >= 0 and max(counters.max(), born.max()) <= LARGEST_COUNT)


def stored_history(state: State, n_features: int) -> HypothesisHistory:
    """The history of a state; an inconsistent one is refused."""
    hypotheses = HypothesisHistory(
        w=as_weights(state["w"], n_features),
        total=as_weights(state["total"], n_features),
        tally=np.array(state["tally"], np.int64),
        members=np.array(state["members"], np.float64),
        counters=np.array(state["counters"], np.int64),
        born=np.array(state["born"], np.int64),
        values=np.array(state["values"], np.float64),
        value=np.array(state["value"], np.float64),
    )
    fits = (
        counts_fit(hypotheses.tally, hypotheses.counters, hypotheses.born)
        and hypotheses.members.shape == (hypotheses.kept, n_features)
        and hypotheses.values.shape == (hypotheses.kept,)
        and hypotheses.value.shape == (1,)
        and np.isfinite(hypotheses.members).all()
    )
    if not fits:
        raise DataError(f"the state does not hold the hypotheses of a pairwise perceptron on {n_features} features")
    return hypotheses


def merge_histories(histories: Sequence[HypothesisHistory], size: int, floor: int) -> HypothesisHistory:
    """One history of those of several shards, each of which had a perceptron of its own.

    The pool takes the longest survivor of every shard, then the second longest of every shard, and so on up to `size`,
    those with larger counters first. Counters of different shards are not compared before that: a shard of easy or few
    queries would send all members. Sums and counts are those of all hypotheses of all shards, the current hypothesis is
    the mean of theirs. One history is returned as it is.

    Parameters
    ----------
    histories : sequence of HypothesisHistory
        The history of each shard.
    size : int
        The size of the pool.
    floor : int
        The smallest counter of a hypothesis that is not ignored.

    Examples
    --------
    >>> shards = [blank_history(1), blank_history(1)]
    >>> for shard, (w, counter) in zip(shards, [(1.0, 5), (3.0, 2)]):
    ...     shard.w[0], shard.tally[COUNTER] = w, counter
    >>> merged = merge_histories(shards, 30, 0)
    >>> merged.members.ravel(), merged.counters, merged.total / merged.tally[SUCCESSES]
    (array([1., 3.]), array([5, 2]), array([1.57142857]))
    """
    if len(histories) == 1:
        return histories[0]
    settled = [each.settled(size, floor) for each in histories]
    counters, born = (np.concatenate([getattr(each, name) for each in settled]) for name in ("counters", "born"))
    shard = np.repeat(np.arange(len(settled)), [each.kept for each in settled])
    place = np.concatenate([np.argsort(np.lexsort((each.born, -each.counters))) for each in settled])
    chosen = np.lexsort((shard, -counters, place))[:size]
    chosen = chosen[np.lexsort((born[chosen], shard[chosen]))]
    tally = np.zeros(5, np.int64)
    for name in (HYPOTHESIS, SUCCESSES):
        tally[name] = sum(each.tally[name] for each in settled)
    tally[KEPT] = len(chosen)
    merged = HypothesisHistory(
        w=np.mean([each.w for each in settled], axis=0),
        total=np.sum([each.total for each in settled], axis=0),
        tally=tally,
        members=np.concatenate([each.members for each in settled])[chosen],
        counters=counters[chosen],
        born=np.arange(len(chosen)),
        values=np.full(len(chosen), np.nan),
        value=np.full(1, np.nan),
    )
    return merged.copy()


@jit_dot
def _matrix_lead(X: Matrix, i: int, j: int, w: Floats) -> float:
    lead = 0.0
    for k in range(w.shape[0]):
        lead += w[k] * (np.float64(X[i, k]) - np.float64(X[j, k]))
    return lead


@jit
def _rows_lead(X: FeatureArrays, i: int, j: int, w: Floats) -> float:
    return float(dot_rows(slice_rows(X, i, i + 1), w)[0] - dot_rows(slice_rows(X, j, j + 1), w)[0])


@jit
def _matrix_move(X: Matrix, i: int, j: int, eta: float, w: Floats) -> None:
    for k in range(w.shape[0]):
        w[k] += eta * (np.float64(X[i, k]) - np.float64(X[j, k]))


@jit
def _rows_move(X: FeatureArrays, i: int, j: int, eta: float, w: Floats) -> None:
    add_one_row(X, i, eta, w)
    add_one_row(X, j, -eta, w)


def _lead(X: FeatureArrays, i: int, j: int, w: Floats) -> float:
    """By how much document i scores above document j."""
    return (_rows_lead if isinstance(X, tuple) else _matrix_lead)(X, i, j, w)


def _move(X: FeatureArrays, i: int, j: int, eta: float, w: Floats) -> None:
    """Adds a multiple of x_i − x_j to the weights."""
    (_rows_move if isinstance(X, tuple) else _matrix_move)(X, i, j, eta, w)


in_kernels(_lead, lambda X, i, j, w: _matrix_lead(X, i, j, w), lambda X, i, j, w: _rows_lead(X, i, j, w))
in_kernels(
    _move, lambda X, i, j, eta, w: _matrix_move(X, i, j, eta, w), lambda X, i, j, eta, w: _rows_move(X, i, j, eta, w)
)


@jit
def _weakest(counters: Integers, born: Integers) -> int:
    """The smallest counter; of several the youngest."""
    weakest = 0
    for k in range(1, counters.shape[0]):
        if counters[k] < counters[weakest] or (counters[k] == counters[weakest] and born[k] > born[weakest]):
            weakest = k
    return weakest


@jit
def to_beat(hypotheses: HypothesisHistory) -> int:
    """The counter above which a hypothesis enters the pool: any while there is room, otherwise the smallest in it."""
    if hypotheses.tally[KEPT] < hypotheses.counters.shape[0]:
        return -1
    return int(hypotheses.counters[hypotheses.tally[WEAKEST]])


@jit
def enter(hypotheses: HypothesisHistory) -> None:
    """Puts the current hypothesis into the pool, in place of the weakest if there is no room."""
    tally, counters = hypotheses.tally, hypotheses.counters
    slot = tally[WEAKEST]
    if tally[KEPT] < counters.shape[0]:
        slot = tally[KEPT]
        tally[KEPT] += 1
    for j in range(hypotheses.w.shape[0]):
        hypotheses.members[slot, j] = hypotheses.w[j]
    counters[slot] = tally[COUNTER]
    hypotheses.born[slot] = tally[HYPOTHESIS]
    hypotheses.values[slot] = hypotheses.value[0]
    if tally[KEPT] == counters.shape[0]:
        tally[WEAKEST] = _weakest(counters, hypotheses.born)


@jit
def add_weighted(total: Floats, weight: float, w: Floats) -> None:
    """Adds weight · w, in place."""
    for j in range(w.shape[0]):
        total[j] += weight * w[j]


@jit
def _settle(hypotheses: HypothesisHistory, floor: int) -> None:
    """Adds the current hypothesis to the sum and offers it to the pool, unless its counter is below `floor`."""
    counter = hypotheses.tally[COUNTER]
    if counter >= floor:
        if counter > to_beat(hypotheses):
            enter(hypotheses)
        if counter > 0:
            add_weighted(hypotheses.total, float(counter), hypotheses.w)
            hypotheses.tally[SUCCESSES] += counter


@jit
def visit(
    X: FeatureArrays, upper: Documents, lower: Documents, order: Integers, eta: Floats, misranked: Counts, limit: float,
    floor: int, hypotheses: HypothesisHistory,
) -> int:  # fmt: skip
    """Visits pairs in the given order and returns how many were misranked (COMMITTEE, Tables 1 and 2).

    `eta` is the step size of each document's query. If `misranked` is not empty, it counts for each pair, and a pair
    misranked more often than `limit` is skipped.
    """
    w, tally = hypotheses.w, hypotheses.tally
    counter = tally[COUNTER]
    bar = max(floor - 1, to_beat(hypotheses))
    mistakes = 0
    bounded = misranked.shape[0] > 0
    for at in range(order.shape[0]):
        pair = order[at]
        if bounded and misranked[pair] > limit:
            continue
        i, j = upper[pair], lower[pair]
        if _lead(X, i, j, w) > 0.0:
            counter += 1
            continue
        mistakes += 1
        if bounded:
            misranked[pair] += 1
        # as `_settle`, without a call for the many that neither enter the pool nor count
        if counter > bar:
            tally[COUNTER] = counter
            enter(hypotheses)
            bar = max(floor - 1, to_beat(hypotheses))
        if counter > 0 and counter >= floor:
            add_weighted(hypotheses.total, float(counter), w)
            tally[SUCCESSES] += counter
        _move(X, i, j, eta[i], w)
        tally[HYPOTHESIS] += 1
        hypotheses.value[0] = np.nan
        counter = 0
    tally[COUNTER] = counter
    return mistakes
