"""The learners in scikit-learn's shape.

Every ranker takes `fit(X, y, qid=...)` with query ids in any order and of any type (or `group=` sizes, or a column
named `qid` in a data frame) and answers in input order. The parameters and defaults are those of `algorithms.py`.
"""

from ranktron.errors import DataError
from ranktron.estimators.base import BaseRanker
from ranktron.estimators.batch import CommitteePerceptron, PairwisePerceptron, RankBoost, RankSVM, SmoothRank
from ranktron.estimators.loaded_models import around_model
from ranktron.estimators.margin import RankMM
from ranktron.estimators.online import (
    HingePerceptron,
    KernelPerceptron,
    MinimaxPerceptron,
    OnlineListNet,
    PDGDRanker,
    SLAMPerceptron,
    TopKRanker,
)
from ranktron.estimators.predtron import PredtronRanker
from ranktron.estimators.predtron_classes import PredtronClassifier, PredtronOrdinal
from ranktron.estimators.predtron_labels import PredtronLabelRanker, PredtronMultilabel
from ranktron.training.algorithms import stored_algorithm
from ranktron.training.model import Model

__all__ = [
    "CommitteePerceptron",
    "HingePerceptron",
    "KernelPerceptron",
    "MinimaxPerceptron",
    "OnlineListNet",
    "PDGDRanker",
    "PairwisePerceptron",
    "PredtronClassifier",
    "PredtronLabelRanker",
    "PredtronMultilabel",
    "PredtronOrdinal",
    "PredtronRanker",
    "RankBoost",
    "RankMM",
    "RankSVM",
    "SLAMPerceptron",
    "SmoothRank",
    "TopKRanker",
]


def as_estimator(model: Model) -> BaseRanker:
    """The fitted estimator of a model; `Model.estimator` calls it."""
    name = stored_algorithm(model.kind).estimator
    if not name:
        raise DataError(f"a {model.kind} model has fixed weights and no estimator: use its predict and rank")
    return around_model(globals()[name], model)
