"""What many servers cost, in one run: requests a second, a follower's lag, a failover, carried rounds, ingestion.

    python -m benchmarks.servers                                        # tables, five minutes
    python -m benchmarks.servers --json > docs/results/servers.json     # what docs/many-servers.md shows
    python -m benchmarks.servers --quick                                # whether it works, in a minute

Servers are real processes (`ranktron serve`), at 127.0.0.1. They share the machine's cores with one process that asks,
and with PostgreSQL: where that has to wait for a core, so do they. It sends bytes that were made before, and reads
nothing of an answer but its length; what it takes itself is measured, too (`client_ms`). Lists are 100 documents x 50
features; feedback has the labels of two documents.
"""

import argparse
import asyncio
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path

import numpy as np
from confluent_kafka import Producer

from benchmarks import carried
from benchmarks.serving import FEATURES, Answerer, Client, body, load, make, request
from docs.servers import TABLES
from ranktron.service import client as service_client
from ranktron.service.ingest.kafka_source import KafkaTopic
from ranktron.service.ingest.sources import JsonLinesFile, ingest
from ranktron.service.sealing_keys import new_key, write_keys
from tests.service.postgres_server import PostgresServer

CLIENTS, SLICES, BATCH = (1, 8, 64, 256), 4, 100
ENVIRONMENT = {"RANKTRON_MAX_CONNECTIONS_PER_ADDRESS": "1000", "RANKTRON_MAX_OPEN": "1000000"}
_VERSION = re.compile(rb'"version":(\d+)')


class Effort:
    """How much is measured."""

    def __init__(self, quick):
        self.seconds, self.answers, self.failovers = (0.8, 2_000, 1) if quick else (4.0, 12_000, 5)
        self.lag_seconds, self.lag_answers = (1.0, 3_000) if quick else (6.0, 30_000)
        self.events, self.carried = (2_000, 1) if quick else (20_000, 4)


class Program:
    """A running `ranktron serve`."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "ranktron", "serve", "--port", "0", *options]
        environment = {**os.environ, **ENVIRONMENT}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        line = self.process.stdout.readline()
        found = re.search(r"at (http://127\.0\.0\.1:(\d+)) ", line)
        assert found, line
        self.url, self.port = found[1], int(found[2])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stop(signal.SIGTERM)

    def stop(self, how):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()
            self.process.stdout.close()

    def processes(self):
        """This one, and those that it has started."""
        found = [self.process.pid]
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                if int(path.read_text().rpartition(")")[2].split()[1]) == self.process.pid:
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    @property
    def busy(self):
        """Seconds of processor time that all of them have had so far."""
        ticks = 0
        for process in self.processes():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


class Asker(Client):
    """One connection that keeps asking, and counts what is refused."""

    refused = 0

    def check(self, head):
        taken = head.startswith(b"http/1.1 200")
        self.refused += not taken
        return taken


class Shop:
    """A ranker at a server: lists to rank, and rounds that wait for their feedback."""

    def __init__(self, port, seed=0):
        self.port, self.rng = port, np.random.default_rng(seed)
        make(port, "shop", features=[f"f{j}" for j in range(FEATURES)])
        contents = [body(self.rng) for _ in range(20)]
        self.lists = [request("/v1/rankers/shop/rank", content) for content in contents]
        carried = [content.replace(b"{", b'{"carry":true,', 1) for content in contents]
        self.carried = [request("/v1/rankers/shop/rank", content) for content in carried]
        small = [json.loads(body(self.rng, 5)) for _ in range(BATCH)]
        self.many = request("/v1/rankers/shop/rank/batch", json.dumps({"requests": small}).encode())

    def next_list(self):
        return self.lists[int(self.rng.integers(len(self.lists)))]

    def next_carried(self):
        return self.carried[int(self.rng.integers(len(self.carried)))]

    def rounds(self, count):
        """Rankings that were shown just now."""
        found, left = [], [self.many] * -(-count // BATCH)
        asker = Asker(self.port, lambda: left.pop() if left else None, lambda answer: found.append(json.loads(answer)))
        load([asker], 60.0)
        return [shown for answer in found for shown in answer["answers"]]

    def answerer(self, count):
        """Feedback to so many rankings."""
        answerer = Answerer("shop")
        for shown in self.rounds(count):
            answerer.on_answer(json.dumps(shown))
        return answerer


def percentiles(seconds):
    """Median and 99th percentile in milliseconds."""
    return {name: round(1e3 * float(np.quantile(seconds, q)), 3) for name, q in (("p50_ms", 0.5), ("p99_ms", 0.99))}


def rate(server, clients, next_request, seconds):
    """Requests a second of so many clients; they connect several times, since workers share connections by chance."""
    latencies, took, refused, before, own = [], 0.0, 0, server.busy, time.process_time()
    for _ in range(SLICES):
        asking = [Asker(server.port, next_request) for _ in range(clients)]
        took += load(asking, seconds / SLICES)
        latencies += [each for client in asking for each in client.latencies]
        refused += sum(client.refused for client in asking)
    count = max(1, len(latencies))
    each = {"clients": clients, "a_second": round(len(latencies) / took, 1), **percentiles(latencies or [0.0])}
    spent = {"server_ms": (server.busy - before) / count, "client_ms": (time.process_time() - own) / count}
    return {**each, **{name: round(1e3 * value, 3) for name, value in spent.items()}, "refused": refused}


def loaded(what, server, effort):
    """Rows of one kind of server: rankings that it keeps, those that clients carry, and feedback."""
    shop = Shop(server.port)
    deadline = time.monotonic() + 60.0
    while len(server.processes()) < 1 + ("workers" in what) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(4.0 if "workers" in what else 0.0)  # workers load their kernels, and get copies
    rate(server, 4, shop.next_list, 1.0)
    for kind, next_request in (("rank", shop.next_list), ("carried", shop.next_carried)):
        for clients in CLIENTS:
            yield {"servers": what, "request": kind, **rate(server, clients, next_request, effort.seconds)}
    for clients in CLIENTS:
        answerer = shop.answerer(effort.answers if clients > 1 else effort.answers // 4)
        yield {"servers": what, "request": "feedback", **rate(server, clients, answerer.next_request, effort.seconds)}


def lag(effort, folder):
    """How far a follower is behind, seen from outside: what was acknowledged before its answer came, and not in it.

    That is more than it is: a ranking's own time, and that of its answer, are in it.
    """
    with Program("--dir", f"{folder}/leader") as leader, Program("--follow", leader.url) as follower:
        shop = Shop(leader.port)
        for clients in (1, 8):
            acknowledged, behind, late = [(-1, 0.0)], [], []
            answerer = shop.answerer(effort.lag_answers)

            def learnt(answer, acknowledged=acknowledged):
                acknowledged.append((int(_VERSION.search(answer)[1]), time.perf_counter()))

            def ranked(answer, acknowledged=acknowledged, behind=behind, late=late):
                version, now = int(_VERSION.findall(answer)[-1]), time.perf_counter()
                lacking = [at for number, at in acknowledged[-2_000:] if number > version]
                behind.append(len(lacking))
                late.append(now - min(lacking) if lacking else 0.0)

            def next_list(answerer=answerer):  # as long as the leader learns
                return shop.next_list() if answerer.waiting else None

            load([Asker(follower.port, shop.next_list) for _ in range(4)], 1.0)
            teaching = [Asker(leader.port, answerer.next_request, learnt) for _ in range(clients)]
            asking = [Asker(follower.port, next_list, ranked) for _ in range(clients)]
            took = load([*teaching, *asking], effort.lag_seconds)
            yield {
                "clients": clients,
                "feedbacks_a_second": round((len(acknowledged) - 1) / took, 1),
                "rankings_a_second": round(len(behind) / took, 1),
                "versions_p50": float(np.quantile(behind, 0.5)),
                "versions_p99": float(np.quantile(behind, 0.99)),
                **percentiles(late),
            }


def failover(effort, folder, address):
    """Seconds from kill -9 of a leader to the first feedback that the one that stood by has acknowledged."""
    with ExitStack() as stack:
        leader = stack.enter_context(Program("--dir", f"{folder}/0", "--journal", address))
        shop = Shop(leader.port)
        seconds = []
        for number in range(1, effort.failovers + 1):
            other = stack.enter_context(Program("--dir", f"{folder}/{number}", "--journal", address))
            answerer = Answerer("shop")
            shop.port = leader.port
            for shown in shop.rounds(1_000):
                answerer.on_answer(json.dumps(shown))
            last = answerer.waiting.pop()
            load([Asker(leader.port, answerer.next_request) for _ in range(8)], 30.0)  # what is to be replayed
            began = time.perf_counter()
            leader.process.kill()
            while not acknowledged(other.port, last):
                time.sleep(0.002)
                assert time.perf_counter() < began + 60.0
            seconds.append(time.perf_counter() - began)
            leader.stop(signal.SIGKILL)
            leader = other
    return {"times": len(seconds), "median_ms": 1e3 * float(np.median(seconds)), "most_ms": 1e3 * max(seconds)}


def acknowledged(port, content):
    asker = Asker(port, lambda: content)
    try:
        load([asker], 0.0)
    except OSError:
        return False
    return not asker.refused


def carrying(effort):
    """Carried rounds beside stored ones: bytes, and processor time without HTTP."""
    carried.REPEATS = effort.carried
    with tempfile.TemporaryDirectory() as folder:
        best, kept = asyncio.run(carried.measured(folder))
    names = ("rank_us", "feedback_us", "rank_bytes", "feedback_bytes")
    kinds = {"stored": False, "carried": True}
    found = {kind: dict(zip(names, map(float, best[each]), strict=True)) for kind, each in kinds.items()}
    found["stored"]["kept_bytes"], found["carried"]["kept_bytes"] = float(kept), 0.0
    return found


def events_of(rounds):
    """A click on the first document of each round, as UBI has it."""
    for shown in rounds:
        about = {"object": {"object_id": shown["ranking"][0]["id"]}}
        yield json.dumps({"query_id": str(shown["round"]), "action_name": "click", "event_attributes": about})


@contextmanager
def json_lines(lines, folder):
    path = Path(folder) / "events.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    yield JsonLinesFile(path)


@contextmanager
def kafka(lines, _folder):
    """A partition of a topic, at the broker inside confluent-kafka, which runs in threads of this process."""
    producer = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "linger.ms": 20, "log_level": 0})
    (broker,) = producer.list_topics(timeout=30).brokers.values()
    for number, line in enumerate(lines):
        producer.produce("events", line, partition=0)
        if number % 1_000 == 999:
            producer.flush()
    assert producer.flush(60) == 0
    with KafkaTopic(f"kafka://{broker.host}:{broker.port}/events") as topic:
        yield topic.partitions[0]


SOURCES = {"JSON lines": json_lines, "Kafka": kafka}


def ingested(effort, folder):
    """Events a second from each source, in batches of 100, each of a round of its own."""
    with Program("--dir", f"{folder}/ingested") as server, service_client.Client(server.url, timeout=60.0) as client:
        shop = Shop(server.port)
        for name, opened in SOURCES.items():
            with opened([*events_of(shop.rounds(effort.events))], folder) as source:
                began, own = time.perf_counter(), time.thread_time()
                done = ingest(client, "shop", source, {"click": 1.0})
                took, own = time.perf_counter() - began, time.thread_time() - own
            assert done.learned == done.messages, done
            yield {
                "source": name,
                "events": done.messages,
                "a_second": round(done.messages / took, 1),
                "reader_ms": round(1e3 * own / done.messages, 4),
            }


def measured(effort, say):
    """All of it, as docs/results/servers.json has it."""
    found = {"date": date.today().isoformat(), "machine": f"{os.cpu_count()} cores ({platform.machine()})", "load": []}
    with tempfile.TemporaryDirectory() as folder:
        ENVIRONMENT["RANKTRON_CARRY_KEYS"] = f"{folder}/keys"
        write_keys(Path(folder, "keys"), [new_key("active", date.today())])
        for what, options in (("one process", []), ("workers 2", ["--workers", "2"])):
            say(what)
            with Program("--dir", f"{folder}/{what}", *options) as server:
                found["load"] += loaded(what, server, effort)
        database = PostgresServer()
        try:
            say("PostgreSQL")
            with Program("--dir", f"{folder}/postgres", "--journal", database.address("load")) as server:
                found["load"] += loaded("PostgreSQL", server, effort)
            say("failover")
            found["failover"] = failover(effort, f"{folder}/failover", database.address("failover"))
        finally:
            database.stop()
        say("follower")
        found["lag"] = [*lag(effort, folder)]
        say("ingestion")
        found["ingest"] = [*ingested(effort, folder)]
    say("carried rounds")
    return {**found, "carried": carrying(effort)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON, as docs/results/servers.json has it")
    parser.add_argument("--quick", action="store_true", help="only see whether it works")
    chosen, began = parser.parse_args(), time.monotonic()
    found = measured(Effort(chosen.quick), lambda what: print(f"{what} …", file=sys.stderr, flush=True))
    print(f"{time.monotonic() - began:.0f} seconds", file=sys.stderr)
    if chosen.json:
        print(json.dumps(found, indent=1))
    else:
        print("\n\n".join(table(found) for table in TABLES.values()))


if __name__ == "__main__":
    main()
