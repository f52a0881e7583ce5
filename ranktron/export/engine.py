"""What every engine offers, and how numbers are written."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

import numpy as np

from ranktron.errors import DataError
from ranktron.types import Floats, Integers, Matrix


class ExportableRanker(Protocol):
    """What is exported: named features, and how large a score's terms are, of which rounding errors are a share."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def terms(self) -> int: ...

    def magnitude(self, X: Matrix, /) -> Floats: ...


R = TypeVar("R", contravariant=True)


class Engine(Protocol[R]):
    """A target for rankers of one sort: `write` makes its file, `scores` reads the file and scores as the engine does.

    `scales_lists` says whether it can scale features within each list, `fills` whether it knows missing values from 0,
    `lucene` whether neither scores nor features may be negative there, `double` whether it computes in double
    precision.
    """

    @property
    def fills(self) -> bool: ...

    @property
    def scales_lists(self) -> bool: ...

    @property
    def lucene(self) -> bool: ...

    @property
    def double(self) -> bool: ...

    def remarks(self, ranker: R, /) -> list[str]: ...

    def write(self, ranker: R, name: str, store: str | None, /) -> bytes: ...

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers, /) -> Floats: ...


def shortest_single(value: float) -> float:
    """A number as an engine of 32-bit floats reads it, in its shortest decimal form.

    >>> shortest_single(0.1 + 1e-12)
    0.1
    """
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded):
        raise DataError(f"{value:g} does not fit into a 32-bit float: scale the features (--scale) and train again")
    return float(str(rounded))


def as_json(content: Any) -> bytes:
    """JSON for people and machines."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def dot32(columns: list[Matrix], weights: list[float]) -> Floats:
    """Σ_j w_j x_j added up one after the other in 32-bit floats, as a loop over floats in Java does."""
    total = np.zeros(len(columns[0]) if columns else 0, np.float32)
    for column, weight in zip(columns, weights, strict=True):
        total += np.float32(weight) * column
    return total.astype(np.float64)
