"""A metric in the shape of scikit-learn's scorers, for searches and cross-validation."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass
from typing import Any

from ranktron.data.rounds import take_qid_column
from ranktron.errors import DataError
from ranktron.metrics.evaluation import evaluate
from ranktron.metrics.metric import Metric, metric


@dataclass(frozen=True)
class Scorer:
    """Measures a fitted estimator by a metric: `scorer(estimator, X, y, qid=...)`, more is better.

    The estimator is a ranker, a pipeline that ends with one, or whatever else has `predict`. Query ids come as `qid`,
    as `groups`, or in a column `qid` of a data frame. Metrics of which less is better are measured with a minus sign.

    Parameters
    ----------
    metric : Metric
        The metric; `scorer` takes its name, too.

    Examples
    --------
    >>> from ranktron import RankSVM
    >>> X, y, qid = [[1.0], [3.0], [2.0], [1.0]], [0, 1, 1, 0], [1, 1, 2, 2]
    >>> Scorer(Metric("map"))(RankSVM().fit(X, y, qid=qid), X, y, qid=qid)
    1.0
    """

    metric: Metric

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None, groups: Any = None) -> float:
        """The mean over queries."""
        own = take_qid_column(X)[1]
        ids = next((each for each in (qid, groups, own) if each is not None), None)
        if ids is None:
            raise DataError(
                f"{self.metric} is measured within queries, and there are no query ids: pass qid= or groups=, in a "
                "search or cross-validation after sklearn.set_config(enable_metadata_routing=True)"
            )
        scores = estimator.predict(X, qid=ids) if _takes_query_ids(estimator) else estimator.predict(X)
        mean = evaluate(y, scores, self.metric, qid=ids).means
        value = mean[str(self.metric)]
        return value if self.metric.higher_is_better else -value

    def get_metadata_routing(self) -> Any:
        """Tells scikit-learn that query ids are wanted; with routing on, no `set_score_request` is needed."""
        request = sys.modules["sklearn.utils.metadata_routing"].MetadataRequest(owner=self)  # who asks has imported it
        for name in ("qid", "groups"):
            request.score.add_request(param=name, alias=True)
        return request


def _takes_query_ids(estimator: Any) -> bool:
    """Whether `predict` of an estimator, or of the last step of a pipeline, has a parameter `qid`."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return "qid" in inspect.signature(estimator.predict).parameters


def scorer(which: str | Metric) -> Scorer:
    """A metric as a scorer for scikit-learn: `cross_val_score(ranker, X, y, scoring=scorer("map"), ...)`.

    Parameters
    ----------
    which : metric, by value or by name

    Examples
    --------
    >>> scorer("ndcg@5:letor")
    Scorer(metric=Metric(name='ndcg', k=5, convention='letor'))
    """
    return Scorer(metric(which))
