"""The committee perceptron: of all hypotheses of a pairwise perceptron, those that survived longest decide together."""

from ranktron.learners.pairwise.learner import Pairwise, check_bound
from ranktron.learners.pairwise.outputs import Committee


def committee_perceptron(
    n_features: int,
    size: int = 30,
    combine: str = "average",
    weights: str = "metric",
    metric: str = "ndcg@10",
    subcommittee: int = 0,
    alpha_bound: float = 1.0,
    selective: int = 0,
    pairs_per_query: int = 0,
) -> Pairwise:
    """Composes the pairwise perceptron with a committee; metric and α-bound are for passes over a whole data set.

    >>> committee_perceptron(3, size=20, combine="borda").votes
    True
    """
    check_bound(alpha_bound, pairs_per_query)
    return Pairwise(n_features, Committee(size, combine, weights, subcommittee), selective, pairs_per_query)
