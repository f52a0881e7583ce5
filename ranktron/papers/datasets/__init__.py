"""The data sets of the papers: what they are, where they come from, whether they are here, and how to read them.

Nothing heavy is imported before a set is read.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.papers.datasets.locations import (
        absent,
        checksum_file,
        data_folder,
        file_at,
        find_dataset,
        known_files,
        verify_file,
    )
    from ranktron.papers.datasets.reading import (
        Examples,
        examples,
        folds,
        read_multilabel,
        read_ordinal,
        read_part,
        read_stream,
    )
    from ranktron.papers.datasets.table import DATASETS, Dataset, dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "Examples",
    "absent",
    "checksum_file",
    "data_folder",
    "dataset",
    "examples",
    "file_at",
    "find_dataset",
    "folds",
    "known_files",
    "read_multilabel",
    "read_ordinal",
    "read_part",
    "read_stream",
    "verify_file",
]

_HOMES = {
    "locations": ("absent", "checksum_file", "data_folder", "file_at", "find_dataset", "known_files", "verify_file"),
    "reading": ("Examples", "examples", "folds", "read_part", "read_multilabel", "read_ordinal", "read_stream"),
    "table": ("DATASETS", "Dataset", "dataset"),
}

__getattr__ = lazy_names(
    __name__,
    homes={name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names},
)


def __dir__() -> list[str]:
    return __all__
