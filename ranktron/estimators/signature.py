"""Estimators take their parameters from a table: signature, defaults, checks of names, documentation."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, TypeVar, get_type_hints

from sklearn.base import BaseEstimator

from ranktron.defaults import PRESETS
from ranktron.training.parameters import Parameter, unknown_parameter

C = TypeVar("C", bound=type[Any])


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
        params = use_new_names(type(self), params)
        word, before = params.get("preset", self.preset), self.preset
        if isinstance(word, str) and isinstance(before, str) and {word, before} == set(PRESETS):
            former = self._presets[before]
            follow = {n: v for n, v in self._presets[word].items() if repr(getattr(self, n)) == repr(former[n])}
            params = {**follow, **params}
        super().set_params(**params)
        return self


def with_parameters(*parameters: Parameter, paper: Mapping[str, Any] | None = None) -> Callable[[C], C]:
    """Gives an estimator its parameters. The type checkers' copy of this is `ranktron/estimators/__init__.pyi`.

    `paper` has the values of those that `preset="paper"` changes.
    """

    def decorate(cls: C) -> C:
        defaults = {p.name: p.default for p in parameters}
        presets = {"paper": {name: value for name, value in (paper or {}).items() if value != defaults[name]}}
        cls._presets = {PRESETS[0]: {name: defaults[name] for name in presets["paper"]}, **presets}

        def __init__(self: Any, *values: Any, **given: Any) -> None:
            if values:
                meant = ", ".join(f"{name}={value!r}" for name, value in zip(defaults, values, strict=False))
                raise TypeError(f"the parameters of {cls.__name__} are keyword-only: write {cls.__name__}({meant})")
            given = use_new_names(cls, given)
            for name in given:
                if name not in defaults:
                    raise TypeError(unknown_parameter(name, defaults, cls.__name__))
            word = given.get("preset")
            of_preset = cls._presets["paper"] if isinstance(word, str) and word == "paper" else {}
            for name, value in {**defaults, **of_preset, **given}.items():
                setattr(self, name, value)

        __init__.__signature__ = make_signature(cls, parameters)  # type: ignore[attr-defined]
        __init__.__module__, __init__.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__
        before, examples, after = inspect.cleandoc(cls.__doc__ or "").partition("Examples\n")
        cls.__doc__ = f"{before}Parameters\n----------\n{describe_parameters(parameters)}\n{examples}{after}"
        return cls

    return decorate


def use_new_names(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The same parameters, those under an old name under the one of today."""
    names: Mapping[str, str] = getattr(cls, "_renamed_parameters", {})
    for name in names.keys() & given.keys():
        warnings.warn(f"{name} of {cls.__name__} is now {names[name]}", DeprecationWarning, stacklevel=3)
    return {names.get(name, name): value for name, value in given.items()}


def make_signature(cls: type[Any], parameters: tuple[Parameter, ...]) -> inspect.Signature:
    """A signature with a keyword for each parameter.

    Its type is one of its choices, or what the class declares for the attribute of its name, or that of its default.
    """
    one, declared = inspect.Parameter, get_type_hints(cls)
    found = [one("self", one.POSITIONAL_OR_KEYWORD)]
    for p in parameters:
        plain = declared.get(p.name, Any if p.default is None else type(p.default))
        kind = Literal[p.choices] if p.choices else plain
        found.append(one(p.name, one.KEYWORD_ONLY, default=p.default, annotation=kind))
    return inspect.Signature(found, return_annotation=None)


def describe_parameters(parameters: tuple[Parameter, ...]) -> str:
    """The parameters as a docstring lists them."""
    lines = ""
    for p in parameters:
        choices = f"{{{', '.join(map(repr, p.choices))}}}, " if p.choices else ""
        lines += f"{p.name} : {choices}default {p.default!r}\n    {p.help}\n"
    return lines
