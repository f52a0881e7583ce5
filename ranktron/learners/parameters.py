"""Algorithms and their parameters, declared once; everything else that shows or takes them is derived.

Nothing heavy is imported, so that `--help` is quick: a module that declares an algorithm imports what it composes
inside the function that builds the learner.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner
    from ranktron.types import State

PRESETS = ("recommended", "paper")

_YES_OR_NO = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_AS_PRINTED: Any = object()  # the recommended value is the paper's

L = TypeVar("L", bound="BaseLearner")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, what it is, its two presets, and its limits.

    `paper` is what the paper prints and the functions of `ranktron.learners` take, `recommended` the default of
    estimators, commands and service where it is another one. Values are greater than `above`, or one of `choices`.
    Their type is `kind`, by default that of `paper`; a parameter whose `paper` is None takes None, too.
    """

    name: str
    help: str
    paper: Any = None
    recommended: Any = _AS_PRINTED
    above: float | None = None
    choices: tuple[str, ...] = ()
    kind: type | None = None

    @property
    def default(self) -> Any:
        """The recommended value."""
        return self.paper if self.recommended is _AS_PRINTED else self.recommended

    @property
    def annotation(self) -> Any:
        """The type of its values, for signatures."""
        if self.choices:
            return Literal[self.choices]
        kind: Any = self.kind or (Any if self.paper is None else type(self.paper))
        return kind | None if self.kind is not None and self.paper is None else kind

    @property
    def description(self) -> str:
        """What a docstring says about it."""
        choices = f"{{{', '.join(map(repr, self.choices))}}}, " if self.choices else ""
        return f"{choices}default {self.default!r}\n    {self.help}\n"

    def check(self, value: Any) -> Any:
        """The value in the parameter's type, or an error that says what is allowed; metrics become their names."""
        kind = self.kind or type(self.paper)
        if value is None and self.paper is None:
            return None
        value = str(value) if type(value).__name__ == "Metric" else value
        if kind is bool:
            fits = _is_truth(value)
            wanted = "true or false"
        elif kind in (int, float):
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
        return kind(value)

    def parse(self, text: str) -> Any:
        """Parses a value from the command line; "none" is None where the parameter takes that."""
        kind: Any = self.kind or type(self.paper)
        value: Any = text
        if self.paper is None and text.lower() == "none":
            return None
        if kind is bool:
            return self.check(_YES_OR_NO.get(text.lower(), text))
        if kind in (int, float):
            with suppress(ValueError):
                value = float(text)
        return self.check(value)


class Parameters(Mapping[str, Any]):
    """All parameters of an algorithm, checked: attributes and items of a value that does not change.

    >>> from ranktron.training.algorithms import algorithm
    >>> parameters = algorithm("hinge").complete({"eta": 0.5})
    >>> parameters.eta, parameters["average"], algorithm("hinge").complete(parameters) is parameters
    (0.5, True, True)
    """

    __slots__ = ("_values", "algorithm")

    def __init__(self, algorithm: Algorithm, values: dict[str, Any]) -> None:
        self.algorithm, self._values = algorithm, values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(name) from None

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> Any:
        return Parameters, (self.algorithm, self._values)


@dataclass(frozen=True, eq=False)
class Algorithm:
    """An algorithm, as `declare` takes it.

    `name` is for the command line, `estimator` the class in scikit-learn's shape, whose docstring is `about`. `build`
    makes the learner that ranks, scores and keeps the state. An algorithm that is not trained by playing has a
    `solution`, the place ("module:function") of a function (fit, parameters) -> state for that learner.
    """

    name: str
    build: Callable[[int, Parameters], BaseLearner]
    parameters: tuple[Parameter, ...] = ()
    estimator: str = ""
    summary: str = ""
    paper: str = ""  # its authors and title
    about: str = ""
    example: str = ""  # parameters with which the example of the estimator's docstring ranks nearly without a mistake
    solution: str = ""
    partial_fit: bool = True  # whether the estimator has one
    clicks: bool = False  # whether the estimator is fitted to logged clicks, too
    simulates: bool = False  # whether `fit` simulates users
    recommended: Mapping[str, Any] = field(default_factory=dict)  # n_epochs and scale that differ from all others'
    attributes: tuple[Callable[[State], Any], ...] = ()  # of the fitted estimator, computed from the state

    def __reduce__(self) -> Any:
        return _declared, (self.name,)

    def preset(self, word: str) -> Parameters:
        """All parameters as a preset has them.

        >>> from ranktron.training.algorithms import algorithm
        >>> algorithm("hinge").preset("paper")
        {'eta': 1.0, 'margin': 1.0, 'average': False}
        """
        return self._presets[word]

    @cached_property
    def _presets(self) -> dict[str, Parameters]:
        recommended, paper = ({p.name: getattr(p, which) for p in self.parameters} for which in ("default", "paper"))
        return {PRESETS[0]: Parameters(self, recommended), PRESETS[1]: Parameters(self, paper)}

    def complete(self, given: Mapping[str, Any], preset: str = PRESETS[0]) -> Parameters:
        """The given parameters, checked, and those of the preset for the others; complete ones as they are."""
        if type(given) is Parameters and given.algorithm is self:
            return given
        known = self._presets[preset]._values
        for name in given:
            if name not in known:
                raise DataError(unknown_parameter(name, known, self.name))
        return Parameters(self, {p.name: p.check(given.get(p.name, known[p.name])) for p in self.parameters})

    def learner(self, n_features: int, parameters: Mapping[str, Any]) -> BaseLearner:
        """A new, untrained learner."""
        from ranktron.types.validation import check_count  # it imports numpy, and `--help` does not need it

        return self.build(check_count(n_features, "the number of features", 0), self.complete(parameters))

    def solver(self) -> Callable[..., State] | None:
        """The function of `solution`; None for algorithms that learn online."""
        if not self.solution:
            return None
        module, name = self.solution.split(":")
        solver: Callable[..., State] = getattr(import_module(module), name)
        return solver


ALGORITHMS: dict[str, Algorithm] = {}
"""What was declared: `ranktron.learners.algorithms` imports all of them."""


def _declared(name: str) -> Algorithm:
    return ALGORITHMS[name]


def register(algorithm: Algorithm) -> Algorithm:
    """Adds an algorithm to those that are declared."""
    if algorithm.name in ALGORITHMS:
        raise ValueError(f"there are two algorithms {algorithm.name!r}")
    ALGORITHMS[algorithm.name] = algorithm
    return algorithm


def declare(
    name: str, *parameters: Parameter, **about: Any
) -> Callable[[Callable[[int, Parameters], L]], Callable[..., L]]:
    """Declares an algorithm by the function that builds its learner from the number of features and all parameters.

    It becomes a function whose keywords are the parameters, with the paper's values as defaults and no limits but those
    of the learner itself. `about` are the other fields of `Algorithm`, which is the function's attribute `algorithm`.
    """

    def decorate(build: Callable[[int, Parameters], L]) -> Callable[..., L]:
        algorithm = register(Algorithm(name, build, parameters, **about))
        keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
        listed = [inspect.Parameter("n_features", keyword, annotation=int)]
        listed += [inspect.Parameter(p.name, keyword, default=p.paper, annotation=p.annotation) for p in parameters]
        signature = inspect.Signature(listed, return_annotation=inspect.signature(build).return_annotation)

        def function(*values: Any, **given: Any) -> L:
            named = signature.bind(*values, **given).arguments
            return build(named.pop("n_features"), Parameters(algorithm, {**algorithm.preset("paper"), **named}))

        function.__signature__ = signature  # type: ignore[attr-defined]
        function.__module__, function.__name__, function.__qualname__ = build.__module__, build.__name__, build.__name__
        described = {"n_features": "int\n    The number of features.\n"}
        described |= {p.name: replace(p, recommended=_AS_PRINTED).description for p in parameters}
        function.__doc__ = with_parameter_docs(build.__doc__, described)
        function.algorithm = algorithm  # type: ignore[attr-defined]
        return function

    return decorate


def with_parameter_docs(text: str | None, described: Mapping[str, str]) -> str:
    """A docstring with a section that describes the parameters, before its examples."""
    before, examples, after = inspect.cleandoc(text or "").partition("Examples\n")
    lines = "".join(f"{name} : {each}" for name, each in described.items())
    return f"{before.rstrip()}\n\nParameters\n----------\n{lines}\n{examples}{after}"


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


ETA = Parameter("eta", "step size", 1.0, above=0.0)
MARGIN = Parameter("margin", "correctly ordered pairs closer than this in score still incur loss", 1.0, above=0.0)
STEP = Parameter(
    "step",
    "constant, or eta divided by the square root of the round number",
    "constant",
    choices=("constant", "sqrt"),
)
AVERAGE = Parameter("average", "use the average of all weight vectors instead of the last one", paper=False)
BALANCE = Parameter("balance", "whether every query weighs the same, or every pair", choices=("query", "pair"))
PRICE = Parameter(
    "exploration_price",
    "explore only as far as no list falls below the one by score by more than this share of its estimated reward",
    1.0,
    above=-1.0,
)
SEED = Parameter("seed", "seed of the exploration", 0, above=-1)
PAIRS = (
    Parameter("alpha_bound", "skip pairs misranked in more than this share of the passes; 1: skip none", 1.0),
    Parameter("selective", "ignore hypotheses that ranked fewer pairs correctly than this", 0, above=-1),
    Parameter("pairs_per_query", "pairs of each query sampled in each pass; 0: all pairs", 0, above=-1),
)
SLAM_PAPER = "Chaudhuri and Tewari, Perceptron-like Algorithms for Online Learning to Rank"
COMMITTEE_PAPER = (
    "Elsas, Carvalho and Carbonell, Fast Learning of Document Ranking Functions with the Committee Perceptron"
)
