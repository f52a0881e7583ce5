"""RankBoost: a weighted sum of thresholded features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import BALANCE, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.batch.rank_boost import Stumps


@declare(
    "rankboost",
    Parameter("n_rounds", "maximum number of thresholds; the validation set chooses how many are kept", 300, above=0),
    replace(BALANCE, paper="pair"),
    estimator="RankBoost",
    summary="a weighted sum of thresholded features, chosen greedily",
    paper="Freund et al., An Efficient Boosting Algorithm for Combining Preferences",
    about="""
    A weighted sum of thresholded features, each chosen to mend the pairs that the others get wrong.

    `n_epochs`, `shuffle` and `random_state` have no effect. Not linear: there are no weights `coef_`.
    """,
    solution="ranktron.learners.batch.rank_boost:fit_rank_boost",
    partial_fit=False,
    recommended={"scale": None},
)
def rank_boost(n_features: int, p: Parameters) -> Stumps:
    """The scorer that boosting fills.

    Examples
    --------
    >>> rank_boost(2).alphas
    array([], dtype=float64)
    """
    from ranktron.learners.batch.rank_boost import Stumps

    return Stumps(n_features)
