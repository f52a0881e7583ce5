"""Training: the table of algorithms, the model file, passes over data, cross-validation, sweeps, pictures of models.

Nothing is imported before it is used, so that the table of algorithms stays quick to read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktron.training.fit import Trained, run, train, untrained

__all__ = ["Trained", "run", "train", "untrained"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("ranktron.training.fit"), name)
