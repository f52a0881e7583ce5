"""What all rankers in scikit-learn's shape share."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktron.data.rounds import Rounds, take_qid_column
from ranktron.errors import DataError
from ranktron.learners.base import BaseLearner
from ranktron.learners.loop import play
from ranktron.learners.schedule import History, Schedule
from ranktron.metrics import evaluate, metric
from ranktron.training.algorithms import ALGORITHMS, MAP, TRAINING
from ranktron.training.fit import simulated_user, train, untrained
from ranktron.training.model import Model
from ranktron.training.parameters import Algorithm, Parameter
from ranktron.types import FeedbackModel, Floats, Integers

RANDOM_STATE = Parameter("random_state", None, "seed of the shuffling")
_COMMON = (
    *TRAINING,
    Parameter("scale", None, 'None, or "standard", "minmax", "minmax-query": scaling fitted with the model'),
    MAP,
    RANDOM_STATE,
)

C = TypeVar("C", bound=type[Any])
R = TypeVar("R", bound="type[Ranker]")


def with_parameters(*parameters: Parameter) -> Callable[[C], C]:
    """Gives an estimator its parameters: signature, defaults and documentation.

    A parameter has the type that the class declares for the attribute of its name, or else that of its default.
    """

    def decorate(cls: C) -> C:
        def __init__(self: Any, **given: Any) -> None:
            for parameter in parameters:
                setattr(self, parameter.name, given.pop(parameter.name, parameter.default))
            if given:
                raise TypeError(f"{cls.__name__} has no parameter {next(iter(given))!r}")

        one, types = inspect.Parameter, get_type_hints(cls)
        signature = [one("self", one.POSITIONAL_OR_KEYWORD)]
        described = ""
        for p in parameters:
            kind = types.get(p.name, Any if p.default is None else type(p.default))
            signature.append(one(p.name, one.KEYWORD_ONLY, default=p.default, annotation=kind))
            choices = f"{{{', '.join(map(repr, p.choices))}}}, " if p.choices else ""
            described += f"{p.name} : {choices}default {p.default!r}\n    {p.help}\n"
        __init__.__signature__ = inspect.Signature(signature, return_annotation=None)  # type: ignore[attr-defined]
        __init__.__module__, __init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__
        before, examples, after = inspect.cleandoc(cls.__doc__ or "").partition("Examples\n")
        cls.__doc__ = f"{before}Parameters\n----------\n{described}\n{examples}{after}"
        return cls

    return decorate


def from_table(name: str, *more: Parameter) -> Callable[[R], R]:
    """Gives a ranker its row in the table, the algorithm and its parameters, and more parameters of its own."""
    algorithm = ALGORITHMS[name]

    def decorate(cls: R) -> R:
        cls._algorithm = algorithm
        return with_parameters(*algorithm.parameters, *more, *_COMMON)(cls)

    return decorate


@contextmanager
def unchanged_if_refused(estimator: object) -> Iterator[None]:
    """Gives an estimator back the attributes that it had, should fitting it not succeed."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def seed_of(random_state: Any) -> int:
    """A seed drawn from what scikit-learn takes for a random state."""
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise DataError(f"random_state must be None, a whole number of at least 0 or a RandomState: {error}") from None


class Ranker(BaseEstimator):  # type: ignore[misc]
    """Fits, scores, ranks and saves: everything but the algorithm.

    >>> from ranktron.estimators import RankSVM
    >>> ranker = RankSVM().fit([[1.0], [3.0], [2.0]], [0, 2, 1])
    >>> ranker.predict([[1.0], [5.0]]).shape, ranker.rank([[1.0], [5.0]])
    ((2,), array([1, 0]))
    >>> ranker.score([[1.0], [3.0]], [0, 1])
    1.0
    """

    __metadata_request__fit: ClassVar = {"qid": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True}

    _algorithm: ClassVar[Algorithm]
    feedback: FeedbackModel | str | None = None
    _user: FeedbackModel | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = True
        return tags

    def make_learner(self, n_features: int) -> BaseLearner:
        """A new learner with this estimator's parameters, for `ranktron.play`."""
        return self._algorithm.learner(n_features, self._own_parameters())

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        *,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
    ) -> Self:
        """Learns from scratch in `n_epochs` passes; held-out lists, where given, choose the best of them."""
        with unchanged_if_refused(self):
            rounds = self._rounds(X, y, qid, group, reset=True)
            schedule = self._schedule()
            trained = train(
                self._algorithm.name,
                self._own_parameters(),
                rounds,
                schedule,
                scaling=self.scale,
                map=self.map,
                valid=self._held_out(eval_set, eval_qid, eval_group, len(rounds) > 1),
                feedback=self.feedback,
            )
            if trained.history.interrupted:
                raise KeyboardInterrupt
            self._adopt(trained.model, with_queries=len(rounds) > 1)
            self._user = simulated_user(self.feedback, self.learner_, rounds, schedule.seed)
            self.history_ = trained.history
        return self

    def predict(self, X: Any, qid: Any = None) -> Floats:
        """Scores of the documents, in input order."""
        check_is_fitted(self)
        X, own_qid = take_qid_column(X)
        X = validate_data(self, X, reset=False, dtype="numeric", accept_sparse="csr")
        return self.model_.predict(X, own_qid if qid is None else qid)

    def rank(self, X: Any) -> Integers:
        """The order of one list, best first."""
        check_is_fitted(self)
        X = validate_data(self, take_qid_column(X)[0], reset=False, dtype="numeric", accept_sparse="csr")
        return self.model_.rank(X)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean NDCG@10 over the queries; a query weighs as much as its documents do on average."""
        check_is_fitted(self)
        rounds = self._rounds(X, y, qid, None, reset=False)
        if self.with_queries_ and qid is None and take_qid_column(X)[1] is None:
            raise DataError(
                "this ranker was fitted with query ids and cannot be scored without them: pass qid=..., "
                "and in a search call sklearn.set_config(enable_metadata_routing=True) first"
            )
        values = evaluate(self.model_.score_rounds(rounds), rounds, [metric("ndcg@10")]).per_query["ndcg@10"]
        return float(np.average(values, weights=_query_weights(rounds, sample_weight)))

    @property
    def coef_(self) -> Floats:
        """The weights, one per (scaled) feature, of a linear ranker."""
        check_is_fitted(self)
        return self.model_.coef

    @property
    def course_(self) -> History:
        """The old name of `history_`, until 0.3."""
        warnings.warn("course_ is now history_", DeprecationWarning, stacklevel=2)
        history: History = self.history_ if "history_" in vars(self) else vars(self)["course_"]  # a pickle of 0.1.0
        return history

    @property
    def model_(self) -> Model:
        """The model as it stands, ready to be saved."""
        return replace(self._model, state=self.learner_.state())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file that `ranktron.load` and the command line read."""
        check_is_fitted(self)
        self.model_.save(path)

    def _own_parameters(self) -> dict[str, Any]:
        return {p.name: getattr(self, p.name) for p in self._algorithm.parameters}

    def _adopt(self, model: Model, *, with_queries: bool) -> None:
        self._model = model
        self.learner_ = model.learner() if model.state else model.blank_learner()
        self.with_queries_ = with_queries

    def _schedule(self) -> Schedule:
        n_epochs, shuffle = (p.check(getattr(self, p.name)) for p in TRAINING)
        if isinstance(self.random_state, int | np.integer):
            return Schedule(n_epochs, int(self.random_state), shuffle)
        return Schedule(n_epochs, seed_of(self.random_state), shuffle)

    def _rounds(self, X: Any, y: Any, qid: Any, group: Any, *, reset: bool) -> Rounds:
        X, own_qid = take_qid_column(X)
        X, y = validate_data(self, X, y, reset=reset, dtype="numeric", y_numeric=True, accept_sparse="csr")
        qid = own_qid if qid is None and group is None else qid
        return Rounds.from_arrays(X, y, qid, group, feature_names=getattr(self, "feature_names_in_", None))

    def _held_out(self, eval_set: Any, eval_qid: Any, eval_group: Any, with_queries: bool) -> Rounds | None:
        if eval_set is None:
            return None
        # LightGBM and PyTerrier give lists of parts, others a single pair: the first part is the one that counts
        if isinstance(eval_set, list):
            parts = (eval_set, eval_qid, eval_group)
            eval_set, eval_qid, eval_group = (p[0] if p is not None and len(p) else None for p in parts)
        if not isinstance(eval_set, tuple) or len(eval_set) != 2:
            raise DataError("eval_set must be a pair (X, y), or a list of them; query ids go into eval_qid")
        X, y = eval_set
        if with_queries and eval_qid is None and eval_group is None and take_qid_column(X)[1] is None:
            raise DataError("the lists to learn from have query ids, those of eval_set have none: pass eval_qid=...")
        return self._rounds(X, y, eval_qid, eval_group, reset=False)


class OnlineRanker(Ranker):
    """A ranker that can go on learning: fitting is playing.

    >>> from ranktron.estimators import HingePerceptron
    >>> ranker = HingePerceptron()
    >>> for X, y in [([[1.0], [3.0]], [0, 1]), ([[2.0], [1.0]], [1, 0])]:
    ...     _ = ranker.partial_fit(X, y)
    >>> ranker.learner_.rounds, ranker.rank([[1.0], [5.0]])
    (2, array([1, 0]))
    """

    __metadata_request__partial_fit: ClassVar = {"qid": True}

    def partial_fit(self, X: Any, y: Any, qid: Any = None, group: Any = None) -> Self:
        """Plays these lists once, in order, after all that came before. The first call fits scaling and map."""
        blank = not hasattr(self, "learner_")
        with unchanged_if_refused(self):
            rounds = self._rounds(X, y, qid, group, reset=blank)
            if blank:
                model = untrained(self._algorithm.name, self._own_parameters(), rounds, self.scale, self.map)
                self._adopt(model, with_queries=len(rounds) > 1)
                self._user = simulated_user(self.feedback, self.learner_, rounds, self._schedule().seed)
            for _ in play(self.learner_, self._model.prepare(rounds), self._user or self.learner_.simulated_feedback):
                pass
        return self


def as_sample_weights(sample_weight: Any, n: int) -> Floats:
    """One weight for each of n rows."""
    try:
        weights = np.asarray(sample_weight, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must hold numbers: {error}") from None
    if weights.shape != (n,):
        raise DataError(f"sample_weight must hold one number per row: {n} rows, not {weights.shape}")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() > 0.0):
        raise DataError("sample_weight must hold finite numbers of at least 0, and some above 0")
    return weights


def _query_weights(rounds: Rounds, sample_weight: Any) -> Floats | None:
    if sample_weight is None:
        return None
    weights = as_sample_weights(sample_weight, len(rounds.labels))
    grouped = weights if rounds.rows is None else weights[rounds.rows]
    means: Floats = np.add.reduceat(grouped, rounds.offsets[:-1]) / np.diff(rounds.offsets)
    return means
