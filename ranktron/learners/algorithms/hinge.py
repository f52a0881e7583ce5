"""The hinge perceptron: on a mistake, one step on the mean margin violation over all pairs of the query."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, MARGIN, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.linear import Linear


@declare(
    "hinge",
    replace(ETA, recommended=0.1),
    MARGIN,
    replace(AVERAGE, recommended=True),
    estimator="HingePerceptron",
    summary="mistake-driven updates on the mean margin violation over all pairs of a query",
    about="A linear ranker that steps along the margin violations of a list whenever it misorders one.",
    clicks=True,
)
def hinge_perceptron(n_features: int, p: Parameters) -> Linear:
    """Composes the mean pairwise hinge, a constant step size and updates on mistakes only.

    Examples
    --------
    >>> hinge_perceptron(3, eta=0.5).step
    Constant(eta=0.5)
    """
    from ranktron.learners.linear import Linear
    from ranktron.learners.mistakes import Misordered
    from ranktron.learners.steps import Constant
    from ranktron.surrogates import MeanPairwiseHinge

    return Linear(n_features, MeanPairwiseHinge(p.margin), Constant(p.eta), Misordered(), p.average)
