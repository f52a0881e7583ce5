"""Parquet: a column `label`, a column `qid`, perhaps `docid`, and every other column a feature."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.files import atomically
from ranktron.data.io.grouping import assemble, fitted_features, in_file, room_for
from ranktron.data.io.missing import placeholder
from ranktron.data.io.streaming import Run
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, MissingExtra
from ranktron.types import Matrix

BATCH = 1 << 16
RESERVED = ("label", "qid", "docid")
LABELLED = ("label", "qid")


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet", "parquet") from None
    return pyarrow


def write_parquet(rounds: Rounds, path: Path) -> None:
    """Writes one row per document; features are named f1, f2, ... unless they have names."""
    arrow = _pyarrow()
    names = rounds.feature_names or tuple(f"f{j + rounds.first_index}" for j in range(rounds.n_features))
    if len({*names, *RESERVED}) < len(names) + len(RESERVED):
        raise DataError(f"{path}: feature names must differ from each other and from {', '.join(RESERVED)}")
    qids = np.repeat(rounds.qids, np.diff(rounds.offsets))
    writer = None
    with atomically(path) as file:
        for a in range(0, len(rounds.X), BATCH):
            rows = slice(a, a + BATCH)
            columns = {"label": rounds.labels[rows], "qid": qids[rows]}
            if rounds.docids is not None:
                columns["docid"] = rounds.docids[rows]
            columns |= {name: rounds.X[rows, j] for j, name in enumerate(names)}
            table = arrow.table({name: arrow.array(column) for name, column in columns.items()})
            writer = writer or arrow.parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            writer.write_table(table)
        if writer is not None:
            writer.close()


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Turns whatever a damaged file makes pyarrow raise into an error for people."""
    arrow = _pyarrow()
    try:
        yield
    except DataError:
        raise
    except (arrow.ArrowException, OSError, KeyError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file that can be read: {error}") from None


class Columns:
    """An open Parquet file, checked for the columns it has to have."""

    def __init__(self, path: Path, needed: tuple[str, ...] = LABELLED) -> None:
        arrow = _pyarrow()
        self.path = path
        self.file = arrow.parquet.ParquetFile(path, page_checksum_verification=True)
        schema = self.file.schema_arrow
        for name in needed:
            if name not in schema.names:
                wanted = f"column{'s' * (len(needed) > 1)} {' and '.join(map(repr, needed))}"
                raise self.wrong(f"expected {wanted}, found no {name!r}")
        kinds = arrow.types
        numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
        others = {*RESERVED, *_index_columns(schema)}
        self.names = [name for name in schema.names if name not in others]
        self.has_labels = "label" in schema.names
        for name in ["label"] * self.has_labels + self.names:
            kind = schema.field(name).type
            if not any(is_kind(kind) for is_kind in numeric):
                raise self.wrong(f"expected numbers in column {name!r}, found {kind}")
        self.has_docids = "docid" in schema.names
        self.n: int = self.file.metadata.num_rows
        if not self.names or self.n <= 0:
            raise self.wrong("there is no feature in it" if not self.names else "there is no document in it")

    def wrong(self, why: str) -> DataError:
        return DataError(f"{self.path}: {why}")

    def numbering(self) -> tuple[tuple[str, ...] | None, int]:
        """The features' names, None where they are only numbers (f1, f2, ...), and the first number."""
        for first in (0, 1):
            if self.names == [f"f{j + first}" for j in range(len(self.names))]:
                return None, first
        return tuple(self.names), 1

    def batches(self) -> Iterator[tuple[int, Any]]:
        """Yields the rows piece by piece, each with the number of rows before it."""
        row = 0
        for batch in self.file.iter_batches(BATCH):
            if row + len(batch) <= self.n:
                yield row, batch
            row += len(batch)
        if row != self.n:
            raise self.wrong(f"the file is damaged: {row} rows instead of {self.n}")

    def features(self, batch: Any, row: int, filler: float, X: Matrix) -> None:
        """Copies the features of a batch into X."""
        for j, name in enumerate(self.names):
            X[:, j] = self.numbers(batch, name, row, filler)

    def numbers(self, batch: Any, name: str, row: int, filler: float) -> npt.NDArray[Any]:
        """One column as float64 (label) or float32, NULLs filled, everything else finite."""
        column = batch.column(name)
        nulls = np.asarray(column.is_null())
        if nulls.any() and (filler < 0 or name == "label"):
            hint = "; say what to make of it with null='zero', 'min' or 'mean'" if name != "label" else ""
            raise self.wrong(f"column {name!r} is NULL in row {row + int(nulls.argmax())}{hint}")
        given = np.array(column.to_numpy(zero_copy_only=False), np.float64)
        with np.errstate(over="ignore"):
            values: npt.NDArray[Any] = given if name == "label" else given.astype(np.float32)
        bad = ~np.isfinite(values) & ~nulls
        if bad.any():
            at = int(bad.argmax())
            raise self.wrong(f"expected a finite 32-bit number in column {name!r}, found {given[at]} in row {row + at}")
        values[nulls] = filler
        return values

    def words(self, batch: Any, name: str, row: int) -> npt.NDArray[Any]:
        """The names in one column: numbers or text."""
        column = batch.column(name)
        if column.null_count:
            raise self.wrong(f"column {name!r} is NULL in row {row + int(np.asarray(column.is_null()).argmax())}")
        values = column.to_numpy(zero_copy_only=False)
        return values if values.dtype.kind in "iu" else np.array([str(v) for v in values.tolist()])

    def labels(self, batch: Any, row: int) -> npt.NDArray[np.float64]:
        """The labels; NaN where the file has none and need not have any."""
        if not self.has_labels:
            return np.full(len(batch), np.nan)
        values = self.numbers(batch, "label", row, -1.0)
        if (values < 0).any():
            at = int((values < 0).argmax())
            raise self.wrong(f"expected a label >= 0, found {values[at]} in row {row + at}")
        return values


def _index_columns(schema: Any) -> list[str]:
    """The columns that pandas wrote for the index of a data frame: they number rows and say nothing of documents."""
    noted = (schema.metadata or {}).get(b"pandas")
    index = json.loads(noted).get("index_columns", []) if noted else []
    return [name for name in index if isinstance(name, str)]


def read_parquet(path: Path, null: str, needed: tuple[str, ...] = LABELLED) -> Rounds:
    """Reads one Parquet file; queries are put together where they are not."""
    filler = placeholder(null)
    qids, docids = [], []
    with _sound(path):
        columns = Columns(path, needed)
        X, labels = room_for(columns.n, len(columns.names)), np.empty(columns.n)
        for row, batch in columns.batches():
            rows = slice(row, row + len(batch))
            columns.features(batch, row, filler, X[rows])
            labels[rows] = columns.labels(batch, row)
            qids.append(columns.words(batch, "qid", row))
            docids += [columns.words(batch, "docid", row)] if columns.has_docids else []
    names, first = columns.numbering()
    rounds = assemble(X, labels, np.concatenate(qids), np.concatenate(docids) if docids else None, null)
    return replace(rounds, feature_names=names, first_index=first)


def parquet_runs(path: Path, null: str, n_features: int | None, first_index: int | None) -> Iterator[Run]:
    """Reads a Parquet file some thousand rows at a time."""
    filler = placeholder(null)
    with _sound(path):
        columns = Columns(path)
        names, first = columns.numbering()
        for row, batch in columns.batches():
            X = np.empty((len(batch), len(columns.names)), np.float32)
            columns.features(batch, row, filler, X)
            ids, labels = columns.words(batch, "qid", row), columns.labels(batch, row)
            with in_file(path):
                X = fitted_features(X, names, first, n_features, first_index)
            starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [len(ids)])).tolist()
            for a, b in pairwise(starts):
                yield Run(ids[a].item(), X[a:b], labels[a:b], path, partial("{}, row {}".format, path, row + a))
