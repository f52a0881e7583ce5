"""The pairwise perceptron of Elsas, Carvalho and Carbonell, with one of its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.errors import DataError
from ranktron.learners.parameters import COMMITTEE_PAPER, PAIRS, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.pairwise.learner import Pairwise


@declare(
    "pairwise",
    Parameter(
        "output",
        "last, pocket (the hypothesis that survived longest), average, or voted (all hypotheses vote)",
        "average",
        choices=("last", "pocket", "average", "voted"),
    ),
    *PAIRS,
    estimator="PairwisePerceptron",
    summary="one small update for every misranked pair, in passes over the shuffled pairs of all queries",
    paper=COMMITTEE_PAPER,
    about="""
    The perceptron on pairs of documents: its last, longest-lived, average or voting hypotheses.

    `fit` mixes the pairs of all lists in every pass; `partial_fit` takes the pairs of one list, then the next.
    `output="voted"` depends on the list: `predict` needs `qid` and there are no weights `coef_`.
    """,
    solution="ranktron.learners.pairwise.passes:fit_pairwise",
)
def pairwise_perceptron(n_features: int, p: Parameters) -> Pairwise:
    """Composes the pairwise perceptron with one of its outputs; `alpha_bound` needs passes over a whole data set.

    Examples
    --------
    >>> pairwise_perceptron(3, "pocket").output.size
    1
    """
    from ranktron.learners.pairwise.learner import OUTPUTS, Pairwise, check_bound

    if p.output not in OUTPUTS:
        raise DataError(f"there is no output {p.output!r}; there are: {', '.join(OUTPUTS)}")
    check_bound(p.alpha_bound, p.pairs_per_query)
    return Pairwise(n_features, OUTPUTS[p.output], p.selective, p.pairs_per_query)
