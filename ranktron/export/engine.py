"""The protocol of engines, and how numbers are formatted."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeVar

import numpy as np

from ranktron.errors import DataError
from ranktron.types import Floats, Integers, Matrix


class ExportableRanker(Protocol):
    """A ranker in exportable form: named features, and the magnitude of a score's terms, which bounds rounding."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def terms(self) -> int: ...

    def magnitude(self, X: Matrix, /) -> Floats: ...


R = TypeVar("R", contravariant=True)


class Engine(Protocol[R]):
    """A target for one kind of ranker: `write` encodes the file, `scores` reads it and scores as the engine does.

    `scales_lists`: it can scale features within each query; `handles_missing`: it distinguishes missing values from 0;
    `lucene`: it is built on Lucene, where scores and features must not be negative; `double`: it computes in double
    precision.
    """

    @property
    def handles_missing(self) -> bool: ...

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
    """The shortest decimal that an engine with 32-bit floats reads as this number.

    >>> shortest_single(0.1 + 1e-12)
    0.1
    """
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    if not np.isfinite(rounded):
        raise DataError(f"{value:g} does not fit into a 32-bit float: scale the features (--scale) and train again")
    return float(str(rounded))


def as_json(content: Any) -> bytes:
    """Indented JSON."""
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def dot32(columns: list[Matrix], weights: list[float]) -> Floats:
    """Σ_j w_j x_j, summed sequentially in 32-bit floats like a loop over floats in Java."""
    total = np.zeros(len(columns[0]) if columns else 0, np.float32)
    for column, weight in zip(columns, weights, strict=True):
        total += np.float32(weight) * column
    return total.astype(np.float64)
