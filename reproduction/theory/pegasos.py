"""Stochastic subgradient steps in the primal (Pegasos), on the same objective: named in section 3.1 as the other way.

    w_{t+1} = (1 − 1/t) w_t + C/t Σ_j g_j x_j,    g the vertex of the drawn list at w_t

The objective is 1-strongly convex, hence the step 1/t. There is no dual point and no gap: only the primal value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktron.kernels.dispatch import FeatureArrays, slice_rows
from ranktron.kernels.jit import jit
from ranktron.learners.batch.rank_mm_exact import average_in
from ranktron.learners.batch.rank_mm_losses import vertex
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, carry, scores_minus_labels
from ranktron.types import Floats, Integers


@jit
def _descend(
    loss: int, X: FeatureArrays, labels: Floats, offsets: Integers, codes: Integers, counts: Integers, order: Integers,
    C: float, w: Floats, averaged: Floats, t: int,
) -> None:  # fmt: skip
    for q in order:
        t += 1
        start, stop = offsets[q], offsets[q + 1]
        if counts[q] > 1:
            rows = slice_rows(X, start, stop)
            a = scores_minus_labels(rows, w, labels[start:stop])
            g = np.empty(stop - start)
            vertex(loss, a, codes[start:stop], counts[q], np.ones(stop - start), g)
            for j in range(w.shape[0]):
                w[j] *= 1.0 - 1.0 / t
            carry(rows, labels[start:stop], g, C / t, w)
        average_in(w, 0.0, averaged, t)


@dataclass(eq=False)
class Pegasos:
    """Weights that follow the subgradient of one list at a time, and their mean (later steps weigh more).

    Examples
    --------
    >>> from ranktron.data.rounds import Rounds
    >>> problem = RankMMProblem(Rounds.from_arrays([[1.0], [3.0]], [0, 1]), "average", C=1.0)
    >>> pegasos = Pegasos(problem)
    >>> pegasos.visit(np.zeros(2000, np.int64))
    >>> pegasos.mean.round(2), round(problem.primal(pegasos.mean), 3)
    (array([0.5]), 0.125)
    """

    problem: RankMMProblem
    steps: int = 0
    w: Floats = field(init=False, repr=False)
    averaged: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        d = self.problem.rounds.n_features
        self.w, self.averaged = np.zeros(d), np.zeros(d + 1)

    @property
    def mean(self) -> Floats:
        """The mean of the weights over all steps, the t-th with weight t."""
        return self.averaged[:-1]

    def visit(self, order: Integers) -> None:
        """Makes one step for each list of `order`."""
        problem = self.problem
        _descend(problem.kernel, *problem.arrays, order, problem.C, self.w, self.averaged, self.steps)
        self.steps += len(order)
