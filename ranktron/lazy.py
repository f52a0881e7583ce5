"""Names of a module that are imported on first use, and names that have changed: one `__getattr__` for all of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    module: str, homes: Mapping[str, str] | None = None, renamed: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a module (PEP 562).

    Parameters
    ----------
    module : str
        The module's `__name__`.
    homes : mapping
        For each name the module that defines it, imported when the name is first used.
    renamed : mapping
        For each former name the new one. It still works, with a DeprecationWarning that says the new one.

    Examples
    --------
    >>> lazy_names("ranktron.metrics", homes={"evaluate": "ranktron.metrics.evaluation"})("evaluate").__name__
    'evaluate'
    """
    homes, renamed = homes or {}, renamed or {}

    def __getattr__(name: str) -> Any:
        if name in homes:
            return getattr(import_module(homes[name]), name)
        if name in renamed:
            warnings.warn(f"{module}.{name} is now {renamed[name]}", DeprecationWarning, stacklevel=2)
            return getattr(import_module(module), renamed[name])
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__
