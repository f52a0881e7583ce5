"""The model: everything that was learnt and that is needed to use it elsewhere, in one file."""

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
from ranktron.data.feature_ranges import Drift, FeatureRanges, warn_of_drift
from ranktron.data.files import atomically
from ranktron.data.frames import arrange_columns
from ranktron.data.imputation import Imputer, impute, imputer_from_dict, imputer_to_dict
from ranktron.data.maps.naming import map_from_dict, map_to_dict
from ranktron.data.maps.protocols import Additive, Explainable, FittedMap, map_rounds
from ranktron.data.rounds import Rounds, number_features, take_qid_column
from ranktron.data.scaling import Global, PerQuery, Scaler, scale, scale_in_place, scaler_from_dict, scaler_to_dict
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.parameters import Algorithm
from ranktron.training.algorithms import FIXED, stored_algorithm
from ranktron.types import Floats, Integers, State

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner


class Explanation(NamedTuple):
    """The explanation of a ranking: scores are sums of contributions, one per feature.

    Rows of `contributions` are in input order; `order` is the ranking, best first.

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
        """The contribution of each feature to the lead of the document at `position` over the next one."""
        above, below = self.order[position], self.order[position + 1]
        lead: Floats = self.contributions[above] - self.contributions[below]
        return lead

    def deciding(self, position: int) -> list[int]:
        """The smallest set of features without which the document at `position` would not lead the next one.

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
        The algorithm's parameters; those left out take their defaults, and all of them are stored.
    state : dict
        What the learner has learnt.
    n_features, first_index : int
        The number of features, and the index of the first feature in text files.
    feature_names : tuple of str, optional
        The names of the features.
    scaler : Scaler, optional
        The scaling.
    map : FittedMap, optional
        The feature map, applied after the scaling.
    record : dict
        The record of the training: what is needed to continue exactly where it stopped.
    imputer : Imputer, optional
        The imputation of missing values, applied before the scaling.
    encoder : Encoder, optional
        The encoding of data frames with categorical columns.
    prefix : str
        Stands before the numbers of features without names, as in `Rounds`.
    ranges : FeatureRanges, optional
        The distribution of the features in the training data.
    users : int
        How many users may have weights of their own on top of everybody's (`PerUser`); 0, none.

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
    prefix: str = ""
    ranges: FeatureRanges | None = None
    users: int = 0

    def __post_init__(self) -> None:
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise DataError(f"{len(self.feature_names)} feature names for {self.n_features} features")
        # what is left out is as the functions of `ranktron.learners` have it, whose state this may be
        object.__setattr__(self, "parameters", self.algorithm.complete(self.parameters, "paper"))

    @cached_property
    def algorithm(self) -> Algorithm:
        """The algorithm of this kind."""
        return stored_algorithm(self.kind)

    def learner(self) -> BaseLearner:
        """A learner that continues exactly where this model stopped, on queries that `prepare` returns."""
        learner = self.blank_learner()
        learner.restore(self.state)
        return learner

    def after(self, learner: BaseLearner) -> Model:
        """The same model with the state of a learner that has learnt more since.

        Parameters
        ----------
        learner : learner
            Made by `learner` of this model.

        Examples
        --------
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
        """An untrained learner of the same kind, for the same mapped features."""
        width = self.n_filled if self.map is None else self.map.n_outputs
        learner = self.algorithm.learner(width, self.parameters)
        if not self.users:
            return learner
        from ranktron.learners.per_user import per_user

        return per_user(learner, self.users)

    @property
    def n_filled(self) -> int:
        """The number of features after imputation, including indicators."""
        return self.n_features if self.imputer is None else self.imputer.n_outputs

    def prepare(self, rounds: Rounds, *, consume: bool = False) -> Rounds:
        """The rounds as the learner takes them: features in the model's order, imputed, scaled and mapped.

        Parameters
        ----------
        rounds : Rounds
            Queries with the model's features, by name or by number.
        consume : bool
            Whether nobody uses these rounds afterwards: their features may then be scaled where they are.
        """
        filled = self._shiftable(self.fill(rounds))
        scaled = (scale_in_place if consume else scale)(filled, self.scaler)
        return scaled if self.map is None else map_rounds(scaled, self.map)

    def fill(self, rounds: Rounds) -> Rounds:
        """The rounds with features in the model's order and imputed, but not scaled.

        Parameters
        ----------
        rounds : Rounds
            Queries with the model's features, by name or by number.
        """
        rounds = self._in_order(rounds)
        return rounds if self.imputer is None else impute(rounds, self.imputer)

    def _in_order(self, rounds: Rounds) -> Rounds:
        """Rounds with the model's features, matched by name if both have names, otherwise by position."""
        rounds = rounds.ordered_by(self.feature_names)
        if rounds.n_features != self.n_features:
            raise DataError(f"the model was trained on {self.n_features} features, the data has {rounds.n_features}")
        return rounds

    def _shiftable(self, rounds: Rounds) -> Rounds:
        """Rounds that can be scaled correctly: dense ones, unless the model is linear.

        Scaling does not shift sparse rows. For a linear ranker this changes all scores by the same number; for
        others the rows are made dense.
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
        """Scores documents, in input order. Query ids are needed if a score depends on the query's other documents.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document, with the features of the model.
        qid : array, name of a column, or a scalar
            The query of each row; needed where a score depends on the other documents of the query.
        """
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
        """Scores documents in the order of `rounds.X`.

        Parameters
        ----------
        rounds : Rounds
            Queries with the model's features, by name or by number.
        """
        return served_scores(self._scorer, self.prepare(rounds))

    def drifts(self, rounds: Rounds, *, labelled: bool = True) -> list[Drift]:
        """The features whose values have left the training data; none of a model that does not know these.

        Parameters
        ----------
        rounds : Rounds
            At least 20 queries with the model's features, by name or by number.
        labelled : bool
            Whether the labels are of the kind that the model was trained with, and not clicks.

        Examples
        --------
        >>> import ranktron
        >>> lists = ranktron.synthetic.Separable(features=5).rounds(100)
        >>> ranker = ranktron.HingePerceptron().fit(lists.X, lists.labels, group=np.diff(lists.offsets))
        >>> lists.X[:, 2] = 7.0
        >>> [str(drift) for drift in ranker.model_.drifts(lists)]
        ["'3' is always 7 (training: -3.695 to 3.6)"]
        """
        if self.ranges is None:
            return []
        rounds = rounds if labelled else replace(rounds, labels=np.zeros(len(rounds.labels)))
        return self.ranges.drifts(self._in_order(rounds), self.names)

    def warn_of_drift(self, rounds: Rounds, name: str = "the model", *, labelled: bool = True) -> list[Drift]:
        """The same, with one warning that names these features, the changes and the numbers.

        Parameters
        ----------
        rounds : Rounds
            At least 20 queries with the model's features, by name or by number.
        name : str
            What the warning calls the model.
        labelled : bool
            As in `drifts`.
        """
        drifts = self.drifts(rounds, labelled=labelled)
        if self.ranges is not None:
            warn_of_drift(drifts, self.ranges, name)
        return drifts

    @property
    def by_list(self) -> bool:
        """Whether scores depend on the other documents of the query."""
        return isinstance(self.scaler, PerQuery) or self._scorer.votes

    def rank(self, X: Any) -> Integers:
        """The order of one query's documents, best first.

        Parameters
        ----------
        X : table of numbers or data frame
            The documents of one query.
        """
        return argsort_descending(self.score_rounds(self._lists(X, None)))

    def explain(self, X: Any) -> Explanation:
        """The contribution of each feature to each score of one query.

        That is w_j x_j, and f_j(x_j) with a feature map or thresholds.

        Parameters
        ----------
        X : table of numbers or data frame
            The documents of one query.
        """
        rounds = self._lists(X, None)
        scores = self._scorer.predict(self.prepare(rounds).X)
        return Explanation(argsort_descending(scores), scores, self._contributions(rounds), self.filled_names)

    def _contributions(self, rounds: Rounds) -> Floats:
        scaled = scale(self.fill(rounds), self.scaler).X
        if self.map is None:
            contributions = self._scorer.contributions(scaled)
            if contributions is None:
                raise DataError(f"a score of a {self.kind} model is no sum over features: it is not linear")
            return contributions
        return self.explainable.contributions(scaled, self.weights)

    @property
    def explainable(self) -> Explainable:
        """The feature map of a model whose scores are sums of one contribution per feature."""
        return self.map if isinstance(self.map, Explainable) else self.additive

    @property
    def additive(self) -> Additive:
        """The feature map of a model whose scores are sums of one function per feature."""
        if not isinstance(self.map, Additive):
            what = "has no feature map" if self.map is None else f"mixes features in its map {self.map.name}"
            instead = "; explain the ranking of one query instead" if isinstance(self.map, Explainable) else ""
            raise DataError(
                f"this model {what}: only after bins:N and bins-linear:N is a score a sum of one curve per feature"
                f"{instead}"
            )
        return self.map

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features; if they have none, their numbers as the training data wrote them."""
        return self.feature_names or number_features(self.n_features, self.first_index, self.prefix)

    @property
    def filled_names(self) -> tuple[str, ...]:
        """The names of the features, followed by those of the indicators of missing values."""
        return self.names if self.imputer is None else self.imputer.names(self.names)

    def folded(self) -> Model:
        """A model with the same ranking and no scaler: the scaling is folded into the weights and a constant."""
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
        """Exports the model to a file for a search engine; options and result are those of `ranktron.export.export`.

        Parameters
        ----------
        to : str
            The engine.
        **options
            Those of `ranktron.export.export`.

        Examples
        --------
        >>> model = Model("linear", {}, {"coef": np.array([0.5]), "constant": 0.0}, 1, feature_names=("bm25(title)",))
        >>> model.export("vespa", name="mine").content.decode().splitlines()[0]
        'rank-profile mine inherits default {'
        """
        # Imported by name, like the builders of algorithms: `export` is a layer above this one.
        return import_module("ranktron.export").export(self, to, **options)

    def estimator(self) -> Any:
        """A fitted estimator whose `partial_fit` continues exactly where the model stopped.

        Estimators of batch algorithms can score and rank, but only be fitted again.

        >>> import ranktron
        >>> path = getfixture("tmp_path") / "my.model"
        >>> ranktron.HingePerceptron().fit([[1.0], [3.0]], [0, 1], qid=0).save(path)
        >>> load(path).estimator().partial_fit([[2.0], [9.0]], [0, 1], qid=0).save(path)
        >>> load(path).learner().rounds
        11
        """
        # imported by name, like `export`
        return import_module("ranktron.estimators").as_estimator(self)

    def to_bytes(self) -> bytes:
        """The model file as bytes; the same state gives the same bytes."""
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
                "map": None if self.map is None else map_to_dict(self.map),
                "imputer": None if self.imputer is None else imputer_to_dict(self.imputer),
                "encoder": None if self.encoder is None else encoder_to_dict(self.encoder),
                "prefix": self.prefix,
                "ranges": None if self.ranges is None else self.ranges.to_dict(),
                **({"users": self.users} if self.users else {}),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "the file") -> Model:
        """The model that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes
            A model file.
        name : str
            What an error message calls it.
        """
        content = serialization.deserialize(data, name)
        try:
            _check_header(content, name)
            content["encoder"] = encoder_from_dict(content["encoder"], content["n_features"])
            imputer = content["imputer"] = imputer_from_dict(content["imputer"], content["n_features"])
            width = content["n_features"] if imputer is None else imputer.n_outputs
            content["scaler"] = scaler_from_dict(content["scaler"], width)
            content["map"] = map_from_dict(content["map"], width)
            if content["ranges"] is not None:
                content["ranges"] = FeatureRanges.from_dict(content["ranges"], content["n_features"])
            names = content["feature_names"]
            content["feature_names"] = None if names is None else tuple(names)
            model = cls(**content)
            _ = model._scorer  # an invalid state is found here, not at the first query
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{name} is not a model that this version of Ranktron knows: {error}") from None
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, completely or not at all.

        Parameters
        ----------
        path : str or path
            Where to write it; a file of that name is replaced.
        """
        with atomically(path) as file:
            file.write(self.to_bytes())

    def _lists(self, X: Any, qid: Any) -> Rounds:
        names = None
        if self.encoder is not None and hasattr(X, "dtypes"):
            X, names = self.encoder(X), self.encoder.names
        else:
            X = arrange_columns(X, self.feature_names)
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
    """The scores of a learner's `predict` for many queries, in the order of `rounds.X`."""
    if not learner.votes:
        return learner.predict(rounds.X)
    return np.concatenate([learner.predict(round.X) for round in rounds])


def _check_header(content: Mapping[str, Any], name: str) -> None:
    """Refuses numbers and names of features that are none."""
    for key, number in (("n_features", content["n_features"]), ("first_index", content["first_index"])):
        if type(number) is not int or not 0 <= number < 2**53:
            raise DataError(
                f"{name} is not a model that this version knows: its {key} must be a whole number from 0 to 2^53"
            )
    if not isinstance(content.get("prefix", ""), str):
        raise DataError(f"{name} is not a model: its prefix is not a text")
    users = content.get("users", 0)
    if type(users) is not int or not 0 <= users < 2**53:
        raise DataError(f"{name} is not a model that this version knows: its users must be a whole number")
    names = content["feature_names"]
    if names is not None and not (isinstance(names, list) and all(isinstance(each, str) for each in names)):
        raise DataError(f"{name} is not a model: its feature_names are not a list of texts")


def _as_global(scaler: Scaler) -> Global:
    if not isinstance(scaler, Global):
        raise DataError(f"the scaling {scaler.name!r} cannot be folded into the weights")
    return scaler
