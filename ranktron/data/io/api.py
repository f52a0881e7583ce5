"""`read`, `stream` and `write`: which format a path stands for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktron.data.io.files import Paths, kind_of, parts
from ranktron.data.io.grouping import fitted, in_file
from ranktron.data.io.letor import frame_of, read_text
from ranktron.data.io.missing import placeholder
from ranktron.data.io.parquet import LABELLED, parquet_runs, read_parquet, write_parquet
from ranktron.data.io.store import read_store, store_runs, write_store
from ranktron.data.io.streaming import Run, joined, text_runs
from ranktron.data.io.writing import write_text
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.dispatch import held_as
from ranktron.types import Round

TEXT = ("text", "gzip", "zstd")
WRITERS = {
    ".parquet": write_parquet,
    ".rounds": write_store,
    ".txt": write_text,
    ".letor": write_text,
    ".svm": write_text,
}


def read(
    paths: Paths,
    *,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    feature_names: tuple[str, ...] | None = None,
    sparse: bool | None = None,
) -> Rounds:
    """Reads lists of documents from LETOR text, Parquet or a store, whichever the files hold.

    Parameters
    ----------
    paths : path, several paths, or a directory of parts
        Text may be compressed (gzip, zstd). A query must stand in one file; in it, its rows may stand anywhere.
    null : "error", "zero", "min", "mean" or "nan"
        What to make of NULL: refuse it, 0, or the smallest or mean value of the feature in the same list (0 where
        the whole list has none). "min" is what LETOR's own "minimum" version does. "nan" leaves it to the model,
        which has learnt what stands for a missing value.
    n_features : int >= 1, optional
        A feature beyond it is an error, features that no line mentions are 0. Otherwise the largest index decides.
    first_index : 0 or 1, optional
        The number of the first feature. Otherwise 1, unless an index 0 occurs.
    feature_names : tuple of str, optional
        The features of files that have names: they are put in this order; one too few or too many is an error.
    sparse : bool, optional
        Whether features are held as `Sparse` rows. Otherwise as a store holds them; those of text where it has 1,000
        features or more, of which a line names a twentieth at most.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5 2:1 # docid = A\\n0 qid:7 2:3 # docid = B\\n1 qid:8 1:1\\n")
    >>> rounds = read(path)
    >>> rounds.X.tolist(), rounds.labels.tolist()
    ([[0.5, 1.0], [0.0, 3.0], [1.0, 0.0]], [2.0, 0.0, 1.0])
    >>> rounds.qids.tolist(), rounds.docids.tolist()
    (['7', '8'], ['A', 'B', ''])
    """
    frame = _Frame(null, n_features, first_index, feature_names, sparse)
    return _read(parts(paths), frame, LABELLED)


def read_documents(
    paths: Paths,
    *,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    feature_names: tuple[str, ...] | None = None,
) -> Rounds:
    """Reads lists to be scored: takes what `read` takes, and Parquet without a column `label`; labels are NaN then.

    >>> import pandas
    >>> path = getfixture("tmp_path") / "new.parquet"
    >>> pandas.DataFrame({"qid": [7, 7], "price": [3.0, 4.0]}).to_parquet(path)
    >>> read_documents(path).labels
    array([nan, nan])
    """
    return _read(parts(paths), _Frame(null, n_features, first_index, feature_names, None), ("qid",))


class _Frame(NamedTuple):
    """What the caller says about the features of all files."""

    null: str
    n_features: int | None
    first_index: int | None
    feature_names: tuple[str, ...] | None
    sparse: bool | None


def _read(files: list[Path], frame: _Frame, needed: tuple[str, ...]) -> Rounds:
    frame_of(frame.n_features, frame.first_index)
    placeholder(frame.null)
    if all(_kind(file) in TEXT for file in files):
        return _read_text(files, frame)
    each = [_read_one(file, frame, needed) for file in files]
    return each[0] if len(each) == 1 else Rounds.concat(each)


def _read_text(files: list[Path], frame: _Frame) -> Rounds:
    null, n_features, first_index, _, sparse = frame
    return read_text(files, null=null, n_features=n_features, first_index=first_index, sparse=sparse)


def _read_one(file: Path, frame: _Frame, needed: tuple[str, ...]) -> Rounds:
    kind = _kind(file)
    if kind in TEXT:
        return _read_text([file], frame)
    rounds = read_store(file) if kind == "store" else read_parquet(file, frame.null, needed)
    with in_file(file):
        rounds = fitted(rounds.ordered_by(frame.feature_names), frame.n_features, frame.first_index)
    return replace(rounds, X=held_as(rounds.X, frame.sparse))


def _kind(file: Path) -> str:
    kind = kind_of(file)
    if kind == "model":
        raise DataError(f"{file}: expected lists of documents, found a model")
    return kind


def stream(
    paths: Paths,
    *,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    sparse: bool | None = None,
) -> Iterator[Round]:
    """Yields the rounds of files of any size one after the other, in bounded memory.

    Takes what `read` takes and yields the same rounds. Text is read twice, the first time to find the number of
    features; with `n_features` and `first_index` given, once. The rows of a query must stand together.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("2 qid:7 1:0.5\\n0 qid:7 1:3\\n1 qid:8 1:1\\n")
    >>> [(round.qid, round.labels.tolist()) for round in stream(path)]
    [('7', [2.0, 0.0]), ('8', [1.0])]
    """
    files = parts(paths)
    frame_of(n_features, first_index)
    placeholder(null)
    if all(_kind(file) in TEXT for file in files):
        return joined(text_runs(files, null, n_features, first_index, sparse), null)
    return joined(chain.from_iterable(_runs(file, null, n_features, first_index, sparse) for file in files), null)


def _runs(file: Path, null: str, n_features: int | None, first_index: int | None, sparse: bool | None) -> Iterator[Run]:
    kind = _kind(file)
    if kind in TEXT:
        return text_runs([file], null, n_features, first_index, sparse)
    if kind == "store":
        runs = store_runs(file, n_features, first_index)
    else:
        runs = parquet_runs(file, null, n_features, first_index)
    return (run._replace(X=held_as(run.X, sparse)) for run in runs)


def write(rounds: Rounds, path: str | os.PathLike[str]) -> None:
    """Writes rounds in the format that the name ends in; reading the file gives the same numbers back.

    `.txt`, `.letor`, `.svm` are LETOR text (compressed with a further `.gz` or `.zst`), `.parquet` is Parquet, and
    `.rounds` is the library's own store, which opens in milliseconds whatever its size.

    >>> rounds = Rounds.from_arrays([[0.1], [2.0]], [1, 0], qid=["a", "b"])
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> write(rounds, path)
    >>> print(path.read_text(), end="")
    1 qid:a 1:0.1
    0 qid:b 1:2
    """
    path = Path(path)
    endings = path.suffixes[-2:] if path.suffix in (".gz", ".zst") else path.suffixes[-1:]
    writer = WRITERS.get(endings[0]) if endings else None
    if writer is None or (len(endings) == 2 and writer is not write_text):
        raise DataError(f"{path}: cannot tell the format; end the name in {', '.join(WRITERS)}, or .txt.gz or .txt.zst")
    if rounds.X.size == 0:
        raise DataError(f"{path}: there is nothing to write: no document or no feature")
    if isinstance(rounds.X, Sparse) and writer is write_parquet:
        raise DataError(
            f"{path}: Parquet has a column for every feature, and these features are sparse: end the name in .rounds "
            "for a store, or in .txt"
        )
    numbers = rounds.X.values if isinstance(rounds.X, Sparse) else rounds.X.reshape(-1)
    if first_non_finite(numbers) >= 0 or first_non_finite(rounds.labels) >= 0 or np.any(rounds.labels < 0):
        raise DataError("features and labels must be finite and labels >= 0; build the rounds with Rounds.from_arrays")
    writer(rounds, path)
