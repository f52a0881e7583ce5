"""Names of a module that are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(module: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a module (PEP 562).

    Parameters
    ----------
    module : str
        The module's `__name__`.
    homes : mapping
        For each name the module that defines it, imported when the name is first used.

    Examples
    --------
    >>> lazy_names("ranktron.metrics", homes={"evaluate": "ranktron.metrics.evaluation"})("evaluate").__name__
    'evaluate'
    """

    def __getattr__(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
