"""Step sizes η_t as functions of the round number t, which counts from 0."""

from dataclasses import dataclass

from ranktron.errors import DataError
from ranktron.types import Step


@dataclass(frozen=True)
class Constant:
    """The same step size in every round: η_t = eta.

    Parameters
    ----------
    eta : float
        The step size, above 0.

    Examples
    --------
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
    """A step size that shrinks as a power of the round number: η_t = eta · (t + 1)^(−power).

    Parameters
    ----------
    eta : float
        The step size of the first round, above 0.
    power : float
        How fast it shrinks.

    Examples
    --------
    >>> InversePower(0.5, 0.5)(3)
    0.25
    """

    eta: float
    power: float = 0.5

    def __post_init__(self) -> None:
        _check_positive(self.eta)

    def __call__(self, number: int) -> float:
        size: float = self.eta * (number + 1.0) ** -self.power
        return size


@dataclass(frozen=True)
class ExponentialDecay:
    """A step size that shrinks by the same factor in every round: η_t = eta · decay^t.

    Parameters
    ----------
    eta : float
        The step size of the first round, above 0.
    decay : float
        The factor, above 0 and at most 1.

    Examples
    --------
    >>> ExponentialDecay(0.5, 0.5)(2)
    0.125
    """

    eta: float
    decay: float = 1.0

    def __post_init__(self) -> None:
        _check_positive(self.eta)
        if not 0.0 < self.decay <= 1.0:
            raise DataError(f"the decay of the step must be above 0 and at most 1, not {self.decay}")

    def __call__(self, number: int) -> float:
        size: float = self.eta * self.decay**number
        return size


def make_step(name: str, eta: float) -> Step:
    """The step rule of that name.

    Parameters
    ----------
    name : {"constant", "sqrt"}
        The rule.
    eta : float
        The step size of the first round, above 0.

    Examples
    --------
    >>> make_step("sqrt", 0.5)
    InversePower(eta=0.5, power=0.5)
    """
    rules: dict[str, type[Constant] | type[InversePower]] = {"constant": Constant, "sqrt": InversePower}
    if name not in rules:
        raise DataError(f"there is no step rule {name!r}; choose from {', '.join(rules)}")
    return rules[name](eta)


def _check_positive(eta: float) -> None:
    if not 0.0 < eta < float("inf"):
        raise DataError(f"the step size eta must be a positive number, not {eta}")
