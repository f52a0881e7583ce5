"""Requests and answers about sources of feedback, as types: they decode, validate, encode and document themselves."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from ranktron.store.types import FeedbackRequest, Name, Number, RequestBody, ResponseBody


class DeadLetter(RequestBody):
    """A message of a source that cannot be used: where it stands, why, and what it was."""

    place: Number
    reason: Annotated[str, Meta(max_length=3000)]
    body: Annotated[str, Meta(max_length=10_000)] = ""


class IngestRequest(RequestBody):
    """What a source has between two places: feedback, one message a round, with the place of each; and dead letters.

    `start` must be where the source goes on (`GET /v1/sources/{source}`).
    """

    source: Name
    start: Number
    end: Number
    feedback: list[FeedbackRequest]
    places: list[Number]
    dead: Annotated[list[DeadLetter], Meta(max_length=1000)] = field(default_factory=list)

    def __post_init__(self) -> None:
        if len(self.places) != len(self.feedback):
            raise ValueError("each feedback has a place")


class IngestAnswer(ResponseBody):
    """Where the source goes on; how many messages were learnt from, added nothing, and are dead letters."""

    next: int
    learned: int
    repeated: int
    dead: int


class SourceAnswer(ResponseBody):
    """Where a source goes on, 0 if it is not known; and its last dead letters."""

    source: str
    next: int
    dead: list[DeadLetter]
