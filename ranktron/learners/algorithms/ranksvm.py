"""RankSVM: a linear support vector machine on pairs, solved in the primal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import BALANCE, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.fixed_scorer import Fixed


@declare(
    "ranksvm",
    Parameter("C", "weight of the mean loss against the regulariser |w|^2 / 2", 1.0, above=0.0),
    Parameter("loss", "squared hinge, or plain hinge", "squared", choices=("squared", "hinge")),
    replace(BALANCE, paper="query"),
    Parameter("tol", "norm of the gradient at which to stop, relative to the start", 1e-6, above=0.0),
    Parameter("max_iter", "maximum number of trust-region iterations", 1000, above=0),
    estimator="RankSVM",
    summary="support vector machine on pairs of documents, solved in the primal",
    paper="Joachims, Optimizing Search Engines using Clickthrough Data",
    about="""
    The support vector machine on pairs of documents, solved without forming a pair; on labels, or on clicks.

    `n_epochs`, `shuffle` and `random_state` have no effect: the solution is unique.
    """,
    example="C=100.0",
    solution="ranktron.learners.batch.rank_svm:fit_rank_svm",
    partial_fit=False,
    clicks=True,
)
def rank_svm(n_features: int, p: Parameters) -> Fixed:
    """The scorer for a solution.

    Examples
    --------
    >>> rank_svm(2).coef
    array([0., 0.])
    """
    from ranktron.learners.fixed_scorer import Fixed

    return Fixed(n_features)
