"""An open round as it is kept in memory and on disk until its feedback comes: one small piece of bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import numpy as np
from msgspec import Raw, Struct

from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.pending_rounds import EVERY, PendingRound
from ranktron.types import Features, Floats, Matrix

_NO_DRIFT = np.zeros(0)


class StoredRound(Struct, array_like=True, frozen=True):
    """What was shown, and the pending round that its feedback will be learnt from.

    `rows` has the first shown documents, at least as many as the pending round needs; `weights` those that ranked, or,
    where a map makes more features of each, `parts` what each feature added to each score.
    """

    number: int
    at: float
    version: int
    explored: bool
    query: str
    size: int
    ids: list[str]
    scores: bytes
    rows: bytes
    weights: bytes
    shown: bytes
    drift: bytes
    constant: float
    propensities: bytes | None
    shape: tuple[int, ...]
    parts: bytes = b""
    columns: bytes = b""

    @property
    def k(self) -> int:
        """How many of the shown documents may be labelled."""
        return len(self.shown) // 8

    def features(self) -> Matrix:
        return np.frombuffer(self.rows, np.float32).reshape(len(self.ids), -1)

    def shown_scores(self) -> Floats:
        return np.frombuffer(self.scores)

    def contributions(self) -> Floats | None:
        """What each feature added to each score; None where a ranker's scores are no such sums."""
        if self.parts:
            return np.frombuffer(self.parts).reshape(len(self.ids), -1)
        return self.features() * np.frombuffer(self.weights) if self.weights else None

    def pending(self, mapped: Callable[[Matrix], Features]) -> PendingRound:
        """The pending round, over the bytes of this one; arrays are copied where kernels may write them."""
        propensities = None
        if self.propensities is not None:
            propensities = np.frombuffer(bytearray(self.propensities)).reshape(self.shape)
        rows = mapped(self.features()[: self.k].copy())
        if isinstance(rows, Sparse):  # columns as learners keep them in their pending rounds
            rows = replace(rows, columns=rows.columns.astype(np.int32))
        return PendingRound(
            rows,
            np.frombuffer(bytearray(self.shown)),
            self.number,
            self.size,
            np.frombuffer(bytearray(self.drift)) if self.drift else _NO_DRIFT,
            self.constant,
            propensities,
            np.frombuffer(bytearray(self.columns), np.int32) if self.columns else EVERY,
        )


class _Head(Struct, array_like=True, frozen=True):
    number: int
    at: float


class ShownRound(Struct, array_like=True, frozen=True, gc=False):
    """What a replay needs of a stored round: the same places, those that it passes over left as they are."""

    number: int
    at: float
    version: Raw
    explored: bool
    query: Raw
    size: int
    ids: Raw
    scores: Raw
    rows: bytes
    weights: Raw
    shown: bytes
    drift: bytes
    constant: float
    propensities: bytes | None
    shape: tuple[int, ...]


_head = msgspec.msgpack.Decoder(_Head)
_shown = msgspec.msgpack.Decoder(ShownRound)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(StoredRound)


def pack(round: StoredRound) -> bytes:
    return _encoder.encode(round)


def unpack(data: bytes) -> StoredRound:
    return _decoder.decode(data)


def shown_at(data: bytes) -> float:
    """When a round was shown, without unpacking the rest."""
    return _head.decode(data).at


def read_number(data: bytes) -> int:
    """The number of a round, without unpacking the rest."""
    return _head.decode(data).number


def read_shown(data: bytes) -> ShownRound:
    """A stored round without what only people look at."""
    return _shown.decode(data)
