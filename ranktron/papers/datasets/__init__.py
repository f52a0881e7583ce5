"""The data sets of the papers: what they are, where they come from, whether they are here, and how to read them.

Nothing heavy is imported before a set is read.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktron.papers.datasets.locations import absent, checksum, data_folder, file_at, find, known, verify
    from ranktron.papers.datasets.reading import Examples, examples, folds, load, read_multilabel, read_ordinal, stream
    from ranktron.papers.datasets.table import DATASETS, Dataset, dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "Examples",
    "absent",
    "checksum",
    "data_folder",
    "dataset",
    "examples",
    "file_at",
    "find",
    "folds",
    "known",
    "load",
    "read_multilabel",
    "read_ordinal",
    "stream",
    "verify",
]

_HOMES = {
    "locations": ("absent", "checksum", "data_folder", "file_at", "find", "known", "verify"),
    "reading": ("Examples", "examples", "folds", "load", "read_multilabel", "read_ordinal", "stream"),
    "table": ("DATASETS", "Dataset", "dataset"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
