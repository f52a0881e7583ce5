"""kill -9 at random moments under load: no acknowledged feedback is missing, none was learnt twice, and the weights are
those of the library over the same log, which nobody interrupted.

`RANKTRON_KILLS` says how many times; `make crash` does 2,000.
"""

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import date

import numpy as np
import pytest

from ranktron.service.config import Config
from ranktron.service.sealing_keys import new_key, write_keys
from ranktron.service.service import RankingService
from ranktron.store.journal.entries import feedback_labels
from ranktron.store.rankers.recovery import _entry
from ranktron.training.algorithms import ALGORITHMS
from ranktron.types import Feedback

KILLS = int(os.environ.get("RANKTRON_KILLS", "40"))
CLIENTS, DOCUMENTS, FEATURES = 4, 6, 4
SETTINGS = {"snapshot_every": 50, "versions": 3, "remembered": 10_000_000, "max_open": 100_000}
PARAMETERS = {"k": 2, "seed": 5}

# Has everything imported and compiled, and forks a server whenever it is asked to: a start takes no second then.
LAUNCHER = """
import os, socket, sys, json
from pathlib import Path
import uvicorn
from ranktron.service.http.app import application
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.training.algorithms import ALGORITHMS
import numpy as np
from ranktron.types import Feedback

folder, number, settings, parameters = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
learner = ALGORITHMS["topk"].learner(4, parameters)
X = np.ones((6, 4), np.float32)
shown = learner.rank(X, 0)
learner.learn(X, shown, Feedback(shown.order[:2], np.array([1.0, 0.0])))
listening = socket.socket(fileno=number)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        keys = None
        if "carry_keys" in settings:
            from ranktron.service.sealing_keys import StoredSealingKeys
            keys = StoredSealingKeys(Path(settings["carry_keys"]))
        app = application(RankingService(folder, Config(**settings), carry_keys=keys))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        server.run(sockets=[listening])
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
"""


class User(threading.Thread):
    """Ranks and answers without end, sends again what was not acknowledged, and remembers everything."""

    path = "/v1/rankers/shop"

    def __init__(self, port, seed):
        super().__init__(daemon=True)
        self.port, self.random, self.rng = port, random.Random(seed), np.random.default_rng(seed)
        self.shown, self.acknowledged, self.gone, self.wrong = {}, {}, set(), []
        self.waiting, self.over = [], False
        self.connection = None

    def post(self, path, content):
        """The status and the answer; an error of the connection means that nobody knows what happened."""
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            headers = {"Content-Type": "application/json"}
            self.connection.request("POST", f"{self.path}/{path}", json.dumps(content), headers)
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.connection.close()
            self.connection = None
            raise ConnectionError from None

    def run(self):
        while not self.over or self.waiting:
            try:
                if not self.over:
                    self.rank()
                if self.waiting and (self.over or self.random.random() < 0.8):
                    self.answer(self.random.randrange(len(self.waiting)))
            except ConnectionError:
                time.sleep(0.002)

    def rank(self):
        X = self.rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32)
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        status, answer = self.post("rank", {"documents": documents})
        if status != 200:
            return self.wrong.append((status, answer))
        number = answer["round"]
        assert number not in self.shown
        self.shown[number] = (X, answer)
        labels = {ranked["id"]: float(self.rng.integers(3)) for ranked in answer["ranking"][:2]}
        return self.waiting.append((number, labels))

    def answer(self, which):
        number, labels = self.waiting[which]
        status, answer = self.post("feedback", {"round": number, "labels": labels})
        if status == 410:
            self.gone.add(number)
        elif status != 200:
            self.wrong.append((status, answer))
        elif number in self.acknowledged and self.acknowledged[number] != (labels, answer["version"]):
            self.wrong.append((number, answer, self.acknowledged[number]))
        else:
            self.acknowledged[number] = (labels, answer["version"])
        if self.over or self.random.random() < 0.95:  # the others are sent twice
            self.waiting.pop(which)


class CarryingUser(User):
    """Keeps the rounds for the service: it has nothing to lose with a kill, then."""

    def post(self, path, content):
        if path == "rank":
            return super().post(path, {**content, "carry": True})
        return super().post(path, {**content, "carry": self.shown[content["round"]][1]["carry"]})


def torture(folder, kills, seed=0, kind=User, define=None, settings=SETTINGS):
    """Kills servers, and gives the users when they have nothing left to say."""
    chance = random.Random(seed)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(64)
    arguments = [str(folder), str(listening.fileno()), json.dumps(settings), json.dumps(PARAMETERS)]
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[listening.fileno()],
    )
    users = [kind(listening.getsockname()[1], seed + i) for i in range(CLIENTS)]
    try:
        for kill in range(kills + 1):
            launcher.stdin.write("\n")
            launcher.stdin.flush()
            server = int(launcher.stdout.readline())
            if kill == 0:
                (define or define_ranker)(users[0].port)
                for user in users:
                    user.start()
            if kill < kills:
                wait_for_progress(users, chance)
                os.kill(server, signal.SIGKILL)
        for user in users:
            user.over = True
        for user in users:
            user.join(timeout=60 + kills)  # they still have much to say
            assert not user.is_alive()
        os.kill(server, signal.SIGTERM)
    finally:
        launcher.stdin.close()
        launcher.wait(timeout=30)
        launcher.stdout.close()
        listening.close()
        for user in users:
            if user.connection is not None:
                user.connection.close()
    return users


def wait_for_progress(users, chance):
    """Until there is load again, and then for a moment that nobody can foresee."""
    wanted = sum(len(user.shown) for user in users) + chance.randrange(60)
    start = time.monotonic()
    while sum(len(user.shown) for user in users) < wanted and time.monotonic() < start + 20.0:
        time.sleep(0.002)
    time.sleep(chance.random() * 0.02)


def define_ranker(port, path="/v1/rankers/shop", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = body or {"features": ["a", "b", "c", "d"], "algorithm": "topk", "parameters": PARAMETERS, "scale": "none"}
    connection.request("PUT", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


def replayed_by_the_library(entries, shown):
    """The state of a learner that never knew of any service: each round ranked at its version, learnt in its turn."""
    learner = ALGORITHMS["topk"].learner(FEATURES, PARAMETERS)
    weights = [learner.w.copy()]
    for number, labels in entries:
        X, answer = shown[number]
        now, learner.w = learner.w, weights[answer["version"]]
        ranking = learner.rank(X, number)
        learner.w = now
        scores = ranking.scores[ranking.order].tolist()
        shown_order = [(f"d{item}", score) for item, score in zip(ranking.order, scores, strict=True)]
        assert shown_order == [(ranked["id"], ranked["score"]) for ranked in answer["ranking"]]
        items = np.array([item for item in ranking.order[:2].tolist() if f"d{item}" in labels])
        learner.learn(X, ranking, Feedback(items, np.array([labels[f"d{item}"] for item in items.tolist()])))
        weights.append(learner.w.copy())
    return learner


@pytest.mark.slow
@pytest.mark.parametrize("kind", [User, CarryingUser])
def test_kill_9_at_random_moments(tmp_path, kind):
    started, settings = time.monotonic(), SETTINGS
    kills = KILLS if kind is User else KILLS // 2
    if kind is CarryingUser:
        keys = tmp_path / "keys"
        write_keys(keys, [new_key("active", date(2026, 1, 1))])
        settings = {**SETTINGS, "carry_keys": str(keys)}
    users = torture(tmp_path / "state", kills, seed=int(time.time()), kind=kind, settings=settings)
    counts = check(users, RankingService(tmp_path / "state", Config(**SETTINGS)), kills)
    print(f"{kills} kills, {counts}, in {time.monotonic() - started:.0f} seconds")
    assert kind is User or not any(user.gone for user in users), "a round was lost that its client had"


def check(users, service, kills=KILLS):
    """Checks that all that was acknowledged is there once, and nothing else; what there was of each, in words."""
    assert not [wrong for user in users for wrong in user.wrong]
    shown = {number: turn for user in users for number, turn in user.shown.items()}
    assert len(shown) == sum(len(user.shown) for user in users), "a number was given out twice"
    acknowledged = {number: told for user in users for number, told in user.acknowledged.items()}
    gone = set.union(*(user.gone for user in users))

    live = service.live("shop")
    entries = [(version, _entry.decode(body)) for version, body, _ in service.journal.entries(live.id)]
    service.journal.close()
    assert [version for version, _ in entries] == list(range(1, live.version + 1))
    logged = {entry.round: (feedback_labels(entry), version) for version, entry in entries}
    assert len(logged) == len(entries), "a round was learnt twice"
    assert acknowledged.items() <= logged.items(), "acknowledged feedback is missing"
    assert not gone & logged.keys()

    learner = replayed_by_the_library([(entry.round, feedback_labels(entry)) for _, entry in entries], shown)
    assert live.model.to_bytes() == with_state(live.model, learner)
    assert len(acknowledged) > kills
    lost = f"{len(gone):,} rounds lost with the last milliseconds before a kill"
    return f"{len(shown):,} rankings, {len(acknowledged):,} feedbacks acknowledged, {lost}"


def with_state(model, learner):
    from dataclasses import replace

    return replace(model, state=learner.state()).to_bytes()
