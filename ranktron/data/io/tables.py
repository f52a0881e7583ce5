"""Reading the columns of a table into `Rounds`, as a whole or as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.io.columns import Columns, Roles, assign_roles, doubtful_label, join_names, other_role
from ranktron.data.io.grouping import assemble, fitted_features, in_file, placeholder, room_for
from ranktron.data.io.streaming import QueryRun
from ranktron.data.io.table_sources import TableSource, import_pyarrow, index_columns
from ranktron.data.rounds import ROUNDED_AWAY, Rounds, rounded_away
from ranktron.errors import DataError, warn
from ranktron.types import Matrix


def table_roles(source: TableSource, columns: Columns, labelled: bool = True) -> Roles:
    """The roles of a table's columns; a feature that is not numeric is an error."""
    with in_file(source.name):
        roles = assign_roles(source.schema.names, index_columns(source.schema), columns, labelled)
        if source.n == 0 or not roles.features:
            raise DataError("there is no feature in it" if not roles.features else "there is no document in it")
        _check_numbers(source, roles)
    warning = doubtful_label(roles)
    if warning is not None:
        warn(f"{source.name}: {warning}")
    return roles


def _check_numbers(source: TableSource, roles: Roles) -> None:
    kinds = import_pyarrow().types
    numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    others = [
        name
        for name in (roles.label, *roles.features)
        if name is not None and not any(is_kind(source.schema.field(name).type) for is_kind in numeric)
    ]
    if not others:
        return
    first, names = others[0], ",".join(others)
    if first == roles.label:
        raise DataError(f"expected numbers in column {first!r}, the label, found {source.content(first)}")
    misnamed = other_role(roles, first)
    if misnamed is not None:
        raise DataError(misnamed)
    more = "" if names == first else f" (and not only numbers in {join_names(others[1:])})"
    raise DataError(
        f"expected numbers in column {first!r}, found {source.content(first)}{more}; leave out what is not a feature "
        f"with drop={names!r} (--drop {names}); for categories, fit a data frame with categorical={others!r}"
    )


def read_table(source: TableSource, roles: Roles, null: str) -> Rounds:
    """Reads a whole table; groups rows by query if necessary."""
    X, labels, qids, docids = read_rows(source, roles, null)
    names, first = _feature_numbers(roles.features)
    rounds = assemble(X, labels, qids, docids, null)
    return replace(rounds, feature_names=names, first_index=first)


def read_rows(source: TableSource, roles: Roles, null: str) -> TableRows:
    """The columns that have a role, in the order of the table's rows."""
    cells = _Cells(source, roles, null)
    X = None if source.n is None else room_for(source.n, len(roles.features))
    rows, row = [], 0
    for batch in source.batches(roles):
        room = None if X is None else X[row : row + len(batch)]
        rows.append(cells.rows(batch, row, room))
        row += len(batch)
    if row == 0:
        raise DataError(f"{source.name}: there is no document in it")
    labels, qids = (np.concatenate([getattr(part, name) for part in rows]) for name in ("labels", "qids"))
    docids = [part.docids for part in rows if part.docids is not None]
    X = np.concatenate([part.X for part in rows]) if X is None else X
    return TableRows(X, labels, qids, np.concatenate(docids) if docids else None)


def table_runs(
    source: TableSource, roles: Roles, null: str, n_features: int | None, first_index: int | None
) -> Iterator[QueryRun]:
    """Reads a table some thousand rows at a time."""
    cells, row = _Cells(source, roles, null), 0
    names, first = _feature_numbers(roles.features)
    path = Path(source.name)
    for batch in source.batches(roles):
        X, labels, ids, _ = cells.rows(batch, row, None)
        with in_file(source.name):
            X = fitted_features(X, names, first, n_features, first_index)
        starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [len(ids)])).tolist()
        for a, b in pairwise(starts):
            if a < b:
                yield QueryRun(ids[a].item(), X[a:b], labels[a:b], path, partial(_name_place, source, row + a))
        row += len(batch)
    if row == 0:
        raise DataError(f"{source.name}: there is no document in it")


def _name_place(source: TableSource, row: int) -> str:
    return f"{source.name}, {source.place(row)}"


def _feature_numbers(features: tuple[str, ...]) -> tuple[tuple[str, ...] | None, int]:
    """The names of the features, None for numbered ones (f1, f2, ...), and the first number."""
    for first in (0, 1):
        if list(features) == [f"f{j + first}" for j in range(len(features))]:
            return None, first
    return features, 1


class TableRows(NamedTuple):
    """Some rows of a table as arrays."""

    X: Matrix
    labels: npt.NDArray[np.float64]
    qids: npt.NDArray[Any]
    docids: npt.NDArray[Any] | None


class _Cells:
    """Converts batches to arrays and checks every value."""

    def __init__(self, source: TableSource, roles: Roles, null: str) -> None:
        self.source, self.roles, self.filler = source, roles, placeholder(null)

    def wrong(self, why: str, row: int, hint: str = "") -> DataError:
        return DataError(f"{self.source.name}: {why} in {self.source.place(row)}{hint}")

    def rows(self, batch: Any, row: int, X: Matrix | None) -> TableRows:
        """The rows of a batch, the first of which is row `row`; the features are copied into X."""
        roles = self.roles
        if X is None:
            X = np.empty((len(batch), len(roles.features)), np.float32)
        # The first batch goes column by column, to warn of values that are rounded to equal ones.
        if row == 0 or not self._copy_valid(batch, X):
            for j, name in enumerate(roles.features):
                X[:, j] = self._numbers(batch, name, row, self.filler)
        qids = self._words(batch, roles.query, row)
        docids = None if roles.doc is None else self._words(batch, roles.doc, row)
        return TableRows(X, self._labels(batch, row), qids, docids)

    def _copy_valid(self, batch: Any, X: Matrix) -> bool:
        """Copies the features if none is missing or invalid, and returns whether it has."""
        with np.errstate(over="ignore"):
            for j, name in enumerate(self.roles.features):
                column = batch.column(name)
                if column.null_count:
                    return False
                values = column.to_numpy(zero_copy_only=False)
                # Via 64 bits, as everywhere: integers that are rounded to 32 bits directly may differ in the last bit.
                X[:, j] = values if values.dtype == np.float32 else np.asarray(values, np.float64)
        return bool(np.isfinite(X).all())

    def _numbers(self, batch: Any, name: str, row: int, filler: float) -> npt.NDArray[Any]:
        """One column as float64 (label) or float32, with NULL replaced; all other values are finite."""
        column = batch.column(name)
        is_label = name == self.roles.label
        nulls = np.asarray(column.is_null()) if column.null_count else None
        if nulls is not None and (filler < 0 or is_label):
            hint = (
                "; choose how to replace it with null='zero', 'min' or 'mean' (--null), or leave it to the ranker: "
                "train with --nan mean, in Python null='nan' here and nan='mean' there"
            )
            hint = "" if is_label else hint
            raise self.wrong(f"column {name!r} is NULL", row + int(nulls.argmax()), hint)
        exact = np.asarray(column.to_numpy(zero_copy_only=False), np.float64)
        with np.errstate(over="ignore"):
            values: npt.NDArray[Any] = exact.copy() if is_label else exact.astype(np.float32)
        bad = ~np.isfinite(values)
        if not is_label and not filler < 0:  # some programs write NaN for NULL
            missing = np.isnan(exact)
            bad &= ~missing
            values[missing] = filler
        if bad.any():
            at = int(bad.argmax())
            raise self.wrong(f"expected a finite 32-bit number in column {name!r}, found {exact[at]}", row + at)
        if row == 0 and not is_label and rounded_away(exact[:, None], values[:, None]):
            warn(f"{self.source.name}: column {name!r} {ROUNDED_AWAY}")
        return values

    def _words(self, batch: Any, name: str, row: int) -> npt.NDArray[Any]:
        """The ids in one column: numbers or text."""
        column = batch.column(name)
        column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        if column.null_count:
            raise self.wrong(f"column {name!r} is NULL", row + int(np.asarray(column.is_null()).argmax()))
        is_query = name == self.roles.query
        if is_query and str(column.type) in ("string", "large_string"):
            # Most rows have the query of the previous row: one Python string for each query is enough.
            encoded = column.dictionary_encode()
            texts = np.array(encoded.dictionary.to_pylist())
            if texts.all():
                of_rows: npt.NDArray[Any] = texts[encoded.indices.to_numpy()]
                return of_rows
        values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind in "iu":
            return values
        words = np.array([str(v) for v in values.tolist()])
        if is_query and not words.all():
            raise self.wrong(f"column {name!r}, the query id, is empty", row + int((words == "").argmax()))
        return words

    def _labels(self, batch: Any, row: int) -> npt.NDArray[np.float64]:
        """The labels; NaN if the table has no label and none is required."""
        if self.roles.label is None:
            return np.full(len(batch), np.nan)
        values = self._numbers(batch, self.roles.label, row, -1.0)
        if (values < 0).any():
            at = int((values < 0).argmax())
            raise self.wrong(f"expected a label >= 0, found {values[at]}", row + at)
        return values
