"""The committee perceptron: combines the longest-surviving hypotheses of a pairwise perceptron."""

from ranktron.defaults import PAPER
from ranktron.learners.pairwise.learner import Pairwise, check_bound
from ranktron.learners.pairwise.outputs import Committee

_PRINTED = PAPER["committee"]


def committee_perceptron(
    n_features: int,
    size: int = _PRINTED["size"],
    combine: str = _PRINTED["combine"],
    weights: str = _PRINTED["weights"],
    metric: str = _PRINTED["metric"],
    subcommittee: int = _PRINTED["subcommittee"],
    alpha_bound: float = _PRINTED["alpha_bound"],
    selective: int = _PRINTED["selective"],
    pairs_per_query: int = _PRINTED["pairs_per_query"],
) -> Pairwise:
    """Composes the pairwise perceptron with a committee; `metric` and `alpha_bound` need passes over a whole data set.

    Parameters
    ----------
    n_features : int
        The number of features.
    size : int
        The members of the committee.
    combine : {"average", "borda"}
        Whether the members' weights are averaged, or the members vote on each query.
    weights : {"metric", "count", "uniform"}
        The weight of a member: its metric on the validation set, the number of pairs it ranked correctly, or 1.
    metric : str
        The metric that weights the members on the validation set.
    subcommittee : int
        Combine only this many members, the best on the validation set; 0 combines all.
    alpha_bound : float
        Skip pairs misranked in more than this share of the passes; 1 skips none.
    selective : int
        Ignore hypotheses that ranked fewer pairs correctly than this.
    pairs_per_query : int
        Pairs of each query sampled in each pass; 0 takes all.

    Examples
    --------
    >>> committee_perceptron(3, size=20, combine="borda").votes
    True
    """
    check_bound(alpha_bound, pairs_per_query)
    return Pairwise(n_features, Committee(size, combine, weights, subcommittee), selective, pairs_per_query)
