"""Algorithm 3 of Chaudhuri and Tewari: the perceptron that attains the lower bound, and needs no learning rate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, SLAM_PAPER, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.linear import Linear


@declare(
    "minimax",
    ETA,
    replace(AVERAGE, recommended=True),
    estimator="MinimaxPerceptron",
    summary="mistake-driven updates on the worst pair of a query (Algorithm 3); the same ranking for any eta",
    paper=SLAM_PAPER,
    about="The perceptron of the worst pair: on separable data no deterministic learner has a better guarantee.",
    recommended={"n_epochs": 30},
)
def minimax_perceptron(n_features: int, p: Parameters) -> Linear:
    """Composes the worst pair of a query with updates on mistakes.

    If learning starts from zero weights, `eta` scales the weights and changes no ranking.

    Examples
    --------
    >>> minimax_perceptron(3).surrogate
    WorstPair(margin=1.0)
    """
    from ranktron.learners.linear import Linear
    from ranktron.learners.mistakes import Misordered
    from ranktron.learners.steps import Constant
    from ranktron.surrogates import WorstPair

    return Linear(n_features, WorstPair(), Constant(p.eta), Misordered(), p.average)
