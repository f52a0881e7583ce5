"""Entries of the journal: what changes the weights, and what came of it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

decode = msgspec.msgpack.Decoder().decode
encode = msgspec.msgpack.Encoder().encode

FeedbackItems = list[tuple[int, float, str]]
"""Places, labels and names of documents, in the order of the places."""

decode_feedback = msgspec.msgpack.Decoder(FeedbackItems).decode


class JournalEntry(msgspec.Struct, array_like=True, frozen=True):
    """One line of the journal: something that changes the weights.

    Its `kind` says what `body` is. "feedback": the labels of a round. "gains": what a round that was answered before
    has gained since (`LaterGains`). "full": a list with all labels. "model": another model. "nothing": it was damaged.
    """

    kind: str
    round: int
    at: float
    body: bytes


class FeedEntry(NamedTuple):
    """An entry as servers that follow get it, with the round that it answers."""

    version: int
    body: bytes
    shown: bytes | None


class LaterGains(msgspec.Struct, array_like=True, frozen=True):
    """What the documents of a round had gained before, and have now; the round, and the feedback that came first.

    The entries and the round of before may be gone when it is replayed: it holds all that is needed of them.
    """

    before: FeedbackItems
    now: FeedbackItems
    shown: bytes
    first: bytes

    @property
    def new(self) -> FeedbackItems:
        """What each document has gained in between."""
        pairs = zip(self.before, self.now, strict=True)
        return [(place, label - earlier, document) for (_, earlier, _), (place, label, document) in pairs]


_later = msgspec.msgpack.Decoder(LaterGains)


class Result(NamedTuple):
    """What came of an entry."""

    learned: bool
    version: int
    loss: float | None = None


class Answered(NamedTuple):
    """A round that has had its feedback: what is known of it now, and what was first, if it has gained more since."""

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
    """What an entry of later gains tells."""
    return _later.decode(body)


def feedback_labels(entry: JournalEntry) -> dict[str, float]:
    """The labels that a round has after an entry of feedback or of later gains, by document."""
    items = decode_gains(entry.body).now if entry.kind == "gains" else decode_feedback(entry.body)
    return {document: label for _, label, document in items}
