"""Documents to rank in Python: dicts by feature name, rows, arrays and data frames become ids and a matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from ranktron.store.errors import RequestError
from ranktron.store.messages import Document
from ranktron.store.rankers.features import check_ids, document_matrix
from ranktron.types import Matrix

_Features = list[float | None] | dict[str, float | None]


def ids_and_features(
    documents: Any, items: Any, names: Sequence[str], *, missing: bool = False
) -> tuple[Sequence[str], Matrix]:
    """The ids of documents and their features, in the order of `names`; with `missing`, absent values become NaN.

    >>> ids_and_features({"a": {"x": 1, "y": 2}, "b": [3.0, 4.0]}, None, ["x", "y"])[0]
    ['a', 'b']
    >>> ids_and_features(np.array([[1.0, 2.0]], np.float32), ["a"], ["x", "y"])
    (['a'], array([[1., 2.]], dtype=float32))
    """
    if isinstance(documents, Mapping):
        if not documents:
            raise _invalid("there are no documents")
        if items is not None:
            raise _invalid("documents in a dict have its keys as ids: leave `items` out")
        return _read_dict(documents, names, missing)
    if hasattr(documents, "columns"):
        if isinstance(items, str):
            items = list(documents[items])
        X = _read_frame(documents, names)
    elif isinstance(documents, np.ndarray):
        X = documents
    else:
        documents = list(documents)
        ids = _read_ids(items, len(documents))
        check_ids(ids)
        return _read_dict(dict(zip(ids, documents, strict=True)), names, missing)
    ids = _read_ids(items, len(X))
    if not ids:
        raise _invalid("there are no documents")
    check_ids(ids)
    return ids, _check_matrix(X, ids, names, missing)


def _read_ids(items: Iterable[str] | None, m: int) -> Sequence[str]:
    """The ids of m documents; their positions in the list unless given."""
    if items is None:
        return [str(place) for place in range(m)]
    ids = items if isinstance(items, list) else list(items)
    if len(ids) != m:
        raise _invalid(f"there are {m} documents and {len(ids)} items")
    return _checked_ids(ids)


def _checked_ids(ids: list[Any]) -> list[str]:
    if set(map(type, ids)) - {str}:
        wrong = next(id for id in ids if type(id) is not str)
        if not isinstance(wrong, str):
            raise _invalid(f"ids of documents are strings, and {wrong!r} is none")
        ids = [str(id) for id in ids]  # a subclass, as numpy's
    if ids and not 1 <= min(map(len, ids)) <= max(map(len, ids)) <= 200:
        raise _invalid("ids of documents have 1 to 200 characters")
    return ids


def _read_dict(documents: Mapping[str, Any], names: Sequence[str], missing: bool) -> tuple[Sequence[str], Matrix]:
    ids, features = _checked_ids(list(documents)), list(documents.values())
    try:  # the rule: all features by name, or all in order
        if features and isinstance(features[0], Mapping):
            X = np.array([[each[name] for name in names] for each in features if len(each) == len(names)])
        else:
            X = np.array(features)
    except (KeyError, TypeError, ValueError):
        X = np.empty(0)
    if X.shape == (len(ids), len(names)) and X.dtype.kind in "fiub":
        return ids, _check_matrix(X, ids, names, missing)
    return ids, document_matrix([_document(*pair) for pair in zip(ids, features, strict=True)], names, missing)


def _document(id: str, features: Any) -> Document:
    """A document whose features are checked one by one, for a precise error."""
    plain: Any = dict(features) if isinstance(features, Mapping) else features
    if isinstance(plain, np.ndarray):
        plain = plain.tolist()
    try:
        return Document(id, msgspec.convert(plain, _Features, from_attributes=False))
    except msgspec.ValidationError as error:
        raise _invalid(f"the features of document {id!r}: {error}") from None


def _read_frame(frame: Any, names: Sequence[str]) -> np.ndarray:
    columns = list(frame.columns)
    absent = [name for name in names if name not in columns]
    if absent:
        raise RequestError(422, "wrong_features", f"the data frame has no column {absent[0]!r}")
    try:
        return np.column_stack([np.asarray(frame[name], float) for name in names])
    except (TypeError, ValueError) as error:
        raise _invalid(f"the columns of features are numbers: {error}") from None


def _check_matrix(X: np.ndarray, ids: Sequence[str], names: Sequence[str], missing: bool) -> Matrix:
    if X.shape != (len(ids), len(names)):
        raise RequestError(422, "wrong_features", f"the documents should have {len(names)} features each")
    if X.dtype.kind not in "fiub":
        raise _invalid(f"features are numbers, not of type {X.dtype}")
    with np.errstate(over="ignore"):  # overflow is refused below
        X = np.ascontiguousarray(X, np.float32)
    if not np.isfinite(X).all():
        infinite = np.argwhere(np.isinf(X))
        if len(infinite):
            i, j = infinite[0].tolist()
            where = f"feature {names[j]!r} of document {ids[i]!r}"
            raise RequestError(422, "feature_too_large", f"{where} is too large: the largest number is 3.4e38")
        if not missing:
            i, j = np.argwhere(np.isnan(X))[0].tolist()
            where = f"feature {names[j]!r} of document {ids[i]!r} is missing"
            raise RequestError(422, "wrong_features", f"{where}: only models that fill in missing values accept this")
    return X


def _invalid(message: str) -> RequestError:
    return RequestError(422, "invalid", message)
