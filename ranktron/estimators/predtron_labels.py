"""Predtron for several labels at once: subsets of them, and rankings of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ranktron.data.frames import as_sample_weights
from ranktron.errors import DataError
from ranktron.estimators.predtron import RANKER, SHARED, PredtronEstimator, encode_labels
from ranktron.estimators.signature import with_parameters
from ranktron.learners.parameters import Parameter
from ranktron.learners.predtron import (
    ErrorSetSize,
    Hamming,
    Permutations,
    PlaceLoss,
    Places,
    PredictionProblem,
    Subsets,
    SubsetZeroOne,
)
from ranktron.learners.predtron.subsets import CountLoss
from ranktron.types import Floats, Integers

SUBSET_LOSSES: dict[str, CountLoss] = {"subset": SubsetZeroOne(), "hamming": Hamming(), "error-set": ErrorSetSize()}


@with_parameters(
    Parameter(
        "loss",
        "hamming: the number of wrong classes; subset: 1 for any wrong class; error-set: the number of pairs (missed "
        "class, class in vain)",
        "hamming",
        choices=tuple(SUBSET_LOSSES),
    ),
    Parameter(
        "class_cost",
        "of error-set only: what each wrong class costs beside the pairs; with 0, as printed, all classes, or none, "
        "cost nothing",
        paper=0.0,
        recommended=0.1,
    ),
    *SHARED,
)
class PredtronMultilabel(ClassifierMixin, PredtronEstimator):  # type: ignore[misc]
    """A classifier that gives every example a subset of the classes: y is a table of zeros and ones.

    With a single class per example instead of a table it learns one against the rest, all at once.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 1], [1, 1]])
    >>> PredtronMultilabel(n_epochs=100, random_state=0).fit(X, Y).score(X, Y)
    1.0
    """

    _takes_tables = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns these examples once, in order, after all that came before; `classes` names those of a single y.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        y : array of shape (examples, classes)
            Zeros and ones; or the one class of each example.
        classes : array
            All classes there are, where y has one per example; only the first call needs them.
        """
        return self._partial_fit(X, y, classes)

    def decision_function(self, X: Any) -> Floats:
        """One score per class; a class above 0 is predicted.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        scores = self._scores(X)
        return scores if self._tabular or len(self.classes_) > 2 else scores[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """A table of zeros and ones; one class per example where that was learnt.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        scores = self._scores(X)
        if self._tabular:
            return (scores > 0.0).astype(np.int64)
        codes = np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0.0).astype(np.int64)
        return np.asarray(self.classes_[codes])

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Floats:
        y = np.asarray(y)
        tabular = y.ndim == 2 and y.shape[1] > 1
        if reset:
            self._tabular = tabular
        elif tabular != self._tabular:
            raise DataError("a table of labels and a single class per example cannot follow each other")
        if not tabular:
            codes = encode_labels(self, y.reshape(-1), classes, reset=reset)
            table: Floats = (codes[:, None] == np.arange(len(self.classes_))).astype(float)
            table = table if len(self.classes_) > 2 else table[:, 1:]
        else:
            check_classification_targets(y)
            table = _label_table(self, y, reset=reset)
            self.classes_ = np.arange(table.shape[1])
            if not np.isin(table, (0, 1)).all():
                raise DataError("labels must be a table of zeros and ones, one column per class")
        self.n_outputs_ = table.shape[1]
        return table

    def _problem(self) -> tuple[PredictionProblem, int]:
        if self.loss not in SUBSET_LOSSES:
            raise DataError(f"there is no loss {self.loss!r}; choose from {', '.join(SUBSET_LOSSES)}")
        if self.loss == "error-set" and self.n_outputs_ < 2:
            raise DataError("the error-set loss counts pairs of classes and needs at least 2")
        loss = ErrorSetSize(float(self.class_cost)) if self.loss == "error-set" else SUBSET_LOSSES[self.loss]
        return Subsets(self.n_outputs_, loss), self.n_outputs_


@with_parameters(RANKER["representation"], RANKER["loss"], *SHARED)
class PredtronLabelRanker(PredtronEstimator):
    """Ranks the same labels anew for every example: y is a table of relevances >= 0, one column per label.

    Examples
    --------
    >>> X, Y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2]])
    >>> ranker = PredtronLabelRanker(n_epochs=50, random_state=0).fit(X, Y)
    >>> ranker.rank(X)[0], ranker.score(X, Y)
    (array([0, 1, 2]), 1.0)
    """

    _takes_tables = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.positive_only = True
        return tags

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learns these examples once, in order, after all that came before.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        y : array of shape (examples, labels)
            The grade of each label.
        """
        return self._partial_fit(X, y)

    def predict(self, X: Any) -> Floats:
        """The scores of the labels, a row per example.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        return self._scores(X)

    def rank(self, X: Any) -> Integers:
        """The labels of each example from best to worst, by column.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        return np.argsort(-self._scores(X), axis=1, kind="stable")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean of the measure that is learnt, ties broken against the ranker.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        y : array of shape (examples, labels)
            The grade of each label.
        sample_weight : array
            How much each example counts.
        """
        check_is_fitted(self, "learner_")
        problem, (rows, labels) = self._measure(), self._examples(X, y, None, reset=False)
        scores = rows @ self.learner_.coef.T
        losses = [problem.loss(problem.pred(t, label), label) for t, label in zip(scores, labels, strict=True)]
        weights = None if sample_weight is None else as_sample_weights(sample_weight, len(losses))
        return 1.0 - float(np.average(losses, weights=weights))

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Floats:
        table = _label_table(self, y, reset=reset)
        if table.min() < 0.0:
            raise DataError("relevances must be >= 0")
        if reset:
            self._highest = int(np.ceil(table.max()))
        return table

    def _measure(self) -> Permutations:
        return Permutations(PlaceLoss(self.loss), Places(self.representation))

    def _problem(self) -> tuple[PredictionProblem, int]:
        if not isinstance(self.eta, str):
            return self._measure(), self.n_outputs_
        problem = Permutations(PlaceLoss(self.loss), Places(self.representation), self.n_outputs_, self._highest)
        return problem, self.n_outputs_


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
