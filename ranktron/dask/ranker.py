"""A ranker that is fitted on Dask collections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ranktron.dask.cluster import Cluster, open_client
from ranktron.dask.collections import as_futures, is_frame_of_dask, whole_queries
from ranktron.dask.training import SHARDS, PartData, evaluate_parts, inspect_parts, train_parts
from ranktron.data.rounds import take_qid_column
from ranktron.errors import DataError
from ranktron.estimators.base import BaseRanker, OnlineRanker
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Metric
from ranktron.metrics import metric as as_metric
from ranktron.training.algorithms import NAN
from ranktron.training.fit import Trained
from ranktron.training.model import Model
from ranktron.types import Floats


class DaskRanker(BaseEstimator):  # type: ignore[misc]
    """A ranker of the library, fitted on Dask data frames, arrays or bags.

    A query that is cut by the border of two partitions is joined first.

    Parameters
    ----------
    estimator : ranker
        The ranker to fit, such as `HingePerceptron()`; it is not changed.
    mode : {"mix", "sequential"}
        "mix": shards of the data learn in parallel and are mixed ten times a pass. "sequential": one learner goes from
        partition to partition; with `shuffle=False` the model is that of one machine to the bit.
    client : distributed.Client, str or None
        The cluster: a client, the address of a scheduler, or None for the current client of this process.
    shards : int, optional
        The number of shards to mix, on which the result depends; the number of workers does not matter. By default the
        number of partitions, and at most 16.

    Examples
    --------
    >>> import dask.dataframe, pandas
    >>> from distributed import Client
    >>> import ranktron
    >>> lists = ranktron.synthetic.Separable(features=4).rounds(60)
    >>> frame = pandas.DataFrame(lists.X, columns=list("abcd")).assign(
    ...     label=lists.labels, qid=np.repeat(np.arange(60), np.diff(lists.offsets)))
    >>> parts = dask.dataframe.from_pandas(frame, npartitions=3)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
    ...     ranker = DaskRanker(ranktron.HingePerceptron(random_state=0)).fit(parts, "label")
    ...     ranker.score(parts, "label") > 0.95
    True
    >>> ranker.to_local().rank(frame.loc[frame.qid == 0, list("abcd")]).shape
    (20,)
    """

    def __init__(self, estimator: BaseRanker, mode: str = "mix", client: Any = None, shards: int | None = None) -> None:
        self.estimator = estimator
        self.mode = mode
        self.client = client
        self.shards = shards

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_metric: str | Metric | None = None,
        patience: int | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learns from scratch in the passes of the estimator.

        Parameters
        ----------
        X : data frame, array or bag of Dask
            A row for each document; an item of a bag is a query: (X, labels, qid).
        y : series or array of Dask, or the name of a column
            The labels.
        qid : series or array of Dask, or the name of a column
            The query ids; by default the column `qid`.
        eval_set, eval_qid, eval_metric, patience
            As in the estimator's `fit`: a validation set in the memory of this process.
        sample_weight : not supported
            Partitions have no weights.
        """
        if sample_weight is not None:
            raise DataError("partitions have no sample weights: repeat queries in the data, or fit on one machine")
        own = clone(self.estimator)
        with open_client(self.client) as client:
            data = self._data(client, X, y, qid)
            valid = None if eval_set is None else own._rounds(*eval_set, eval_qid, None, reset=True)
            plan = replace(self.estimator._plan(), patience=patience)
            plan = plan if eval_metric is None else replace(plan, select=eval_metric)
            self._adopt(train_parts(plan, data, mode=self.mode, shards=self.shards, valid=valid))
        return self

    def partial_fit(self, X: Any, y: Any = None, qid: Any = None) -> Self:
        """Plays all queries once, in order, and continues from earlier calls.

        The first call fits the scaling to all of its queries, also with `scale="auto"`, for which the estimator itself
        uses a running scaling.

        Parameters
        ----------
        X, y, qid
            As in `fit`.
        """
        if not isinstance(self.estimator, OnlineRanker):
            raise DataError(f"{type(self.estimator).__name__} does not learn online and has no partial_fit")
        start = getattr(self, "model_", None)
        with open_client(self.client) as client:
            data = self._data(client, X, y, qid)
            plan = replace(self.estimator._plan(), schedule=Schedule(1, 0, shuffle=False))
            self._adopt(train_parts(plan, data, mode="sequential", start=start))
        return self

    def _data(self, client: Any, X: Any, y: Any, qid: Any) -> PartData:
        missing = NAN.check(self.estimator.nan) != "error"
        cluster = Cluster(client)
        parts, self.joined_queries_ = whole_queries(cluster, as_futures(client, X, y, qid, missing))
        names = [f"partition {p}" for p in range(len(parts))]
        shards = 1 if self.mode == "sequential" else self.shards or min(SHARDS, len(parts))
        return inspect_parts(parts, cluster, names, missing=missing, shards=shards)

    def _adopt(self, trained: Trained) -> None:
        if trained.history.interrupted:
            raise KeyboardInterrupt
        self.model_, self.history_ = trained.model, trained.history
        self.n_features_in_ = self.model_.n_features
        if self.model_.feature_names is not None:
            self.feature_names_in_ = np.array(self.model_.feature_names, object)

    def predict(self, X: Any, qid: Any = None) -> Any:
        """Scores of the documents, lazily: a series for a data frame, an array for an array.

        Parameters
        ----------
        X : data frame or array of Dask
            A row for each document.
        qid : not supported
            Rankers whose scores depend on the other documents of a query are refused.
        """
        check_is_fitted(self, "model_")
        if self.model_.by_list or qid is not None:
            raise DataError(
                "scores that depend on the other documents of a query are not computed lazily, because a partition may "
                "cut it: use to_local().predict on whole queries, or another scaling or output"
            )
        if is_frame_of_dask(X):
            return X.map_partitions(_predict_frame, self.model_, meta=("score", "float64"))
        return X.rechunk({1: -1}).map_blocks(_predict_rows, self.model_, dtype=np.float64, drop_axis=1)

    def score(self, X: Any, y: Any = None, qid: Any = None, *, metric: str | Metric = "ndcg@10") -> float:
        """The mean of a metric over all queries, the same as on one machine.

        Parameters
        ----------
        X, y, qid
            As in `fit`.
        metric : str or Metric
            The metric.
        """
        return float(np.average(self.evaluate(X, y, qid, metric=metric)))

    def evaluate(self, X: Any, y: Any = None, qid: Any = None, *, metric: str | Metric = "ndcg@10") -> Floats:
        """The value of a metric for each query.

        Parameters
        ----------
        X, y, qid
            As in `fit`.
        metric : str or Metric
            The metric.
        """
        check_is_fitted(self, "model_")
        with open_client(self.client) as client:
            return evaluate_parts(self.model_, self._data(client, X, y, qid), [as_metric(metric)]).values(metric)

    def to_local(self) -> BaseRanker:
        """The fitted estimator, which needs no cluster."""
        check_is_fitted(self, "model_")
        local: BaseRanker = clone(self.estimator)
        local.n_features_in_ = self.n_features_in_
        if self.model_.feature_names is not None:
            local.feature_names_in_ = self.feature_names_in_
        local._adopt(self.model_, with_queries=True)
        local.history_ = self.history_
        return local

    @property
    def coef_(self) -> Floats:
        """The weights of a linear ranker."""
        check_is_fitted(self, "model_")
        return self.model_.coef


def _predict_frame(frame: Any, model: Model) -> Any:
    import pandas

    table = take_qid_column(frame)[0]
    if model.feature_names is not None:
        lacking = [name for name in model.feature_names if name not in table.columns]
        if lacking:
            raise DataError(f"features are missing: {', '.join(lacking)}")
        table = table[list(model.feature_names)]
    scores = model.predict(table) if len(table) else np.zeros(0)
    return pandas.Series(scores, index=frame.index, name="score", dtype="float64")


def _predict_rows(rows: Any, model: Model) -> Floats:
    return model.predict(rows) if len(rows) else np.zeros(0)
