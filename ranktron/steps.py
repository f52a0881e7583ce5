"""Step sizes: how far round number t (from 0) may move the weights."""

from dataclasses import dataclass

from ranktron.errors import DataError


@dataclass(frozen=True)
class Constant:
    """The same step in every round: η_t = eta.

    >>> Constant(0.5)(1000)
    0.5
    """

    eta: float

    def __post_init__(self) -> None:
        _check_positive(self.eta)

    def __call__(self, number: int) -> float:
        return self.eta


@dataclass(frozen=True)
class InversePower:
    """A step that shrinks with the rounds: η_t = eta · (t + 1)^(−power).

    >>> InversePower(0.5, 0.5)(3)
    0.25
    """

    eta: float
    power: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self.eta)

    def __call__(self, number: int) -> float:
        return float(self.eta * (number + 1.0) ** -self.power)


def _check_positive(eta: float) -> None:
    if not 0.0 < eta < float("inf"):
        raise DataError(f"the step size eta must be a positive number, not {eta}")
