"""A log that has lost something says so: bits flip, files end early, older copies come back. `RANKTRON_FLIPS` says how
many bits of each file are flipped, and at how many places it is cut off.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys

import pytest

from ranktron import DataError
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.journal.journal import CAPACITY

FLIPS = int(os.environ.get("RANKTRON_FLIPS", "12"))
FILES = ("log.sqlite", "log.sqlite-wal", "mark")

# A server that acknowledges some feedback, some of it after the log was copied to its main file, and is killed
KILLED = """
import asyncio, os, signal, sys
from ranktron.service.config import Config
from ranktron.store.journal.journal import CAPACITY
from ranktron.service.service import RankingService
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

LIST = RankRequest([Document("x", [1.0, 2.0]), Document("y", [0.0, 1.0]), Document("z", [-1.0, 1.0])])

async def session():
    service = RankingService(sys.argv[1], Config(snapshot_every=30))
    service.start()
    for name in ("shop", "other"):
        await service.create(name, Definition(["a", "b"]))
    await service.create("gone", Definition(["a", "b"]))
    for step in range(45):
        for name in ("shop", "other"):
            shown = service.rank(name, LIST)
            await service.feedback(name, FeedbackRequest(shown.round, {shown.ranking[0].id: step % 3}))
        if step == 20:
            service.journal._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    await service.delete("gone")
    service.rank("shop", LIST)
    await service.keep("other")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(session())
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a server that was killed, and what is in its files."""
    folder = tmp_path_factory.mktemp("killed")
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder, {name: (folder / name).read_bytes() for name in FILES}


def started(folder, files, caplog):
    """What a start finds in these files, and what it says about them; they are written in place, as damage would be."""
    caplog.clear()
    for ending in ("-shm", "-wal"):
        (folder / f"log.sqlite{ending}").unlink(missing_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    try:
        service = RankingService(folder, Config(snapshot_every=30))
    except DataError as error:
        return None, str(error)
    service.journal.close()
    found = {
        name: (live.version, live.weights.tolist(), live.rounds.next, sorted(live.rounds.open), live.definition)
        for name, live in service.live_rankers.items()
    }
    said = " ".join(record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR"))
    return found, said


def damages(data, chance):
    for _ in range(FLIPS):
        bit = chance.randrange(8 * len(data))
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit} flipped", bytes(changed)
    for _ in range(FLIPS):
        end = chance.randrange(len(data))
        yield f"cut off at {end}", data[:end]
    yield "empty", b""


def test_killing_alone_loses_nothing_and_is_not_worth_a_word(killed, caplog):
    folder, files = killed
    found, said = started(folder, files, caplog)
    assert said == ""
    assert [found[name][0] for name in ("shop", "other")] == [45, 45]
    assert set(found) == {"shop", "other"}


@pytest.mark.parametrize("name", ["log.sqlite", "log.sqlite-wal", "mark"])
def test_no_damage_goes_unsaid(killed, caplog, name):
    """Each start finds what there was, or says what is wrong."""
    folder, files = killed
    before, _ = started(folder, files, caplog)
    same = named = 0
    for what, data in damages(files[name], random.Random(name)):
        found, said = started(folder, {**files, name: data}, caplog)
        if found == before:
            same += 1
        else:
            assert said, (what, found)
            named += 1
    print(f"{name}: {same} as before, {named} named")
    assert named > 0 if name == "log.sqlite-wal" else same > 0


@pytest.mark.parametrize("source", [CAPACITY + 4, 2 * CAPACITY + 3])
def test_an_entry_that_was_moved_or_taken_from_another_ranker_does_not_fit(serving, tmp_path, source):
    talk = serving(tmp_path).__enter__()
    for name in ("shop", "other"):
        talk.make(name)
        talk.play(6, name)
    talk.crash()
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    with connection:
        row = connection.execute("SELECT body, checksum, round FROM entries WHERE key = ?", [source]).fetchone()
        change = "UPDATE entries SET body = ?, checksum = ?, round = ? WHERE key = ?"
        connection.execute(change, [*row, CAPACITY + 3])
    connection.close()
    with serving(tmp_path) as talk:
        (aside,) = talk.ask("GET", "/v1/rankers")["set_aside"]
        assert "'shop' is set aside at version 2: its log is damaged at version 3" in aside["message"]
