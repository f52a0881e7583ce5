"""Feedback from a topic of Kafka: each partition is a source, and its places are Kafka's offsets.

No consumer group is used, and nothing is committed to Kafka: how far a partition was read is kept by the service, in
one transaction with what was learnt from it. So a reader that is killed goes on there, whatever Kafka thinks.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from importlib import import_module
from itertools import islice
from typing import Any, Self
from urllib.parse import urlsplit

from ranktron.errors import DataError, MissingExtra
from ranktron.service.ingest.sources import Message

_SECURITY = ("security_protocol", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password")
_FILES = ("cafile", "certfile", "keyfile")
_WAIT = 500  # milliseconds that Kafka may take to give what it has
_POLL = 20  # milliseconds that Kafka waits at the end of a partition, while others of the same broker wait for it
_AHEAD = 1_000  # messages that are fetched at a time


class KafkaTopic:
    """A topic, read without a consumer group; a context manager, which closes its connections.

    Parameters
    ----------
    address : str
        `kafka://broker:9092/topic`; several brokers are separated by commas.
    settings : dict, optional
        How to connect: `security_protocol`, `sasl_mechanism`, `sasl_plain_username`, `sasl_plain_password` as aiokafka
        has them, and the files `cafile`, `certfile` and `keyfile` for TLS.

    Examples
    --------
    >>> KafkaTopic("kafka://broker:9092")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: a topic of Kafka is named kafka://broker:9092/topic, not 'kafka://broker:9092'
    """

    def __init__(self, address: str, settings: Mapping[str, Any] | None = None) -> None:
        parts = urlsplit(address)
        self.address, self.name = address, parts.path.strip("/")
        if parts.scheme != "kafka" or not parts.netloc or not self.name or "/" in self.name:
            raise DataError(f"a topic of Kafka is named kafka://broker:9092/topic, not {address!r}")
        for name in settings or ():
            if name not in (*_SECURITY, *_FILES):
                raise DataError(f"{name!r} is no setting of Kafka: there are {', '.join((*_SECURITY, *_FILES))}")
        try:
            self._kafka, self._admin = import_module("aiokafka"), import_module("aiokafka.admin")
        except ModuleNotFoundError:
            raise MissingExtra("reading from Kafka", "kafka") from None
        self._options = {"bootstrap_servers": parts.netloc.split(","), **_connecting(settings or {})}
        self._runner = asyncio.Runner()
        self.consumer: Any = None
        self.partitions: list[KafkaPartition] = []

    def __enter__(self) -> Self:
        try:
            self.run(self._connect())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if self.consumer is not None:
            self._runner.run(self.consumer.stop())
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What Kafka answers; a DataError if it refuses, or cannot be reached."""
        try:
            return self._runner.run(work)
        except self._kafka.errors.KafkaError as error:
            raise DataError(f"{self.address} cannot be read: {error}") from None

    async def _connect(self) -> None:
        admin = self._admin.AIOKafkaAdminClient(**self._options)
        try:
            await admin.start()
            cluster = (await admin.describe_cluster())["cluster_id"]
            found = (await admin.describe_topics([self.name]))[0]
        finally:
            await admin.close()
        if found["error_code"]:
            raise DataError(f"there is no topic {self.name!r} at {self.address}")
        fixed = {"group_id": None, "enable_auto_commit": False, "auto_offset_reset": "none", "fetch_max_wait_ms": _POLL}
        self.consumer = self._kafka.AIOKafkaConsumer(isolation_level="read_committed", **fixed, **self._options)
        await self.consumer.start()
        every = [self._kafka.TopicPartition(self.name, each["partition"]) for each in found["partitions"]]
        self.consumer.assign(every)
        self.consumer.pause(*every)  # until it is known where they go on
        identity = hashlib.sha256(f"{cluster}/{self.name}".encode()).hexdigest()[:24]
        self.partitions = [KafkaPartition(self, each, f"kafka-{identity}-{each.partition}") for each in sorted(every)]


class KafkaPartition:
    """One partition: known by its cluster, its topic and its number."""

    def __init__(self, topic: KafkaTopic, partition: Any, name: str) -> None:
        self._topic, self._partition, self.name = topic, partition, name
        self._ahead: deque[Message] = deque()  # all that there is from `_first` to `_next`
        self._first = self._next = -1

    def read(self, place: int) -> Iterator[Message]:
        """The messages from a place on, as far as there are any now."""
        if not 0 <= self._first <= place <= self._next:
            self._ahead.clear()
            self._topic.run(self._seek(place))
        while self._ahead and self._ahead[0].place < place:
            self._ahead.popleft()
        self._first, read = place, 0
        while True:
            yield from islice(self._ahead, read, None)
            read = len(self._ahead)
            self._topic.run(self._fetch())
            if len(self._ahead) == read:
                return

    async def _seek(self, place: int) -> None:
        """Goes to a place; if what was there has been deleted unread, there is a message that says so."""
        consumer, partition = self._topic.consumer, self._partition
        begin = (await consumer.beginning_offsets([partition]))[partition]
        end = (await consumer.end_offsets([partition]))[partition]
        if place > end:
            shorter = f"partition {partition.partition} of {self._topic.address} ends at {end}, before {place}"
            raise DataError(f"{shorter}, up to which it was read: the topic was made anew; give it another name")
        if 0 < place < begin:
            lost = f"messages {place} to {begin - 1} were deleted by Kafka before they were read"
            self._ahead.append(Message(place, begin, b"", lost))
        self._first, self._next = place, max(place, begin)
        consumer.seek(partition, self._next)
        consumer.resume(partition)

    async def _fetch(self) -> None:
        """Fetches more, if there is any."""
        consumer, partition = self._topic.consumer, self._partition
        end = (await consumer.end_offsets([partition]))[partition]
        if await consumer.position(partition) >= end:
            return
        try:
            found = await consumer.getmany(partition, timeout_ms=_WAIT, max_records=_AHEAD)
        except self._topic._kafka.errors.OffsetOutOfRangeError:  # just deleted
            await self._seek(self._next)
            return
        got = [Message(each.offset, each.offset + 1, each.value or b"") for each in found.get(partition, ())]
        self._ahead.extend(got)
        self._next = got[-1].next if got else self._next


def _connecting(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What aiokafka needs to connect."""
    options = {name: settings[name] for name in _SECURITY if name in settings}
    files = {name: settings[name] for name in _FILES if name in settings}
    if files or str(options.get("security_protocol", "")).endswith("SSL"):
        try:
            options["ssl_context"] = import_module("aiokafka.helpers").create_ssl_context(**files)
        except OSError as error:
            raise DataError(f"a file for TLS cannot be read: {error}") from None
    return options
