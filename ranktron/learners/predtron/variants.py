"""The two kinds of update on a mistake: away from the loss-augmented prediction, or from the one shown.

A variant chooses the prediction that an update lowers, the weight of the update, and the surrogate whose gradient it
is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ranktron.errors import DataError
from ranktron.learners.predtron.problem import PredictionProblem, surrogate, unit_surrogate
from ranktron.types import Floats

VARIANTS = ("standard", "loss-driven")


class Variant(Protocol):
    """The update on a mistake."""

    def rival(self, problem: PredictionProblem, scores: Floats, label: Any, shown: Any, /) -> Any:
        """Returns the prediction to move away from.

        Parameters
        ----------
        problem : PredictionProblem
            Losses and representations.
        scores : array
            The scores t.
        label : label
            The right answer.
        shown : prediction
            What was predicted.
        """

    def weight(self, loss: float, /) -> float:
        """Returns the factor of the update.

        Parameters
        ----------
        loss : float
            The loss of the round.
        """

    def charge(self, problem: PredictionProblem, scores: Floats, label: Any, correct: Any, loss: float, /) -> float:
        """f_τ at these scores: the convex function whose gradient is the update of a round with that loss.

        Parameters
        ----------
        problem : PredictionProblem
            Losses and representations.
        scores : array
            The scores t.
        label : label
            The right answer.
        correct : prediction
            σ_y.
        loss : float
            The loss of the round.
        """

    def eta(self, problem: PredictionProblem, alpha: float, radius: float, /) -> float:
        """The step size of the theorem for inputs of at most that radius.

        Parameters
        ----------
        problem : PredictionProblem
            Losses and representations.
        alpha : float
            The strong convexity of the link.
        radius : float
            The largest |||X|||.
        """


@dataclass(frozen=True)
class Standard:
    """Algorithms 1 and 3: an update away from argmax_σ L(σ, y) + <rep(σ), t>, the gradient of φ.

    >>> from ranktron.learners.predtron import multiclass
    >>> Standard().eta(multiclass(3), alpha=1.0, radius=2.0)
    0.0625
    """

    def rival(self, problem: PredictionProblem, scores: Floats, label: Any, shown: Any) -> Any:
        return problem.augmented(scores, label)

    def weight(self, loss: float) -> float:
        return 1.0

    def charge(self, problem: PredictionProblem, scores: Floats, label: Any, correct: Any, loss: float) -> float:
        return surrogate(problem, scores, label, correct)[0]

    def eta(self, problem: PredictionProblem, alpha: float, radius: float) -> float:
        return alpha * problem.smallest / (4.0 * radius**2)  # Theorems 1 and 15


@dataclass(frozen=True)
class LossDriven:
    """Algorithm 2: an update away from the prediction shown, in proportion to its loss; the gradient of L φ_1.

    On a mistake pred(t) itself is the argmax outside Σ_y. Predictions do not depend on the step size.

    >>> from ranktron.learners.predtron import ordinal
    >>> LossDriven().eta(ordinal(5), alpha=1.0, radius=1.0)
    0.0625
    """

    def rival(self, problem: PredictionProblem, scores: Floats, label: Any, shown: Any) -> Any:
        return shown

    def weight(self, loss: float) -> float:
        return loss

    def charge(self, problem: PredictionProblem, scores: Floats, label: Any, correct: Any, loss: float) -> float:
        return loss * unit_surrogate(problem, scores, label, correct)[0]

    def eta(self, problem: PredictionProblem, alpha: float, radius: float) -> float:
        return alpha / (4.0 * problem.largest * radius**2)  # Theorem 14


def make_variant(name: str) -> Variant:
    """The variant of that name: `standard` or `loss-driven`.

    Parameters
    ----------
    name : {"standard", "loss-driven"}
        The variant.

    Examples
    --------
    >>> make_variant("loss-driven")
    LossDriven()
    """
    if name not in VARIANTS:
        raise DataError(f"there is no variant {name!r}; choose from {', '.join(VARIANTS)}")
    return Standard() if name == "standard" else LossDriven()
