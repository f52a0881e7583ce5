"""PDGD of Oosterhuis and de Rijke: learns from clicks on rankings that it draws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, PRICE, SEED, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.clicks.pdgd import PDGD


@declare(
    "pdgd",
    replace(ETA, paper=0.1, recommended=0.03),
    Parameter("decay", "the step of round t is eta times decay^t; 1: constant", 0.9999977, above=0.0),
    Parameter("k", "number of documents that the user sees", 10, above=0),
    replace(SEED, help="seed of the rankings that are drawn"),
    AVERAGE,
    PRICE,
    estimator="PDGDRanker",
    summary="shows rankings drawn from its scores and learns from clicks, without the bias of the positions",
    paper="Oosterhuis and de Rijke, Differentiable Unbiased Online Learning to Rank",
    about="""
    Learns from clicks on rankings that it draws, and undoes the bias of what stands higher being seen more (PDGD).

    `fit` and `partial_fit` simulate: the user sees the first k documents of a ranking drawn by the scores and, unless
    `feedback` says otherwise, clicks each that has a label above 0. Real clicks go through `learner_.rank(X, number)`
    and `learner_.learn(X, ranking, feedback)`. `predict` and `rank` of the estimator draw nothing.
    """,
    example='eta=1.0, feedback="informational"',
    simulates=True,
)
def pdgd_ranker(n_features: int, p: Parameters) -> PDGD:
    """Composes `PDGD` with step sizes η_t = eta · decay^t.

    Examples
    --------
    >>> pdgd_ranker(3).step
    ExponentialDecay(eta=0.1, decay=0.9999977)
    """
    from ranktron.learners.clicks.pdgd import PDGD
    from ranktron.learners.steps import ExponentialDecay

    return PDGD(n_features, p.k, ExponentialDecay(p.eta, p.decay), p.seed, p.average, p.exploration_price)
