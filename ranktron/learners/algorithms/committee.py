"""The committee perceptron: combines the longest-surviving hypotheses of a pairwise perceptron."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.learners.parameters import COMMITTEE_PAPER, PAIRS, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.pairwise.learner import Pairwise


@declare(
    "committee",
    Parameter("size", "members of the committee", 30, above=0),
    Parameter(
        "combine", "average the members' scores, or let them vote (Borda)", "average", choices=("average", "borda")
    ),
    Parameter(
        "weights",
        "weight of a member: its metric on the validation set (its success counter without one), its counter, or 1",
        "metric",
        choices=("metric", "count", "uniform"),
    ),
    Parameter("metric", "metric that weights the members on the validation set", "ndcg@10"),
    Parameter("subcommittee", "combine only this many members, the best on the validation set; 0: all", 0, above=-1),
    *PAIRS,
    estimator="CommitteePerceptron",
    summary="the longest-surviving hypotheses of the pairwise perceptron, weighted on the validation set",
    paper=COMMITTEE_PAPER,
    about="""
    The hypotheses of a pairwise perceptron that survived longest, averaged or voting.

    Held-out lists (`eval_set`) choose the pass and weigh the members by `metric`; without them members weigh as many
    pairs as they ranked well in a row. `combine="borda"` depends on the list: `predict` needs `qid` and there are no
    weights `coef_`.
    """,
    example="size=10",
    solution="ranktron.learners.pairwise.passes:fit_committee",
)
def committee_perceptron(n_features: int, p: Parameters) -> Pairwise:
    """Composes the pairwise perceptron with a committee; `metric` and `alpha_bound` need passes over a whole data set.

    Examples
    --------
    >>> committee_perceptron(3, size=20, combine="borda").votes
    True
    """
    from ranktron.learners.pairwise.learner import Pairwise, check_bound
    from ranktron.learners.pairwise.outputs import Committee

    check_bound(p.alpha_bound, p.pairs_per_query)
    output = Committee(p.size, p.combine, p.weights, p.subcommittee)
    return Pairwise(n_features, output, p.selective, p.pairs_per_query)
