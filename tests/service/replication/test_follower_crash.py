"""kill -9 of followers, of their leader and of its database at random moments under load, while users ask followers.

A follower that was started again has the leader's weights to the bit: every list that was shown is the library's at
that version, score for score. No acknowledged feedback is missing, none was learnt twice, no number was given out
twice. `RANKTRON_KILLS` says how often: a fifth of it is done here with each database.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

from ranktron.service.config import Config
from ranktron.service.service import RankingService
from tests.service.test_crash import KILLS, PARAMETERS, SETTINGS, check, define_ranker, wait_for_progress
from tests.service.test_postgres_crash import PatientUser

KILLS = max(8, KILLS // 5)
FOLLOWERS = 2

# Has everything imported and compiled, and forks a leader or a follower whenever it is told to.
LAUNCHER = """
import asyncio, os, signal, socket, sys, json, time
import numpy as np
import uvicorn
from ranktron.service.http.app import application
from ranktron.service.config import Config
from ranktron.service.replication.follower import Follower
from ranktron.service.replication.follower_app import FollowerApplication
from ranktron.service.replication.follower import LeaderClient
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.service.auth import Tokens
from ranktron.errors import RanktronError
from ranktron.training.algorithms import ALGORITHMS
from ranktron.types import Feedback

folder, address, numbers, settings, parameters = sys.argv[1], sys.argv[2] or None, *map(json.loads, sys.argv[3:])
learner = ALGORITHMS["topk"].learner(4, parameters)
X = np.ones((6, 4), np.float32)
shown = learner.rank(X, 0)
learner.learn(X, shown, Feedback(shown.order[:2], np.array([1.0, 0.0])))
sockets = [socket.socket(fileno=number) for number in numbers]
leader = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
signal.signal(signal.SIGCHLD, signal.SIG_IGN)

async def serve(app, listening):
    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off")
    await uvicorn.Server(config).serve(sockets=[listening])

async def lead():
    while True:
        try:
            service = RankingService(folder, Config(**settings), address)
            service.start()
            break
        except RanktronError:  # the one that was killed is not quite dead, or the database is away
            await asyncio.sleep(0.01)
    await serve(application(service), sockets[0])
    await service.stop()

async def follow(listening):
    follower = Follower(LeaderClient(leader), Config(**settings))
    following = asyncio.create_task(follower.run())
    await follower.synchronised.wait()
    await serve(FollowerApplication(follower, Tokens([]), Telemetry()), listening)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        number = int(line)
        asyncio.run(follow(sockets[number]) if number else lead())
        os._exit(0)
    print(child, flush=True)
"""


class Fleet:
    """A leader, number 0, and those who follow it."""

    def __init__(self, folder, address, chance):
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=64) for _ in range(FOLLOWERS + 1)]
        self.ports = [each.getsockname()[1] for each in self.sockets]
        numbers = [each.fileno() for each in self.sockets]
        arguments = [str(folder), address or "", *map(json.dumps, (numbers, SETTINGS, PARAMETERS))]
        self.chance = chance
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=numbers,
        )
        self.processes = [self.start(number) for number in range(FOLLOWERS + 1)]

    def start(self, number):
        self.launcher.stdin.write(f"{number}\n")
        self.launcher.stdin.flush()
        return int(self.launcher.stdout.readline())

    def kill(self, *numbers):
        for number in numbers:
            os.kill(self.processes[number], signal.SIGKILL)
        for number in numbers:
            self.processes[number] = self.start(number)

    def kill_follower(self):
        self.kill(1 + self.chance.randrange(FOLLOWERS))

    def kill_leader(self):
        self.kill(0)

    def kill_all(self):
        self.kill(*range(FOLLOWERS + 1))

    def stop(self):
        for number, process in reversed(list(enumerate(self.processes))):
            os.kill(process, signal.SIGKILL if number else signal.SIGTERM)

    def close(self):
        self.launcher.stdin.close()
        self.launcher.wait(timeout=30)
        self.launcher.stdout.close()
        for each in self.sockets:
            each.close()


def torture(folder, address, postgres, kills, seed):
    """Lets things happen, and gives the users when they have nothing left to say."""
    chance = random.Random(seed)
    fleet = Fleet(folder, address, chance)
    users = [PatientUser(fleet.ports[port], seed + i) for i, port in enumerate((1, 2, 1, 2, 0))]
    events = [fleet.kill_follower] * 4 + [fleet.kill_leader] * 2 + [fleet.kill_all]
    if postgres is not None:
        events.append(lambda: (postgres.kill(), postgres.start()))
    try:
        define_ranker(fleet.ports[0])
        for user in users:
            user.start()
        for kill in range(kills):
            wait_for_progress(users, chance)
            events[kill % len(events)]()
        for user in users:
            user.over = True
        for user in users:
            user.join(timeout=60 + kills)
            assert not user.is_alive()
        fleet.stop()
    finally:
        fleet.close()
        for user in users:
            if user.connection is not None:
                user.connection.close()
    return users


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_followers_and_leaders_are_killed(backend, tmp_path, serving):
    started, folder = time.monotonic(), tmp_path / "state"
    users = torture(folder, serving.address(folder), serving.postgres, KILLS, seed=int(time.time()))
    deadline = time.monotonic() + 30.0
    while True:
        try:
            service = RankingService(folder, Config(**SETTINGS), serving.address(folder))
            break
        except Exception:  # the leader is about to end
            assert time.monotonic() < deadline
            time.sleep(0.05)
    counts = check(users, service, KILLS)
    followed = sum(len(user.shown) for user in users[:-1])
    print(f"{backend}: {KILLS} kills, {counts}, {followed:,} asked of followers, in {time.monotonic() - started:.0f} s")
