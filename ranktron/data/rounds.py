"""Many rounds in three arrays, `X`, `labels` and `offsets`: a query is a slice, never padded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError, warn
from ranktron.kernels.csr import longest_sparse_row
from ranktron.kernels.csr_rows import FILL_IN, Sparse, first_infinite
from ranktron.kernels.dense import first_non_finite, longest_row
from ranktron.types import Features, Floats, Integers, Matrix, Round
from ranktron.types.validation import check_count

if TYPE_CHECKING:
    from ranktron.data.categories import Encoder


@dataclass(frozen=True, eq=False)
class Rounds:
    """Queries with their documents, grouped by query.

    Build it with `Rounds.from_arrays` or `ranktron.read`, which check the values. The constructor checks only that the
    arrays fit together, so that a memory-mapped store opens without being read.

    Parameters
    ----------
    X : float32, C-contiguous, (documents, features)
        The features; or `Sparse` rows, if most of them are 0.
    labels : float64, (documents,)
        The relevance of each document.
    offsets : int64, (queries + 1,)
        Query q has the rows `offsets[q]` to `offsets[q + 1]`.
    qids : (queries,)
        The query ids.
    docids : (documents,), optional
        The document ids.
    rows : int64, (documents,), optional
        The input row of each row; None if the input was already grouped.
    feature_names : tuple of str, optional
        The names of the features.
    first_index : {0, 1}
        The index of the first feature in text files.
    missing : bool
        Whether features may be missing (NaN); only a model with an imputer takes such data.
    encoder : Encoder, optional
        The encoding that made features of the categories of a table; a model that is trained on the rounds keeps it.
    prefix : str
        Stands before the numbers of features without names: "f" in tables with columns f1, f2, ..., "" in LETOR text.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> len(rounds), rounds.qids.tolist(), rounds.rows.tolist()
    (2, ['a', 'b'], [0, 2, 1])
    >>> [round.labels.tolist() for round in rounds]
    [[0.0, 2.0], [1.0]]
    """

    X: Features
    labels: Floats
    offsets: Integers
    qids: npt.NDArray[Any]
    docids: npt.NDArray[Any] | None = None
    rows: Integers | None = None
    feature_names: tuple[str, ...] | None = None
    first_index: int = 1
    missing: bool = False
    encoder: Encoder | None = None
    prefix: str = ""

    def __post_init__(self) -> None:
        arrays = [a for a in (self.labels, self.offsets, self.qids, self.docids, self.rows) if a is not None]
        sparse = isinstance(self.X, Sparse)
        if not all(isinstance(a, np.ndarray) for a in (arrays if sparse else [self.X, *arrays])) or not (
            (sparse or (self.X.dtype == np.float32 and self.X.flags.c_contiguous))
            and [a.dtype.name for a in (self.labels, self.offsets)] == ["float64", "int64"]
            and (self.X.ndim, self.offsets.ndim) == (2, 1)
            and self.qids.shape == (len(self.offsets) - 1,)
            and (self.offsets[0], self.offsets[-1]) == (0, self.X.shape[0])
            and (self.offsets[1:] >= self.offsets[:-1]).all()
            and all(a.shape == (self.offsets[-1],) for a in (self.labels, self.docids, self.rows) if a is not None)
        ):
            raise DataError("the arrays of Rounds do not fit together; build them with Rounds.from_arrays")
        if self.feature_names is not None and len(self.feature_names) != self.n_features:
            raise DataError(f"{len(self.feature_names)} feature names for {self.n_features} features")

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        *,
        docids: Any = None,
        feature_names: Sequence[str] | None = None,
        first_index: int = 1,
        missing: bool = False,
    ) -> Rounds:
        """Checks and groups plain arrays.

        Queries keep the order in which they first appear, and documents their order within the query. Without `qid`
        and `group`, or with one id for all, all rows are one query. The columns of a data frame give their names to
        the features.

        Parameters
        ----------
        X : array of shape (documents, features), data frame, or one of scipy's sparse matrices
            The features; sparse matrices stay sparse.
        y : array of shape (documents,)
            The labels, finite and >= 0.
        qid : array of shape (documents,), or one id, optional
            The query id of each row, of any type and in any order.
        group : sequence of int, optional
            The sizes of consecutive queries, instead of `qid`.
        docids : array of shape (documents,), optional
            The document ids.
        feature_names : sequence of str, optional
            The names of the features.
        first_index : {0, 1}
            The index of the first feature when written to a text file.
        missing : bool
            Whether NaN is allowed and means a missing value.
        """
        names = frame_feature_names(X) if feature_names is None else tuple(map(str, feature_names))
        X = _as_features(X, missing)
        missing = missing and bool(np.isnan(X.values if isinstance(X, Sparse) else X).any())
        labels = _as_labels(y, len(X))
        docids = None if docids is None else _as_ids(docids, len(X), "docids must hold one document id")
        qids, offsets, rows = _group_rows(len(X), qid, group)
        if rows is not None:
            X, labels = X[rows], labels[rows]
            docids = None if docids is None else docids[rows]
        return cls(X, labels, offsets, qids, docids, rows, names, first_index, missing)

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features; if they have none, their numbers as the file writes them."""
        return self.feature_names or number_features(self.n_features, self.first_index, self.prefix)

    def __len__(self) -> int:
        return len(self.qids)

    def __iter__(self) -> Iterator[Round]:
        X, labels, offsets, make = self.X, self.labels, self.offsets.tolist(), tuple.__new__
        for a, b, qid in zip(offsets, offsets[1:], self.qids.tolist(), strict=False):
            yield make(Round, (X[a:b], labels[a:b], qid))  # as `Round._make`, at half its cost

    @overload
    def __getitem__(self, which: int) -> Round: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | npt.NDArray[Any]) -> Rounds: ...
    def __getitem__(self, which: int | slice | Sequence[int] | npt.NDArray[Any]) -> Round | Rounds:
        """One round, or the `Rounds` of several queries: a contiguous slice is a view, any other selection a copy."""
        if isinstance(which, int | np.integer):
            q = range(len(self))[which]
            a, b = self.offsets[q], self.offsets[q + 1]
            return Round._make((self.X[a:b], self.labels[a:b], self.qids[q : q + 1].tolist()[0]))
        if isinstance(which, slice):
            start, stop, stride = which.indices(len(self))
            if stride == 1:
                return self._between(start, max(start, stop))
        return self._select(np.arange(len(self))[which])

    def _between(self, start: int, stop: int) -> Rounds:
        a, b = self.offsets[start], self.offsets[stop]
        return self._take(slice(a, b), self.offsets[start : stop + 1] - a, self.qids[start:stop])

    def _select(self, queries: Integers) -> Rounds:
        lengths = np.diff(self.offsets)[queries]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        rows = np.arange(offsets[-1]) + np.repeat(self.offsets[queries] - offsets[:-1], lengths)
        return self._take(rows, offsets, self.qids[queries])

    def _take(self, rows: slice | Integers, offsets: Integers, qids: npt.NDArray[Any]) -> Rounds:
        docids = None if self.docids is None else self.docids[rows]
        X, labels = self.X[rows], self.labels[rows]
        return replace(self, X=X, labels=labels, offsets=offsets, qids=qids, docids=docids, rows=None)

    def split(self, fraction: float, seed: int | None = None) -> tuple[Rounds, Rounds]:
        """Splits the queries into two parts.

        Parameters
        ----------
        fraction : float
            The share of the queries in the first part, between 0 and 1.
        seed : int, optional
            Seed of a shuffle of the queries before the split; without it the first part has the first queries.

        Examples
        --------
        >>> rounds = Rounds.from_arrays([[1.0]] * 4, [1, 0, 0, 1], qid=["a", "b", "c", "d"])
        >>> [part.qids.tolist() for part in rounds.split(0.75)]
        [['a', 'b', 'c'], ['d']]
        """
        if not 0.0 < fraction < 1.0:
            raise DataError(f"the fraction to split by must lie between 0 and 1, not {fraction}")
        cut = round(fraction * len(self))
        if seed is None:
            return self[:cut], self[cut:]
        shuffled = np.random.default_rng(check_count(seed, "the seed", 0)).permutation(len(self))
        return self[np.sort(shuffled[:cut])], self[np.sort(shuffled[cut:])]

    @classmethod
    def concat(cls, parts: Sequence[Rounds]) -> Rounds:
        """Joins several `Rounds` with the same features; a query id that occurs in two of them is an error.

        Parameters
        ----------
        parts : sequence of Rounds
            The parts, in this order.
        """
        if not parts:
            raise DataError("nothing to concatenate")
        first = parts[0]
        parts = [part.ordered_by(first.feature_names) for part in parts]
        for part in parts:
            if part.n_features != first.n_features:
                raise DataError(
                    f"cannot concatenate queries with {first.n_features} and with {part.n_features} features"
                )
        alike = len({part.qids.dtype.kind for part in parts}) == 1  # otherwise numpy would turn numbers into text
        qids = np.concatenate([part.qids if alike else part.qids.astype(object) for part in parts])
        twice = [q for q, count in Counter(qids.tolist()).items() if count > 1]
        if twice:
            raise DataError(f"query {twice[0]!r} is split over several parts; put its rows together first")
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        docids = [part.docids for part in parts if part.docids is not None]
        return replace(
            first,
            X=stack_rows([part.X for part in parts]),
            labels=np.concatenate([part.labels for part in parts]),
            offsets=np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
            qids=qids,
            docids=np.concatenate(docids) if len(docids) == len(parts) else None,
            rows=None,
            missing=any(part.missing for part in parts),
        )

    def ordered_by(self, names: tuple[str, ...] | None) -> Rounds:
        """The same queries with the features of these names, in this order; unchanged if there are no names.

        Parameters
        ----------
        names : tuple of str, or None
            All feature names, in the new order.

        Examples
        --------
        >>> rounds = Rounds.from_arrays([[1.0, 5.0]], [0], feature_names=("price", "age"))
        >>> rounds.ordered_by(("age", "price")).X.tolist()
        [[5.0, 1.0]]
        """
        own = self.feature_names
        if names is None or own is None or names == own:
            return self
        missing, unknown = sorted(set(names) - set(own)), sorted(set(own) - set(names))
        if missing or unknown or len(names) != len(own):
            differences = ((missing, "missing"), (unknown, "not known"))
            wrong = [f"{', '.join(features)} {what}" for features, what in differences if features]
            raise DataError(f"the data has other features than expected: {'; '.join(wrong) or 'a name stands twice'}")
        places = np.array([own.index(name) for name in names])
        X = self.X.rearranged(places) if isinstance(self.X, Sparse) else np.ascontiguousarray(self.X[:, places])
        return replace(self, X=X, feature_names=names)

    def restore(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reorders one value per document from the order of `X` to that of the input.

        Parameters
        ----------
        values : array of shape (documents,)
            One value per document.
        """
        if self.rows is None:
            return values
        restored = np.empty_like(values)
        restored[self.rows] = values
        return restored


def number_features(n: int, first: int, prefix: str) -> tuple[str, ...]:
    """The names of n features that are numbered from `first`.

    >>> number_features(2, 1, "f")
    ('f1', 'f2')
    """
    return tuple(f"{prefix}{j}" for j in range(first, first + n))


NO_QUERY_IDS = (
    "there are no query ids: pass qid= (one id per row), group= (sizes of consecutive lists) or a data frame with a "
    "column qid"
)


def take_qid_column(X: Any) -> tuple[Any, Any]:
    """Splits off a data frame's `qid` column: (features, query ids or None). Arrays pass through."""
    columns = getattr(X, "columns", None)
    if columns is None or "qid" not in list(columns):
        return X, None
    qid = np.asarray(X["qid"])
    return (X.drop(columns=["qid"]) if hasattr(X, "iloc") else X.drop("qid")), qid


def frame_feature_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a data frame; None for an array, or if not all of them are text."""
    columns = list(getattr(X, "columns", ()))
    return tuple(columns) if columns and all(isinstance(name, str) for name in columns) else None


def stack_rows(parts: list[Features]) -> Features:
    """Stacks rows; the result is sparse if some of them are."""
    if any(isinstance(X, Sparse) for X in parts):
        return Sparse.concatenate([X if isinstance(X, Sparse) else Sparse.from_matrix(X) for X in parts])
    return np.concatenate(parts)


def _as_features(X: Any, missing: bool) -> Features:
    if hasattr(X, "tocsr") or isinstance(X, Sparse):
        X = X if isinstance(X, Sparse) else Sparse.from_matrix(X)
        X.check(missing)
    else:
        X = as_matrix(X, missing)
    if X.size == 0:
        raise DataError(f"there is nothing to rank: {X.shape[0]} documents with {X.shape[1]} features")
    return X


_MANY = 32  # rows, from which on rounding is warned of
ROUNDED_AWAY = "has values that differ and are equal in 32 bits, in which features are kept: subtract the smallest one"


def as_matrix(X: Any, missing: bool = False) -> Matrix:
    """Converts a table of real numbers to the matrix that kernels take, without a copy if it is one already.

    With `missing`, NaN is allowed.
    """
    try:
        table = np.asarray(X)
        if table.dtype == object and hasattr(X, "iloc"):  # numpy cannot convert pandas' NA
            table = X.to_numpy(np.float64, na_value=np.nan)
        with np.errstate(over="ignore"):
            features = np.require(_real(table), np.float32, ["C"])
    except (TypeError, ValueError) as error:
        raise DataError(f"features must be numbers, as many in each row: {error}") from None
    if table.ndim != 2:
        raise DataError(f"features must form a table (documents × features), not {table.ndim} dimensions")
    bad = first_infinite(features) if missing else first_non_finite(features.reshape(-1))
    if bad >= 0:
        row, column = divmod(bad, features.shape[1])
        place = f"({table[row, column]}), first in row {row}, column {column}"
        hint = f"; {FILL_IN}" if np.isnan(features[row, column]) else ""
        raise DataError(f"features contain NaN, infinity or a number too large for 32 bits {place}{hint}")
    for column in rounded_away(table, features):
        warn(f"column {column} {ROUNDED_AWAY}")
    return features


def rounded_away(given: npt.NDArray[Any], features: Matrix) -> list[int]:
    """The columns of which most values differ but are equal in 32 bits, such as times in milliseconds.

    Parameters
    ----------
    given, features : arrays of two dimensions
        The numbers before and after rounding to 32 bits.

    Examples
    --------
    >>> given = np.array([[1.7e12 + i, i] for i in range(100)])
    >>> rounded_away(given, given.astype(np.float32))
    [0]
    """
    if given.dtype.itemsize <= features.dtype.itemsize or len(given) < _MANY:
        return []
    likely = np.flatnonzero((features[0] == features[-1]) & (given[0] != given[-1])).tolist()
    start = slice(0, 1000)
    return [j for j in likely if 2 * len(np.unique(features[start, j])) <= len(np.unique(given[start, j]))]


def _real(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype.kind in "cmM":  # numpy would convert complex numbers and dates
        raise TypeError(f"these are {array.dtype}")
    return array


def _as_labels(y: Any, n: int) -> Floats:
    if y is None:
        raise DataError("labels are missing: y is None")
    try:
        labels: Floats = np.require(_real(np.asarray(y)), np.float64, ["C"])
    except (TypeError, ValueError) as error:
        raise DataError(f"labels must be numbers: {error}") from None
    if labels.shape != (n,):
        raise DataError(f"labels must be one number per document: {n} documents, labels of shape {labels.shape}")
    check_labels(labels)
    return labels


def check_labels(labels: Floats) -> None:
    """Refuses labels that are negative, infinite or NaN, which the constructor of `Rounds` does not look at.

    >>> check_labels(np.array([1.0, -1.0]))
    Traceback (most recent call last):
    ranktron.errors.DataError: labels must be finite and >= 0; row 1 has -1.0
    """
    valid = (labels >= 0.0) & (labels < np.inf)
    if not valid.all():
        bad = int(np.argmin(valid))
        raise DataError(f"labels must be finite and >= 0; row {bad} has {labels[bad]}")


def _group_rows(n: int, qid: Any, group: Any) -> tuple[npt.NDArray[Any], Integers, Integers | None]:
    if qid is not None and group is not None:
        raise DataError("give either qid (one id per row) or group (sizes of consecutive queries), not both")
    if group is not None:
        return *_from_sizes(n, group), None
    if qid is None or isinstance(qid, str | int | float | np.generic):  # one id for all rows
        return np.array([0 if qid is None else qid]), np.array([0, n], np.int64), None
    return group_by(_as_ids(qid, n, "qid must hold one query id"))


def _as_ids(given: Any, n: int, what: str) -> npt.NDArray[Any]:
    """One id per document; ids that numpy would convert, such as 1 and "1" in one list, stay objects."""
    try:
        ids = np.asarray(given)
    except ValueError:  # lists of several lengths
        ids = np.empty(0)
    if isinstance(given, list | tuple) and (ids.ndim != 1 or (ids.dtype.kind != "O" and ids.tolist() != list(given))):
        ids = np.fromiter(given, object, len(given))
    if ids.shape != (n,):
        raise DataError(f"{what} per document: {n} documents, ids of shape {ids.shape}")
    return ids


def _from_sizes(n: int, group: Any) -> tuple[npt.NDArray[Any], Integers]:
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or len(sizes) == 0 or sizes.min() <= 0:
        raise DataError("group must be the sizes of consecutive queries: positive whole numbers")
    if sizes.sum() != n:
        raise DataError(f"group sizes add up to {sizes.sum()}, but there are {n} documents")
    return np.arange(len(sizes)), np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def group_by(qid: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Integers, Integers | None]:
    """Groups rows by query id: (ids in order of appearance, offsets, the input row of each grouped row or None)."""
    ids = qid.tolist() if qid.dtype.kind in "fcmMO" else []
    try:
        hash(tuple(ids))
    except TypeError as error:
        raise DataError(f"query ids must be texts, numbers or tuples: {error}") from None
    # NaN does not equal itself, and comparing pandas' NA raises
    missing = [row for row, q in enumerate(ids) if q is None or type(q).__name__ == "NAType" or q != q]
    if missing:
        raise DataError(f"query id missing (None, NaN, NA or NaT) in row {missing[0]}")
    starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1))
    heads = qid[starts].tolist()
    lengths = np.diff(np.append(starts, len(qid)))
    if len(set(heads)) == len(heads):
        return qid[starts], np.append(starts, len(qid)).astype(np.int64), None
    first: dict[Any, int] = {}
    codes = [first.setdefault(head, len(first)) for head in heads]
    row_codes = np.repeat(codes, lengths)
    rows = np.argsort(row_codes, kind="stable").astype(np.int64)
    sizes = np.bincount(row_codes, minlength=len(first))
    appearance = starts[np.unique(codes, return_index=True)[1]]
    return qid[appearance], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), rows


def largest_row_norm(rounds: Rounds) -> float:
    """The length of the longest row: R_X, the 1→2 norm of Xᵀ.

    >>> largest_row_norm(Rounds.from_arrays([[3.0, 4.0], [1.0, 0.0]], [0, 1]))
    5.0
    """
    X = rounds.X
    return float(longest_sparse_row(X.starts, X.values) if isinstance(X, Sparse) else longest_row(X))
