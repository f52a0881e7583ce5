"""A stored model as the estimator that it came from."""

from __future__ import annotations

import numpy as np

from ranktron.estimators.base import BaseRanker
from ranktron.training.model import Model


def around_model(cls: type[BaseRanker], model: Model) -> BaseRanker:
    """A fitted estimator around a model: its parameters, its learner and what it knows of its features."""
    record, renamed = model.record, cls._renamed_parameters
    ranker = cls(
        **{renamed.get(name, name): value for name, value in model.parameters.items()},
        scale=None if model.scaler is None else model.scaler.name,
        map=None if model.map is None else model.map.name,
        nan="error" if model.imputer is None else model.imputer.name,
        categorical="auto" if model.encoder is None else list(model.encoder.categories),
        random_state=record.get("seed"),
        shuffle=record.get("shuffle", True),
    )
    names = model.feature_names if model.encoder is None else model.encoder.columns
    ranker.n_features_in_ = model.n_features if model.encoder is None else len(model.encoder.columns)
    if names is not None:
        ranker.feature_names_in_ = np.array(names, object)
    ranker.feedback = record.get("feedback")  # the simulated user that the model was trained with goes on answering
    ranker._adopt(model, with_queries=record.get("queries") != 1)
    return ranker
