"""Entries of the journal: what changes the weights, and what came of it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

decode = msgspec.msgpack.Decoder().decode
encode = msgspec.msgpack.Encoder().encode


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """One line of the journal: something that changes the weights."""

    kind: str
    round: int
    at: float
    body: bytes


class Result(NamedTuple):
    """What came of an entry."""

    learned: bool
    version: int
    loss: float | None = None


class Answered(NamedTuple):
    """A round that has had its feedback."""

    body: bytes
    at: float
    result: Result

    @property
    def labels(self) -> dict[str, float]:
        return told_labels(self.body)


def told_labels(body: bytes) -> dict[str, float]:
    """The labels that an entry of feedback holds, by document."""
    return {document: label for _, label, document in decode(body)}
