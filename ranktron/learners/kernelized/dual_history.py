"""The history of a kernelized learner: its time, over which averages are taken."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.kernelized.support import Support
from ranktron.learners.pairwise.hypothesis_history import COUNTER, SUCCESSES, HypothesisHistory, counts_fit
from ranktron.types import Floats, Integers, State

_NONE = np.zeros(0, np.int64)


class DualHistory(NamedTuple):
    """A `HypothesisHistory` without weights and members; hypotheses with a success counter below `floor` are ignored.

    The time counts rounds, or pairs that were ranked correctly.
    """

    tally: Integers
    floor: int

    @property
    def time(self) -> int:
        """The time so far, including that of the current hypothesis unless it is ignored."""
        counter = int(self.tally[COUNTER])
        return int(self.tally[SUCCESSES]) + (counter if counter >= self.floor else 0)

    def later(self) -> DualHistory:
        """The same history one round later."""
        tally = self.tally.copy()
        tally[SUCCESSES] += 1
        return self._replace(tally=tally)

    def hypotheses(self, support: Support) -> HypothesisHistory:
        """The whole history, with coefficients of documents instead of weights."""
        alpha: Floats = support.alpha
        total = alpha * self.tally[SUCCESSES] - support.lagged_sum
        members = np.zeros((0, len(alpha)))
        return HypothesisHistory(alpha, total, self.tally, members, _NONE, _NONE, np.zeros(0), np.full(1, np.nan))

    def state(self) -> State:
        return {"tally": self.tally}

    def restored(self, state: State) -> DualHistory:
        """The history of a state; an inconsistent one is refused."""
        tally = np.array(state["tally"], np.int64)
        if not counts_fit(tally, _NONE, _NONE):
            raise DataError("the state does not hold the counters of a kernelized learner")
        return self._replace(tally=tally)
