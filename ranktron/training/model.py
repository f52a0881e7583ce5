"""The model: all that was learnt and all that is needed to use it elsewhere, in one file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranktron.data import serialization
from ranktron.data.categories import Encoder, encoder_from_dict, encoder_to_dict
from ranktron.data.files import atomically
from ranktron.data.imputation import Imputer, impute, imputer_from_dict, imputer_to_dict
from ranktron.data.maps.naming import map_from_dict, map_to_dict
from ranktron.data.maps.protocols import Additive, FittedMap, map_rounds
from ranktron.data.rounds import Rounds, take_qid_column
from ranktron.data.scaling import Global, PerQuery, Scaler, scale, scaler_from_dict, scaler_to_dict
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse, as_dense
from ranktron.kernels.sorting import argsort_descending
from ranktron.training.algorithms import FIXED, stored_algorithm
from ranktron.types import Floats, Integers, State

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner


class Explanation(NamedTuple):
    """Why a list is ordered as it is: scores are sums of contributions, one per feature.

    Rows of `contributions` stand in the order of the input; `order` says who is first.

    >>> import ranktron
    >>> ranker = ranktron.HingePerceptron().fit([[1.0, 0.0], [0.0, 1.0]], [0, 1], qid=0)
    >>> explanation = ranker.model_.explain([[1.0, 0.0], [0.0, 1.0]])
    >>> explanation.order.tolist(), explanation.lead(0).shape
    ([1, 0], (2,))
    """

    order: Integers
    scores: Floats
    contributions: Floats
    feature_names: tuple[str, ...]

    def lead(self, position: int) -> Floats:
        """What each feature adds to the lead of the document at `position` over the one below it."""
        above, below = self.order[position], self.order[position + 1]
        lead: Floats = self.contributions[above] - self.contributions[below]
        return lead

    def deciding(self, position: int) -> list[int]:
        """The fewest features without which the document at `position` would not lead the one below it.

        >>> parts = np.array([[3.0, 0.0, -1.0], [0.0, 0.5, 0.0]])
        >>> explanation = Explanation(np.array([0, 1]), parts.sum(axis=1), parts, ("a", "b", "c"))
        >>> explanation.lead(0), explanation.deciding(0)
        (array([ 3. , -0.5, -1. ]), [0])
        """
        lead = self.lead(position)
        left, chosen = float(lead.sum()), []
        for j in np.argsort(-lead, kind="stable").tolist():
            if left <= 0.0 or lead[j] <= 0.0:
                break
            left -= float(lead[j])
            chosen.append(j)
        return chosen


@dataclass(frozen=True, eq=False)
class Model:
    """A learner's kind, parameters and state, with the scaling and the names of its features.

    Parameters
    ----------
    kind : str
        The algorithm's name.
    parameters : dict
        The algorithm's parameters; those left out take their defaults now, and all of them are stored.
    state : dict
        What the learner has learnt.
    n_features, first_index : int
        How wide the data is, and the number text files give to the first feature.
    feature_names : tuple of str, optional
    scaler : Scaler, optional
    map : FittedMap, optional
        What the (scaled) features go through before the learner sees them.
    record : dict
        How it was trained: what a later run needs to go on exactly where this one stopped.
    imputer : Imputer, optional
        What stands for missing values; the scaling comes after it.
    encoder : Encoder, optional
        What makes these features of the columns of a frame that has categorical ones.

    Examples
    --------
    >>> import ranktron
    >>> lists = ranktron.synthetic.Separable(features=5).rounds(50)
    >>> ranker = ranktron.HingePerceptron().fit(lists.X, lists.labels, group=np.diff(lists.offsets))
    >>> model = ranker.model_
    >>> model.kind, model.names, model.learner().rounds
    ('hinge', ('1', '2', '3', '4', '5'), 500)
    >>> Model.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
    True
    """

    kind: str
    parameters: Mapping[str, Any]
    state: State
    n_features: int
    first_index: int = 1
    feature_names: tuple[str, ...] | None = None
    scaler: Scaler | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    map: FittedMap | None = None
    imputer: Imputer | None = None
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise DataError(f"{len(self.feature_names)} feature names for {self.n_features} features")
        complete = stored_algorithm(self.kind).complete(self.parameters)
        object.__setattr__(self, "parameters", complete)  # so that no later default can change what is stored

    def learner(self) -> BaseLearner:
        """A learner that goes on exactly where this one stopped, from lists as `prepare` gives them."""
        learner = self.blank_learner()
        learner.restore(self.state)
        return learner

    def after(self, learner: BaseLearner) -> Model:
        """The same model with what its learner has learnt since.

        >>> import ranktron
        >>> lists = ranktron.synthetic.Separable(features=5).rounds(50)
        >>> model = Model("hinge", {}, ranktron.learners.hinge_perceptron(5).state(), 5)
        >>> learner = model.learner()
        >>> for turn in ranktron.play(learner, model.prepare(lists), learner.simulated_feedback):
        ...     pass
        >>> model.after(learner).learner().rounds
        50
        """
        return replace(self, state=learner.state(), record={})

    def blank_learner(self) -> BaseLearner:
        """A learner of the same kind, on the same mapped features, that has learnt nothing."""
        width = self.n_filled if self.map is None else self.map.n_outputs
        return stored_algorithm(self.kind).learner(width, self.parameters)

    @property
    def n_filled(self) -> int:
        """How many features there are once missing values are filled in, indicators included."""
        return self.n_features if self.imputer is None else self.imputer.n_outputs

    def prepare(self, rounds: Rounds) -> Rounds:
        """The rounds as the learner sees them: features in the model's order, filled in, scaled and mapped."""
        return map_rounds(scale(self._shiftable(self.fill(rounds)), self.scaler), self.map)

    def fill(self, rounds: Rounds) -> Rounds:
        """The rounds with their features in the model's order and nothing missing; not yet scaled."""
        return impute(self._in_order(rounds), self.imputer)

    def _in_order(self, rounds: Rounds) -> Rounds:
        """Rounds with the model's features: by their names where both sides have names, else by their places."""
        rounds = rounds.ordered_by(self.feature_names)
        if rounds.n_features != self.n_features:
            raise DataError(f"the model was trained on {self.n_features} features, the data has {rounds.n_features}")
        return rounds

    def _shiftable(self, rounds: Rounds) -> Rounds:
        """Rounds that the scaling gives the right numbers for.

        It does not shift sparse rows. A linear ranker then scores all documents lower or higher by the same number; for
        any other one the zeros are written out.
        """
        shifts = isinstance(self.scaler, Global) and self.scaler.shift.any()
        if not shifts or not isinstance(rounds.X, Sparse) or self.blank_learner().linear:
            return rounds
        return replace(rounds, X=rounds.X.dense())

    @cached_property
    def _scorer(self) -> BaseLearner:
        return self.learner()

    @property
    def coef(self) -> Floats:
        """The weights of a linear model, for scaled features."""
        if self.map is not None:
            raise DataError(
                f"the weights of this model are for the features that its map {self.map.name} makes, not for the "
                "original ones: they are model.weights"
            )
        return self.weights

    @property
    def weights(self) -> Floats:
        """The weights of a linear model, for features that are scaled and mapped."""
        coef = self._scorer.coef
        if coef is None:
            raise DataError(f"a {self.kind} model has no weights: it is not linear")
        return coef

    def predict(self, X: Any, qid: Any = None) -> Floats:
        """Scores documents, in input order. Query ids are needed where a score depends on the rest of its list."""
        X, own_qid = take_qid_column(X)
        qid = own_qid if qid is None else qid
        if qid is None and self.by_list:
            raise DataError(
                "the scores of this model depend on the list (it scales within each query, or lets rankers vote): "
                "give predict the query ids (qid=...), or use rank(X) for one list"
            )
        rounds = self._lists(X, qid)
        scores: Floats = rounds.restore(self.score_rounds(rounds))
        return scores

    def score_rounds(self, rounds: Rounds) -> Floats:
        """Scores documents in the order of `rounds.X`."""
        return served_scores(self._scorer, self.prepare(rounds))

    @property
    def by_list(self) -> bool:
        """Whether the score of a document depends on the rest of its list."""
        return isinstance(self.scaler, PerQuery) or self._scorer.votes

    def rank(self, X: Any) -> Integers:
        """The order of one list, best first."""
        return argsort_descending(self.score_rounds(self._lists(X, None)))

    def explain(self, X: Any) -> Explanation:
        """What each feature contributes to each score of one list: w_j x_j, or f_j(x_j) where a map bends it."""
        rounds = self._lists(X, None)
        scores = self._scorer.predict(self.prepare(rounds).X)
        return Explanation(argsort_descending(scores), scores, self._contributions(rounds), self.filled_names)

    def _contributions(self, rounds: Rounds) -> Floats:
        scaled = scale(self.fill(rounds), self.scaler).X
        if self.map is None:
            contributions: Floats = as_dense(scaled) * self.coef
            return contributions
        return self.additive.contributions(scaled, self.weights)

    @property
    def additive(self) -> Additive:
        """The map of a model whose scores are sums of one function per feature."""
        if not isinstance(self.map, Additive):
            what = "has no feature map" if self.map is None else f"mixes features in its map {self.map.name}"
            raise DataError(
                f"this model {what}: only after bins:N and bins-linear:N is a score a sum of one curve per feature"
            )
        return self.map

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names; their numbers in text files where they have none."""
        if self.feature_names is not None:
            return self.feature_names
        return tuple(str(j) for j in range(self.first_index, self.first_index + self.n_features))

    @property
    def filled_names(self) -> tuple[str, ...]:
        """The names of what has a weight or a curve: the features, and the indicators of missing values behind them."""
        return self.names if self.imputer is None else self.imputer.names(self.names)

    def folded(self) -> Model:
        """The same ranking without a scaler: a global scaling becomes part of the weights and a constant."""
        if isinstance(self.scaler, PerQuery):
            raise DataError("scaling within each query depends on the list and cannot be folded into the weights")
        if self.map is not None:
            raise DataError(f"the map {self.map.name} is not linear and cannot be folded into the weights")
        weights, constant = (self.coef, 0.0) if self.scaler is None else _as_global(self.scaler).fold(self.coef)
        constant += self._scorer.constant
        return replace(
            self, kind=FIXED.name, parameters={}, scaler=None, record={}, state={"coef": weights, "constant": constant}
        )

    def export(self, to: str, **options: Any) -> Any:
        """The model as a file for a search engine, checked: an `Export`; `ranktron.export.export` says which options.

        >>> model = Model("linear", {}, {"coef": np.array([0.5]), "constant": 0.0}, 1, feature_names=("bm25(title)",))
        >>> model.export("vespa", name="mine").content.decode().splitlines()[0]
        'rank-profile mine inherits default {'
        """
        # Looked up by name, as the builders of algorithms are: what is written for engines stands above the model.
        return import_module("ranktron.export").export(self, to, **options)

    def estimator(self) -> Any:
        """A fitted estimator that goes on with `partial_fit` exactly where the model stopped.

        Algorithms that solve for all data at once can score and rank, and be fitted anew.

        >>> import ranktron
        >>> path = getfixture("tmp_path") / "my.model"
        >>> ranktron.HingePerceptron().fit([[1.0], [3.0]], [0, 1], qid=0).save(path)
        >>> load(path).estimator().partial_fit([[2.0], [9.0]], [0, 1], qid=0).save(path)
        >>> load(path).learner().rounds
        11
        """
        # Looked up by name, as `export` is
        return import_module("ranktron.estimators").as_estimator(self)

    def to_bytes(self) -> bytes:
        """The model file as bytes; the same state gives the same bytes."""
        mapped = {} if self.map is None else {"map": map_to_dict(self.map)}
        imputed = {} if self.imputer is None else {"imputer": imputer_to_dict(self.imputer)}
        encoded = {} if self.encoder is None else {"encoder": encoder_to_dict(self.encoder)}
        return serialization.serialize(
            {
                "kind": self.kind,
                "parameters": dict(self.parameters),
                "state": dict(self.state),
                "n_features": self.n_features,
                "first_index": self.first_index,
                "feature_names": None if self.feature_names is None else list(self.feature_names),
                "scaler": scaler_to_dict(self.scaler),
                "record": dict(self.record),
                **mapped,
                **imputed,
                **encoded,
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the file") -> Model:
        """The model that `to_bytes` wrote."""
        content = serialization.deserialize(data, name)
        try:
            content["parameters"] = stored_algorithm(content["kind"]).complete_stored(content["parameters"])
            content["encoder"] = encoder_from_dict(content.get("encoder"), content["n_features"])
            imputer = content["imputer"] = imputer_from_dict(content.get("imputer"), content["n_features"])
            width = content["n_features"] if imputer is None else imputer.n_outputs
            content["scaler"] = scaler_from_dict(content["scaler"], width)
            content["map"] = map_from_dict(content.get("map"), width)
            names = content["feature_names"]
            content["feature_names"] = None if names is None else tuple(names)
            model = cls(**content)
            _ = model._scorer  # a state that its learner cannot take is found here, not at the first query
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{name} is not a model that this version of Ranktron knows: {error}") from None
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, whole or not at all."""
        with atomically(path) as file:
            file.write(self.to_bytes())

    def _lists(self, X: Any, qid: Any) -> Rounds:
        names = None
        if self.encoder is not None and hasattr(X, "dtypes"):
            X, names = self.encoder(X), self.encoder.names
        rows = X.shape[:1] if hasattr(X, "shape") else (len(X),) if hasattr(X, "__len__") else ()
        missing = self.imputer is not None
        return Rounds.from_arrays(X, np.zeros(rows), qid, feature_names=names, missing=missing)


def load(path: str | os.PathLike[str]) -> Model:
    """Reads a model file.

    Parameters
    ----------
    path : path
        A file that `save` or `ranktron train` wrote; "-" is standard input.

    Examples
    --------
    >>> import ranktron
    >>> ranker = ranktron.HingePerceptron().fit([[1.0], [3.0]], [0, 1], qid=0)
    >>> path = getfixture("tmp_path") / "my.model"
    >>> ranker.save(path)
    >>> load(path).rank([[5.0], [9.0], [7.0]])
    array([1, 2, 0])
    """
    try:
        data = sys.stdin.buffer.read() if os.fspath(path) == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise DataError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', error)}") from None
    return Model.from_bytes(data, str(path))


def served_scores(learner: BaseLearner, rounds: Rounds) -> Floats:
    """What a learner serves for many lists, in the order of `rounds.X`; one by one where its scores are votes."""
    if not learner.votes:
        return learner.predict(rounds.X)
    return np.concatenate([learner.predict(round.X) for round in rounds])


def _as_global(scaler: Scaler) -> Global:
    if not isinstance(scaler, Global):
        raise DataError(f"the scaling {scaler.name!r} cannot be folded into the weights")
    return scaler
