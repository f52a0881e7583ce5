"""The learners in scikit-learn's shape.

Every ranker takes `fit(X, y, qid=...)` with query ids in any order and of any type (or `group=` sizes, or a column
named `qid` in a data frame) and answers in input order. Names, parameters, defaults and documentation are those that
the algorithms declare in `ranktron.learners.algorithms`.
"""

from ranktron.errors import DataError
from ranktron.estimators.base import BaseRanker, OnlineRanker, derive_estimator, wrap_model
from ranktron.estimators.clicks import ClickRanker, OnlineClickRanker
from ranktron.estimators.predtron_classes import PredtronClassifier, PredtronOrdinal
from ranktron.estimators.predtron_labels import PredtronLabelRanker, PredtronMultilabel
from ranktron.training.algorithms import ALGORITHMS, stored_algorithm
from ranktron.training.model import Model

_BASES = {  # by whether an estimator has `partial_fit`, and whether it is fitted to clicks
    (False, False): BaseRanker,
    (False, True): ClickRanker,
    (True, False): OnlineRanker,
    (True, True): OnlineClickRanker,
}
_DERIVED = {
    each.estimator: derive_estimator(each, _BASES[each.partial_fit, each.clicks], __name__)
    for each in ALGORITHMS.values()
}
globals().update(_DERIVED)

__all__ = ["PredtronClassifier", "PredtronLabelRanker", "PredtronMultilabel", "PredtronOrdinal", *_DERIVED]


def as_estimator(model: Model) -> BaseRanker:
    """The fitted estimator of a model; `Model.estimator` calls it."""
    name = stored_algorithm(model.kind).estimator
    if not name:
        raise DataError(f"a {model.kind} model has fixed weights and no estimator: use its predict and rank")
    return wrap_model(_DERIVED[name], model)
