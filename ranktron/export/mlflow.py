"""MLflow: the model file as a pyfunc flavour, and ranking metrics in a run. Public as `ranktron.mlflow`.

Logs the file of `Model.save`, which this module loads: no pickle. The `pyfunc` model maps a data frame or an array to
scores, in input order; a column `qid` of the frame has query ids, for models whose scores depend on the other documents
of the query.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ranktron.data.rounds import Rounds, take_qid_column
from ranktron.errors import DataError, MissingExtra
from ranktron.metrics import Metric, metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.model import Model, load
from ranktron.types import Floats

__all__ = ["load_model", "log_evaluation", "log_model", "save_model"]

FILE = "ranktron.model"


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Writes a model as a folder in MLflow's format.

    Parameters
    ----------
    model : Model or fitted ranker
        The model to save.
    path : str
        A folder that does not exist yet.
    **options
        Options of `mlflow.pyfunc.save_model`: `signature`, `input_example`, `metadata`, `pip_requirements`, ...

    Examples
    --------
    >>> import ranktron
    >>> ranker = ranktron.HingePerceptron().fit([[1.0], [3.0]], [0, 1], group=[2])
    >>> folder = getfixture("tmp_path") / "mine"
    >>> save_model(ranker, folder)  # doctest: +SKIP
    """
    with TemporaryDirectory() as folder:
        _mlflow().pyfunc.save_model(path=str(path), **{**_flavour(model, folder), **options})


def log_model(model: Any, name: str = "model", **options: Any) -> Any:
    """Logs a model or a fitted ranker to the active run, or to a new one; returns MLflow's `ModelInfo`.

    Parameters
    ----------
    model : Model or fitted ranker
        The model to log.
    name : str
        The name of the model in MLflow.
    **options
        Options of `mlflow.pyfunc.log_model`: `registered_model_name`, `signature`, `input_example`, ...

    Examples
    --------
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     info = ranktron.mlflow.log_model(ranker, "ranker")
    """
    with TemporaryDirectory() as folder:
        return _mlflow().pyfunc.log_model(name=name, **{**_flavour(model, folder), **options})


def load_model(uri: str) -> Model:
    """Loads a `Model` that was logged or saved.

    Parameters
    ----------
    uri : str
        URI of the model: `runs:/...`, `models:/...` or the path of a folder.

    Examples
    --------
    >>> ranktron.mlflow.load_model(info.model_uri).rank([[5.0], [9.0]])  # doctest: +SKIP
    array([1, 0])
    """
    model = _mlflow().pyfunc.load_model(str(uri)).get_raw_model()
    if not isinstance(model, Model):
        raise DataError(f"{uri} holds a model of another library: load it with mlflow.pyfunc.load_model")
    return model


def log_evaluation(
    model: Any,
    X: Any,
    y: Any,
    qid: Any = None,
    group: Any = None,
    *,
    metrics: Sequence[str | Metric] = ("ndcg@10", "map", "mrr"),
    prefix: str = "",
    step: int | None = None,
) -> dict[str, float]:
    """Evaluates a model or a fitted ranker and logs the mean metrics to the active run.

    MLflow's names have no @ and no colon: `ndcg@10` is logged as `ndcg_at_10`, `map:letor` as `map.letor`.

    Parameters
    ----------
    model : Model or fitted ranker
        The model to evaluate.
    X, y, qid, group
        Features, labels and query ids, as `fit` takes them.
    metrics : sequence of str
        The metrics, by name.
    prefix : str
        A prefix for each name, such as `test_`.
    step : int, optional
        MLflow's step, such as the number of the pass or the day.

    Returns
    -------
    dict of str to float
        The logged metrics.

    Examples
    --------
    >>> ranktron.mlflow.log_evaluation(ranker, X, y, qid=qid, metrics=["ndcg@10"])  # doctest: +SKIP
    {'ndcg_at_10': 0.93}
    """
    model = _as_model(model)
    X, own_qid = take_qid_column(X)
    if model.encoder is not None and hasattr(X, "dtypes"):
        X = model.encoder(X)
    ids = own_qid if qid is None and group is None else qid
    rounds = Rounds.from_arrays(X, y, ids, group, missing=model.imputer is not None)
    means = evaluate_rounds(rounds, model.score_rounds(rounds), [metric(each) for each in metrics]).means
    logged = {prefix + name.replace("@", "_at_").replace(":", "."): value for name, value in means.items()}
    _mlflow().log_metrics(logged, step=step)
    return logged


class ScoringModel:
    """The object behind `mlflow.pyfunc.load_model`: it scores documents."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Floats:
        """The scores of the rows of a data frame or an array."""
        return self.model.predict(model_input)

    def get_raw_model(self) -> Model:
        return self.model


def _load_pyfunc(path: str) -> ScoringModel:
    """Called by MLflow, which requires this name."""
    return ScoringModel(load(path))


def _flavour(model: Any, folder: str) -> dict[str, Any]:
    from ranktron import __version__

    file = Path(folder) / FILE
    _as_model(model).save(file)
    return {"loader_module": __name__, "data_path": str(file), "pip_requirements": [f"ranktron=={__version__}"]}


def _as_model(ranker: Any) -> Model:
    model = ranker if isinstance(ranker, Model) else getattr(ranker, "model_", None)
    if not isinstance(model, Model):
        raise DataError(f"expected a model or a fitted ranker, not a {type(ranker).__name__}")
    return model


def _mlflow() -> Any:
    try:
        import mlflow
        import mlflow.pyfunc
    except ImportError:
        raise MissingExtra("MLflow", "mlflow") from None
    return mlflow
