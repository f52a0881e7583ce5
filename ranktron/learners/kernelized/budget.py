"""The budget of a kernel learner: how many documents it may remember, and how much memory they may take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import Floats, Integers

UNLIMITED = 1 << 40
BYTES_PER_DOCUMENT = 250
"""Bytes that a document takes beside its features: its coefficient, the lagged sum of it, its place in the table."""


@dataclass(frozen=True)
class Budget:
    """Limits the documents of a support, by number and by bytes. One document is always allowed.

    Parameters
    ----------
    documents : int >= 1
        The maximum number of documents.
    bytes : float
        The maximum memory, in bytes.
    beside : float
        Bytes per document in addition to its features.
    square : bool
        Whether there is a matrix of documents × documents (`Projection`).

    Examples
    --------
    >>> Budget(bytes=1e6).documents_of(136 * 4.0), Budget(bytes=1e6, square=True).documents_of(136 * 4.0)
    (1259, 307)
    """

    documents: int = UNLIMITED
    bytes: float = np.inf
    beside: float = BYTES_PER_DOCUMENT
    square: bool = False

    def __post_init__(self) -> None:
        if self.documents < 1:
            raise DataError(f"the budget must be at least one document, not {self.documents}")
        if not self.bytes > 0.0:
            raise DataError(f"the budget must be a positive number of bytes, not {self.bytes}")

    def documents_of(self, size: float) -> int:
        """How many documents are allowed if the features of each take `size` bytes."""
        if self.bytes == np.inf:
            return self.documents
        each = size + self.beside
        found = (np.sqrt(each**2 + 32.0 * self.bytes) - each) / 16.0 if self.square else self.bytes / each
        return max(1, min(self.documents, int(found)))

    def allows(self, count: Integers, size: Floats) -> npt.NDArray[np.bool_]:
        """Whether this many documents are allowed, with features of `size` bytes in total."""
        held = size + self.beside * count + (8.0 * count.astype(np.float64) ** 2 if self.square else 0.0)
        return (count <= 1) | ((count <= self.documents) & (held <= self.bytes))
