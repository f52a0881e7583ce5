"""The kernelized pairwise perceptron: an update for every misranked pair, as coefficients of its two documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.learners.kernelized.dual_history import DualHistory
from ranktron.learners.kernelized.support import Support
from ranktron.learners.kernelized.updates import Move
from ranktron.learners.pairwise.hypothesis_history import COUNTER, HYPOTHESIS, SUCCESSES
from ranktron.learners.pairwise.pairs import Documents, Pairs
from ranktron.types import Features, Floats, Integers


@jit
def _visit(
    K: Floats, scores: Floats, upper: Documents, lower: Documents, order: Integers, eta: float, floor: int,
    lagged: Floats, delta: Floats, tally: Integers,
) -> int:  # fmt: skip
    """Visits the pairs of a query; each misranked one updates the scores of all documents. Returns their number."""
    mistakes = 0
    for at in range(order.shape[0]):
        i, j = upper[order[at]], lower[order[at]]
        if scores[i] - scores[j] > 0.0:
            tally[COUNTER] += 1
            continue
        mistakes += 1
        if tally[COUNTER] >= floor:
            tally[SUCCESSES] += tally[COUNTER]
        delta[i] += eta
        delta[j] -= eta
        lagged[i] += tally[SUCCESSES] * eta
        lagged[j] -= tally[SUCCESSES] * eta
        for a in range(scores.shape[0]):
            scores[a] += eta * (K[i, a] - K[j, a])
        tally[HYPOTHESIS] += 1
        tally[COUNTER] = 0
    return mistakes


@dataclass(frozen=True)
class PairSteps:
    """The updates of the pairwise perceptron, one for each misranked pair of a query (COMMITTEE, Eq. 2).

    α increases by η_q = 1/|S_q| for the better document and decreases by it for the other. Time counts the pairs that
    were ranked correctly, so that the mean over time is the average perceptron.

    Parameters
    ----------
    pairs_per_query : int
        Pairs sampled from each query; 0 takes all.

    Examples
    --------
    >>> PairSteps(pairs_per_query=100)
    PairSteps(pairs_per_query=100)
    """

    pairs_per_query: int = 0

    def __post_init__(self) -> None:
        if self.pairs_per_query < 0:
            raise DataError(f"pairs_per_query must be 0 (all pairs) or more, not {self.pairs_per_query}")

    def __call__(
        self, support: Support, X: Features, scores: Floats, labels: Floats, number: int, history: DualHistory
    ) -> Move:
        pairs = Pairs.of(labels, np.array([0, len(labels)]))
        rng = np.random.default_rng(number)
        numbers = pairs.sample(self.pairs_per_query, rng) if self.pairs_per_query else pairs.all()
        if len(numbers) == 0:
            return Move(0.0, 0, np.zeros((2, len(labels))), history)
        upper, lower = pairs.decode(numbers)
        order = rng.permutation(len(numbers))
        K, now, steps = support.kernel_within(X), support.scores(X, support.alpha), np.zeros((2, len(labels)))
        delta, lagged = steps
        tally = history.tally.copy()
        mistakes = _visit(K, now, upper, lower, order, 1.0 / len(numbers), history.floor, lagged, delta, tally)
        return Move(mistakes / len(numbers), mistakes, steps, history._replace(tally=tally))
