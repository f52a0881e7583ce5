"""The description of an algorithm: its parameters, and where its learner is built. It imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any

from ranktron.defaults import RENAMED, find_preset
from ranktron.errors import DataError
from ranktron.training.stored_defaults import ADDED, STORED_DEFAULTS

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner
    from ranktron.types import State

_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default determines its type; `above` or `choices` restrict its values."""

    name: str
    default: Any
    help: str
    above: float | None = None
    choices: tuple[str, ...] = ()

    def check(self, value: Any) -> Any:
        """The value in the parameter's type, or an error that says what is allowed; metrics become their names."""
        value = str(value) if type(value).__name__ == "Metric" else value
        if isinstance(self.default, bool):
            fits = _is_truth(value)
            wanted = "true or false"
        elif isinstance(self.default, int | float):
            kind = type(self.default)
            fits = _is_number(value) and kind(value) == value
            wanted = "a whole number" if kind is int else "a number"
            if kind is int and fits and abs(value) >= 1 << 53:  # a float64, and so a model file, holds all below
                fits, wanted = False, "a whole number below 2^53"
            if self.above is not None:
                fits = fits and self.above < value
                wanted += f" of at least {self.above + 1:g}" if kind is int else f" above {self.above:g}"
        else:
            fits = isinstance(value, str) and (not self.choices or value in self.choices)
            wanted = " or ".join(self.choices) or "text"
        if not fits:
            raise DataError(f"{self.name} must be {wanted}, not {value!r}")
        return type(self.default)(value)

    def parse(self, text: str) -> Any:
        """Parses a value from the command line."""
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
    """An algorithm.

    `name` is for the command line, `estimator` the class. `builder` ("module:function") makes the learner that ranks,
    scores and keeps the state. An algorithm that does not learn online has a `solution`, a function
    (fit, parameters) -> state for that learner.
    """

    name: str
    estimator: str
    builder: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    solution: str = ""

    def with_defaults(self, preset: str) -> Algorithm:
        """The same algorithm, each parameter with the default that the preset has for it."""
        values = find_preset(self.name, preset)
        return replace(self, parameters=tuple(replace(p, default=values[p.name]) for p in self.parameters))

    def preset(self, word: str) -> dict[str, Any]:
        """The parameters of a preset, all of them.

        >>> from ranktron.training.algorithms import algorithm
        >>> algorithm("hinge").preset("paper")
        {'eta': 1.0, 'margin': 1.0, 'average': False}
        """
        return {p.name: p.default for p in self.with_defaults(word).parameters}

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters by name: the given ones, checked, and the defaults of the others."""
        known = {parameter.name: parameter for parameter in self.parameters}
        given = {RENAMED.get(self.name, {}).get(name, name): value for name, value in given.items()}
        for name in given:
            if name not in known:
                raise DataError(unknown_parameter(name, known, self.name))
        return {name: p.check(given.get(name, p.default)) for name, p in known.items()}

    def complete_stored(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """All parameters of a stored definition or model; missing ones take the defaults of 0.1.0, not newer ones."""
        return self.complete({**STORED_DEFAULTS[self.name], **stored})

    @property
    def added(self) -> dict[str, Any]:
        """The parameters that are newer than 0.1.0, as rankers of that version behaved."""
        return {name: STORED_DEFAULTS[self.name][name] for name in ADDED.get(self.name, ())}

    def stored(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """What a model file keeps: newer parameters only where they change something, so that 0.1.0 can read it."""
        added = self.added
        return {name: value for name, value in parameters.items() if value != added.get(name, ...)}

    def learner(self, n_features: int, parameters: Mapping[str, Any]) -> BaseLearner:
        """A new, untrained learner."""
        from ranktron.types.validation import check_count  # it imports numpy, and `--help` does not need it

        width = check_count(n_features, "the number of features", 0)
        learner: BaseLearner = _import_from(self.builder)(width, **self.complete(parameters))
        return learner

    def solver(self) -> Callable[..., State] | None:
        """The solver; None for algorithms that learn online."""
        return _import_from(self.solution) if self.solution else None


def unknown_parameter(name: str, known: Iterable[str], what: str) -> str:
    """The error message for an unknown parameter: the most similar one, and all that exist.

    >>> unknown_parameter("etta", ["eta", "margin"], "hinge")
    "hinge has no parameter 'etta': did you mean 'eta'? It has eta, margin"
    """
    from difflib import get_close_matches  # only where something is wrong

    names = list(known)
    near = get_close_matches(name, names, 1)
    then = f": did you mean {near[0]!r}? It" if near else "; it"
    return f"{what} has no parameter {name!r}{then} has {', '.join(names)}"


def _import_from(place: str) -> Callable[..., Any]:
    module, name = place.split(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _is_number(value: Any) -> bool:
    # numpy's numbers count, those in an array without dimensions too; truth values do not
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    if not hasattr(value, "__float__") or isinstance(value, str) or _is_truth(value):
        return False
    try:
        return kind in "iuf" and getattr(value, "shape", ()) == () and isfinite(value)
    except OverflowError:  # a whole number that no float holds
        return False


def _is_truth(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # numpy's own has the one name or the other
