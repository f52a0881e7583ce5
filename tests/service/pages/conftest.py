"""A service on a port of its own, with the search page, and a client that speaks to it."""

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request

import pytest
import uvicorn

from ranktron.service.auth import Tokens
from ranktron.service.config import Config
from ranktron.service.demo.routes import search_routes
from ranktron.service.demo.search import Index
from ranktron.service.demo.standard_library import standard_library
from ranktron.service.http.app import application
from ranktron.service.service import RankingService


class Service:
    """A server in a thread; `ask` sends JSON and gives status and JSON."""

    def __init__(self, folder, index, tokens=(), port=0, **settings):
        self.folder, self.index, self.tokens, self.port = folder, index, Tokens(tokens), port
        self.config = Config(**settings)

    def __enter__(self):
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,))
        self.thread.start()
        assert started.wait(60)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        return self

    def __exit__(self, *error):
        self.server.should_exit = True
        self.thread.join(60)
        assert not self.thread.is_alive()

    def _run(self, started):
        async def serve():
            self.running = RankingService(self.folder, self.config)
            app = application(self.running, self.tokens, search_routes(self.index, self.tokens))
            settings = uvicorn.Config(app, port=self.port, log_level="error", timeout_graceful_shutdown=1)
            self.server = uvicorn.Server(settings)
            serving = asyncio.create_task(self.server.serve())
            while not self.server.started and not serving.done():
                await asyncio.sleep(0.01)
            started.set()
            await serving

        asyncio.run(serve())

    def ask(self, method, path, body=None, token=None, content=None):
        data = content if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.address + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        return status, json.loads(text) if text else None

    def done(self, method, path, body=None, token=None):
        status, answer = self.ask(method, path, body, token)
        assert status == 200, answer
        return answer


@pytest.fixture(scope="session")
def index():
    return Index(standard_library())


@pytest.fixture
def start(tmp_path, index):
    """Starts a service; keyword arguments as those of `Service`."""
    running = []

    def start(**given):
        service = Service(given.pop("folder", tmp_path / "state"), given.pop("index", index), **given)
        running.append(service.__enter__())
        return service

    yield start
    for service in running:
        if service.thread.is_alive():
            service.__exit__()


@pytest.fixture
def service(start):
    return start()


@pytest.fixture
def eventually():
    """Waits until something holds."""

    def eventually(holds, seconds=20.0):
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it did not come to that"
            time.sleep(0.05)

    return eventually
