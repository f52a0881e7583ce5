"""What all rankers in scikit-learn's shape share."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktron.data.categories import Encoder, fit_encoder
from ranktron.data.frames import (
    UNGROUPED,
    UNGROUPED_EVAL_SET,
    UNSEEN_NAMES,
    arrange_columns,
    explained,
    mean_weights,
    read_eval_set,
    read_frame,
    refuse_dates,
    take_features,
    take_query_ids,
    weigh,
)
from ranktron.data.maps import FeatureMap
from ranktron.data.rounds import Rounds, frame_feature_names
from ranktron.data.scaling import Running
from ranktron.errors import DataError, warn
from ranktron.estimators.signature import RANDOM_STATE, WithPresets, draw_seed, with_parameters
from ranktron.learners.base import BaseLearner
from ranktron.learners.parameters import Algorithm, Parameter, Parameters
from ranktron.learners.schedule import UNEVEN, Schedule
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.algorithms import CATEGORICAL, MAP, NAN, PRESET, TRAINING, common_parameters
from ranktron.training.fit import (
    TrainingPlan,
    learn_once,
    make_untrained,
    play_rescaled,
    simulated_user,
    train,
)
from ranktron.training.model import Model
from ranktron.types import FeedbackModel, Floats, Integers

UNGROUPED_PARAMETER = Parameter(
    "ungrouped", "what rows without query ids are: refused, or one list", "error", choices=("error", "one-list")
)
_FEEDBACK = Parameter(
    "feedback",
    "who answers while fitting: None (the simulation from labels described above), the name of a simulated user "
    "(perfect, navigational, informational, position-based, dependent-click, dynamic-bayesian) who clicks by as many "
    "grades as the labels have and with random_state as seed, or a function (round, ranking) -> Feedback",
)
_FEATURES = Parameter("features", "None, or the names of the columns of a data frame that are features")
_COMMON = (MAP, NAN, CATEGORICAL, RANDOM_STATE, UNGROUPED_PARAMETER, _FEATURES, PRESET)
_EXAMPLE = """
Examples
--------
>>> import numpy as np
>>> from ranktron.data.synthetic import Separable
>>> lists = Separable(features=4).rounds(200)
>>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
>>> ranker = {}({}).fit(lists.X, lists.labels, qid=qid)
>>> ranker.score(lists.X, lists.labels, qid=qid) > 0.95
True
"""


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


class _NoPartialFit:
    """Says why there is no `partial_fit`; for `hasattr` there is none."""

    def __get__(self, ranker: object, cls: type) -> None:
        raise AttributeError(
            f"{cls.__name__} solves for all queries at once and has no partial_fit: fit it again on old and new "
            "queries, or take a ranker that learns online, such as HingePerceptron"
        )


class BaseRanker(WithPresets):
    """Fits, scores, ranks and saves: everything but the algorithm.

    >>> from ranktron.estimators import RankSVM
    >>> ranker = RankSVM().fit([[1.0], [3.0], [2.0]], [0, 2, 1], qid=0)
    >>> ranker.predict([[1.0], [5.0]]).shape, ranker.rank([[1.0], [5.0]])
    ((2,), array([1, 0]))
    >>> ranker.score([[1.0], [3.0]], [0, 1], qid=0)
    1.0
    """

    # `groups`, by which a splitter divides the rows, are the query ids where there are no others
    __metadata_request__fit: ClassVar = {"qid": True, "groups": True}
    __metadata_request__predict: ClassVar = {"qid": True}
    __metadata_request__score: ClassVar = {"qid": True, "groups": True}

    scale: Literal["auto", "standard", "minmax", "range", "minmax-query", "standard-query", "running-standard"] | None
    map: str | FeatureMap | None
    random_state: int | np.random.RandomState | None
    features: Sequence[str] | None
    nan: str
    categorical: str | Sequence[str] | None
    feedback: FeedbackModel | str | None = None

    _algorithm: ClassVar[Algorithm]
    _encoder: Encoder | None = None
    _user: FeedbackModel | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.nan != "error"
        tags.target_tags.positive_only = True
        return tags

    if not TYPE_CHECKING:  # there is no such attribute, and a type checker should say so
        partial_fit = _NoPartialFit()

    def make_learner(self, n_features: int) -> BaseLearner:
        """A new learner with this estimator's parameters, for `ranktron.play`.

        Parameters
        ----------
        n_features : int
            The width of the documents, after the feature map where there is one.
        """
        return self._algorithm.learner(n_features, self._own_parameters())

    def fit(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        *,
        sample_weight: Any = None,
        groups: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_metric: str | Metric | None = None,
        patience: int | None = None,
    ) -> Self:
        """Learns from scratch in `n_epochs` passes; the validation set, where given, chooses the best of them.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document.
        y : array
            The labels, finite and at least 0.
        qid : array, name of a column, or a scalar
            The query of each row, in any order and of any type; a scalar says that all rows are one list.
        group : array
            Sizes of consecutive lists instead.
        sample_weight : array
            How much each row counts: a query whose rows weigh 2 is the same as two queries. Rows of weight 0 are left
            out. Solvers multiply the loss of a query; in passes it is played so many times, for fractions by turns
            (0.5: in every second pass). Rows of a query may weigh differently where the loss is an average over pairs
            (RankSVM, RankBoost, RankMM with loss="average"): a pair then counts for the product of its documents.
        groups : array
            Query ids under the name that scikit-learn's splitters have for them; `qid` comes first.
        eval_set : (X, y) or a list of such pairs
            The validation set; of a list the first pair counts.
        eval_qid, eval_group : array
            Its query ids, or the sizes of its consecutive lists; a list of such where `eval_set` is one.
        eval_metric : metric or its name
            What chooses the pass on the validation set; NDCG@10 where it is left out.
        patience : int >= 1
            Stops after this many passes without improvement on the validation set: `n_epochs` is then the most.
            `history_.valid` has the value of each pass.
        """
        with unchanged_if_refused(self):
            part = read_eval_set(eval_set, eval_qid, eval_group, eval_metric=eval_metric, patience=patience)
            rounds, weights, documents = weigh(self._rounds(X, y, qid, group, groups, reset=True), sample_weight)
            self._learn(rounds, weights, part, eval_metric, patience, documents)
        return self

    def _learn(
        self,
        rounds: Rounds,
        weights: Floats | None,
        part: tuple[Any, Any, Any, Any] | None,
        eval_metric: str | Metric | None,
        patience: int | None,
        document_weights: Floats | None = None,
    ) -> None:
        """Trains on rounds that count as much as their weights say, and keeps the learner."""
        plan = replace(self._plan(), patience=patience)
        plan = plan if eval_metric is None else replace(plan, select=eval_metric)
        valid = self._validation_set(part, len(rounds) > 1)
        trained = train(plan, rounds, valid=valid, weights=weights, document_weights=document_weights)
        if trained.history.interrupted:
            raise KeyboardInterrupt
        self._adopt(trained.model, trained.learner, with_queries=len(rounds) > 1)
        if self.feedback is not None:
            self._user = simulated_user(self.feedback, self.learner_, rounds, plan.schedule.seed)
        self.history_ = trained.history
        self._steps_before = steps_before(self)

    def _plan(self) -> TrainingPlan:
        """The training with this estimator's parameters."""
        own, nan = self._own_parameters(), NAN.check(self.nan)
        plan = TrainingPlan(self._algorithm.name, own, self._schedule(), self.scale, self.map, nan)
        return replace(plan, feedback=self.feedback)

    def predict(self, X: Any, qid: Any = None) -> Floats:
        """Scores of the documents, in input order.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document, with the features of the training set.
        qid : array, name of a column, or a scalar
            The query of each row; needed where a score depends on the other documents of the query.
        """
        check_is_fitted(self)
        X, qid = take_query_ids(X, qid)
        return self.model_.predict(self._features(X), qid)

    def rank(self, X: Any) -> Integers:
        """The order of one list, best first.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            The documents of one query.
        """
        check_is_fitted(self)
        return self.model_.rank(self._features(take_query_ids(X, None)[0]))

    def score(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        metric: str | Metric = "ndcg@10",
    ) -> float:
        """The mean of a metric over the queries; a query weighs as much as its documents do on average.

        In a search or cross-validation, `scoring=ranktron.metrics.scorer("map")` measures another metric than NDCG@10.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document, with the features of the training set.
        y : array
            The labels.
        qid : array, name of a column, or a scalar
            The query of each row.
        sample_weight : array
            How much each row counts.
        groups : array
            Query ids under the name that scikit-learn's splitters have for them; `qid` comes first.
        metric : metric or its name
            What to measure.
        """
        check_is_fitted(self)
        rounds = self._rounds(X, y, qid, None, groups, reset=False)
        if self.with_queries_ and groups is None and take_query_ids(X, qid)[1] is None:
            raise DataError(f"this ranker was fitted with query ids and cannot be scored without them; {UNGROUPED}")
        values = evaluate_rounds(rounds, self.model_.score_rounds(rounds), metric).values(metric)
        return float(np.average(values, weights=mean_weights(rounds, sample_weight)))

    @property
    def coef_(self) -> Floats:
        """The weights of a linear ranker, one per (scaled) feature, those of indicators of missing values last."""
        check_is_fitted(self)
        return self.model_.coef

    @property
    def model_(self) -> Model:
        """The model as it stands, ready to be saved."""
        return replace(self._model, state=self.learner_.state())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a file that `ranktron.load` and the command line read.

        What the steps of a pipeline before the ranker do to the features is not part of it, and a warning says so.

        Parameters
        ----------
        path : str or path
            Where to write it; a file of that name is replaced.
        """
        check_is_fitted(self)
        if steps := getattr(self, "_steps_before", ()):
            warn(
                f"the model that is saved has seen features that {', '.join(steps)} had transformed, and does not hold "
                'that transformation: let the ranker scale (scale="standard" and the like), or keep the whole pipeline'
            )
        self.model_.save(path)

    def _own_parameters(self) -> Parameters:
        PRESET.check(self.preset)
        return self._algorithm.complete({p.name: getattr(self, p.name) for p in self._algorithm.parameters})

    def _adopt(self, model: Model, learner: BaseLearner | None = None, *, with_queries: bool) -> None:
        self._model = model if self._encoder is None else replace(model, encoder=self._encoder)
        self.learner_ = learner or (model.learner() if model.state else model.blank_learner())
        self.with_queries_ = with_queries

    def _schedule(self) -> Schedule:
        n_epochs, shuffle = (p.check(getattr(self, p.name)) for p in TRAINING)
        if isinstance(self.random_state, int | np.integer):
            return Schedule(n_epochs, int(self.random_state), shuffle)
        return Schedule(n_epochs, draw_seed(self.random_state), shuffle)

    def _features(self, X: Any) -> Any:
        """The features to predict for, as scikit-learn checks them; categories become features."""
        X = self._arranged(take_features(X, self.features, first=False))
        return self._validated(X, reset=False) if self._encoder is None else self._encoder(X)

    def _arranged(self, X: Any) -> Any:
        """The columns of a data frame in the order of the training set."""
        return arrange_columns(X, getattr(self, "feature_names_in_", None))

    def _validated(self, X: Any, *, reset: bool, **labels: Any) -> Any:
        """What scikit-learn makes of features, and of labels where they are given."""
        missing = self.nan != "error"
        how: dict[str, Any] = {"dtype": "numeric", "accept_sparse": "csr"}
        how["ensure_all_finite"] = "allow-nan" if missing else True  # NaN may stand for a missing value
        if labels and type(X) is np.ndarray and X.dtype.kind == "f":
            how["ensure_all_finite"] = False  # `read_frame` will look at each number, in half of the time
        with explained(X, missing=missing):
            found = validate_data(self, X, **labels, **how, reset=reset)
            if (found[0] if labels else found).dtype.kind in "OUT":  # it lets the text of some frames pass
                raise DataError("features must be numbers")
        if reset and not hasattr(self, "feature_names_in_") and frame_feature_names(X) is not None:
            raise DataError(UNSEEN_NAMES)  # without them, columns in another order would not be noticed later
        if reset:
            refuse_dates(X)
        return found

    def _rounds(self, X: Any, y: Any, qid: Any, group: Any, groups: Any = None, *, reset: bool) -> Rounds:
        def check(X: Any, y: Any) -> tuple[Any, Any, Sequence[str] | None]:
            if reset:
                none = type(X) is np.ndarray and (self.categorical is None or str(self.categorical) == "auto")
                self._encoder = None if none else fit_encoder(X, self.categorical, NAN.check(self.nan))
            X = X if reset else self._arranged(X)
            if self._encoder is None:
                X, y = self._validated(X, y=y, y_numeric=True, reset=reset)
                return X, y, getattr(self, "feature_names_in_", None)
            if reset:
                self.feature_names_in_ = np.array(self._encoder.columns, object)
                self.n_features_in_ = len(self._encoder.columns)
            return self._encoder(X), y, self._encoder.names

        if groups is not None and qid is None and group is None and take_query_ids(X, None)[1] is None:
            qid = groups
        return read_frame(
            X,
            y,
            qid,
            group,
            check=check,
            features=self.features,
            one_list=UNGROUPED_PARAMETER.check(self.ungrouped) != "error",
            missing=self.nan != "error",
            first=reset,
        )

    def _validation_set(self, part: tuple[Any, Any, Any, Any] | None, with_queries: bool) -> Rounds | None:
        if part is None:
            return None
        X, y, qid, group = part
        needed = with_queries or self.ungrouped == "error"
        if needed and group is None and take_query_ids(X, qid)[1] is None:
            raise DataError(UNGROUPED_EVAL_SET)
        return self._rounds(X, y, qid, group, reset=False)


class OnlineRanker(BaseRanker):
    """A ranker with `partial_fit`.

    >>> from ranktron.estimators import HingePerceptron
    >>> ranker = HingePerceptron()
    >>> for X, y in [([[1.0], [3.0]], [0, 1]), ([[2.0], [1.0]], [1, 0])]:
    ...     _ = ranker.partial_fit(X, y, qid=0)
    >>> ranker.learner_.rounds, ranker.rank([[1.0], [5.0]])
    (2, array([1, 0]))
    """

    __metadata_request__partial_fit: ClassVar = {"qid": True}

    def partial_fit(self, X: Any, y: Any, qid: Any = None, group: Any = None, *, sample_weight: Any = None) -> Self:
        """Plays these lists once, in order, after all that came before.

        The first call fits imputation, scaling and map, and later calls leave them as they are, but for
        `scale="running-standard"`, which every query updates. That is what `scale="auto"` means here where the learner
        can follow, for a first call may be a single list. `sample_weight` is that of `fit`: a query of weight 2 is
        played twice in a row, one of weight 0.5 in every second call.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per document.
        y : array
            The labels.
        qid : array, name of a column, or a scalar
            The query of each row, in any order and of any type; a scalar says that all rows are one list.
        group : array
            Sizes of consecutive lists instead.
        sample_weight : array
            How much each row counts.
        """
        blank = not hasattr(self, "learner_")
        with unchanged_if_refused(self):
            rounds, weights, documents = weigh(self._rounds(X, y, qid, group, reset=blank), sample_weight)
            if documents is not None:
                raise DataError(UNEVEN)
            self._play(rounds, weights, blank=blank)
        return self

    def _play(self, rounds: Rounds, weights: Floats | None, *, blank: bool) -> None:
        """Plays rounds once, in order; the first ones that there are fit imputation, scaling and map."""
        if blank:
            scale = self.scale if self.scale != "auto" else self._scale_of_stream()
            model = make_untrained(replace(self._plan(), scaling=scale), rounds)
            self._adopt(model, with_queries=len(rounds) > 1)
        if self._user is None and self.feedback is not None:
            self._user = simulated_user(self.feedback, self.learner_, rounds, self._schedule().seed)
        scaler = self._model.scaler
        if isinstance(scaler, Running):
            self._model = play_rescaled(self.learner_, self._model, scaler, rounds, self._user, weights)
            return
        self._model, history = learn_once(self.learner_, self._model, rounds, self._user, weights)
        if history.interrupted:
            raise KeyboardInterrupt

    def _scale_of_stream(self) -> str:
        """How a stream is scaled of which only the beginning is known."""
        return "running-standard" if self.map is None and self.make_learner(1).rescales else "standard"


def derive_estimator(algorithm: Algorithm, base: type[BaseRanker], module: str) -> type[BaseRanker]:
    """The estimator of an algorithm: its name, parameters, documentation, and what it computes from the state."""
    example = ", ".join(filter(None, (algorithm.example, "random_state=0")))
    doc = f"{inspect.cleandoc(algorithm.about)}\n{_EXAMPLE.format(algorithm.estimator, example)}"
    named = {each.__name__: _attribute(each) for each in algorithm.attributes}
    names = {p.name for p in algorithm.parameters}
    annotations = {"metric": str | Metric} if "metric" in names else {}
    body = {"__module__": module, "__doc__": doc, "__annotations__": annotations, "_algorithm": algorithm, **named}
    cls = type(algorithm.estimator, (base,), body)
    own = [p for p in algorithm.parameters if p.name != PRESET.name]  # which is every estimator's
    feedback = (_FEEDBACK,) if algorithm.simulates else ()
    derived: type[BaseRanker] = with_parameters(*own, *feedback, *common_parameters(algorithm), *_COMMON)(cls)
    return derived


def _attribute(compute: Any) -> property:
    def attribute(ranker: BaseRanker) -> Any:
        check_is_fitted(ranker)
        return compute(ranker._model.state)

    return property(attribute, doc=compute.__doc__)


def wrap_model(cls: type[BaseRanker], model: Model) -> BaseRanker:
    """A fitted estimator around a model: its parameters, its learner and what it knows of its features."""
    record = model.record
    ranker = cls(
        **model.parameters,
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
    ranker._encoder = model.encoder
    ranker._adopt(model, with_queries=record.get("queries") != 1)
    return ranker


def steps_before(ranker: Any) -> tuple[str, ...]:
    """The classes of the steps that transform what a ranker is being fitted to; none outside of a pipeline.

    A step is never told of its pipeline. While it is fitted, the pipeline's own `fit` stands further down the stack:
    it is looked for there. Features that were transformed by hand look like any others.
    """
    Pipeline = getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", None)
    frame = sys._getframe()
    while Pipeline is not None and frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Pipeline) and found.steps and found.steps[-1][1] is ranker:
            return tuple(type(step).__name__ for _, step in found.steps[:-1] if step not in (None, "passthrough"))
        frame = frame.f_back  # type: ignore[assignment]
    return ()
