"""Predtron for subset ranking: the general learner with permutations as predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.predtron.ranker import PredtronLearner


@declare(
    "predtron",
    Parameter(
        "representation",
        "value of position i in the vector of a permutation: a larger exponent needs less margin further "
        "down; discount is NDCG's 1/log2(1 + i), fastest on long lists",
        "-i^1.1",
        choices=("-i", "-i^1.1", "-i^2", "1/i", "discount"),
    ),
    Parameter("loss", "ndcg, ndcg@k or p@k: what is optimised, and what counts as a mistake", "ndcg"),
    Parameter(
        "variant",
        "standard, or loss-driven: updates in proportion to the loss, and the same ranking for any eta",
        "standard",
        choices=("standard", "loss-driven"),
    ),
    Parameter("norm", "norm of the margin; l1 suits many features of which few matter", "l2", choices=("l2", "l1")),
    replace(ETA, paper=0.1),
    Parameter(
        "step",
        "constant (eta), or the step size of the paper's theorems",
        "constant",
        choices=("constant", "theory"),
    ),
    Parameter("radius", "largest operator norm of a query's features; for step=theory", 1.0, above=0.0),
    Parameter("documents", "largest number of documents of a query; for step=theory", 0, above=-1.0),
    Parameter("highest", "highest grade; for step=theory", 0, above=-1.0),
    replace(AVERAGE, recommended=True),
    estimator="PredtronRanker",
    summary="mistake-driven updates towards the right permutation, with losses, norms and margins of choice",
    paper="Jain, Natarajan and Tewari, Predtron",
    about="A linear ranker that steps from the permutation it should not have shown towards the right one.",
)
def predtron_ranker(n_features: int, p: Parameters) -> PredtronLearner:
    """Composes permutations, a variant, a link and a step size; `step="theory"` is that of the theorems.

    Besides the norms of the command line, it takes "group" and "trace".

    Examples
    --------
    >>> predtron_ranker(3, representation="-i^1.1", norm="l2").core.step
    Constant(eta=0.1)
    """
    from ranktron.learners.predtron.links import make_link
    from ranktron.learners.predtron.loop import Predtron, theoretical_step
    from ranktron.learners.predtron.permutations import Permutations
    from ranktron.learners.predtron.positions import PlaceLoss, Places
    from ranktron.learners.predtron.ranker import PredtronLearner
    from ranktron.learners.predtron.variants import make_variant
    from ranktron.learners.steps import Constant

    problem = Permutations(PlaceLoss(p.loss), Places(p.representation), p.documents, p.highest)
    variant, link = make_variant(p.variant), make_link(p.norm, (n_features,))
    step = theoretical_step(problem, variant, link, p.radius) if p.step == "theory" else Constant(p.eta)
    return PredtronLearner(Predtron(problem, (n_features,), step, variant, link, p.average))
