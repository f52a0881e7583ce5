"""A service in the test's own process, and what it takes to talk to it."""

import asyncio
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
import numpy as np
import psycopg
import pytest

from ranktron.service.auth import Tokens
from ranktron.service.config import Config
from ranktron.service.http.app import application
from ranktron.service.service import RankingService
from ranktron.store.journal.journal import Call, InUseError
from tests.service.postgres_server import PostgresServer, find_programs


class Reply(NamedTuple):
    """What an application answered."""

    status: int
    headers: dict[str, str]
    content: bytes


async def call(app, method, path, content=b"", headers=()):
    """Sends one request to an ASGI application."""
    path, _, query = path.partition("?")
    sent = [{"type": "http.request", "body": content, "more_body": False}]
    got = []
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in dict(headers).items()],
    }

    async def receive():
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message):
        got.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in got[0]["headers"]}
    return Reply(got[0]["status"], headers, b"".join(message.get("body", b"") for message in got[1:]))


class Talk:
    """A client that says what it wants in a few words, and complains unless it gets the status that it expects."""

    def __init__(self, service, tokens=None):
        self.service, self.app = service, application(service, tokens)
        self.runner = asyncio.Runner()

    def __enter__(self):
        self.alive = True
        self.runner.run(self.service.__aenter__())
        return self

    def __exit__(self, *error):
        if self.alive:
            self.runner.run(self.service.stop())
        self.runner.close()

    def written(self):
        """Waits until all that was asked for is on disk, or was refused by it."""

        async def wait():
            await self.service._writer.written(Call(lambda: None), patient=True)

        self.runner.run(wait())

    def crash(self):
        """Ends without a farewell: what waits is written, but there is neither a snapshot nor a last number."""
        self.written()
        self.service.journal.close()
        self.alive = False
        self.runner.close()

    def request(self, method, path, content=b"", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.runner.run(call(self.app, method, path, content, {"host": "localhost", **headers}))

    def ask(self, method, path, json=None, status=200, content=b"", **headers):
        if json is not None:
            content, headers = msgspec.json.encode(json), {"content_type": "application/json", **headers}
        answer = self.request(method, path, content, **headers)
        assert answer.status == status, answer
        if answer.headers["content-type"] != "application/json":
            return answer.content
        told = msgspec.json.decode(answer.content)
        return told if status == 200 else told["error"]["code"]

    def make(self, name="shop", features=3, scale="none", algorithm="topk", **definition):
        """A ranker; without scaling, so that it can be compared with a learner that sees the same features."""
        names = [f"f{j}" for j in range(features)] if isinstance(features, int) else features
        definition = {"features": names, "scale": scale, "algorithm": algorithm, **definition}
        return self.ask("PUT", f"/v1/rankers/{name}", definition)

    def rank(self, X, name="shop", status=200, query="q"):
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(np.asarray(X, float).tolist())]
        return self.ask("POST", f"/v1/rankers/{name}/rank", {"query": query, "documents": documents}, status)

    def tell(self, number, labels, name="shop", status=200):
        return self.ask("POST", f"/v1/rankers/{name}/feedback", {"round": number, "labels": labels}, status)

    def answer(self, shown, grades=(1, 0), name="shop"):
        """Feedback for the first documents of a ranking."""
        labels = {ranked["id"]: grade for ranked, grade in zip(shown["ranking"], grades, strict=False)}
        return self.tell(shown["round"], labels, name)

    def play(self, count, name="shop", seed=0):
        """Ranks lists and answers each; the rounds' numbers."""
        numbers = []
        for X, labels in some_lists(count, seed=seed):
            shown = self.rank(X, name)
            self.answer(shown, [float(labels[int(ranked["id"][1:])]) for ranked in shown["ranking"][:2]], name)
            numbers.append(shown["round"])
        return numbers

    def weights(self, name="shop"):
        return self.service.live(name).weights


def open_service(folder, config, address, **more):
    """A service. PostgreSQL keeps the lock of the one before until it has noticed that its session is gone."""
    late = time.monotonic() + (10.0 if address else 0.0)
    while True:
        try:
            return RankingService(folder, config, address, **more)
        except InUseError:
            if time.monotonic() > late:
                raise
            time.sleep(0.02)


class Serving:
    """Makes services whose journals are in SQLite, or in PostgreSQL where there is a server."""

    def __init__(self, postgres=None):
        self.postgres = postgres

    def __call__(self, folder, tokens=None, **settings):
        """A service that is drained and closed at the end, unless it crashes."""
        patient = {"answer_seconds": 300.0, **settings}  # a busy machine compiles for longer than a request may take
        return Talk(self.service(folder, **patient), tokens)

    def service(self, folder, **settings):
        return open_service(folder, Config(**settings), self.address(folder))

    def address(self, folder):
        return None if self.postgres is None else self.postgres.address(folder)

    def edit(self, folder, statement, *values):
        """Changes a journal behind the back of the service."""
        if self.postgres is None:
            connection = sqlite3.connect(folder / "log.sqlite")
            with connection:
                connection.execute(statement, values)
            connection.close()
        else:
            with psycopg.connect(self.address(folder), autocommit=True) as connection:
                connection.execute(statement.replace("?", "%s"), values)


_serving = Serving()


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, started for the tests; without its programs they are skipped, but not in CI."""
    if find_programs() is None and not os.environ.get("CI"):
        pytest.skip("there is no PostgreSQL server on this machine (Debian: apt-get install postgresql)")
    server = PostgresServer()
    yield server
    server.stop()


class Broker:
    """The broker inside confluent-kafka, in this process: other clients can talk to it."""

    def __init__(self, producer):
        self.producer = producer
        (broker,) = producer.list_topics(timeout=30).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def topic(self, name, lines):
        """Adds lines to a topic, dealt out to two of its partitions; its address."""
        for number, line in enumerate(lines):
            self.producer.produce(name, line, partition=number % 2)
        assert self.producer.flush(30) == 0
        return f"kafka://{self.address}/{name}"


@pytest.fixture(scope="session")
def broker():
    kafka = pytest.importorskip("confluent_kafka")
    pytest.importorskip("aiokafka")
    return Broker(kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0}))


@pytest.fixture
def backend():
    """Where journals are; the tests that are marked with `both` are run with each of the two."""
    return "sqlite"


@pytest.fixture
def serving(backend, request):
    return Serving(request.getfixturevalue("postgres")) if backend == "postgres" else _serving


@pytest.fixture
def talk(tmp_path):
    with _serving(tmp_path / "state") as talk:
        yield talk


@pytest.fixture
def guarded(tmp_path):
    """A service with a token for each scope, and the tokens themselves."""
    from ranktron.service.auth import new_token

    made = {scope: new_token(scope, [scope]) for scope in ("rank", "feedback", "admin")}
    with _serving(tmp_path / "state", Tokens([line for _, line in made.values()])) as talk:
        yield talk, {scope: token for scope, (token, _) in made.items()}


def some_lists(count, documents=6, features=3, seed=0):
    """Lists of which the first feature says how good a document is."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.normal(size=(documents, features)).astype(np.float32)
        yield X, np.clip(np.round(X[:, 0] + 1.0), 0.0, 4.0)


@pytest.fixture
def lists():
    return some_lists


class _Program:
    """A running `ranktron serve`."""

    def __init__(self, folder, *options, **environment):
        command = [sys.executable, "-m", "ranktron", "serve", "--dir", str(folder), *options]
        command += [] if "--port" in options else ["--port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
        )
        self.line = self.process.stdout.readline()
        found = re.search(r"at (http://\S+?:(\d+)) ", self.line)
        assert found, self.line
        self.url, self.port = found[1], int(found[2])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.returncode is None:
            self.stop()

    def stop(self, how=signal.SIGTERM):
        """Ends it; what it had written to its two streams."""
        self.process.send_signal(how)
        return self.process.communicate(timeout=30)

    def raw(self, *pieces, pause=0.0):
        """What comes back for bytes that are sent piece by piece."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=15) as connection:
            for piece in pieces:
                try:
                    connection.sendall(piece)
                except OSError:
                    break
                time.sleep(pause)
            got = b""
            try:
                while part := connection.recv(65536):
                    got += part
                    if b"\r\n\r\n" in got and b"}" in got:
                        break
            except OSError:
                pass
            return got


@pytest.fixture(scope="session")
def Program():
    return _Program
