"""The history of a kernelized learner: its time, and the counters of the hypotheses that it keeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.kernelized.support import Support
from ranktron.learners.pairwise.hypothesis_history import (
    COUNTER,
    HYPOTHESIS,
    KEPT,
    SUCCESSES,
    HypothesisHistory,
    counts_fit,
)
from ranktron.types import Floats, Integers, State


class DualHistory(NamedTuple):
    """A `HypothesisHistory` without the weights of hypotheses, which are rows of coefficients in the support.

    At most `size` of them are kept; those whose success counter is below `floor` are ignored. The time, over
    which averages are taken, counts rounds, or pairs that were ranked correctly.
    """

    tally: Integers
    counters: Integers
    born: Integers
    values: Floats
    value: Floats
    size: int
    floor: int

    @property
    def kept(self) -> int:
        return int(self.tally[KEPT])

    @property
    def time(self) -> int:
        """The time so far, including that of the current hypothesis unless it is ignored."""
        counter = int(self.tally[COUNTER])
        return int(self.tally[SUCCESSES]) + (counter if counter >= self.floor else 0)

    def later(self) -> DualHistory:
        """The same pool one round later."""
        tally = self.tally.copy()
        tally[SUCCESSES] += 1
        return self._replace(tally=tally)

    def history_of_list(self, documents: int, visits: int) -> HypothesisHistory:
        """A history of the updates within one query: w has those of the round, a member those before it entered."""
        kept, room = self.kept, min(self.size, self.kept + visits)
        counters, born, values = np.zeros(room, np.int64), np.zeros(room, np.int64), np.full(room, np.nan)
        counters[:kept], born[:kept], values[:kept] = self.counters, self.born, self.values
        steps, members = np.zeros(documents), np.zeros((room, documents))
        return HypothesisHistory(
            steps, steps[:0], self.tally.copy(), members, counters, born, values, self.value.copy()
        )

    def after(self, hypotheses: HypothesisHistory) -> DualHistory:
        """The pool after the updates of one query."""
        kept = hypotheses.kept
        counters, born, values = hypotheses.counters[:kept], hypotheses.born[:kept], hypotheses.values[:kept]
        return DualHistory(hypotheses.tally, counters, born, values, hypotheses.value, self.size, self.floor)

    def entered_since(self, before: DualHistory) -> Integers:
        """The indices of the new members."""
        return np.flatnonzero(self.born >= before.tally[HYPOTHESIS])

    def hypotheses(self, support: Support) -> HypothesisHistory:
        """The whole history, with coefficients of documents instead of weights."""
        total = support.alpha * self.tally[SUCCESSES] - support.lagged_sum
        alpha, members = support.alpha, support.members
        return HypothesisHistory(alpha, total, self.tally, members, self.counters, self.born, self.values, self.value)

    def state(self) -> State:
        if self.size == 0:
            return {"tally": self.tally}
        members = {"counters": self.counters, "hypotheses": self.born, "member_values": self.values}
        return {"tally": self.tally, "value": self.value, **members}

    def restored(self, state: State, members: int) -> DualHistory:
        """The pool of a state with that many members; an inconsistent one is refused."""
        if self.size == 0:
            state = {**blank_pool(1).state(), "tally": state["tally"]}
        tally, counters, born = (np.array(state[name], np.int64) for name in ("tally", "counters", "hypotheses"))
        values, value = (np.array(state[name], np.float64) for name in ("member_values", "value"))
        pool = DualHistory(tally, counters, born, values, value, self.size, self.floor)
        fits = counts_fit(tally, counters, born) and values.shape == (members,) and value.shape == (1,)
        if not fits or not pool.kept == members <= self.size:
            raise DataError(f"the state does not hold the counters of {members} hypotheses, or they are too many")
        return pool


def blank_pool(size: int = 0, floor: int = 0) -> DualHistory:
    """The pool before the first round."""
    none = np.zeros(0, np.int64)
    return DualHistory(np.zeros(5, np.int64), none, none, np.zeros(0), np.full(1, np.nan), size, floor)
