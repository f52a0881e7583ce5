"""Parses features from JSON into a matrix, without creating Python numbers.

A request's features stay raw JSON until its ranker, which knows their number, is found; then one kernel parses them
all. Anything but lists of plain numbers is parsed again by msgspec, which gives precise errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw

from ranktron.data.io.decimals import (
    DOT,
    LETTER_E,
    MINUS,
    ZERO,
    Bytes,
    parse_decimal,
    round_to_single,
    scale_decimal,
)
from ranktron.kernels.jit import jit
from ranktron.store.errors import RequestError
from ranktron.store.messages import Document
from ranktron.types import Matrix

_OPEN, _CLOSE, _COMMA, _SPACE = ord("["), ord("]"), ord(","), ord(" ")
_MAX_DIGITS = 18  # characters of a number without an exponent, point included, whose mantissa fits into 64 bits
MAX_CHUNK = 8_192  # numbers parsed before yielding to other requests: about 0.1 ms, by name about 0.7 ms
_decoder = msgspec.json.Decoder(list[float | None] | dict[str, float | None])


@jit
def _fill_matrix(data: Bytes, X: Matrix) -> bool:
    """Fills X from consecutive lists of numbers; false if anything else occurs.

    The JSON must be well-formed. Digits are parsed inline, since passing an array to another kernel costs as much as
    parsing a number; only long numbers and those with an exponent are worth a call.
    """
    p = 0
    for i in range(X.shape[0]):
        if data[p] != _OPEN:
            return False
        p += 1
        for j in range(X.shape[1]):
            while data[p] <= _SPACE:
                p += 1
            start = p
            p += data[p] == MINUS
            mantissa, first, point = 0, p, p
            while True:
                digit = int(data[p]) - ZERO
                if 0 <= digit <= 9:
                    mantissa = mantissa * 10 + digit
                elif data[p] == DOT:
                    point = p + 1
                else:
                    break
                p += 1
            if p == first:
                return False
            if data[p] | 32 == LETTER_E or p - first > _MAX_DIGITS:
                value, sure, p = parse_decimal(data, start)
            else:
                value, sure = scale_decimal(mantissa, point - p if point > first else 0, True)
                value = -value if start < first else value
            x, right = round_to_single(value, sure)
            if not right:
                return False
            X[i, j] = x
            while data[p] <= _SPACE:
                p += 1
            if data[p] != (_COMMA if j + 1 < X.shape[1] else _CLOSE):
                return False
            p += 1
    return True


def document_matrix(documents: Sequence[Document], names: Sequence[str], missing: bool = False) -> Matrix:
    """The features of documents, in the order of the names; with `missing`, null and absent ones become NaN.

    >>> document_matrix([Document("a", [1.0, 2.0]), Document("b", Raw(b'{"y": 4, "x": 3}'))], ["x", "y"])
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    m, d = len(documents), len(names)
    X: Matrix = np.empty((m, d), np.float32)
    features = [document.features for document in documents]
    if isinstance(features[0], np.ndarray):
        parsed_rows = [row for row in features if isinstance(row, np.ndarray) and row.shape == (d,)]
        if len(parsed_rows) < m:
            raise RequestError(422, "wrong_features", f"the documents should have {d} features each")
        X = np.stack(parsed_rows)
        if not missing and np.isnan(X).any():
            raise RequestError(
                422, "wrong_features", "a feature is missing: only models that fill in missing values accept this"
            )
        return X
    if not isinstance(features[0], Raw) or not _fill_matrix(_join_bytes(features), X):
        rows = [_row(document, names, missing) for document in documents]
        with np.errstate(over="ignore"):  # overflow is checked below
            X = np.array(list(chain.from_iterable(rows)), float).astype(np.float32).reshape(m, d)
    if not (np.isfinite(X) | np.isnan(X)).all():
        i, j = (int(places[0]) for places in np.nonzero(np.isinf(X)))
        where = f"feature {names[j]!r} of document {documents[i].id!r}"
        raise RequestError(422, "feature_too_large", f"{where} is too large: the largest number is 3.4e38")
    return X


def check_ids(ids: Sequence[str]) -> None:
    """Refuses duplicate document ids."""
    if len(set(ids)) < len(ids):
        duplicate = first_repeated(ids)
        raise RequestError(422, "duplicate_document", f"two documents have the id {duplicate!r}: ids must be unique")


def first_repeated(names: Sequence[str]) -> str:
    """The first name that occurs twice.

    >>> first_repeated(["a", "b", "a"])
    'a'
    """
    seen: set[str] = set()
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def _join_bytes(features: Sequence[Any]) -> Bytes:
    """The raw features of all documents, with a terminator after the last."""
    return np.frombuffer(b"".join([*features, b"]"]), np.uint8)


def _row(document: Document, names: Sequence[str], missing: bool) -> Sequence[float | None]:
    raw: Any = document.features
    try:
        features: list[float | None] | dict[str, float | None] = _decoder.decode(raw) if isinstance(raw, Raw) else raw
    except msgspec.ValidationError as error:
        raise RequestError(422, "invalid", f"the features of document {document.id!r}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(400, "malformed", f"the features of document {document.id!r}: {error}") from None
    if isinstance(features, list):
        if len(features) != len(names):
            complaint = f"document {document.id!r} should have {len(names)} features, and has {len(features)}"
            raise RequestError(422, "wrong_features", complaint)
        row: Sequence[float | None] = features
    else:
        absent = [] if missing else [name for name in names if name not in features]
        unknown = features.keys() - set(names)
        if absent or unknown:
            problem = f"lacks {absent[0]!r}" if absent else f"has {min(unknown)!r}"
            complaint = f"document {document.id!r} {problem}; every feature must be given once"
            raise RequestError(422, "wrong_features", complaint)
        row = [features.get(name) for name in names]
    if not missing and None in row:
        complaint = (
            f"the features of document {document.id!r}: Expected `float`, got `null`; only a model that was trained "
            "with a rule for missing values (nan) takes them"
        )
        raise RequestError(422, "invalid", complaint)
    return row


def check_comparable(X: Matrix, kernel: Any) -> None:
    """Refuses documents whose kernel values overflow: learning from one would make all scores infinite."""
    if kernel is None:
        return
    with np.errstate(all="ignore"):
        doubled = 2.0 * X.astype(kernel.dtype)  # headroom for other documents of the same size
        finite = np.isfinite(kernel(doubled, doubled)).all()
    if not finite:
        raise RequestError(422, "feature_too_large", "a feature is too large for the kernel: scale the features")
