"""LambdaMART: boosted regression trees, grown by LightGBM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.learners.parameters import Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.batch.trees import TreeEnsemble


@declare(
    "lightgbm",
    Parameter("n_rounds", "maximum number of trees; the validation set chooses how many are kept", 100, above=0),
    Parameter("num_leaves", "maximum number of leaves of a tree", 31, above=1),
    Parameter("learning_rate", "factor of each tree", 0.1, above=0.0),
    Parameter("min_data_in_leaf", "minimum number of documents in a leaf", 20, above=0),
    estimator="LambdaMART",
    summary="boosted regression trees, grown by LightGBM",
    paper="Burges, From RankNet to LambdaRank to LambdaMART: An Overview",
    about="""
    A sum of regression trees, each fitted to the gradients of NDCG; LightGBM grows them (extra `trees`).

    Scores, contributions (SHAP values) and model files do not need LightGBM. `n_epochs` and `shuffle` have no effect.
    Not linear: there are no weights `coef_`.
    """,
    solution="ranktron.learners.batch.trees:fit_lambda_mart",
    partial_fit=False,
    recommended={"scale": None},
)
def lambda_mart(n_features: int, p: Parameters) -> TreeEnsemble:
    """The scorer that LightGBM fills.

    Examples
    --------
    >>> len(lambda_mart(2).roots)
    0
    """
    from ranktron.learners.batch.trees import TreeEnsemble

    return TreeEnsemble(n_features)
