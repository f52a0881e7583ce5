"""Predtron for classes and for ordered grades."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from ranktron.errors import DataError
from ranktron.estimators.predtron import SHARED, PredtronEstimator, encode_labels
from ranktron.estimators.signature import with_parameters
from ranktron.learners.parameters import Parameter
from ranktron.learners.predtron import Enumerated, binary, multiclass, ordinal, with_costs, with_reject
from ranktron.types import Floats, Integers


class _Classes(ClassifierMixin, PredtronEstimator):  # type: ignore[misc]
    """Estimators whose labels are classes."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learns these examples once, in order, after all that came before; the first call names all classes.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        y : array
            The class of each example.
        classes : array
            All classes there are; only the first call needs them.
        """
        return self._partial_fit(X, y, classes)

    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Integers:
        return encode_labels(self, y, classes, reset=reset)


@with_parameters(
    Parameter(
        "loss",
        '"zero-one", or a table of what predicting a class (row) costs where another (column) is right; classes stand '
        "in sorted order and the diagonal is 0",
        "zero-one",
    ),
    Parameter("reject", "what a rejection costs, between 0 and 1, for all classes or for each; only with zero-one"),
    Parameter("reject_label", 'what `predict` answers instead of a class; None: "REJECT" for names, -1 for numbers'),
    *SHARED,
)
class PredtronClassifier(_Classes):
    """A linear classifier that learns from its mistakes, with any cost and with the option to reject.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> classifier = PredtronClassifier(n_epochs=100, random_state=0).fit(X, y)
    >>> classifier.score(X, y), len(classifier.online_losses_)
    (1.0, 100)
    """

    loss: Any

    def decision_function(self, X: Any) -> Floats:
        """The scores of the classes; for two classes the lead of the second.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        lead: Floats = scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return lead

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each example, or the mark of a rejection.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
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


@with_parameters(*SHARED)
class PredtronOrdinal(_Classes):
    """A classifier for ordered classes, which charges the distance between the predicted and the right class.

    Classes stand in sorted order; the loss is the number of steps between them.

    Examples
    --------
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]), [1, 1, 2, 2, 3, 3]
    >>> PredtronOrdinal(n_epochs=300, random_state=0).fit(X, y).predict(X)
    array([1, 1, 2, 2, 3, 3])
    """

    def decision_function(self, X: Any) -> Floats:
        """The scores of the classes; for two classes the lead of the second.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each example.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        """
        scores = self._scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def _problem(self) -> tuple[Enumerated, int]:
        problem = ordinal(len(self.classes_))
        return problem, problem.dimension
