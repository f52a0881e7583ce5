"""Estimators take their parameters from what their algorithm declares: signature, defaults, checks of names, docs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, get_type_hints

from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from ranktron.errors import DataError
from ranktron.learners.parameters import PRESETS, Parameter, unknown_parameter, with_parameter_docs

C = TypeVar("C", bound=type[Any])

RANDOM_STATE = Parameter("random_state", "seed of the shuffling")


class WithPresets(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters follow its `preset`."""

    preset: str
    _presets: ClassVar[Mapping[str, Mapping[str, Any]]]

    def set_params(self, **params: Any) -> Self:
        """Sets parameters; with another `preset`, those that were as the former has them follow.

        Parameters
        ----------
        **params
            New values by name.
        """
        word, before = params.get("preset", self.preset), self.preset
        if isinstance(word, str) and isinstance(before, str) and {word, before} == set(PRESETS):
            former = self._presets[before]
            follow = {n: v for n, v in self._presets[word].items() if repr(getattr(self, n)) == repr(former[n])}
            params = {**follow, **params}
        super().set_params(**params)
        return self


def with_parameters(*parameters: Parameter) -> Callable[[C], C]:
    """Gives an estimator its parameters. The type checkers' copy of this is `ranktron/estimators/__init__.pyi`."""

    def decorate(cls: C) -> C:
        defaults = {p.name: p.default for p in parameters}
        paper = {p.name: p.paper for p in parameters if p.paper != p.default}
        cls._presets = {PRESETS[0]: {name: defaults[name] for name in paper}, PRESETS[1]: paper}

        def __init__(self: Any, *values: Any, **given: Any) -> None:
            if values:
                meant = ", ".join(f"{name}={value!r}" for name, value in zip(defaults, values, strict=False))
                raise TypeError(f"the parameters of {cls.__name__} are keyword-only: write {cls.__name__}({meant})")
            for name in given:
                if name not in defaults:
                    raise TypeError(unknown_parameter(name, defaults, cls.__name__))
            word = given.get("preset")
            of_preset = paper if isinstance(word, str) and word == PRESETS[1] else {}
            self.__dict__.update({**defaults, **of_preset, **given})

        __init__.__signature__ = make_signature(cls, parameters)  # type: ignore[attr-defined]
        __init__.__module__, __init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__
        cls.__doc__ = with_parameter_docs(cls.__doc__, {p.name: p.description for p in parameters})
        return cls

    return decorate


def make_signature(cls: type[Any], parameters: tuple[Parameter, ...]) -> inspect.Signature:
    """A signature with a keyword for each parameter, of the type that the class or else the parameter declares."""
    one, declared = inspect.Parameter, get_type_hints(cls)
    found = [one("self", one.POSITIONAL_OR_KEYWORD)]
    for p in parameters:
        kind = p.annotation if p.choices else declared.get(p.name, p.annotation)
        found.append(one(p.name, one.KEYWORD_ONLY, default=p.default, annotation=kind))
    return inspect.Signature(found, return_annotation=None)


def draw_seed(random_state: Any) -> int:
    """A seed drawn from what scikit-learn takes for a random state."""
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise DataError(f"random_state must be None, a whole number of at least 0 or a RandomState: {error}") from None
