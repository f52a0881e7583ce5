"""How far a call walks: the files and packages whose functions run, with kernels as functions.

`python docs/walks.py` prints it as JSON; `made.py` makes the table of the architecture page from it.
"""

import os

os.environ["NUMBA_DISABLE_JIT"] = "1"  # before numba is imported: kernels are then ordinary functions

import asyncio
import json
import sys
import tempfile
import threading
import warnings
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import msgspec
import numpy as np

import ranktron
from ranktron.cli import main
from ranktron.service.http.app import application
from ranktron.service.service import RankingService
from ranktron.store.types import Definition

ROOT = Path(ranktron.__file__).parent
LISTS = ranktron.synthetic.Separable(documents=6, features=4).rounds(10)


@contextmanager
def noting(files):
    """Notes the file of every function of the package that is called meanwhile, in this thread and in new ones."""

    def note(frame, event, _argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(ROOT)):
            files.add(Path(frame.f_code.co_filename).relative_to(ROOT).as_posix())

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def train(folder):
    ranktron.io.write(LISTS, folder / "lists.txt")
    options = ["--algo", "slam", "--epochs", "1", "--model", str(folder / "slam.model"), "--json"]
    return lambda: command(["train", str(folder / "lists.txt"), *options])


def command(arguments):
    with suppress(SystemExit), redirect_stdout(None):
        main(arguments)


def fit(_folder):
    qid = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
    return lambda: ranktron.TopKRanker(n_epochs=1, random_state=0).fit(LISTS.X, LISTS.labels, qid=qid)


def walk(prepare):
    """The files of the second call: the first one imports."""
    files = set()
    with tempfile.TemporaryDirectory() as folder:
        call = prepare(Path(folder))
        call()
        with noting(files):
            call()
    return files


async def ask(app, path, body):
    """Sends one request to an application, and gives its answer."""
    sent, got = [{"type": "http.request", "body": msgspec.json.encode(body), "more_body": False}], []
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}

    async def receive():
        return sent.pop() if sent else {"type": "http.disconnect"}

    async def send(message):
        got.append(message)

    await app(scope, receive, send)
    return msgspec.json.decode(b"".join(message.get("body", b"") for message in got[1:]))


async def serve():
    """The files of one ranking and its feedback."""
    files = set()
    documents = [{"id": "x", "features": [1, 0]}, {"id": "y", "features": [0, 1]}]
    with tempfile.TemporaryDirectory() as folder:
        async with RankingService(folder) as service:
            app = application(service, None)
            await service.create("shop", Definition(["a", "b"]))
            for noted in (set(), files):
                with noting(noted):
                    shown = await ask(app, "/v1/rankers/shop/rank", {"documents": documents})
                    feedback = {"round": shown["round"], "labels": {"x": 1}}
                    await ask(app, "/v1/rankers/shop/feedback", feedback)
    return files


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # whole numbers overflow on purpose in some kernels
    walks = {"train": walk(train), "fit": walk(fit), "serve": asyncio.run(serve())}
    print(json.dumps({name: sorted(files) for name, files in walks.items()}))
