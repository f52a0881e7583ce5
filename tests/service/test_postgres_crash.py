"""kill -9 of leaders and of PostgreSQL at random moments under load, and leaders that sleep through a takeover.

No acknowledged feedback is missing, none was learnt twice, no number was given out twice, and the weights are those of
the library over the same log. `RANKTRON_KILLS` says how often: a quarter of it is done here.
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
from tests.service.postgres_server import OWNER
from tests.service.test_crash import CLIENTS, KILLS, PARAMETERS, SETTINGS, User, check, define_ranker, wait_for_progress

KILLS = max(8, KILLS // 4)

# Has everything imported and compiled, and forks a server for each folder that it is told, which says when it leads.
LAUNCHER = """
import asyncio, os, signal, socket, sys, json
import uvicorn
from ranktron.service.http.app import application
from ranktron.service.config import Config
from ranktron.service.replication.leadership import Leadership
from ranktron.service.service import RankingService
from ranktron.training.algorithms import ALGORITHMS
import numpy as np
from ranktron.types import Feedback

address, number, settings, parameters = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4])
learner = ALGORITHMS["topk"].learner(4, parameters)
X = np.ones((6, 4), np.float32)
shown = learner.rank(X, 0)
learner.learn(X, shown, Feedback(shown.order[:2], np.array([1.0, 0.0])))
listening = socket.socket(fileno=number)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
async def main(folder):
    async def begin(_service):
        print(os.getpid(), flush=True)

    leadership = Leadership(lambda: RankingService(folder, Config(**settings), address), application)
    leadership.settled.set()  # the database may be away at the start, too
    leading = asyncio.create_task(leadership.run(begin))
    while leadership.service is None:
        await asyncio.sleep(0.005)
    config = uvicorn.Config(leadership, log_level="error", access_log=False, lifespan="off")
    await uvicorn.Server(config).serve(sockets=[listening])
    leading.cancel()
    await asyncio.wait([leading])

for line in sys.stdin:
    if os.fork() == 0:
        asyncio.run(main(line.strip()))
        os._exit(0)
"""


class PatientUser(User):
    """One who sends again what a server could not take just now."""

    def post(self, path, content):
        status, answer = super().post(path, content)
        if status == 503:
            self.connection.close()  # another server may have taken over
            self.connection = None
            raise ConnectionError(answer["error"]["code"])
        return status, answer


class Cluster:
    """Servers of one database, of which one leads, and what may happen to them."""

    def __init__(self, folder, postgres, listening, chance):
        self.folder, self.postgres, self.chance, self.count = folder, postgres, chance, 0
        arguments = [postgres.address(folder), str(listening.fileno()), json.dumps(SETTINGS), json.dumps(PARAMETERS)]
        self.launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[listening.fileno()],
        )
        self.leader = self.elect()

    def elect(self):
        """Another server, once it leads; it may have a folder that was used before."""
        self.count += 1
        self.launcher.stdin.write(f"{self.folder / str(self.count % 3)}\n")
        self.launcher.stdin.flush()
        return int(self.launcher.stdout.readline())

    def kill_leader(self):
        os.kill(self.leader, signal.SIGKILL)
        self.leader = self.elect()

    def kill_database(self):
        self.postgres.kill()
        time.sleep(self.chance.random() * 0.05)
        self.postgres.start()

    def kill_both(self):
        self.postgres.kill()
        os.kill(self.leader, signal.SIGKILL)
        self.postgres.start()
        self.leader = self.elect()

    def put_to_sleep(self):
        """The leader sleeps, its session ends, another one is elected; it wakes up and knows nothing of that."""
        sleeper = self.leader
        os.kill(sleeper, signal.SIGSTOP)
        self.postgres.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{OWNER}'")
        self.leader = self.elect()
        os.kill(sleeper, signal.SIGCONT)
        time.sleep(self.chance.random() * 0.2)
        os.kill(sleeper, signal.SIGKILL)

    def close(self):
        self.launcher.stdin.close()
        self.launcher.wait(timeout=30)
        self.launcher.stdout.close()


def torture(folder, postgres, kills, seed):
    """Lets things happen, and gives the users when they have nothing left to say."""
    chance = random.Random(seed)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        cluster = Cluster(folder, postgres, listening, chance)
        users = [PatientUser(listening.getsockname()[1], seed + i) for i in range(CLIENTS)]
        events = (
            [cluster.kill_leader] * 3 + [cluster.kill_database] * 2 + [cluster.put_to_sleep] * 2 + [cluster.kill_both]
        )
        try:
            define_ranker(users[0].port)
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
            os.kill(cluster.leader, signal.SIGTERM)
        finally:
            cluster.close()
            for user in users:
                if user.connection is not None:
                    user.connection.close()
    return users


@pytest.mark.slow
def test_leaders_and_databases_are_killed(tmp_path, postgres):
    started = time.monotonic()
    users = torture(tmp_path, postgres, KILLS, seed=int(time.time()))
    deadline = time.monotonic() + 30.0
    while True:
        try:
            service = RankingService(tmp_path / "last", Config(**SETTINGS), postgres.address(tmp_path))
            break
        except Exception:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    counts = check(users, service)
    print(f"{KILLS} kills, {counts}, in {time.monotonic() - started:.0f} seconds")
