"""Algorithm 2 of Chaudhuri and Tewari: a perceptron for NDCG, NDCG@k or AP."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, MARGIN, SLAM_PAPER, STEP, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.linear import Linear


@declare(
    "slam",
    Parameter("metric", "ndcg, ndcg@k or ap: what is optimised, and what counts as a mistake", "ndcg@10"),
    replace(ETA, paper=0.1, recommended=0.3),
    MARGIN,
    Parameter(
        "fraction",
        "share of the lower-graded documents to compare with; 0: the best-scored; try 0.7 on noisy data",
        paper=0.0,
        recommended=0.7,
    ),
    Parameter("binarise", "whether ap treats every label above 0 as relevant, or refuses graded labels", paper=True),
    replace(STEP, recommended="sqrt"),
    replace(AVERAGE, recommended=True),
    estimator="SLAMPerceptron",
    summary="mistake-driven updates on a large-margin bound on the loss in NDCG, NDCG@k or AP (Algorithm 2)",
    paper=SLAM_PAPER,
    about="""
    The perceptron for NDCG, NDCG@k or AP: one step on a large-margin bound of the measure, on its mistakes only.

    Its defaults are for noisy data; `preset="paper"` compares with the maximum instead of a `fraction`, as printed.
    """,
)
def slam_perceptron(n_features: int, p: Parameters) -> Linear:
    """Composes a SLAM surrogate with updates on the mistakes of its metric.

    Examples
    --------
    >>> slam_perceptron(3, metric="ap").surrogate.measure
    Metric(name='map', k=None, convention='paper')
    """
    from ranktron.learners.linear import Linear
    from ranktron.learners.mistakes import mistake_rule
    from ranktron.learners.steps import make_step
    from ranktron.metrics import metric
    from ranktron.surrogates import SLAM

    measure = metric(p.metric)
    surrogate = SLAM(measure, p.margin, p.fraction, p.binarise)
    return Linear(n_features, surrogate, make_step(p.step, p.eta), mistake_rule(measure), p.average)
