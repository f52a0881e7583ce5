"""How far a call walks: the files whose functions run, and how many calls of Python functions that takes.

`python -m benchmarks.walks` prints both for a training, a fit, and a ranking with its feedback; `--files` prints the
names, too. Counted is the second call of each, with the threads that it waits for: the service's profile is installed
before the journal's writer starts. Files are counted with kernels as Python functions, calls with compiled ones.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path

import msgspec
import numpy as np

import ranktron
from ranktron.cli import main as command_line
from ranktron.service.http.app import application
from ranktron.service.service import RankingService
from ranktron.store.messages import Definition

PACKAGE = Path(ranktron.__file__).parent
LISTS = ranktron.synthetic.Separable(documents=6, features=4).rounds(10)
WALKS = {"train": "`ranktron train --algo slam`", "fit": "`HingePerceptron().fit`", "serve": "`/rank` with `/feedback`"}


class Profile:
    """Counts calls of the package's functions by their files, while it is on, in this thread and in newer ones."""

    def __init__(self):
        self.calls, self.on = Counter(), False

    def __call__(self, frame, event, _argument):
        if self.on and event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            self.calls[Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()] += 1

    @contextmanager
    def installed(self):
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield self
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def counting(self):
        self.on = True
        try:
            yield
        finally:
            self.on = False


def train(folder):
    ranktron.io.write(LISTS, folder / "lists.txt")
    options = ["--algo", "slam", "--epochs", "1", "--model", str(folder / "slam.model"), "--json"]

    def call():
        with suppress(SystemExit), redirect_stdout(None):
            command_line(["train", str(folder / "lists.txt"), *options])

    return call


def fit(_folder):
    qid = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
    return lambda: ranktron.HingePerceptron(n_epochs=1, random_state=0).fit(LISTS.X, LISTS.labels, qid=qid)


def walk(prepare):
    """The calls of the second call of all: the first one imports."""
    with tempfile.TemporaryDirectory() as folder, Profile().installed() as profile:
        call = prepare(Path(folder))
        call()
        with profile.counting():
            call()
    return profile.calls


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


async def rank_and_learn(app):
    documents = [{"id": "x", "features": [1, 0]}, {"id": "y", "features": [0, 1]}]
    shown = await ask(app, "/v1/rankers/shop/rank", {"documents": documents})
    await ask(app, "/v1/rankers/shop/feedback", {"round": shown["round"], "labels": {"x": 1}})


async def serve():
    """The calls of one ranking and its feedback, those of the thread that writes the journal included."""
    with tempfile.TemporaryDirectory() as folder, Profile().installed() as profile:
        async with RankingService(folder) as service:
            app = application(service, None)
            await service.create("shop", Definition(["a", "b"]))
            await rank_and_learn(app)
            with profile.counting():
                await rank_and_learn(app)
    return profile.calls


def count():
    """{walk: {file: calls}}, in this process."""
    return {"train": walk(train), "fit": walk(fit), "serve": asyncio.run(serve())}


def counted(compiled):
    """The same in another process, with compiled kernels or with kernels as functions."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "" if compiled else "1"}
    program = [sys.executable, "-m", "benchmarks.walks", "--count"]
    done = subprocess.run(
        program, capture_output=True, text=True, check=True, env=environment, cwd=Path(__file__).parent.parent
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walks", description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="print the names of the files")
    parser.add_argument("--count", action="store_true", help="print {walk: {file: calls}} of this process as JSON")
    asked = parser.parse_args()
    if asked.count:
        warnings.simplefilter("ignore")  # whole numbers overflow on purpose in some kernels
        return print(json.dumps(count()))
    walked, called = counted(compiled=False), counted(compiled=True)
    print("| call | files | Python calls | calls of kernels included |\n|---|---|---|---|")
    for name, what in WALKS.items():
        totals = (sum(each[name].values()) for each in (called, walked))
        print(f"| {what} | {len(walked[name])} | {' | '.join(f'{total:,}' for total in totals)} |")
        if asked.files:
            print("\n".join(f"    {calls:6} {file}" for file, calls in sorted(walked[name].items())))
    return None


if __name__ == "__main__":
    main()
