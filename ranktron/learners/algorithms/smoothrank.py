"""SmoothRank: NDCG itself, made smooth and maximised around the weights of ListNet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.learners.parameters import Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.fixed_scorer import Fixed


@declare(
    "smoothrank",
    Parameter("k", "NDCG@k is maximised", 10, above=0),
    Parameter("C", "weight of the mean NDCG against half of the squared distance from ListNet", 10.0, above=0.0),
    Parameter("max_iter", "maximum number of iterations for each of five smoothings", 50, above=0),
    estimator="SmoothRank",
    summary="NDCG itself, made smooth and maximised near the weights of ListNet",
    paper="Chapelle and Wu, Gradient Descent Optimization of Smoothed Information Retrieval Metrics",
    about="""
    NDCG itself, made smooth and maximised, beginning with the weights of ListNet.

    `n_epochs`, `shuffle` and `random_state` are those of ListNet's passes. With few queries, NDCG on the training set
    is soon better than on others: a smaller `C` stays closer to ListNet.
    """,
    example="C=100.0",
    solution="ranktron.learners.batch.smooth_rank:fit_smooth_rank",
    partial_fit=False,
)
def smooth_rank(n_features: int, p: Parameters) -> Fixed:
    """The scorer for a solution.

    Examples
    --------
    >>> smooth_rank(2).coef
    array([0., 0.])
    """
    from ranktron.learners.fixed_scorer import Fixed

    return Fixed(n_features)
