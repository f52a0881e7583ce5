"""Sources of feedback, as a reader sees them: messages at places, which can be read again from any place.

A source is whatever has a name that stays and a `read`: `JsonLinesFile`, and a partition of a topic (`kafka_source`).
Another one is a file more.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

from ranktron.errors import DataError
from ranktron.service.client import Client, ServiceError

_BEGINNING = 4096  # bytes of the first line by which a file is known
_LONGEST = 1 << 20  # bytes of a line
_QUOTED = 2_000  # characters of a message that become part of a dead letter
_MESSAGES = 10_000  # that become one batch, at most
_PATIENCE = 60.0  # seconds that a service may be away
_PAUSE = 0.2


class Message(NamedTuple):
    """One message, where it stands, and where the next one does; `wrong` is why it cannot be used, if that is known."""

    place: int
    next: int
    body: bytes
    wrong: str = ""


class FeedbackSource(Protocol):
    """What is read: a name by which the service knows how far it has been read, and messages from a place on."""

    name: str

    def read(self, place: int) -> Iterator[Message]:
        """The messages from a place on, as far as there are any now."""
        ...


class JsonLinesFile:
    """A file to which lines are added. It is known by its identity on the disk and a hash of its first line.

    So a file that was renamed goes on where it was, and one that took its place, or its number on the disk, is another.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.jsonl")
    ...     _ = path.write_bytes(b"one\\ntwo\\nthr")
    ...     [(message.place, message.body) for message in JsonLinesFile(path).read(0)]
    [(0, b'one'), (4, b'two')]
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            with open(self._path, "rb") as file:
                first, found = file.readline(_BEGINNING), os.fstat(file.fileno())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from None
        if not first.endswith(b"\n") and len(first) < _BEGINNING:
            raise DataError(f"{path} has no whole line yet: it is not known which file it is")
        self.name = f"file-{found.st_dev}-{found.st_ino}-{hashlib.sha256(first).hexdigest()[:16]}"

    def read(self, place: int) -> Iterator[Message]:
        """The whole lines from a place on; a line without an end is left for later."""
        with open(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size < place:
                raise DataError(f"{self._path} is shorter than what was read of it: it was cut off; move it away")
            file.seek(place)
            while (line := file.readline(_LONGEST)).endswith(b"\n"):
                yield Message(place, place + len(line), line[:-1])
                place += len(line)
            if len(line) == _LONGEST:
                raise DataError(f"{self._path}: the line at {place:,} has more than {_LONGEST:,} bytes")


def read_event(body: bytes, gains: Mapping[str, float]) -> tuple[int, str, float, str | None] | None:
    """Round, document, gain and `carry` of an event of UBI; None if its action is none of those that count.

    >>> event = b'{"query_id": "7", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}'
    >>> read_event(event, {"click": 1.0})
    (7, 'b', 1.0, None)
    >>> read_event(event, {"purchase": 3.0}) is None
    True
    """
    try:
        event: Any = json.loads(body)
        if not isinstance(event, dict):
            raise DataError("it is no JSON object")
        action = str(event.get("action_name"))
        if action not in gains:
            return None
        about = event["event_attributes"]
        number, document, carry = event["query_id"], about["object"]["object_id"], about.get("carry")
    except (ValueError, RecursionError) as error:
        raise DataError(f"it is not valid JSON: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"it has no {error}") from None
    if not (str(number).isascii() and str(number).isdecimal() and len(str(number)) <= 16):
        raise DataError("its query_id is not the number of a round")
    if not isinstance(document, str | int) or not isinstance(carry, str | None):
        raise DataError("its object_id or its carry is no text")
    return int(number), str(document), gains[action], carry


@dataclass
class Batch:
    """What is sent at a time: what each round has gained, where it was first said, and what cannot be used."""

    start: int
    end: int
    gains: dict[int, dict[str, float]] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    carries: dict[int, str] = field(default_factory=dict)
    dead: list[dict[str, Any]] = field(default_factory=list)
    messages: int = 0

    def add(self, message: Message, gains: Mapping[str, float], most: int) -> bool:
        """Adds a message, if there is room for it: more about a round that is there already is joined with it."""
        try:
            if message.wrong:
                raise DataError(message.wrong)
            event = read_event(message.body, gains)
        except DataError as error:
            if len(self.dead) >= most:
                return False
            quoted = message.body[:_QUOTED].decode("utf-8", "replace")
            self.dead.append({"place": message.place, "reason": str(error)[:_QUOTED], "body": quoted})
            event = None
        if event is not None and not self._join(message.place, event, most):
            return False
        self.end, self.messages = message.next, self.messages + 1
        return self.messages < _MESSAGES

    def _join(self, place: int, event: tuple[int, str, float, str | None], most: int) -> bool:
        number, document, gain, carry = event
        if number not in self.gains and len(self.gains) >= most:
            return False
        known = self.gains.setdefault(number, {})
        known[document] = max(gain, known.get(document, 0.0))
        self.places.setdefault(number, place)
        if carry is not None:
            self.carries[number] = carry
        return True

    def content(self, source: str) -> dict[str, Any]:
        """The request."""
        carries = self.carries
        feedback = [
            {"round": number, "gains": gains, **({"carry": carries[number]} if number in carries else {})}
            for number, gains in self.gains.items()
        ]
        places = list(self.places.values())
        span = {"source": source, "start": self.start, "end": self.end}
        return {**span, "feedback": feedback, "places": places, "dead": self.dead}


class Ingested(NamedTuple):
    """What a reader has done: messages, those learnt from, those that added nothing, dead letters, and its place."""

    messages: int
    learned: int
    repeated: int
    dead: int
    next: int

    def plus(self, other: Ingested) -> Ingested:
        """Both together, at the place of the other."""
        messages, learned, repeated, dead = (a + b for a, b in zip(self[:4], other[:4], strict=True))
        return Ingested(messages, learned, repeated, dead, other.next)


def ingest(
    client: Client, ranker: str, source: FeedbackSource, gains: Mapping[str, float], batch: int = 100
) -> Ingested:
    """Sends all that a source has now to a service; what it has learnt from before is not sent again."""
    place = _patiently(lambda: client.source(source.name)["next"])
    total = Ingested(0, 0, 0, 0, place)
    while True:
        part = Batch(place, place)
        for message in source.read(place):
            if not part.add(message, gains, batch):
                break
        if part.end == place:
            return total
        answer = _send(client, ranker, source.name, part)
        place = answer["next"]
        total = total.plus(Ingested(part.messages, answer["learned"], answer["repeated"], answer["dead"], place))


def _send(client: Client, ranker: str, source: str, part: Batch) -> dict[str, Any]:
    """Sends a batch; if nobody knows whether it was written, the service is asked."""

    def attempt() -> dict[str, Any]:
        try:
            return client.ingest(ranker, part.content(source))
        except ServiceError as error:
            if error.code != "wrong_place":
                raise
            place = client.source(source)["next"]
            if place != part.end:
                raise
            return {"next": place, "learned": 0, "repeated": 0, "dead": 0}  # an attempt before was written after all

    answer: dict[str, Any] = _patiently(attempt)
    return answer


def _patiently(ask: Callable[[], Any]) -> Any:
    """What a service answers, also one that is away for a while."""
    began = monotonic()
    while True:
        try:
            return ask()
        except ServiceError as error:
            if error.status not in (0, 503) or monotonic() - began > _PATIENCE:
                raise
            sleep(_PAUSE)
