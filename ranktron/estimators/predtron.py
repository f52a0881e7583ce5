"""Predtron in scikit-learn's shape: a ranker, and estimators for classes, grades, subsets and label rankings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktron.algorithms import TRAINING
from ranktron.errors import DataError
from ranktron.estimators.base import OnlineRanker, from_table
from ranktron.predtron import (
    Enumerated,
    ErrorSetSize,
    Hamming,
    Permutations,
    PlaceLoss,
    Places,
    Predtron,
    Problem,
    Subsets,
    SubsetZeroOne,
    binary,
    link_of,
    multiclass,
    ordinal,
    theoretical_step,
    variant_of,
    with_costs,
    with_reject,
)
from ranktron.predtron.subsets import CountLoss
from ranktron.schedule import Schedule
from ranktron.steps import Constant
from ranktron.types import Floats, Integers

SUBSET_LOSSES: dict[str, CountLoss] = {"subset": SubsetZeroOne(), "hamming": Hamming(), "error-set": ErrorSetSize()}


@from_table("predtron")
class PredtronRanker(OnlineRanker):
    """A linear ranker that steps from the permutation it should not have shown towards the right one.

    Examples
    --------
    >>> from ranktron.simulate import Separable
    >>> lists = Separable().rounds(200)
    >>> qid = np.repeat(lists.qids, np.diff(lists.offsets))
    >>> ranker = PredtronRanker(random_state=0).fit(lists.X, lists.labels, qid=qid)
    >>> ranker.score(lists.X, lists.labels, qid=qid) > 0.99
    True
    """


class PredtronEstimator(BaseEstimator):  # type: ignore[misc]
    """What the estimators over single examples share: everything but the problem.

    Parameters of all of them: `variant` ("standard", "loss-driven"), `norm` ("l2", "l1", "group", "trace"), `eta` (a
    number, or "theory" for the step of the paper's theorems, which needs the `radius` of the inputs; None measures it
    on the first data seen), `average`, `fit_intercept`, `n_epochs`, `shuffle`, `random_state`.

    After fitting, `learner_` is the Predtron, `coef_` and `intercept_` its weights, `online_losses_` the mean online
    loss of each pass, ties broken against the learner.
    """

    variant: str
    norm: str
    eta: float | str
    radius: float | None
    average: bool
    fit_intercept: bool
    n_epochs: int
    shuffle: bool
    random_state: Any
    classes_: npt.NDArray[Any]
    n_outputs_: int
    _takes_tables: ClassVar[bool] = False

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from scratch in `n_epochs` passes."""
        n_epochs, shuffle = (p.check(getattr(self, p.name)) for p in TRAINING)
        X, labels = self._examples(X, y, None, reset=True)
        schedule = Schedule(n_epochs, int(check_random_state(self.random_state).randint(2**31)), shuffle)
        self._begin(X)
        for epoch in range(schedule.epochs):
            rng = np.random.default_rng((schedule.seed, epoch))
            self._pass(X, labels, rng.permutation(len(X)) if schedule.shuffle else np.arange(len(X)))
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        blank = not hasattr(self, "learner_")
        X, labels = self._examples(X, y, classes, reset=blank)
        if blank:
            self._begin(X)
        self._pass(X, labels, np.arange(len(X)))
        return self

    @property
    def coef_(self) -> Floats:
        """The weights, one row per score."""
        check_is_fitted(self, "learner_")
        coef = self.learner_.coef
        return coef[:, :-1] if self.fit_intercept else coef

    @property
    def intercept_(self) -> Floats:
        """The constant of each score."""
        check_is_fitted(self, "learner_")
        coef = self.learner_.coef
        return coef[:, -1] if self.fit_intercept else np.zeros(len(coef))

    @abstractmethod
    def _problem(self) -> tuple[Problem, int]:
        """The problem and the number of its scores, once the labels are known."""

    @abstractmethod
    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Sequence[Any] | npt.NDArray[Any]:
        """The labels in the problem's form."""

    def _examples(self, X: Any, y: Any, classes: Any, *, reset: bool) -> tuple[Floats, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, order="C", multi_output=self._takes_tables)
        return self._with_one(X), self._labels(y, classes, reset=reset)

    def _with_one(self, X: Floats) -> Floats:
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    def _begin(self, X: Floats) -> None:
        problem, dimension = self._problem()
        shape = (dimension, X.shape[1])
        variant, link = variant_of(self.variant), link_of(self.norm, shape)
        if isinstance(self.eta, str):
            if self.eta != "theory":
                raise DataError(f"eta must be a number above 0 or 'theory', not {self.eta!r}")
            radius = max(map(link.radius, X)) if self.radius is None else self.radius
            step = theoretical_step(problem, variant, link, radius)
        else:
            step = Constant(self.eta)
        self.learner_ = Predtron(problem, shape, step, variant, link, bool(self.average))
        self.online_losses_: list[float] = []

    def _pass(self, X: Floats, labels: Any, order: Integers) -> None:
        learner, total = self.learner_, 0.0
        for i in order.tolist():
            mistake = learner.learn(X[i], learner.scores(X[i]), labels[i])
            total += 0.0 if mistake is None else mistake.loss
        self.online_losses_.append(total / len(order))

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "learner_")
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        scores: Floats = self._with_one(X) @ self.learner_.coef.T
        return scores


class _Classes(ClassifierMixin, PredtronEstimator):  # type: ignore[misc]
    """Estimators whose labels are classes."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns these examples once, in order, after all that came before; the first call names all classes."""
        return self._partial_fit(X, y, classes)

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Integers:
        return _codes(self, y, classes, reset=reset)


class PredtronClassifier(_Classes):
    """A linear classifier that learns from its mistakes, with any cost and with the option to reject.

    Parameters
    ----------
    loss : "zero-one" or (classes, classes), default "zero-one"
        A table says what predicting a class (row) costs where another (column) is right; classes stand in sorted
        order and the diagonal is 0.
    reject : None, number or (classes,), default None
        What a rejection costs, between 0 and 1, for all classes or for each; only with the zero-one loss.
    reject_label : default None
        What `predict` answers instead of a class; None means "REJECT" for names and -1 for numbers.
    variant, norm, eta, radius, average, fit_intercept, n_epochs, shuffle, random_state
        As for all of Predtron's estimators: see `PredtronEstimator`.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> classifier = PredtronClassifier(n_epochs=100, random_state=0).fit(X, y)
    >>> classifier.score(X, y), len(classifier.online_losses_)
    (1.0, 100)
    """

    def __init__(
        self,
        *,
        loss: Any = "zero-one",
        reject: Any = None,
        reject_label: Any = None,
        variant: str = "standard",
        norm: str = "l2",
        eta: float | str = 1.0,
        radius: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.reject = reject
        self.reject_label = reject_label
        self.variant = variant
        self.norm = norm
        self.eta = eta
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    def decision_function(self, X: Any) -> Floats:
        """The scores of the classes; for two classes the lead of the second."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        lead: Floats = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return lead

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each example, or the mark of a rejection."""
        scores = self._scores(X)
        predictions = np.array([self.learner_.problem.pred(t) for t in scores], np.int64)
        if self.reject is None:
            return np.asarray(self.classes_[predictions])
        return np.append(self.classes_, self._mark())[predictions]

    def _mark(self) -> Any:
        mark = self.reject_label
        if mark is None:
            mark = "REJECT" if self.classes_.dtype.kind in "OUS" else -1
        if mark in self.classes_.tolist():
            raise DataError(f"{mark!r} is a class and cannot mark a rejection: choose another reject_label")
        return mark

    def _problem(self) -> tuple[Enumerated, int]:
        classes = len(self.classes_)
        if self.reject is not None:
            if not isinstance(self.loss, str):
                raise DataError("a rejection can be had with the zero-one loss, not with a table of costs")
            self._mark()
            problem = with_reject(classes, self.reject)
        elif not isinstance(self.loss, str):
            problem = with_costs(self.loss)
            if len(problem.losses) != classes:
                raise DataError(f"there are {classes} classes, but costs for {len(problem.losses)}")
            if classes == 2:
                problem = binary((problem.losses[1, 0], problem.losses[0, 1]))
        elif self.loss != "zero-one":
            raise DataError(f"there is no loss {self.loss!r}: choose 'zero-one' or give a table of costs")
        else:
            problem = binary() if classes == 2 else multiclass(classes)
        return problem, problem.dimension


class PredtronOrdinal(_Classes):
    """A classifier for ordered classes, which charges the distance between the predicted and the right class.

    Classes stand in sorted order; the loss is the number of steps between them.

    Parameters
    ----------
    variant, norm, eta, radius, average, fit_intercept, n_epochs, shuffle, random_state
        As for all of Predtron's estimators: see `PredtronEstimator`.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), [1, 1, 2, 2, 3, 3]
    >>> PredtronOrdinal(n_epochs=300, random_state=0).fit(X, y).predict(X)
    array([1, 1, 2, 2, 3, 3])
    """

    def __init__(
        self,
        *,
        variant: str = "standard",
        norm: str = "l2",
        eta: float | str = 1.0,
        radius: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.variant = variant
        self.norm = norm
        self.eta = eta
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    def decision_function(self, X: Any) -> Floats:
        """The scores of the classes; for two classes the lead of the second."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each example."""
        scores = self._scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _problem(self) -> tuple[Enumerated, int]:
        problem = ordinal(len(self.classes_))
        return problem, problem.dimension


class PredtronMultilabel(ClassifierMixin, PredtronEstimator):  # type: ignore[misc]
    """A classifier that gives every example a subset of the classes: y is a table of zeros and ones.

    With a single class per example instead of a table it learns one against the rest, all at once.

    Parameters
    ----------
    loss : "hamming", "subset" or "error-set", default "hamming"
        The number of wrong classes; 1 for any wrong class; the number of pairs (missed class, class in vain).
    variant, norm, eta, radius, average, fit_intercept, n_epochs, shuffle, random_state
        As for all of Predtron's estimators: see `PredtronEstimator`.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 1], [1, 1]])
    >>> PredtronMultilabel(n_epochs=100, random_state=0).fit(X, Y).score(X, Y)
    1.0
    """

    def __init__(
        self,
        *,
        loss: str = "hamming",
        variant: str = "standard",
        norm: str = "l2",
        eta: float | str = 1.0,
        radius: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.variant = variant
        self.norm = norm
        self.eta = eta
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    _takes_tables = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns these examples once, in order, after all that came before; `classes` names those of a single y."""
        return self._partial_fit(X, y, classes)

    def decision_function(self, X: Any) -> Floats:
        """One score per class; a class above 0 is predicted."""
        scores = self._scores(X)
        return scores if self._tabular or len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """A table of zeros and ones; one class per example where that was learnt."""
        scores = self._scores(X)
        if self._tabular:
            return (scores > 0.0).astype(np.int64)
        codes = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0.0).astype(np.int64)
        return np.asarray(self.classes_[codes])

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Floats:
        check_classification_targets(y)
        y = np.asarray(y)
        tabular = y.ndim == 2 and y.shape[1] > 1
        if reset:
            self._tabular = tabular
        elif tabular != self._tabular:
            raise DataError("a table of labels and a single class per example cannot follow each other")
        if not tabular:
            codes = _codes(self, y.reshape(-1), classes, reset=reset)
            table: Floats = (codes[:, None] == np.arange(len(self.classes_))).astype(float)
            table = table if len(self.classes_) > 2 else table[:, 1:]
        else:
            table = _label_table(self, y, reset=reset)
            self.classes_ = np.arange(table.shape[1])
            if not np.isin(table, (0, 1)).all():
                raise DataError("labels must be a table of zeros and ones, one column per class")
        self.n_outputs_ = table.shape[1]
        return table

    def _problem(self) -> tuple[Problem, int]:
        if self.loss not in SUBSET_LOSSES:
            raise DataError(f"there is no loss {self.loss!r}; choose from {', '.join(SUBSET_LOSSES)}")
        if self.loss == "error-set" and self.n_outputs_ < 2:
            raise DataError("the error-set loss counts pairs of classes and needs at least 2")
        return Subsets(self.n_outputs_, SUBSET_LOSSES[self.loss]), self.n_outputs_


class PredtronLabelRanker(PredtronEstimator):
    """Ranks the same labels anew for every example: y is a table of relevances >= 0, one column per label.

    Parameters
    ----------
    representation : "-i", "-i^1.1", "-i^2", "1/i" or "discount", default "-i^1.1"
        What a place i is worth in the vector of a permutation.
    loss : "ndcg", "ndcg@k" or "p@k", default "ndcg"
        One minus this measure is learnt.
    variant, norm, eta, radius, average, fit_intercept, n_epochs, shuffle, random_state
        As for all of Predtron's estimators: see `PredtronEstimator`.

    Examples
    --------
    >>> X, Y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2]])
    >>> ranker = PredtronLabelRanker(n_epochs=50, random_state=0).fit(X, Y)
    >>> ranker.rank(X)[0], ranker.score(X, Y)
    (array([0, 1, 2]), 1.0)
    """

    def __init__(
        self,
        *,
        representation: str = "-i^1.1",
        loss: str = "ndcg",
        variant: str = "standard",
        norm: str = "l2",
        eta: float | str = 1.0,
        radius: float | None = None,
        average: bool = False,
        fit_intercept: bool = True,
        n_epochs: int = 10,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.representation = representation
        self.loss = loss
        self.variant = variant
        self.norm = norm
        self.eta = eta
        self.radius = radius
        self.average = average
        self.fit_intercept = fit_intercept
        self.n_epochs = n_epochs
        self.shuffle = shuffle
        self.random_state = random_state

    _takes_tables = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.positive_only = True
        return tags

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learns these examples once, in order, after all that came before."""
        return self._partial_fit(X, y)

    def predict(self, X: Any) -> Floats:
        """The scores of the labels, a row per example."""
        return self._scores(X)

    def rank(self, X: Any) -> Integers:
        """The labels of each example from best to worst, by column."""
        return np.argsort(-self._scores(X), axis=1, kind="stable")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean of the measure that is learnt, ties broken against the ranker."""
        problem = self._measure()
        labels = np.asarray(y, float)
        losses = [problem.loss(problem.pred(t, label), label) for t, label in zip(self._scores(X), labels, strict=True)]
        return 1.0 - float(np.average(losses, weights=sample_weight))

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Floats:
        table = _label_table(self, y, reset=reset)
        if table.min() < 0.0:
            raise DataError("relevances must be >= 0")
        if reset:
            self._highest = int(np.ceil(table.max()))
        return table

    def _measure(self) -> Permutations:
        return Permutations(PlaceLoss(self.loss), Places(self.representation))

    def _problem(self) -> tuple[Problem, int]:
        if not isinstance(self.eta, str):
            return self._measure(), self.n_outputs_
        problem = Permutations(PlaceLoss(self.loss), Places(self.representation), self.n_outputs_, self._highest)
        return problem, self.n_outputs_


def _codes(estimator: Any, y: Any, classes: Any, *, reset: bool) -> Integers:
    check_classification_targets(y)
    if reset:
        estimator.classes_ = np.unique(y if classes is None else classes)
        if len(estimator.classes_) < 2:
            raise DataError(f"at least 2 classes are needed; there is only one class, {estimator.classes_.tolist()}")
    known = estimator.classes_
    codes: Integers = np.minimum(np.searchsorted(known, y), len(known) - 1)
    if not (known[codes] == y).all():
        raise DataError(f"{y[known[codes] != y].tolist()[0]!r} is not one of the classes {known.tolist()}")
    return codes


def _label_table(estimator: Any, y: Any, *, reset: bool) -> Floats:
    table = np.asarray(y)
    if table.ndim != 2 or table.dtype.kind not in "biuf":
        raise DataError(
            f"Unknown label type: labels must be a table of numbers (examples × labels), not {table.dtype} of shape "
            f"{table.shape}"
        )
    if reset:
        estimator.n_outputs_ = table.shape[1]
    elif table.shape[1] != estimator.n_outputs_:
        raise DataError(f"{estimator.n_outputs_} labels were learnt so far, the new data has {table.shape[1]}")
    return table.astype(float)
