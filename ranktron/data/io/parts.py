"""Parts of files that any process can read: a range of bytes, queries or row groups of a file.

A part holds whole queries: those that begin within its range, to their end. A query across the border of two parts
belongs to the first one, so that parts can be read independently.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from glob import glob
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.files import parts
from ranktron.data.io.api import COLUMNS, read
from ranktron.data.io.columns import as_columns
from ranktron.data.io.formats import detect_format, detect_kind, map_file
from ranktron.data.io.grouping import fit_width, in_file
from ranktron.data.io.letor import read_texts
from ranktron.data.io.letor_text import Text
from ranktron.data.io.store import RoundsStore, open_store
from ranktron.data.io.table_sources import FrameSource, ParquetFile, legible
from ranktron.data.io.tables import read_table, table_roles
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError

PART_BYTES = 64 << 20
"""The size of a part, approximately."""

WHOLE, BYTES, QUERIES, GROUPS = "whole", "bytes", "queries", "row groups"


class FeatureNumbers(NamedTuple):
    """The features of all parts together."""

    n_features: int
    first_index: int = 1
    feature_names: tuple[str, ...] | None = None
    sparse: bool = False


@dataclass(frozen=True)
class FilePart:
    """A part of a file.

    Parameters
    ----------
    path : str
        The file.
    unit : {"whole", "bytes", "queries", "row groups"}
        What `start` and `stop` count: bytes of text, queries of a store, row groups of Parquet.
    start, stop : int
        The range in which the part's queries begin.
    options : tuple of (str, value)
        Options of `ranktron.read`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("1 qid:7 1:1\\n0 qid:7 1:2\\n1 qid:8 1:3\\n")
    >>> [FilePart(str(path), "bytes", a, b).read().qids.tolist() for a, b in ((0, 5), (5, 36))]
    [['7'], ['8']]
    """

    path: str
    unit: str = WHOLE
    start: int = 0
    stop: int = 0
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of the part in messages."""
        return self.path if self.unit == WHOLE else f"{self.path} ({self.unit} {self.start} to {self.stop})"

    def read(self, features: FeatureNumbers | None = None) -> Rounds:
        """The queries of the part, with `features`, or else with those it has itself."""
        options, sparse = dict(self.options), None if features is None else features.sparse
        if self.unit == BYTES:
            rounds = self._text(options, features)
        elif self.unit == QUERIES:
            rounds = open_store(Path(self.path)).rounds()[self.start : self.stop]
        elif self.unit == GROUPS:
            rounds = self._row_groups(options)
        else:
            rounds = read(self.path, sparse=sparse, **options)
        if features is None:
            return rounds
        with in_file(self.name):
            rounds = rounds.ordered_by(features.feature_names)
            return fit_width(rounds, features.n_features, features.first_index)

    def _text(self, options: dict[str, Any], features: FeatureNumbers | None) -> Rounds:
        raw = map_file(Path(self.path))
        lines = raw[query_start(raw, self.start) : query_start(raw, self.stop)]
        if not lines.strip():
            return _no_queries(1 if features is None else features.n_features)
        width = {} if features is None else {"n_features": features.n_features, "first_index": features.first_index}
        sparse = None if features is None else features.sparse
        return read_texts([Text(self.name, lines)], null=options.get("null", "error"), sparse=sparse, **width)

    def _row_groups(self, options: dict[str, Any]) -> Rounds:
        source = ParquetFile(Path(self.path))
        roles = table_roles(source, as_columns(*(options.get(name) for name in COLUMNS)))
        with legible(source.path, "Parquet"):
            table = _whole_queries(source.file, self.start, self.stop, roles.query)
        if table.num_rows == 0:
            return _no_queries(len(roles.features))
        rows = FrameSource(table)
        rows.name = self.name
        return read_table(rows, roles, options.get("null", "error"))


def _no_queries(width: int) -> Rounds:
    return Rounds(np.zeros((0, width), np.float32), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, object))


def _query_of(line: bytes) -> bytes | None:
    """The query id of a line of LETOR text; None for a line without a document."""
    words = line.partition(b"#")[0].split(maxsplit=2)
    return words[1] if len(words) > 1 else None


def query_start(raw: Any, at: int) -> int:
    """The position of the first query whose first line begins at byte `at` or later.

    >>> text = b"1 qid:7 1:1\\n0 qid:7 1:2\\n1 qid:8 1:3\\n"
    >>> query_start(text, 0), query_start(text, 1), query_start(text, 24), query_start(text, 25)
    (0, 24, 24, 36)
    """
    size = len(raw)
    if at <= 0:
        return 0
    start = raw.find(b"\n", at - 1) + 1 or size
    previous, end = None, start
    while end > 0 and previous is None:  # the query of the previous document
        begin = raw.rfind(b"\n", 0, end - 1) + 1
        previous, end = _query_of(raw[begin:end]), begin
    while start < size:
        end = raw.find(b"\n", start) + 1 or size
        query = _query_of(raw[start:end])
        if query is not None and query != previous:
            return start
        start = end
    return size


def _whole_queries(file: Any, start: int, stop: int, query: str) -> Any:
    """The rows of the queries that begin in some row groups of a Parquet file."""
    import pyarrow as pa

    def ids(group: int) -> list[Any]:
        return file.read_row_group(group, columns=[query]).column(query).to_pylist()  # type: ignore[no-any-return]

    def run(values: list[Any], of: Any) -> int:
        """The number of values of one query at the beginning."""
        return next((i for i, value in enumerate(values) if value != of), len(values))

    tables, ended = [], start == 0
    last = ids(start - 1)[-1] if start > 0 else None
    for group in range(start, file.num_row_groups):
        values = ids(group)
        skip = 0 if ended else run(values, last)
        if group < stop:
            ended = ended or skip < len(values)
            take = len(values)
        else:  # only the rest of the last query
            take = run(values, last) if ended else 0
        if take > skip:
            tables.append(file.read_row_group(group).slice(skip, take - skip))
            last = values[take - 1]
        if group >= stop and take < len(values):
            break
    return pa.concat_tables(tables) if tables else file.schema_arrow.empty_table()


def find_files(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files of paths, folders of parts, and patterns such as `part-*.parquet`.

    >>> folder = getfixture("tmp_path")
    >>> for name in ("part-1.txt", "part-0.txt"):
    ...     _ = (folder / name).write_text("1 qid:1 1:1")
    >>> [path.name for path in find_files(f"{folder}/part-*.txt")]
    ['part-0.txt', 'part-1.txt']
    """
    files: list[str | os.PathLike[str]] = []
    for path in [paths] if isinstance(paths, str | os.PathLike) else list(paths):
        matching = sorted(glob(os.fspath(path))) if not os.path.exists(path) else [path]
        if not matching:
            raise DataError(f"there is no file {os.fspath(path)!r}")
        files += matching
    return [Path(os.path.abspath(path)) for path in parts(files)]


def divide_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], size: int = PART_BYTES, **options: Any
) -> list[FilePart]:
    """Divides files into parts of about `size` bytes, without reading a document.

    LETOR text is divided by bytes, a store by queries, Parquet by row groups. Other formats, compressed text, and text
    with query ids in comments are one part per file.

    Parameters
    ----------
    paths : path, several paths, a directory of parts, or a pattern
        The files.
    size : int
        The approximate number of bytes of a part.
    **options
        Options of `ranktron.read`: the roles of columns, `null` and `format`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("1 qid:7 1:1\\n0 qid:7 1:2\\n1 qid:8 1:3\\n")
    >>> [(part.start, part.stop) for part in divide_files(path, size=20)]
    [(0, 18), (18, 36)]
    """
    set_options = tuple(sorted((name, value) for name, value in options.items() if value is not None))
    return [part for path in find_files(paths) for part in _divide(path, size, set_options)]


def _divide(path: Path, size: int, options: tuple[tuple[str, Any], ...]) -> list[FilePart]:
    named = dict(options)
    format = detect_format(path, named.get("format"))
    unit, count = WHOLE, 0
    pieces = max(1, -(-os.path.getsize(path) // size))
    if format == "rounds":
        unit, count = QUERIES, RoundsStore(path).head["arrays"]["qids"]["shape"][0]  # no document is read
    elif format == "parquet" and "judgments" not in named:
        unit, count = GROUPS, ParquetFile(path).file.num_row_groups
    elif format == "letor" and detect_kind(path) == "text" and named.get("null", "error") in ("error", "zero", "nan"):
        with open(path, "rb") as file:
            first = next((line for line in file if _query_of(line) is not None), b"")
        if (_query_of(first) or b"").startswith(b"qid:"):
            unit, count = BYTES, os.path.getsize(path)
    if unit == WHOLE:
        return [FilePart(str(path), options=options)]
    borders = np.unique(np.arange(pieces + 1) * count // pieces).tolist()
    return [FilePart(str(path), unit, a, b, options) for a, b in pairwise(borders)]


def hash_queries(qids: Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """A hash of 64 bits for each query id, from which queries that lie in two parts are found.

    >>> np.array_equal(hash_queries(["a", 7]), hash_queries(np.array(["a", "7"])))
    True
    """
    names = (str(qid).encode() for qid in np.asarray(qids, object).tolist())
    digests = b"".join(hashlib.blake2b(name, digest_size=8).digest() for name in names)
    return np.frombuffer(digests, np.uint64)


def shared_query(hashes: Sequence[npt.NDArray[np.uint64]]) -> tuple[int, int, int] | None:
    """Two parts that share a query, and its index in the first one; None if no parts do.

    >>> shared_query([hash_queries(["a", "b"]), hash_queries(["c", "b"])])
    (0, 1, 1)
    """
    owners = np.repeat(np.arange(len(hashes)), [len(each) for each in hashes])
    places = np.concatenate([np.arange(len(each)) for each in hashes])
    values = np.concatenate(hashes)
    order = np.argsort(values, kind="stable")
    same = np.flatnonzero((values[order][1:] == values[order][:-1]) & (np.diff(owners[order]) != 0))
    if not len(same):
        return None
    one, two = order[same[0]], order[same[0] + 1]
    return int(owners[one]), int(owners[two]), int(places[one])


def fit_features(rounds: Rounds, features: FeatureNumbers) -> Rounds:
    """The queries with the features of all parts together."""
    rounds = fit_width(rounds.ordered_by(features.feature_names), features.n_features, features.first_index)
    return replace(rounds, first_index=features.first_index)
