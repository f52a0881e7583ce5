"""Sources of feedback, and the client that reads them and sends batches: `ranktron ingest`.

A source has a permanent name, and messages at offsets from which it can be read again: a file of JSON lines, or a
partition of a Kafka topic (`kafka_source`).
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

_IDENTIFYING_BYTES = 4096  # of the first line; they identify a file
_MAX_LINE = 1 << 20  # bytes
_MAX_QUOTED = 2_000  # characters of a message in a dead letter
_MAX_MESSAGES = 10_000  # per batch
_RETRY_SECONDS = 60.0  # for how long an unavailable service is retried
_RETRY_INTERVAL = 0.2  # seconds


class Message(NamedTuple):
    """A message, its offset and the next one's; `error` says why it cannot be used, if the source knows."""

    offset: int
    next: int
    body: bytes
    error: str = ""


class FeedbackSource(Protocol):
    """A permanent name, under which the service stores the next offset, and messages."""

    name: str

    def read(self, offset: int) -> Iterator[Message]:
        """The messages from an offset to the end of the source; stops there."""
        ...


class JsonLinesFile:
    """An append-only file, identified by its device, its inode and a hash of its first line.

    A renamed file keeps its offset; a file that replaces it, even with the same inode, starts at 0.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.jsonl")
    ...     _ = path.write_bytes(b"one\\ntwo\\nthr")
    ...     [(message.offset, message.body) for message in JsonLinesFile(path).read(0)]
    [(0, b'one'), (4, b'two')]
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            with open(self._path, "rb") as file:
                first, status = file.readline(_IDENTIFYING_BYTES), os.fstat(file.fileno())
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from None
        if not first.endswith(b"\n") and len(first) < _IDENTIFYING_BYTES:
            raise DataError(f"{path} has no complete line yet, which is needed to identify it")
        self.name = f"file-{status.st_dev}-{status.st_ino}-{hashlib.sha256(first).hexdigest()[:16]}"

    def read(self, offset: int) -> Iterator[Message]:
        """The complete lines from an offset on; an unfinished last line is left for a later call."""
        with open(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size < offset:
                raise DataError(f"{self._path} was truncated to less than what was read of it: start a new file")
            file.seek(offset)
            while (line := file.readline(_MAX_LINE)).endswith(b"\n"):
                yield Message(offset, offset + len(line), line[:-1])
                offset += len(line)
            if len(line) == _MAX_LINE:
                raise DataError(f"{self._path}: the line at {offset:,} has more than {_MAX_LINE:,} bytes")


def read_event(body: bytes, gains: Mapping[str, float]) -> tuple[int, str, float, str | None] | None:
    """Round, document, gain and `carry` of a UBI event; None if `gains` does not list its action.

    >>> event = b'{"query_id": "7", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}'
    >>> read_event(event, {"click": 1.0})
    (7, 'b', 1.0, None)
    >>> read_event(event, {"purchase": 3.0}) is None
    True
    """
    try:
        event: Any = json.loads(body)
        if not isinstance(event, dict):
            raise DataError("not a JSON object")
        action = str(event.get("action_name"))
        if action not in gains:
            return None
        attributes = event["event_attributes"]
        number, document, carry = event["query_id"], attributes["object"]["object_id"], attributes.get("carry")
    except (ValueError, RecursionError) as error:
        raise DataError(f"not valid JSON: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"missing {error}") from None
    if not (str(number).isascii() and str(number).isdecimal() and len(str(number)) <= 16):
        raise DataError("its query_id is not a round number")
    if not isinstance(document, str | int) or not isinstance(carry, str | None):
        raise DataError("its object_id or its carry is not a string")
    return int(number), str(document), gains[action], carry


@dataclass
class Batch:
    """The messages of one request, from offset `start` to before `end`, joined by round."""

    start: int
    end: int  # grows with each message added
    gains: dict[int, dict[str, float]] = field(default_factory=dict)  # by round and document: the highest gain
    offsets: dict[int, int] = field(default_factory=dict)  # by round: of its first message
    carries: dict[int, str] = field(default_factory=dict)  # by round: the token, where it is sealed
    dead: list[dict[str, Any]] = field(default_factory=list)  # dead letters
    messages: int = 0  # added so far, those without gain included

    def add(self, message: Message, gains: Mapping[str, float], limit: int) -> bool:
        """Adds a message unless the batch is full; whether there is room for another."""
        try:
            if message.error:
                raise DataError(message.error)
            event = read_event(message.body, gains)
        except DataError as error:
            if len(self.dead) >= limit:
                return False
            body = message.body[:_MAX_QUOTED].decode("utf-8", "replace")
            self.dead.append({"place": message.offset, "reason": str(error)[:_MAX_QUOTED], "body": body})
            event = None
        if event is not None and not self._join(message.offset, event, limit):
            return False
        self.end, self.messages = message.next, self.messages + 1
        return self.messages < _MAX_MESSAGES

    def _join(self, offset: int, event: tuple[int, str, float, str | None], limit: int) -> bool:
        number, document, gain, carry = event
        if number not in self.gains and len(self.gains) >= limit:
            return False
        round_gains = self.gains.setdefault(number, {})
        round_gains[document] = max(gain, round_gains.get(document, 0.0))
        self.offsets.setdefault(number, offset)
        if carry is not None:
            self.carries[number] = carry
        return True

    def content(self, source: str) -> dict[str, Any]:
        """The body of the request."""
        carries = self.carries
        feedback = [
            {"round": number, "gains": gains, **({"carry": carries[number]} if number in carries else {})}
            for number, gains in self.gains.items()
        ]
        places = list(self.offsets.values())
        span = {"source": source, "start": self.start, "end": self.end}
        return {**span, "feedback": feedback, "places": places, "dead": self.dead}


class Ingested(NamedTuple):
    """Counts of messages, of items learnt and repeated, and of dead letters; and the source's next offset."""

    messages: int
    learned: int
    repeated: int
    dead: int
    next: int

    def plus(self, other: Ingested) -> Ingested:
        """The sums of both, with the other's next offset."""
        messages, learned, repeated, dead = (a + b for a, b in zip(self[:4], other[:4], strict=True))
        return Ingested(messages, learned, repeated, dead, other.next)


def ingest(
    client: Client, ranker: str, source: FeedbackSource, gains: Mapping[str, float], batch: int = 100
) -> Ingested:
    """Sends a source's messages to a service, from the service's next offset to the source's end."""
    offset = _retry(lambda: client.source(source.name)["next"])
    total = Ingested(0, 0, 0, 0, offset)
    while True:
        part = Batch(offset, offset)
        for message in source.read(offset):
            if not part.add(message, gains, batch):
                break
        if part.end == offset:
            return total
        answer = _send(client, ranker, source.name, part)
        offset = answer["next"]
        total = total.plus(Ingested(part.messages, answer["learned"], answer["repeated"], answer["dead"], offset))


def _send(client: Client, ranker: str, source: str, batch: Batch) -> dict[str, Any]:
    """Sends a batch with retries. If one is refused, the source's offset tells whether an earlier one was written."""

    def attempt() -> dict[str, Any]:
        try:
            return client.ingest(ranker, batch.content(source))
        except ServiceError as error:
            if error.code != "wrong_place":
                raise
            offset = client.source(source)["next"]
            if offset != batch.end:
                raise
            return {"next": offset, "learned": 0, "repeated": 0, "dead": 0}  # written by an earlier attempt

    answer: dict[str, Any] = _retry(attempt)
    return answer


def _retry(request: Callable[[], Any]) -> Any:
    """Repeats a request while the service is unavailable, for up to `_RETRY_SECONDS`."""
    began = monotonic()
    while True:
        try:
            return request()
        except ServiceError as error:
            if error.status not in (0, 503) or monotonic() - began > _RETRY_SECONDS:
                raise
            sleep(_RETRY_INTERVAL)
