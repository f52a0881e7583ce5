"""What every engine offers, and how numbers are written."""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.export.ranker import LinearRanker
from ranktron.types import Floats, Integers, Matrix


class Engine(Protocol):
    """A target: `write` makes its file, `scores` reads the file and scores lists as the engine does."""

    @property
    def keeps_constant(self) -> bool:
        """Whether a score may have a constant term."""

    @property
    def scales_lists(self) -> bool:
        """Whether it can scale features within each list."""

    @property
    def lucene(self) -> bool:
        """Whether neither scores nor features may be negative."""

    @property
    def double(self) -> bool:
        """Whether it computes in double precision."""

    def why_folded(self, ranker: LinearRanker) -> str:
        """Why the engine cannot hold the normalisers; empty if it can."""

    def remarks(self, ranker: LinearRanker) -> list[str]:
        """What whoever uses the file should know of it."""

    def write(self, ranker: LinearRanker, name: str, store: str | None) -> bytes:
        """The file."""

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        """The scores that the engine gives these documents."""


def single(value: float) -> float:
    """A number as an engine of 32-bit floats reads it, in its shortest decimal form.

    >>> single(0.1 + 1e-12)
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
