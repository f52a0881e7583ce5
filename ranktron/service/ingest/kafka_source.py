"""Feedback from a Kafka topic: each partition is a source with Kafka's offsets.

There is no consumer group, and no offset is committed to Kafka: the service stores the offset of each partition in one
transaction with the feedback read up to it.
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
_FETCH_TIMEOUT = 500  # milliseconds for a fetch that has messages to return
_LONG_POLL = 20  # milliseconds of the broker's long poll at the end of a partition, which blocks its other partitions
_FETCH_SIZE = 1_000  # messages


class KafkaTopic:
    """A topic, read without a consumer group. A context manager: it closes its connections on exit.

    Parameters
    ----------
    address : str
        `kafka://broker:9092/topic`; several brokers are separated by commas.
    settings : dict, optional
        aiokafka's `security_protocol`, `sasl_mechanism`, `sasl_plain_username` and `sasl_plain_password`, and the paths
        `cafile`, `certfile` and `keyfile` for TLS.

    Examples
    --------
    >>> KafkaTopic("kafka://broker:9092")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: a Kafka topic is given as kafka://broker:9092/topic, not 'kafka://broker:9092'
    """

    def __init__(self, address: str, settings: Mapping[str, Any] | None = None) -> None:
        parts = urlsplit(address)
        self.address, self.name = address, parts.path.strip("/")
        if parts.scheme != "kafka" or not parts.netloc or not self.name or "/" in self.name:
            raise DataError(f"a Kafka topic is given as kafka://broker:9092/topic, not {address!r}")
        for name in settings or ():
            if name not in (*_SECURITY, *_FILES):
                raise DataError(f"{name!r} is not a Kafka setting: choose from {', '.join((*_SECURITY, *_FILES))}")
        try:
            self._kafka, self._admin = import_module("aiokafka"), import_module("aiokafka.admin")
        except ModuleNotFoundError:
            raise MissingExtra("reading from Kafka", "kafka") from None
        self._options = {"bootstrap_servers": parts.netloc.split(","), **_connection_options(settings or {})}
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

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Runs a coroutine of aiokafka's; errors of Kafka become DataErrors."""
        try:
            return self._runner.run(coroutine)
        except self._kafka.errors.KafkaError as error:
            raise DataError(f"{self.address} cannot be read: {error}") from None

    async def _connect(self) -> None:
        admin = self._admin.AIOKafkaAdminClient(**self._options)
        try:
            await admin.start()
            cluster = (await admin.describe_cluster())["cluster_id"]
            description = (await admin.describe_topics([self.name]))[0]
        finally:
            await admin.close()
        if description["error_code"]:
            raise DataError(f"there is no topic {self.name!r} at {self.address}")
        fixed = {
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "fetch_max_wait_ms": _LONG_POLL,
        }
        self.consumer = self._kafka.AIOKafkaConsumer(isolation_level="read_committed", **fixed, **self._options)
        await self.consumer.start()
        partitions = [self._kafka.TopicPartition(self.name, each["partition"]) for each in description["partitions"]]
        self.consumer.assign(partitions)
        self.consumer.pause(*partitions)  # until the service has named their next offsets
        identity = hashlib.sha256(f"{cluster}/{self.name}".encode()).hexdigest()[:24]
        self.partitions = [
            KafkaPartition(self, each, f"kafka-{identity}-{each.partition}") for each in sorted(partitions)
        ]


class KafkaPartition:
    """A partition, named by its cluster, topic and number."""

    def __init__(self, topic: KafkaTopic, partition: Any, name: str) -> None:
        self._topic, self._partition, self.name = topic, partition, name
        self._buffer: deque[Message] = deque()  # messages fetched from `_first` to `_next`; `read` drops older ones
        self._first = self._next = -1  # offsets; -1 before the first `_seek`

    def read(self, offset: int) -> Iterator[Message]:
        """The messages from an offset to the partition's end; stops there."""
        if not 0 <= self._first <= offset <= self._next:
            self._buffer.clear()
            self._topic.run(self._seek(offset))
        while self._buffer and self._buffer[0].offset < offset:
            self._buffer.popleft()
        self._first, count = offset, 0
        while True:
            yield from islice(self._buffer, count, None)
            count = len(self._buffer)
            self._topic.run(self._fetch())
            if len(self._buffer) == count:
                return

    async def _seek(self, offset: int) -> None:
        """Seeks to an offset; adds a dead letter if messages from there on were deleted before they were read."""
        consumer, partition = self._topic.consumer, self._partition
        begin = (await consumer.beginning_offsets([partition]))[partition]
        end = (await consumer.end_offsets([partition]))[partition]
        if offset > end:
            message = f"partition {partition.partition} of {self._topic.address} ends at {end}, before {offset}"
            raise DataError(f"{message}, up to which it was read: the topic was recreated; use a new name for it")
        if 0 < offset < begin:
            reason = f"messages {offset} to {begin - 1} were deleted by Kafka before they were read"
            self._buffer.append(Message(offset, begin, b"", reason))
        self._first, self._next = offset, max(offset, begin)
        consumer.seek(partition, self._next)
        consumer.resume(partition)

    async def _fetch(self) -> None:
        """Fetches more messages, unless the position is the partition's end."""
        consumer, partition = self._topic.consumer, self._partition
        end = (await consumer.end_offsets([partition]))[partition]
        if await consumer.position(partition) >= end:
            return
        try:
            records = await consumer.getmany(partition, timeout_ms=_FETCH_TIMEOUT, max_records=_FETCH_SIZE)
        except self._topic._kafka.errors.OffsetOutOfRangeError:  # deleted a moment ago
            await self._seek(self._next)
            return
        fetched = [Message(each.offset, each.offset + 1, each.value or b"") for each in records.get(partition, ())]
        self._buffer.extend(fetched)
        self._next = fetched[-1].next if fetched else self._next


def _connection_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Connection options of aiokafka."""
    options = {name: settings[name] for name in _SECURITY if name in settings}
    files = {name: settings[name] for name in _FILES if name in settings}
    if files or str(options.get("security_protocol", "")).endswith("SSL"):
        try:
            options["ssl_context"] = import_module("aiokafka.helpers").create_ssl_context(**files)
        except OSError as error:
            raise DataError(f"a TLS file cannot be read: {error}") from None
    return options
