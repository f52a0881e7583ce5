"""Journal entries, each a change of a ranker, and their results."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

decode = msgspec.msgpack.Decoder().decode
encode = msgspec.msgpack.Encoder().encode

FeedbackItems = list[tuple[int, float, str]]
"""Positions, labels and ids of documents, by position."""

decode_feedback = msgspec.msgpack.Decoder(FeedbackItems).decode


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """An entry of the journal: a change of the weights.

    `kind` is the type of `body`: "feedback", the labels of a round; "gains", gains of a round after its first answer
    (`LaterGains`); "full", a list with all labels; "model", a new model; "forget", the model after a person was
    forgotten; "nothing", which replaces a damaged or erased entry.
    """

    kind: str
    round: int
    at: float
    body: bytes


REPLACING = ("model", "forget")
"""The kinds of entries that replace the model."""


class FeedEntry(NamedTuple):
    """An entry as sent to followers, with the round that it answers."""

    version: int
    body: bytes
    shown: bytes | None


class LaterGains(msgspec.Struct, array_like=True, frozen=True):
    """Gains of a round after its first answer: totals before and now, the round, and its first feedback.

    It is self-contained, since earlier entries and the round may have been pruned when it is replayed.
    """

    before: FeedbackItems
    now: FeedbackItems
    shown: bytes
    first: bytes

    @property
    def new(self) -> FeedbackItems:
        """The increase of each document's gain."""
        pairs = zip(self.before, self.now, strict=True)
        return [(place, label - earlier, document) for (_, earlier, _), (place, label, document) in pairs]


_later = msgspec.msgpack.Decoder(LaterGains)


class Result(NamedTuple):
    """The result of applying an entry."""

    learned: bool
    version: int
    loss: float | None = None


class Answered(NamedTuple):
    """The answer to a round: its present labels, and its first feedback if later gains have changed them."""

    body: bytes
    at: float
    result: Result
    first: bytes = b""

    @property
    def labels(self) -> dict[str, float]:
        return {document: label for _, label, document in decode_feedback(self.body)}

    @property
    def first_labels(self) -> dict[str, float]:
        return {document: label for _, label, document in decode_feedback(self.first or self.body)}


def decode_gains(body: bytes) -> LaterGains:
    """The body of an entry of later gains."""
    return _later.decode(body)


def feedback_labels(entry: JournalEntry) -> dict[str, float]:
    """The labels of a round after an entry of feedback or of later gains, by document."""
    items = decode_gains(entry.body).now if entry.kind == "gains" else decode_feedback(entry.body)
    return {document: label for _, label, document in items}
