"""The data sets of the experiments, by the folder that each has under the folder of all data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.training.cross_validation import Fold, read_folds
from reproduction import datasets
from reproduction.datasets import DATASETS, Dataset

SOURCES: Mapping[str, Dataset] = {one.folder: one for one in reversed(list(DATASETS.values())) if one.kind == "ranking"}
"""Where two sets share a folder, the first of them."""


def folder_if_complete(root: Path | None, name: str) -> Path | None:
    """The folder of a data set; None where one of its files is missing.

    >>> folder_if_complete(getfixture("tmp_path"), "td2003") is None
    True
    """
    known = SOURCES[name].name
    return None if root is None or datasets.absent(known, root) else datasets.find_dataset(known, root)


@lru_cache(maxsize=2)
def cached_folds(folder: str) -> list[Fold]:
    """All folds of a data set; a process that computes several cells reads them once."""
    path = Path(folder)
    known = SOURCES[path.name.lower()]
    return list(datasets.folds(known.name, path.parent) if len(known.folds) == 1 else read_folds(path))


@lru_cache(maxsize=4)
def all_lists(folder: str) -> Rounds:
    """Every query of an online experiment once; features scaled to [0, 1] within each list.

    Lists of one grade are left out: no order of them is wrong.
    """
    path = Path(folder)
    known = SOURCES[path.name.lower()]
    whole = len(known.folds) > 1  # their test parts are all queries; one split has its own files for a stream
    parts = [fold.test for fold in cached_folds(folder)] if whole else datasets.read_stream(known.name, path.parent)
    lists = [round for part in parts for round in scale(part, fit_scaler("minmax-query", part))]
    taught = [round for round in lists if len(np.unique(round.labels)) > 1]
    sizes = np.array([len(round.labels) for round in taught])
    return Rounds(
        np.concatenate([round.X for round in taught]),
        np.concatenate([round.labels for round in taught]),
        np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        np.array([str(round.qid) for round in taught]),
    )


def where(name: str) -> str:
    """One sentence: where to get a data set and where to put it."""
    known = SOURCES[name]
    return f"{known.title} was not found: {known.where}, under the folder of --data."
