"""Many processes at one address: whichever is asked, a ranking can be answered, and the leader alone learns."""

import json
import os
import signal
import time
import urllib.error
import urllib.request

import pytest

from ranktron.service.auth import Tokens, new_token
from ranktron.service.replication.workers import WorkerTokens
from ranktron.service.service import RankingService

DOCUMENTS = [{"id": "a", "features": [1.0]}, {"id": "b", "features": [3.0]}]


def ask(url, path, body=None, method="POST"):
    """The answer, on a connection of its own, and whether a follower gave it."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read()), answer.headers.get("ranktron-lag") is not None


def children(number):
    """The processes that a process has started and that run."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == number and state != "Z":
            found.append(int(name))
    return found


@pytest.mark.slow
def test_any_process_ranks_and_any_takes_the_feedback(Program, tmp_path):
    with Program(tmp_path, "--workers", "2") as program:
        ask(program.url, "/v1/rankers/shop", {"features": ["price"]}, "PUT")
        told, by, deadline = set(), set(), time.monotonic() + 120.0
        while by != {True, False} or len(told) < 20:
            assert time.monotonic() < deadline
            shown, followed = ask(program.url, "/v1/rankers/shop/rank", {"documents": DOCUMENTS})
            by.add(followed)
            assert shown["round"] not in told
            labels = {"round": shown["round"], "labels": {"a": 0, "b": 1}}
            answer, _ = ask(program.url, "/v1/rankers/shop/feedback", labels)
            told.add(shown["round"])
            assert answer["version"] == len(told)
        (worker,) = children(program.process.pid)
        program.stop(signal.SIGKILL)
        while os.path.exists(f"/proc/{worker}") and time.monotonic() < deadline:  # it does not outlive the leader
            with open(f"/proc/{worker}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    break
            time.sleep(0.05)
        assert time.monotonic() < deadline
    service = RankingService(tmp_path)
    assert service.live("shop").version == len(told)
    service.journal.close()


def test_the_processes_of_a_server_have_a_token_of_their_own():
    token, line = new_token("shop", ["rank"])
    tokens = WorkerTokens(Tokens([line]))
    assert tokens.holder(tokens.secret).may("admin")
    assert not tokens.holder(token).may("admin")
    assert tokens.holder("guess") is tokens.holder("é") is None
    assert (len(tokens), tokens.required) == (1, True)
    assert not WorkerTokens(Tokens([])).required
