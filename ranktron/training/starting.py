"""Warm starts: an online learner that begins with the weights of any linear model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from ranktron.data.categories import Encoder
from ranktron.data.feature_ranges import FeatureRanges
from ranktron.data.imputation import Imputer
from ranktron.data.maps.protocols import FittedMap
from ranktron.data.scaling import Global, Running, Scaler
from ranktron.data.serialization import check_magic
from ranktron.errors import DataError
from ranktron.learners.parameters import unknown_parameter
from ranktron.learners.per_user import per_user
from ranktron.learners.start import Start
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.algorithms import algorithm as find_algorithm
from ranktron.training.model import Model
from ranktron.types import Floats

SCORE = "score"
"""The name of the feature that stands for the scores of a scorer that is not linear."""

DRAWN_LENGTH = 4.0
"""The length of the weights with which pdgd starts from a model that was not trained to draw rankings.

Such a model says in which order, not how sure it is, and pdgd draws by both: the table in docs/warm-starts.md.
"""


@dataclass(frozen=True, eq=False)
class LinearStart:
    """The weights of a linear model, and the features that they are for.

    Parameters
    ----------
    weights : array
        A weight for each feature after imputation, scaling and map.
    n_features : int
        The number of features before them.
    feature_names : tuple of str, optional
        The names of the features.
    first_index : int
        The index of the first feature in text files.
    encoder, imputer, scaler, map : optional
        What turns documents into the features that the weights are for. All of it stays as it is.
    drawn : bool
        Whether the length of the weights says how sure they are of their order. It does not in a trained model that
        scales its features, unless that is one of pdgd; it does in weights that somebody gives.

    ranges : FeatureRanges, optional
        The distribution of the features in the training data of the model.

    Examples
    --------
    >>> start = LinearStart(np.array([1.0, 0.0]), 2, ("bm25", "price"))
    >>> start.model("pdgd", trust=2.0).learner().w
    array([1., 0.])
    """

    weights: Floats
    n_features: int
    feature_names: tuple[str, ...] | None = None
    first_index: int = 1
    encoder: Encoder | None = None
    imputer: Imputer | None = None
    scaler: Scaler | None = None
    map: FittedMap | None = None
    drawn: bool = True
    ranges: FeatureRanges | None = None

    @property
    def plain(self) -> bool:
        """Whether the weights are for features as they are given."""
        return all(each is None for each in (self.encoder, self.imputer, self.scaler, self.map))

    def model(
        self,
        algorithm: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        trust: float | None = None,
        length: float | None = None,
        users: int = 0,
    ) -> Model:
        """A model of an online algorithm that has these weights and has learnt nothing yet.

        Parameters
        ----------
        algorithm : str
            pdgd, topk, hinge, listnet, slam or minimax.
        parameters : mapping, optional
            Its parameters; those left out have the recommended value.
        trust : float, optional
            How far the weights may go from those of the start, in Euclidean distance.
        length : float, optional
            The Euclidean length that the weights get, above 0; the order of documents by score stays. By default they
            are taken as they are, but by pdgd from a model whose length means nothing (`drawn`): then 4.
        users : int
            How many users may have weights of their own on top of these (`ranktron.learners.per_user`).

        Examples
        --------
        >>> start = LinearStart(np.array([0.5]), 1)
        >>> start.model("hinge", {"eta": 0.1}).learner().rounds
        0
        """
        found = find_algorithm(algorithm)
        completed = found.complete(parameters or {})
        learner = found.learner(len(self.weights), completed)
        if length is not None and not 0.0 < length < inf:
            raise DataError(f"the length of weights must be a number above 0, not {length}")
        if length is None and found.name == "pdgd" and not self.drawn:
            length = DRAWN_LENGTH
        before = float(np.linalg.norm(self.weights))
        weights = self.weights if length is None or before == 0.0 else self.weights * (length / before)
        if not learner.begins:
            raise DataError(
                f"{algorithm} does not start from given weights: take one of {', '.join(starting_algorithms())}"
            )
        learner = per_user(learner, users) if users else learner
        learner.begin(Start(weights, inf if trust is None else trust))
        return Model(
            found.name, completed, learner.state(), self.n_features, self.first_index, self.feature_names, self.scaler,
            {}, self.map, self.imputer, self.encoder, ranges=self.ranges, users=users,
        )  # fmt: skip


def starting_algorithms() -> list[str]:
    """The algorithms that start from given weights.

    >>> starting_algorithms()
    ['slam', 'minimax', 'listnet', 'hinge', 'topk', 'pdgd']
    """
    online = [name for name, each in ALGORITHMS.items() if not each.solution]
    return [name for name in online if ALGORITHMS[name].learner(1, {}).begins]


def linear_start(source: Any, features: Sequence[str] | None = None) -> LinearStart:
    """Reads the weights of any linear model, with the scaling, imputation and map that they are for.

    The weights are those that the model predicts with. A scaling that training goes on updating is frozen as it stands.

    Parameters
    ----------
    source : path, Model, estimator, learner, mapping, or array
        A model file, or a file with XGBoost's `gblinear` (a dump, as text or JSON, or a saved model); a `Model`; a
        fitted estimator of this package or of another one, with its weights in `coef_`; a booster of XGBoost; a
        learner; weights by name; or an array of weights. Weights of other packages are for features as they are given.
    features : sequence of str, optional
        The names of the features, in order: those of the model, by name where it has names. Features without a weight
        in a mapping have weight 0.

    Examples
    --------
    >>> linear_start({"bm25": 1.0}, ["price", "bm25"]).weights
    array([0., 1.])
    >>> import ranktron
    >>> ranker = ranktron.HingePerceptron().fit([[1.0], [3.0]], [0, 1], qid=0)
    >>> start = linear_start(ranker)
    >>> start.scaler.name, start.weights == ranker.model_.weights
    ('standard', array([ True]))
    """
    if isinstance(source, (str, os.PathLike)):
        source = _read_file(Path(source))
    source = getattr(source, "model_", source)
    if isinstance(source, Model):
        return _of_model(source, features)
    wanted = None if features is None else _as_names(features)
    if wanted is not None and isinstance(source, Mapping):
        source = _Named(_in_order(source, wanted), wanted)
    names, weights = _weights_of(source)
    weights = np.array(weights, float)
    if weights.ndim == 2 and len(weights) == 1:  # as scikit-learn's classifiers have them
        weights = weights[0]
    if weights.ndim != 1 or not len(weights) or not np.isfinite(weights).all():
        raise DataError(f"a start has one finite weight for each feature, not an array of shape {weights.shape}")
    if names is not None and len(names) != len(weights):
        raise DataError(f"{len(names)} names of features for {len(weights)} weights")
    if wanted is None:
        return LinearStart(weights, len(weights), names)
    if len(weights) != len(wanted):
        raise DataError(f"a start of {len(weights)} weights for {len(wanted)} features")
    if names is not None:
        weights = _in_order(dict(zip(names, weights, strict=True)), wanted)
    return LinearStart(weights, len(weights), wanted)


def start_on_top(features: Sequence[str], score: str = SCORE) -> LinearStart:
    """The start that learns on top of any scorer: its scores are the first feature, with weight 1.

    The order of the first rankings is the scorer's, whatever it is: trees, a neural network, a search engine. Its
    scores come with the documents, like any feature.

    Parameters
    ----------
    features : sequence of str
        The names of the other features; their weights are 0.
    score : str
        The name of the first feature.

    Examples
    --------
    >>> start = start_on_top(["price", "stars"])
    >>> start.feature_names, start.weights
    (('score', 'price', 'stars'), array([1., 0., 0.]))
    """
    return linear_start({score: 1.0}, [score, *features])


def _of_model(model: Model, features: Sequence[str] | None) -> LinearStart:
    try:
        weights = model.weights
    except DataError as error:
        raise DataError(
            f"{error}; learn on top of it instead: its score as the first feature, with weight 1 (`start_on_top`)"
        ) from None
    names = model.feature_names
    if features is not None:
        wanted = _as_names(features)
        if len(wanted) != model.n_features or names not in (None, wanted):
            raise DataError(f"the start has the features {', '.join(model.names)}, not {', '.join(wanted)}")
        names = wanted
    scaler = model.scaler
    if isinstance(scaler, Running):
        scaler = Global("standard", scaler.shift, scaler.divisor)
    return LinearStart(
        np.array(weights, float), model.n_features, names, model.first_index, model.encoder, model.imputer, scaler,
        model.map, model.kind == "pdgd" or model.scaler is None, model.ranges,
    )  # fmt: skip


def _read_file(path: Path) -> Any:
    """A model of this package, or the dictionary or text of XGBoost's `gblinear`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot read {str(path)!r}: {error.strerror}") from None
    try:
        check_magic(data, str(path))
    except DataError:
        return _read_booster(data, path)
    return Model.from_bytes(data, str(path))


def _read_booster(data: bytes, path: Path) -> _Named:
    try:
        text = data.decode()
        return _linear_booster(json.loads(text) if text.lstrip().startswith(("{", "[")) else text)
    except (ValueError, KeyError, TypeError, IndexError):
        raise DataError(f"{path} is neither a model file of Ranktron nor a dump of XGBoost's gblinear") from None


@dataclass(frozen=True)
class _Named:
    """Weights with the names of their features, if there are any."""

    coef: Any
    feature_names: tuple[str, ...] | None = None


def _linear_booster(content: Any) -> _Named:
    """The weights of XGBoost's `gblinear`: of a dump as text or JSON, or of a saved model."""
    if isinstance(content, str):  # bias:\n…\nweight:\n…
        head, weights = content.split("weight:")
        if "bias:" not in head.split():
            raise ValueError("no bias")
        return _Named([float(number) for number in weights.split()])
    content = content[0] if isinstance(content, list) else content
    if "weight" in content:
        return _Named(content["weight"])
    learner = content["learner"]
    weights, groups = learner["gradient_booster"]["model"]["weights"], int(learner["learner_model_param"]["num_class"])
    if groups > 1:
        raise ValueError("several classes")
    names = tuple(learner.get("feature_names") or ())
    return _Named(weights[:-1], names or None)


def _weights_of(source: Any) -> tuple[tuple[str, ...] | None, Any]:
    """The weights of anything but a model of this package, with the names of its features."""
    if isinstance(source, Mapping):
        return _as_names(source), list(source.values())
    if isinstance(source, _Named):
        return source.feature_names, source.coef
    if hasattr(source, "get_dump"):
        return _of_booster(source)
    for attribute in ("coef_", "coef"):
        try:
            weights = getattr(source, attribute, None)
        except Exception:  # of XGBoost's estimators with trees
            weights = None
        if weights is not None and not callable(weights):
            names = getattr(source, "feature_names_in_", None)
            return None if names is None else _as_names(names), weights
    try:
        return None, np.asarray(source, float)
    except (TypeError, ValueError):
        raise DataError(
            f"a {type(source).__name__} has no weights to start from: it is not linear. Learn on top of it instead: "
            "its score as the first feature, with weight 1 (`start_on_top`)"
        ) from None


def _of_booster(booster: Any) -> tuple[tuple[str, ...] | None, Any]:
    dump: Callable[..., list[str]] = booster.get_dump
    try:
        found = _linear_booster(json.loads(dump(dump_format="json")[0]))
    except (ValueError, KeyError, TypeError, IndexError):
        raise DataError(
            "the booster is not linear (gblinear): learn on top of it instead, its score as the first feature with "
            "weight 1 (`start_on_top`)"
        ) from None
    names = getattr(booster, "feature_names", None)
    return None if not names else _as_names(names), found.coef


def _as_names(names: Any) -> tuple[str, ...]:
    listed = tuple(str(name) for name in names)
    if len(set(listed)) < len(listed):
        raise DataError("the names of features must be unique")
    return listed


def _in_order(weights: Mapping[str, float], wanted: Sequence[str]) -> Floats:
    """The weights of some features, 0 for the others."""
    for name in weights:
        if name not in wanted:
            raise DataError(unknown_parameter(name, wanted, "the features").replace("no parameter", "no"))
    return np.array([weights.get(name, 0.0) for name in wanted])
