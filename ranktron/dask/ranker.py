"""A ranker that is fitted on Dask's collections."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ranktron.dask.cluster import Cluster, open_client
from ranktron.dask.collections import as_futures, is_frame_of_dask, whole_queries
from ranktron.data.rounds import take_qid_column
from ranktron.errors import DataError
from ranktron.estimators.base import BaseRanker, OnlineRanker
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Metric, metric
from ranktron.training.algorithms import NAN
from ranktron.training.distributed import SHARDS, PartData, evaluate_parts, inspect_parts, train_parts
from ranktron.training.fit import Trained
from ranktron.training.model import Model
from ranktron.types import Floats


class DaskRanker(BaseEstimator):  # type: ignore[misc]
    """One of the library's rankers, fitted on data frames, arrays or bags of Dask.

    Every query is learnt from as a whole: one that is cut by the border of two partitions is joined first.

    Parameters
    ----------
    estimator : ranker
        The ranker to fit, such as `HingePerceptron()`; it is not changed.
    mode : {"mix", "sequential"}
        "mix": shards of the data learn at the same time and are mixed ten times a pass. "sequential": the model goes
        from partition to partition in order; with `shuffle=False` it is that of one machine to the bit.
    client : distributed.Client, str or None
        The cluster: a client, the address of a scheduler, or None for the client that this process has.
    shards : int, optional
        How many shards are mixed: the result depends on it, and not on the number of workers. By default the number of
        partitions, and at most 16.

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
            Refused: partitions have no weights.
        """
        if sample_weight is not None:
            raise DataError("partitions have no sample weights: repeat queries in the data, or fit on one machine")
        schedule, own = self.estimator._schedule(), clone(self.estimator)
        with open_client(self.client) as client:
            data = self._data(client, X, y, qid)
            valid = None if eval_set is None else own._rounds(*eval_set, eval_qid, None, reset=True)
            options = {"valid": valid, "patience": patience}
            options["select"] = None if eval_metric is None else metric(eval_metric)
            self._adopt(self._train(data, schedule, self.mode, None, **options))
        return self

    def partial_fit(self, X: Any, y: Any = None, qid: Any = None) -> Self:
        """Plays all queries once, in order, after all that came before.

        The first call fits the scaling to all of its queries, also with `scale="auto"`, for which an estimator of one
        process follows the stream with a running scaling.

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
            self._adopt(self._train(data, Schedule(1, 0, shuffle=False), "sequential", start))
        return self

    def _data(self, client: Any, X: Any, y: Any, qid: Any) -> PartData:
        missing = NAN.check(self.estimator.nan) != "error"
        cluster = Cluster(client)
        parts, self.joined_queries_ = whole_queries(cluster, as_futures(client, X, y, qid, missing))
        names = [f"partition {p}" for p in range(len(parts))]
        shards = 1 if self.mode == "sequential" else self.shards or min(SHARDS, len(parts))
        return inspect_parts(parts, cluster, names, missing=missing, shards=shards)

    def _train(self, data: PartData, schedule: Schedule, mode: str, start: Model | None, **options: Any) -> Trained:
        own = self.estimator
        if own.feedback is not None:
            raise DataError("a simulated user answers one round after the other: fit the estimator on one machine")
        return train_parts(
            own._algorithm.name, own._own_parameters(), data, schedule, mode=mode, shards=self.shards,
            nan=NAN.check(own.nan), scaling=own.scale, map=own.map, start=start, **options,
        )  # fmt: skip

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
            What to compute.
        """
        return float(np.average(self.evaluate(X, y, qid, metric=metric)))

    def evaluate(self, X: Any, y: Any = None, qid: Any = None, *, metric: str | Metric = "ndcg@10") -> Floats:
        """The value of a metric for each query.

        Parameters
        ----------
        X, y, qid
            As in `fit`.
        metric : str or Metric
            What to compute.
        """
        check_is_fitted(self, "model_")
        with open_client(self.client) as client:
            return evaluate_parts(self.model_, self._data(client, X, y, qid), [_as_metric(metric)]).values(metric)

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


def _as_metric(given: str | Metric) -> Metric:
    return metric(given)


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
