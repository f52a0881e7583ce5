"""Reading the columns of a table into `Rounds`, as a whole or as a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.categories import Encoder, encoder_of_counts, why_no_category
from ranktron.data.io.columns import AUTO, Columns, Roles, assign_roles, doubtful_label, join_names, other_role
from ranktron.data.io.grouping import assemble, fitted_features, in_file, placeholder, room_for
from ranktron.data.io.streaming import QueryRun
from ranktron.data.io.table_sources import TableSource, import_pyarrow, index_columns
from ranktron.data.rounds import ROUNDED_AWAY, Rounds, rounded_away
from ranktron.errors import DataError, warn
from ranktron.types import Matrix

MOST_CODES = 1 << 24
"""The integers that 32-bit numbers hold exactly."""
CATEGORICAL_NAN = {"error": "error", "nan": "indicator"}
"""How an encoder treats missing categories, by how missing values are read; otherwise they are 0 in all features."""


def table_roles(source: TableSource, columns: Columns, labelled: bool = True) -> Roles:
    """The roles of a table's columns; a feature that is neither numeric nor categorical is an error."""
    with in_file(source.name):
        roles = assign_roles(source.schema.names, index_columns(source.schema), columns, labelled)
        if columns.categorical == AUTO:
            roles, left_out = find_categories(source, roles, keep=columns.features or ())
            if left_out:
                why = join_names([f"{name!r} ({reason})" for name, reason in left_out.items()])
                warn(f"{source.name}: columns without numbers are left out: {why}")
        if source.n == 0 or (not roles.features and columns.features != ()):
            raise DataError("there is no feature in it" if not roles.features else "there is no document in it")
        _check_numbers(source, roles)
    warning = doubtful_label(roles)
    if warning is not None:
        warn(f"{source.name}: {warning}")
    return roles


def find_categories(source: TableSource, roles: Roles, keep: Sequence[str] = ()) -> tuple[Roles, dict[str, str]]:
    """Takes features of text with few different values for categories, and leaves out what is no number either.

    Parameters
    ----------
    source : TableSource
        The table.
    roles : Roles
        The roles of its columns.
    keep : sequence of str
        Features that are not left out, and then refused.

    Returns
    -------
    roles : Roles
        The same with the categories.
    left_out : dict of str to str
        Why each column that is left out is neither a number nor a category.
    """
    counts = count_texts(source, roles)
    left_out = {name: reason for name, texts in counts.items() if (reason := why_no_category(texts))}
    categorical = tuple(name for name in counts if name not in left_out)
    others = [name for name in roles.features if name not in counts and not _is_number(source, name)]
    left_out |= {name: str(source.schema.field(name).type) for name in others}
    left_out = {name: reason for name, reason in left_out.items() if name not in keep}
    features = tuple(name for name in roles.features if name not in left_out)
    return roles._replace(features=features, dropped=(*roles.dropped, *left_out), categorical=categorical), left_out


def count_texts(source: TableSource, roles: Roles) -> dict[str, Counter[str | None]]:
    """How often each text occurs in each feature that holds text; None stands for a missing one."""
    names = tuple(name for name in roles.features if _is_text(source, name))
    counts: dict[str, Counter[str | None]] = {name: Counter() for name in names}
    wanted = Roles(None, roles.query, None, names, (), (), names)
    for batch in source.batches(wanted) if names else ():
        for name in names:
            texts, codes = _texts(batch.column(name))
            counts[name].update(dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True)))
    return counts


def _texts(column: Any) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The different texts of a column, and the index of each row's text; None, or no text, is a missing one."""
    column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    encoded = column.dictionary_encode()
    texts = [None if value is None or value == "" else str(value) for value in encoded.dictionary.to_pylist()]
    places = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64)
    texts = [*texts, None] if column.null_count else texts
    different = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    codes = np.array([different[text] for text in texts], np.int64)
    return list(different), codes[places]


def _is_text(source: TableSource, name: str) -> bool:
    kinds, kind = import_pyarrow().types, source.schema.field(name).type
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_dictionary(kind))


def _is_number(source: TableSource, name: str) -> bool:
    kinds, kind = import_pyarrow().types, source.schema.field(name).type
    numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    return any(is_kind(kind) for is_kind in numeric)


def _check_numbers(source: TableSource, roles: Roles) -> None:
    named = [name for name in (roles.label, *roles.features) if name is not None]
    others = [name for name in named if name not in roles.categorical and not _is_number(source, name)]
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
        f"expected numbers in column {first!r}, found {source.content(first)}{more}; make a feature of each category "
        f"with categorical='auto' (--categorical auto), or leave out what is not a feature with drop={names!r} "
        f"(--drop {names})"
    )


def read_table(source: TableSource, roles: Roles, null: str, encoder: Encoder | None = None) -> Rounds:
    """Reads a whole table; groups rows by query if necessary.

    Categories become features by the `encoder`, or by a new one, which the rounds then have.
    """
    cells = _Cells(source, roles, null)
    X, labels, qids, docids = _read_cells(cells)
    rounds = assemble(X, labels, qids, docids, null)
    if not roles.categorical:
        names, first = _feature_numbers(roles.features)
        return replace(rounds, feature_names=names, first_index=first, prefix="" if names else "f")
    texts = {name: list(codes) for name, codes in cells.codes.items()}
    if encoder is None:
        counts = {name: Counter(each) for name, each in texts.items()}
        encoder = encoder_of_counts(roles.features, counts, CATEGORICAL_NAN.get(null, "zero"))
    encoded = encoder.encode_table(X, texts)
    return replace(rounds, X=encoded, feature_names=encoder.names, encoder=encoder)


def read_rows(source: TableSource, roles: Roles, null: str) -> TableRows:
    """The columns that have a role, in the order of the table's rows."""
    return _read_cells(_Cells(source, roles, null))


def _read_cells(cells: _Cells) -> TableRows:
    source, roles = cells.source, cells.roles
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
    first = numbered_from(features)
    return (features, 1) if first is None else (None, first)


def numbered_from(features: Sequence[str]) -> int | None:
    """The first number of features that are called f0, f1, ... or f1, f2, ...; None for other names.

    >>> numbered_from(["f1", "f2"]), numbered_from(["f2", "f3"])
    (1, None)
    """
    for first in (0, 1):
        if list(features) == [f"f{j + first}" for j in range(len(features))]:
            return first
    return None


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
        self.codes: dict[str, dict[str | None, int]] = {name: {} for name in roles.categorical}  # of each text

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
                categorical = name in roles.categorical
                X[:, j] = self._codes(batch, name, row) if categorical else self._numbers(batch, name, row, self.filler)
        qids = self._words(batch, roles.query, row)
        docids = None if roles.doc is None else self._words(batch, roles.doc, row)
        return TableRows(X, self._labels(batch, row), qids, docids)

    def _copy_valid(self, batch: Any, X: Matrix) -> bool:
        """Copies the features if all are numbers, none missing or invalid, and returns whether it has."""
        if self.codes:
            return False
        with np.errstate(over="ignore"):
            for j, name in enumerate(self.roles.features):
                column = batch.column(name)
                if column.null_count:
                    return False
                values = column.to_numpy(zero_copy_only=False)
                # Via 64 bits, as everywhere: integers that are rounded to 32 bits directly may differ in the last bit.
                X[:, j] = values if values.dtype == np.float32 else np.asarray(values, np.float64)
        return bool(np.isfinite(X).all())

    def _codes(self, batch: Any, name: str, row: int) -> npt.NDArray[np.int64]:
        """The index of each text among those of its column, in the order in which they occur."""
        texts, places = _texts(batch.column(name))
        if None in texts and self.filler < 0:
            hint = "; train with --nan indicator to make a category of it"
            raise self.wrong(
                f"column {name!r} has no category", row + int((places == texts.index(None)).argmax()), hint
            )
        known = self.codes[name]
        codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
        if len(known) >= MOST_CODES:
            raise DataError(f"{self.source.name}: column {name!r} has more than {MOST_CODES:,} different texts")
        return codes[places]

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
