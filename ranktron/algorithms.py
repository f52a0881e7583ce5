"""The table of algorithms: names, parameters, defaults. It imports nothing, so that `--help` is quick.

Estimators, command line and service all read it: a default is written down once, here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.types import Learner, State


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default says its type; `above` or `choices` say what is allowed."""

    name: str
    default: Any
    help: str
    above: float | None = None
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """The value as the parameter's own type, or an error that says what is allowed."""
        if isinstance(self.default, bool):
            fits = isinstance(value, bool) or type(value).__name__ == "bool_"
            wanted = "true or false"
        elif isinstance(self.default, int | float):
            kind = type(self.default)
            fits = _is_number(value) and kind(value) == value
            wanted = "a whole number" if kind is int else "a number"
            if self.above is not None:
                fits = fits and self.above < value < float("inf")
                wanted += f" above {self.above:g}"
        else:
            fits = isinstance(value, str) and (not self.choices or value in self.choices)
            wanted = " or ".join(self.choices) or "text"
        if not fits:
            raise DataError(f"{self.name} must be {wanted}, not {value!r}")
        return type(self.default)(value)

    def parse(self, text: str) -> Any:
        """The value that a text from the command line means."""
        value: Any = text
        if isinstance(self.default, bool):
            value = _YES_OR_NO.get(text.lower(), text)
        elif isinstance(self.default, int | float):
            try:
                value = float(text)
            except ValueError:
                value = text
        return self.check(value)


@dataclass(frozen=True)
class Algorithm:
    """A way to learn.

    `name` is for the command line, `estimator` the class. `builder` ("module:function") makes the learner that ranks,
    scores and keeps the state. An algorithm that does not learn by playing names its `solution`, a function
    (rounds, parameters, schedule, course, *, valid, select, start) -> state for that learner.
    """

    name: str
    estimator: str
    builder: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    solution: str = ""

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters by name: the given ones, checked, and the defaults of the others."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                raise DataError(f"{self.name} has no parameter {name!r}; it has {', '.join(known)}")
        return {name: p.check(given.get(name, p.default)) for name, p in known.items()}

    def learner(self, n_features: int, parameters: Mapping[str, Any]) -> Learner:
        """A new learner that has learnt nothing yet."""
        learner: Learner = _found(self.builder)(n_features, **self.complete(parameters))
        return learner

    def solver(self) -> Callable[..., State] | None:
        """What solves instead of playing; None for the algorithms that play."""
        return _found(self.solution) if self.solution else None


def _found(place: str) -> Callable[..., Any]:
    module, name = place.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _is_number(value: Any) -> bool:
    # numpy's numbers count; booleans do not
    return hasattr(value, "__float__") and not isinstance(value, bool | str) and type(value).__name__ != "bool_"


_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

SCALINGS = ("none", "standard", "minmax", "minmax-query")

TRAINING = (
    Parameter("n_epochs", 10, "passes over the data", above=0),
    Parameter("shuffle", True, "whether every pass takes the lists in a new order (never the rows of a list)"),
)

_AVERAGE = Parameter("average", False, "serve the mean of all weights instead of the last ones")

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in [
        Algorithm(
            name="hinge",
            estimator="HingePerceptron",
            builder="ranktron.learners.hinge:hinge_perceptron",
            summary="mistake-driven steps along the mean margin violation of all pairs of a list",
            paper="",
            parameters=(
                Parameter("eta", 1.0, "step size", above=0.0),
                Parameter("margin", 1.0, "lead in score under which a well-ordered pair still pays", above=0.0),
                _AVERAGE,
            ),
        ),
    ]
}


FIXED = Algorithm(
    name="linear",
    estimator="",
    builder="ranktron.learners.fixed:Fixed",
    summary="fixed weights: they score, and do not learn",
    paper="",
    parameters=(),
)


def algorithm(name: str) -> Algorithm:
    """Looks an algorithm up by its command-line name.

    >>> algorithm("hinge").estimator
    'HingePerceptron'
    """
    if name not in ALGORITHMS:
        raise DataError(f"there is no algorithm {name!r}; choose from {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def stored_algorithm(kind: str) -> Algorithm:
    """Looks up what a model file calls its kind: an algorithm, or fixed weights."""
    return FIXED if kind == FIXED.name else algorithm(kind)
