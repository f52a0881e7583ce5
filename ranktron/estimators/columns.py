"""What stands at the door of a ranker: which columns are features, which are query ids, and which were left over.

Data frames are known by their attribute `columns`, so that neither pandas nor polars is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.io.columns import QUERY_NAMES, plain, unlikely_features
from ranktron.data.query_warnings import columns_equal_to, warn_label_features
from ranktron.data.rounds import NO_QUERY_IDS, frame_feature_names, take_qid_column
from ranktron.errors import DataError, warn

UNSEEN_NAMES = (
    "this version of scikit-learn does not see the names of the columns of this data frame: install a newer one (1.9 "
    "sees those of polars 2), or pass frame.to_pandas()"
)
UNGROUPED = (
    f"{NO_QUERY_IDS}; qid=0 says that all rows are one list (in a search or cross-validation, call "
    "sklearn.set_config(enable_metadata_routing=True) first, and pass qid= or groups=)"
)


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
    return take_qid_column(X.drop(columns=[qid]) if hasattr(X, "iloc") else X.drop(qid))[0], ids


def take_features(X: Any, features: Sequence[str] | None, *, reset: bool) -> Any:
    """The columns of a data frame that are features; all of them where they were not named."""
    if features is None or (not hasattr(X, "columns") and not reset):
        return X
    if not hasattr(X, "columns"):
        raise DataError("features= names columns of a data frame, and X is none: leave it out, or give a frame")
    missing = [name for name in features if name not in list(X.columns)]
    if missing:
        raise DataError(f"there is no column {missing[0]!r}; there are {_join_names(list(X.columns))}")
    return X[list(features)]


def check_left_over(frame: Any, X: Any, y: Any, *, grouped: bool) -> None:
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
    if said := unlikely_features(names):
        warn(said)


def are_columns_named(X: Any) -> bool:
    """Whether this is a data frame whose columns all have names."""
    names = list(getattr(X, "columns", ()))
    return bool(names) and all(isinstance(name, str) for name in names)


def holds_dates(X: Any) -> bool:
    """Whether a data frame has a column of dates or times."""
    return any(np.asarray(X[name][:0]).dtype.kind in "mM" for name in getattr(X, "columns", ()))


def wrong_column(X: Any, missing: bool) -> str | None:
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
