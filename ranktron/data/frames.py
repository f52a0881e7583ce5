"""Tables from memory, read into rounds: features, labels, query ids, sample weights and validation sets.

Data frames are known by their attribute `columns`, so that neither pandas nor polars is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.io.columns import QUERY_NAMES, plain, unlikely_features
from ranktron.data.query_warnings import columns_equal_to, warn_label_features
from ranktron.data.rounds import NO_QUERY_IDS, Rounds, frame_feature_names, take_qid_column
from ranktron.errors import DataError, warn
from ranktron.types import Floats

UNSEEN_NAMES = (
    "this version of scikit-learn does not see the names of the columns of this data frame: install a newer one (1.9 "
    "sees those of polars 2), or pass frame.to_pandas()"
)
UNGROUPED = (
    f"{NO_QUERY_IDS}; qid=0 says that all rows are one list (in a search or cross-validation, call "
    "sklearn.set_config(enable_metadata_routing=True) first, and pass qid= or groups=)"
)
UNGROUPED_EVAL_SET = (
    "the validation set has no query ids: pass eval_qid= (one id per row) or eval_group= (sizes of lists); eval_qid=0 "
    "says that all of its rows are one list"
)


Check = Callable[[Any, Any], tuple[Any, Any, Sequence[str] | None]]


def read_frame(
    X: Any,
    y: Any,
    qid: Any = None,
    group: Any = None,
    *,
    check: Check,
    features: Sequence[str] | None = None,
    one_list: bool = False,
    missing: bool = False,
    first: bool = True,
) -> Rounds:
    """Reads features, labels and query ids into rounds.

    Parameters
    ----------
    X : table of numbers, data frame or sparse matrix
        A row per document; a data frame may hold the query ids as its column `qid`, or under the name given as `qid`.
    y : array
        The labels.
    qid, group : array
        The query of each row, or the sizes of consecutive queries.
    check : function
        From features and labels, as they were given, to numbers and the names of the features.
    features : sequence of str, optional
        The columns of a data frame that are features.
    one_list : bool
        Whether rows without query ids are one list, or refused.
    missing : bool
        Whether NaN stands for missing values.
    first : bool
        Whether a model is fitted to the table: columns that seem to be no features are then refused or warned of.

    Examples
    --------
    >>> rounds = read_frame([[1.0], [3.0]], [0, 1], "a", check=lambda X, y: (np.array(X), np.array(y), None))
    >>> rounds.qids.tolist(), rounds.labels.tolist()
    (['a'], [0.0, 1.0])
    """
    frame, own_qid = take_query_ids(X, None if group is not None else qid)
    qid = qid if group is not None else own_qid
    grouped = qid is not None or group is not None
    _refuse_swapped(X, y)
    X, y, names = check(take_features(frame, features, first=first), y)
    if first and features is None:
        _check_left_over(frame, X, y, grouped=grouped)
    if not grouped and not one_list:
        raise DataError(UNGROUPED)
    if type(X) is not np.ndarray:
        return Rounds.from_arrays(X, y, qid, group, feature_names=names, missing=missing)
    with explained(X, missing=missing):
        return Rounds.from_arrays(X, y, qid, group, feature_names=names, missing=missing)


def _refuse_swapped(X: Any, y: Any) -> None:
    """Refuses features and labels, or labels and query ids, that have changed places."""
    if _depth(X) == 1 and _depth(y) == 2:
        raise DataError("the features are one number for each row and the labels a table: it is fit(X, y, qid=qid)")
    first = next(iter(y), None) if _depth(y) == 1 else None
    if isinstance(first, str) and not _is_number(first):
        raise DataError(
            f"the labels are text, {str(first)!r} in row 0: it is fit(X, y, qid=qid), with labels before query ids"
        )


def _depth(table: Any) -> int | None:
    """The number of dimensions of an array, a data frame or lists, by the first row; None if that is not known."""
    if isinstance(table, list | tuple):
        return 1 + isinstance(table[0], list | tuple) if table else None
    return getattr(table, "ndim", None)


@contextmanager
def explained(X: Any, *, missing: bool) -> Iterator[None]:
    """Says in which column and row of a table the reason is, where it cannot be read as numbers."""
    try:
        yield
    except (ValueError, TypeError):
        wrong = _wrong_column(X, missing)
        if wrong is None:
            raise
        raise DataError(wrong) from None


def refuse_dates(X: Any) -> None:
    """Refuses a data frame with a column of dates, of which some libraries make numbers."""
    if any(np.asarray(X[name][:0]).dtype.kind in "mM" for name in getattr(X, "columns", ())):
        raise DataError(_wrong_column(X, missing=True))


def named_columns(X: Any, roles: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Takes columns that are given by their names out of a data frame: (the rest, the column of each role)."""
    found, names = dict(roles), []
    for role, name in roles.items():
        if isinstance(name, str) and hasattr(X, "columns"):
            if name not in list(X.columns):
                raise DataError(f"there is no column {name!r} to take {role} from")
            found[role] = np.asarray(X[name])
            names.append(name)
    return (_without(X, names) if names else X), found


def _without(X: Any, names: list[str]) -> Any:
    return X.drop(columns=names) if hasattr(X, "iloc") else X.drop(names)


def take_query_ids(X: Any, qid: Any) -> tuple[Any, Any]:
    """Takes the query ids out of a data frame: its column `qid`, or the one whose name was given as `qid`."""
    if not isinstance(qid, str) or not hasattr(X, "columns"):
        X, own = take_qid_column(X)
        return X, own if qid is None else qid
    if qid not in list(X.columns):
        raise DataError(
            f"there is no column {qid!r} to take the query ids from; there are {_join_names(list(X.columns))}"
        )
    ids = np.asarray(X[qid])
    return take_qid_column(_without(X, [qid]))[0], ids


def take_features(X: Any, features: Sequence[str] | None, *, first: bool) -> Any:
    """The columns of a data frame that are features; all of them where they were not named."""
    if features is None or (not hasattr(X, "columns") and not first):
        return X
    if not hasattr(X, "columns"):
        raise DataError("features= names columns of a data frame, and X is none: leave it out, or give a frame")
    missing = [name for name in features if name not in list(X.columns)]
    if missing:
        raise DataError(f"there is no column {missing[0]!r}; there are {_join_names(list(X.columns))}")
    return X[list(features)]


def arrange_columns(X: Any, names: Sequence[str] | None) -> Any:
    """The columns of a data frame in the order in which a model was fitted to them; anything else unchanged.

    Parameters
    ----------
    X : table of numbers or data frame
        A frame whose columns have other names than texts is unchanged, too.
    names : sequence of str, optional
        The columns that the model was fitted to; None, if they had no names.

    Examples
    --------
    >>> import pandas
    >>> arrange_columns(pandas.DataFrame({"price": [3.0], "age": [1.0]}), ["age", "price"]).columns.tolist()
    ['age', 'price']
    """
    own = frame_feature_names(X)
    if names is None or own is None or own == tuple(names):
        return X
    fitted = ", ".join(map(str, names[:10])) + (", ..." if len(names) > 10 else "")
    for name in names:
        if name not in own:
            raise DataError(f"column {name!r} is missing: the model was fitted to {fitted}")
    for name in own:
        if name not in names:
            raise DataError(f"column {name!r} is surplus: the model was fitted without it; drop it")
    if len(own) > len(names):
        raise DataError(f"a column stands twice in the data frame: the model was fitted to {fitted}")
    return X[list(names)]


def _check_left_over(frame: Any, X: Any, y: Any, *, grouped: bool) -> None:
    """Refuses columns that are the labels or the query ids, and warns of those that look like it.

    A column whose name says that it is no feature is refused if it equals y. One of any name, or of none, that equals y
    is warned of: the few rows of a small part may well agree by chance.
    """
    names = frame_feature_names(frame) or ()
    if not grouped:
        for name in names:
            if plain(name) in QUERY_NAMES:
                raise DataError(
                    f"there are no query ids, and the column {name!r} looks like them: pass qid={name!r}, "
                    "or name the features with features=[...]"
                )
    for j in columns_equal_to(X, y) if names else ():
        if unlikely_features([names[j]]):
            raise DataError(
                f"the column {names[j]!r} is among the features and equals y: drop it, or name the features with "
                "features=[...]"
            )
    warn_label_features(X, y, names or range(X.shape[1]))
    if names and (said := unlikely_features(names)):
        warn(said)


def _wrong_column(X: Any, missing: bool) -> str | None:
    """Where a table holds text, dates, or NaN unless it stands for `missing` values, in words; None if nowhere."""
    names = list(getattr(X, "columns", ()))
    table = None if names or hasattr(X, "tocsr") else X if isinstance(X, np.ndarray) else np.asarray(X, object)
    if table is not None and table.ndim != 2:
        return None
    for j in range(len(names) if table is None else table.shape[1]):
        column: npt.NDArray[Any] = np.asarray(X[names[j]] if table is None else table[:, j])
        where = repr(names[j]) if names else str(j)
        if column.dtype.kind in "mM":
            return f"column {where} holds dates: leave it out, or make numbers of it, such as an age in days"
        for i, value in enumerate(column.tolist() if column.dtype.kind in "OUTf" else ()):
            if isinstance(value, str) and not _is_number(value):
                return f"column {where} holds text, {value!r} in row {i}: leave it out, or make numbers of it"
            if isinstance(value, float) and value != value and not missing:
                return (
                    f"features contain NaN, first in column {where}, row {i}: nan='mean' (or 'zero', 'indicator') of "
                    "the ranker says what a missing value counts for"
                )
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _join_names(names: list[Any], most: int = 10) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def read_eval_set(
    eval_set: Any, eval_qid: Any, eval_group: Any, **only_with_it: Any
) -> tuple[Any, Any, Any, Any] | None:
    """The validation set, None where there is none; what means something only with one is then refused.

    LightGBM and PyTerrier give lists of parts, others a single pair: of a list the first part is the one that counts.

    >>> read_eval_set([([[1.0]], [0])], [["a"]], None)
    ([[1.0]], [0], ['a'], None)
    """
    if eval_set is None:
        for name, value in only_with_it.items():
            if value is not None:
                raise DataError(
                    f"{name}= is about a validation set: pass eval_set=(X, y) and eval_qid=, or leave it out"
                )
        return None
    if isinstance(eval_set, list):
        parts = (eval_set, eval_qid, eval_group)
        eval_set, eval_qid, eval_group = (p[0] if p is not None and len(p) else None for p in parts)
    if not isinstance(eval_set, tuple) or len(eval_set) != 2:
        raise DataError("eval_set must be a pair (X, y), or a list of them; query ids go into eval_qid")
    return *eval_set, eval_qid, eval_group


class Weighed(NamedTuple):
    """The rows that weigh anything, what each query weighs, and what each document does beside those of its query.

    None where all weigh 1.
    """

    rounds: Rounds
    queries: Floats | None = None
    documents: Floats | None = None


def as_sample_weights(sample_weight: Any, n: int) -> Floats:
    """One weight for each of n rows."""
    try:
        weights = np.asarray(sample_weight, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight must hold numbers: {error}") from None
    if weights.shape != (n,):
        raise DataError(f"sample_weight must hold one number per row: {n} rows, not {weights.shape}")
    if not (np.isfinite(weights).all() and weights.min() >= 0.0 and weights.max() > 0.0):
        raise DataError("sample_weight must hold finite numbers of at least 0, not all of them zero")
    return weights


def mean_weights(rounds: Rounds, sample_weight: Any) -> Floats | None:
    """What each query weighs: the mean of its rows."""
    if sample_weight is None:
        return None
    grouped = _weight_per_row(rounds, sample_weight)
    means: Floats = np.add.reduceat(grouped, rounds.offsets[:-1]) / np.diff(rounds.offsets)
    return means


def weigh(rounds: Rounds, sample_weight: Any) -> Weighed:
    """Leaves out the rows of weight 0, and divides the weights of the others among queries and documents.

    A query weighs as much as its documents do on average, each counted as often as it weighs: v = Σ w²/Σ w. A document
    weighs u = w/v. So v is what all documents of a query weigh if they weigh the same, and no row that weighs next to
    nothing has a say in it.

    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "a"])
    >>> weighed = weigh(rounds, [2.0, 0.0, 2.0])
    >>> weighed.rounds.qids.tolist(), weighed.queries, weighed.documents
    (['a'], array([2.]), None)
    >>> weighed = weigh(rounds, [1.0, 4.0, 3.0])
    >>> weighed.queries, weighed.documents
    (array([2.5, 4. ]), array([0.4, 1.2, 1. ]))
    """
    if sample_weight is None:
        return Weighed(rounds)
    weights = _weight_per_row(rounds, sample_weight)
    if not weights.all():
        rounds, weights = _without_weightless(rounds, weights)
    starts, sizes = rounds.offsets[:-1], np.diff(rounds.offsets)
    queries = weights[starts]
    if (np.repeat(queries, sizes) == weights).all():
        return Weighed(rounds, None if (queries == 1.0).all() else queries)
    most = np.maximum.reduceat(weights, starts)
    shares = weights / np.repeat(most, sizes)  # whose squares neither overflow nor vanish
    mean = np.add.reduceat(shares**2, starts) / np.add.reduceat(shares, starts)
    return Weighed(rounds, most * mean, shares / np.repeat(mean, sizes))


def _weight_per_row(rounds: Rounds, sample_weight: Any) -> Floats:
    weights = as_sample_weights(sample_weight, len(rounds.labels))
    return weights if rounds.rows is None else weights[rounds.rows]


def _without_weightless(rounds: Rounds, weights: Floats) -> tuple[Rounds, Floats]:
    kept = np.flatnonzero(weights)
    sizes = np.add.reduceat((weights > 0.0).astype(np.int64), rounds.offsets[:-1])
    left = replace(
        rounds,
        X=rounds.X[kept],
        labels=rounds.labels[kept],
        offsets=np.concatenate(([0], np.cumsum(sizes[sizes > 0]))).astype(np.int64),
        qids=rounds.qids[sizes > 0],
        docids=None if rounds.docids is None else rounds.docids[kept],
        rows=None,
    )
    return left, weights[kept]
