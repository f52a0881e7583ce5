"""Predtron in scikit-learn's shape, for single examples: what its estimators share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ranktron.errors import DataError
from ranktron.estimators.base import unchanged_if_refused
from ranktron.estimators.signature import RANDOM_STATE, WithPresets, draw_seed
from ranktron.learners.parameters import Parameter
from ranktron.learners.predtron import PredictionProblem, Predtron, make_link, make_variant, theoretical_step
from ranktron.learners.predtron.links import NORMS
from ranktron.learners.predtron.variants import VARIANTS
from ranktron.learners.schedule import Schedule
from ranktron.learners.steps import Constant
from ranktron.training.algorithms import ALGORITHMS, PRESET, SCALE, TRAINING
from ranktron.types import Floats, Integers

_RADIUS = Parameter(
    "radius", "of the (scaled) inputs, for theory; None measures it on the first data seen", above=0.0, kind=float
)
RANKER = {p.name: p for p in ALGORITHMS["predtron"].parameters}
SHARED = (
    Parameter("variant", "loss-driven steps are as long as the loss is large", "standard", choices=tuple(VARIANTS)),
    Parameter("norm", "of the margin", "l2", choices=NORMS),
    Parameter(
        "eta",
        'step size, or "theory": the step of the paper\'s theorems, which needs the radius',
        1.0,
        RANKER["eta"].default,
    ),
    _RADIUS,
    RANKER["average"],
    replace(
        SCALE,
        help='None, or "auto", "standard": inputs are standardised by the data of `fit` or of the first `partial_fit`, '
        "only divided by their deviation without a constant",
    ),
    Parameter("fit_intercept", "whether every score has a constant", paper=True),
    TRAINING[0],
    replace(TRAINING[1], help="whether every pass takes the examples in a new order"),
    RANDOM_STATE,
    PRESET,
)


class PredtronEstimator(WithPresets):
    """What the estimators over single examples share: everything but the problem.

    After fitting, `learner_` is the Predtron over scaled inputs, `coef_` and `intercept_` its weights for inputs as
    they come, `online_losses_` the mean online loss of each pass, ties broken against the learner.
    """

    scale: Literal["auto", "standard"] | None
    _scaling: tuple[Floats, Floats] | None = None
    eta: float | str
    radius: float | None
    random_state: int | np.random.RandomState | None
    classes_: npt.NDArray[Any]
    n_outputs_: int
    _takes_tables: ClassVar[bool] = False

    def fit(self, X: Any, y: Any) -> Self:
        """Learns from scratch in `n_epochs` passes.

        Parameters
        ----------
        X : table of numbers, data frame or sparse matrix
            A row per example.
        y : array
            The label of each example: a class, a row of zeros and ones, or a row of grades, as the estimator learns.
        """
        n_epochs, shuffle = (p.check(getattr(self, p.name)) for p in TRAINING)
        with unchanged_if_refused(self):
            X, labels = self._examples(X, y, None, reset=True)
            schedule = Schedule(n_epochs, draw_seed(self.random_state), shuffle)
            self._begin(X)
            for epoch in range(schedule.epochs):
                self._pass(X, labels, schedule.queries(len(X), epoch))
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        blank = not hasattr(self, "learner_")
        with unchanged_if_refused(self):
            X, labels = self._examples(X, y, classes, reset=blank)
            if blank:
                self._begin(X)
            self._pass(X, labels, np.arange(len(X)))
        return self

    @property
    def coef_(self) -> Floats:
        """The weights, one row per score."""
        check_is_fitted(self, "learner_")
        coef: Floats = self.learner_.coef
        coef = coef[:, :-1] if self.fit_intercept else coef
        return coef if self._scaling is None else coef / self._scaling[1]

    @property
    def intercept_(self) -> Floats:
        """The constant of each score."""
        check_is_fitted(self, "learner_")
        coef: Floats = self.learner_.coef
        if not self.fit_intercept:
            return np.zeros(len(coef))
        return coef[:, -1] if self._scaling is None else coef[:, -1] - self.coef_ @ self._scaling[0]

    @abstractmethod
    def _problem(self) -> tuple[PredictionProblem, int]:
        """The problem and the number of its scores, once the labels are known."""

    @abstractmethod
    def _labels(self, y: Any, classes: Any, *, reset: bool) -> Sequence[Any] | npt.NDArray[Any]:
        """The labels in the problem's form."""

    def _examples(self, X: Any, y: Any, classes: Any, *, reset: bool) -> tuple[Floats, Any]:
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, order="C", multi_output=self._takes_tables)
        labels = self._labels(y, classes, reset=reset)
        if reset:
            self._scaling = self._fit_scaling(X)
        return self._inputs(X), labels

    def _fit_scaling(self, X: Floats) -> tuple[Floats, Floats] | None:
        """What is subtracted from each input, and what it is then divided by; a constant input becomes 0."""
        PRESET.check(self.preset)
        if self.scale is None:
            return None
        if self.scale not in ("auto", "standard"):
            raise DataError(f"there is no scaling {self.scale!r} here; choose from auto, standard and None")
        deviation = X.std(axis=0)
        varies = (X.max(axis=0) > X.min(axis=0)) & (deviation > 0.0)
        shift = X.mean(axis=0) if self.fit_intercept else np.zeros(X.shape[1])
        return shift, np.where(varies, deviation, 1.0)

    def _inputs(self, X: Floats) -> Floats:
        """The inputs of the learner: scaled, and with a one for the constant."""
        if self._scaling is not None:
            shift, divisor = self._scaling
            X = (X - shift) / divisor
        return np.hstack([X, np.ones((len(X), 1))]) if self.fit_intercept else X

    def _begin(self, X: Floats) -> None:
        problem, dimension = self._problem()
        shape = (dimension, X.shape[1])
        variant, link = make_variant(self.variant), make_link(self.norm, shape)
        if self.radius is not None:
            _RADIUS.check(self.radius)
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
        scores: Floats = self._inputs(X) @ self.learner_.coef.T
        return scores


def encode_labels(estimator: Any, y: Any, classes: Any, *, reset: bool) -> Integers:
    """Each label as the number of its class; the first time the classes are learnt too."""
    try:
        check_classification_targets(y)
        if reset:
            estimator.classes_ = np.unique(y if classes is None else classes)
    except TypeError:
        raise DataError("the classes must be of one kind: all of them numbers, or all of them texts") from None
    known = estimator.classes_
    if len(known) < 2:
        raise DataError(f"at least 2 classes are needed; there is only one class, {known.tolist()}")
    codes: Integers = np.minimum(np.searchsorted(known, y), len(known) - 1)
    if not (known[codes] == y).all():
        raise DataError(f"{y[known[codes] != y].tolist()[0]!r} is not one of the classes {known.tolist()}")
    return codes
