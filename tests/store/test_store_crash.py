"""kill -9 of a process that uses a store: no acknowledged feedback is missing, none was learnt twice, and the weights
are those of the library over the same log, which nobody interrupted.

`RANKTRON_KILLS` says how many times.
"""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import ranktron
from ranktron.store.config import StoreConfig
from ranktron.store.journal.entries import feedback_labels
from ranktron.store.rankers.models import blank_model
from ranktron.store.rankers.recovery import _entry
from ranktron.types import Feedback

KILLS = int(os.environ.get("RANKTRON_KILLS", "30"))
NAMES, DOCUMENTS = ["a", "b", "c", "d"], 6

# Has everything imported and compiled, and forks a process that uses the store whenever it is asked to.
LAUNCHER = """
import os, random, sys, threading
import numpy as np
import ranktron
from ranktron.store.config import StoreConfig

folder, algorithm = sys.argv[1:]
config = StoreConfig(snapshot_every=50, versions=3, remembered=10_000_000)

def tell(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())  # one write: whole or not at all

def user(shop):
    try:
        use(shop, random.Random())
    except BaseException as error:
        tell("failed", repr(error))

def use(shop, chance):
    waiting = []
    while True:
        seed = chance.getrandbits(40)
        X = np.random.default_rng(seed).normal(size=(6, 4)).astype(np.float32)
        ranking = shop.rank(X, [f"d{i}" for i in range(6)])
        tell("shown", ranking.id, seed, ranking.version, ",".join(ranking.items))
        waiting.append((ranking.id, [item for item in ranking.items[:2] if chance.random() < 0.5]))
        while waiting and chance.random() < 0.7:
            id, clicked = waiting[chance.randrange(len(waiting))]
            answer = shop.feedback(id, clicked=clicked)
            tell("told", id, answer.version, ",".join(clicked))
            if chance.random() < 0.9:  # the others are sent twice
                waiting.remove((id, clicked))

with ranktron.open(":memory:") as store:
    shop = store.ranker("shop", features=["a", "b", "c", "d"], algorithm=algorithm, parameters={"k": 2}, scale="none")
    shop.feedback(shop.rank({"x": [1, 2, 3, 4], "y": [4, 3, 2, 1]}).id, clicked=["x"])
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        store = ranktron.open(folder, config=config)
        given = {"features": list("abcd"), "algorithm": algorithm, "parameters": {"k": 2}, "scale": "none"}
        shop = store.ranker("shop", **given)
        threads = [threading.Thread(target=user, args=(shop,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(1)
    tell("started", child)
    os.waitpid(child, 0)
    tell("ended")
"""


def torture(folder, algorithm, kills, seed):
    """Kills processes; the lines that they said."""
    chance, lines = random.Random(seed), []
    command = [sys.executable, "-c", LAUNCHER, str(folder), algorithm]
    launcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(kills):
            launcher.stdin.write("\n")
            launcher.stdin.flush()
            child, wanted = None, chance.randrange(1, 80)
            while True:
                words = launcher.stdout.readline().split(" ")
                assert words != [""], "the launcher has failed"
                if words == ["ended\n"]:
                    break
                if words[0] == "started":
                    child = int(words[1])
                else:
                    lines.append([word.strip() for word in words])
                wanted -= 1
                if wanted <= 0 and child:
                    time.sleep(chance.random() * 0.01)
                    os.kill(child, signal.SIGKILL)
                    wanted = 1_000_000
    finally:
        launcher.stdin.close()
        launcher.wait(timeout=60)
        launcher.stdout.close()
    return lines


def replayed_by_the_library(live, entries, shown):
    """A learner that never knew of any store: each list ranked at its version, learnt in its turn."""
    learner = blank_model(live.definition, live.config).learner()
    weights = [learner.w.copy()]
    for entry in entries:
        seed, version, items = shown[entry.round]
        X = np.random.default_rng(seed).normal(size=(DOCUMENTS, len(NAMES))).astype(np.float32)
        now, learner.w = learner.w, weights[version]
        ranking = learner.rank(X, entry.round)
        learner.w = now
        assert [f"d{item}" for item in ranking.order.tolist()] == items
        labels = feedback_labels(entry)
        top = ranking.order[:2]
        learner.learn(X, ranking, Feedback(top, np.array([labels[f"d{item}"] for item in top.tolist()])))
        weights.append(learner.w.copy())
    return learner


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["pdgd", "topk"])
def test_kills_at_random_moments(tmp_path, algorithm):
    began, seed = time.monotonic(), int(time.time())
    lines = torture(tmp_path, algorithm, KILLS, seed)
    shown, told = {}, {}
    for kind, id, *words in lines:
        assert kind != "failed", (id, words)
        if kind == "shown":
            assert int(id) not in shown, "an id was given out twice"
            shown[int(id)] = int(words[0]), int(words[1]), words[2].split(",")
        else:
            answer = int(words[0]), set(filter(None, words[1].split(",")))
            assert told.setdefault(int(id), answer) == answer, "the same feedback had another answer"
    with ranktron.open(tmp_path, config=StoreConfig(remembered=10_000_000)) as store:
        live, journal = store._engine.live("shop"), store._engine.journal
        found = [(version, _entry.decode(body)) for version, body, _ in journal.entries(live.id)]
        assert [version for version, _ in found] == list(range(1, live.version + 1))
        learnt = {
            entry.round: (version, {id for id, label in feedback_labels(entry).items() if label})
            for version, entry in found
        }
        assert len(learnt) == len(found), "a ranking was learnt from twice"
        assert told.items() <= learnt.items(), "acknowledged feedback is missing"
        if learnt.keys() <= shown.keys():  # else a line was lost with its process
            learner = replayed_by_the_library(live, [entry for _, entry in found], shown)
            assert live.model.to_bytes() == replace(live.model, state=learner.state()).to_bytes()
        took = time.monotonic() - began
        print(f"seed {seed}: {KILLS} kills, {len(shown)} rankings, {len(told)} acknowledged, in {took:.0f} s")
    assert len(told) > KILLS
