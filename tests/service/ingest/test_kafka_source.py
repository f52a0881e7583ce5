"""Kafka, as the broker inside confluent-kafka speaks it: each message is learnt from once, and the offsets are ours."""

from types import SimpleNamespace

import pytest

from ranktron import DataError
from ranktron.service.ingest.kafka_source import KafkaPartition, KafkaTopic
from ranktron.service.ingest.sources import ingest
from tests.service.ingest.test_ingestion import GAINS, Direct, made, model, shown_events


def read_all(client, address, batch=4):
    """Reads all partitions, as a reader does that has just been started."""
    with KafkaTopic(address) as topic:
        return [ingest(client, "shop", each, GAINS, batch) for each in topic.partitions]


def test_each_message_is_learnt_once_and_a_new_reader_goes_on_from_our_offsets(talk, broker):
    made(talk)
    lines = shown_events(talk, 12)
    address = broker.topic("once", lines)
    done = read_all(Direct(talk), address)
    assert [each.messages for each in done] == [14, 13, 0, 0]
    assert [each.next for each in done] == [14, 13, 0, 0]
    assert not any(each.dead for each in done)
    version, before = talk.ask("GET", "/v1/rankers/shop")["version"], model(talk)
    assert version >= 12
    assert sum(each.messages for each in read_all(Direct(talk), address)) == 0
    assert model(talk) == before
    broker.topic("once", [*shown_events(talk, 1)[:1], "nonsense"])
    done = read_all(Direct(talk), address)
    assert [(each.messages, each.learned, each.dead) for each in done[:2]] == [(1, 1, 0), (1, 0, 1)]
    with KafkaTopic(address) as topic:
        assert Direct(talk).source(topic.partitions[1].name)["dead"][0]["body"] == "nonsense"


def test_a_reader_and_a_service_that_are_killed_go_on(serving, tmp_path, broker):
    models = []
    for name in ("whole", "killed"):
        talk = serving(tmp_path / name).__enter__()
        made(talk)
        address = broker.topic(f"reader-{name}", shown_events(talk, 12))
        while True:
            try:
                read_all(Direct(talk, lambda count: "killed" if name == "killed" else None), address, batch=3)  # noqa: B023
                break
            except KeyboardInterrupt:  # the batch was written, and the reader does not know
                talk.crash()
                talk = serving(tmp_path / name).__enter__()
        models.append((model(talk), talk.ask("GET", "/v1/rankers/shop")["version"]))
        talk.__exit__()
    assert models[0] == models[1]


def test_a_batch_that_ends_in_the_middle_of_what_was_fetched_is_gone_on_with(broker):
    with KafkaTopic(broker.topic("ahead", [f"m{i}" for i in range(20)])) as topic:
        first, second = topic.partitions[:2]
        assert [message.body for message in first.read(0)] == [f"m{i}".encode() for i in range(0, 20, 2)]
        assert [message.offset for message in first.read(7)] == [7, 8, 9]
        assert [message.offset for message in first.read(2)] == [2, 3, 4, 5, 6, 7, 8, 9]  # back again
        assert next(second.read(3)).body == b"m7"
        assert [(message.offset, message.next) for message in second.read(8)] == [(8, 9), (9, 10)]
        broker.topic("ahead", ["more", "and more"])
        assert [message.body for message in first.read(10)] == [b"more"]
        with pytest.raises(DataError, match="ends at 11, before 12"):
            list(first.read(12))


class Shortened:
    """A consumer of a partition whose first messages Kafka has deleted."""

    def __init__(self, begin, end):
        self.begin, self.end, self.at = begin, end, None

    async def beginning_offsets(self, partitions):
        return dict.fromkeys(partitions, self.begin)

    async def end_offsets(self, partitions):
        return dict.fromkeys(partitions, self.end)

    def seek(self, _partition, place):
        self.at = place

    def resume(self, _partition):
        """Nothing has to be done."""

    async def position(self, _partition):
        return self.at

    async def getmany(self, partition, **_options):
        first, self.at = self.at, self.end
        return {partition: [SimpleNamespace(offset=each, value=b"{}") for each in range(first, self.end)]}


def test_messages_that_were_deleted_unread_are_named(broker):
    with KafkaTopic(broker.topic("deleted", ["one"])) as topic:
        topic.consumer, real = Shortened(5, 7), topic.consumer
        source = KafkaPartition(topic, topic.partitions[0]._partition, "deleted")
        gone, *others = source.read(2)
        assert gone == (2, 5, b"", "messages 2 to 4 were deleted by Kafka before they were read")
        assert [message.offset for message in others] == [5, 6]
        fresh = KafkaPartition(topic, topic.partitions[0]._partition, "fresh")
        assert [message.offset for message in fresh.read(0)] == [5, 6]  # nobody had read anything
        topic.consumer = real


def test_addresses_and_settings_are_checked(broker):
    for address in ("kafka://broker:9092", "kafka:///topic", "kafka://broker/a/b"):
        with pytest.raises(DataError, match="is given as kafka://broker:9092/topic"):
            KafkaTopic(address)
    with pytest.raises(DataError, match="'password' is not a Kafka setting"):
        KafkaTopic("kafka://broker:9092/topic", {"password": "x"})
    with pytest.raises(DataError, match="a TLS file cannot be read"):
        KafkaTopic("kafka://broker:9092/topic", {"cafile": "/nowhere"})
    with pytest.raises(DataError, match="cannot be read"), KafkaTopic("kafka://127.0.0.1:1/topic"):
        pass
