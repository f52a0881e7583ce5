"""Many users at once, a disk that fails now and then, crashes, clocks that jump: whatever the order of events, feedback
that was acknowledged is there once, and a restart finds the weights that were left.
"""

import asyncio
import os
import random
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import feedback_labels
from ranktron.store.messages import Definition, Document, ErrorAnswer, FeedbackRequest, RankRequest, RollbackRequest
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.recovery import _entry
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.model import Model

SEEDS = int(os.environ.get("RANKTRON_INTERLEAVINGS", "12"))
CONFIG = Config(snapshot_every=7, versions=3, remembered=100_000, max_open=60, max_rankers=2)
NAMES = ("one", "two")
DEFINITIONS = {
    "one": Definition(["a", "b"], "topk", parameters={"k": 2}, scale="none"),
    "two": Definition(["a", "b", "c"], "hinge", scale="none"),
}


class Week:
    """A service with its users, and all that they were told."""

    def __init__(self, folder, seed, monkeypatch, journal=None):
        self.journal = journal
        self.folder, self.chance, self.rng = folder, random.Random(seed), np.random.default_rng(seed)
        self.shown, self.told, self.numbers = [], {}, set()
        self.gained, self.tried = {}, set()
        self.clock = 1e9
        self.refusals = set()
        self.acts = [self.rank] * 8 + [self.feedback] * 9 + [self.batch] * 2 + [self.keep, self.rollback, self.model]
        self.acts += [self.make] * 2 + [self.delete, self.jump, self.look] + [self.gain] * 4 + [self.release]
        monkeypatch.setattr(open_rounds, "time", lambda: self.clock)

    def open(self, failing):
        self.service = RankingService(self.folder, CONFIG, self.journal)
        write = self.service.journal._write_batch

        def do(jobs):
            if self.chance.random() < failing / 2:
                raise sqlite3.OperationalError("disk I/O error")
            told = write(jobs)
            if self.chance.random() < failing / 2:
                raise sqlite3.OperationalError("database or disk is full")
            return told

        self.service.journal._write_batch = do

    async def user(self, acts):
        for _ in range(acts):
            act = self.chance.choice(self.acts)
            try:
                async with asyncio.timeout(self.chance.choice([0.001, 30, 30, 30])):
                    await act(self.chance.choice(NAMES))
            except RequestError as refused:
                self.refusals.add((refused.status, refused.code))
            except TimeoutError:
                pass  # whether it was done is not known, and whoever asks again will see
            if self.chance.random() < 0.5:
                await asyncio.sleep(self.chance.random() * 0.002)

    # What users do

    async def make(self, name):
        await self.service.create(name, DEFINITIONS[name])

    async def delete(self, name):
        if self.chance.random() < 0.3:
            await self.service.delete(name)

    async def rank(self, name):
        width = len(DEFINITIONS[name].features)
        documents = [Document(f"d{i}", row) for i, row in enumerate(self.rng.normal(size=(4, width)).tolist())]
        answer = self.service.rank(name, RankRequest(documents))
        assert (name, answer.round) not in self.numbers
        self.numbers.add((name, answer.round))
        self.shown.append((name, self.service.live(name).id, answer))

    def labels(self, answer):
        grades = {ranked.id: float(self.chance.randrange(3)) for ranked in answer.ranking[:2]}
        return dict(list(grades.items())[: self.chance.choice([1, 2])])

    async def feedback(self, _name):
        if self.shown:
            name, ranker, answer = self.chance.choice(self.shown[-30:])
            labels = self.labels(answer)
            self.note(ranker, answer.round, labels, await self.service.feedback(name, self.asked(answer, labels)))

    async def gain(self, _name):
        if self.shown:
            name, ranker, answer = self.chance.choice(self.shown[-30:])
            key, total = (ranker, answer.round, answer.ranking[0].id), float(self.chance.randrange(1, 4))
            self.tried.add(key[:2])
            await self.service.feedback(name, FeedbackRequest(answer.round, gains={key[2]: total}))
            self.gained[key] = max(total, self.gained.get(key, 0.0))

    async def release(self, name):
        kept = self.service.versions(name).kept
        if kept:
            await self.service.release(name, self.chance.choice(kept))

    def asked(self, answer, labels):
        return FeedbackRequest(answer.round, labels)

    async def batch(self, name):
        some = [each for each in self.shown[-30:] if each[0] == name]
        if some:
            told = [(*turn, self.labels(turn[2])) for turn in self.chance.choices(some, k=5)]
            requests = [self.asked(answer, labels) for _, _, answer, labels in told]
            answers = (await self.service.batch(requests, self.service.feedback, name)).answers
            for (_, ranker, answer, labels), given in zip(told, answers, strict=True):
                if not isinstance(given, ErrorAnswer):
                    self.note(ranker, answer.round, labels, given)

    def note(self, ranker, number, labels, answer):
        earlier = self.told.setdefault((ranker, number), (labels, answer.version))
        assert (ranker, number) in self.tried or earlier == (labels, answer.version), (
            "the same feedback had another answer, or other labels were taken"
        )

    async def keep(self, name):
        await self.service.keep(name)

    async def rollback(self, name):
        kept = self.service.versions(name).kept
        if kept:
            await self.service.rollback(name, RollbackRequest(self.chance.choice(kept)))

    async def model(self, name):
        now = self.service.model(name)
        kind, parameters = self.chance.choice([(now.kind, now.parameters), ("topk", {"k": 3}), ("hinge", {})])
        learner = ALGORITHMS[kind].learner(now.n_features, parameters)
        learner.rounds = self.chance.choice([0, 30_000, 90_000])
        made = Model(kind, ALGORITHMS[kind].complete(parameters), learner.state(), now.n_features)
        await self.service.set_model(name, self.chance.choice([now, made]).to_bytes())

    async def jump(self, _name):
        self.clock += self.chance.choice([-1e6, -10.0, 10.0, 1e5])

    async def look(self, name):
        self.service.dashboard(name)
        self.service.rankers()
        if self.shown:
            self.service.explain(name, self.chance.choice(self.shown[-30:])[2].round)

    # What happens to the service

    async def day(self, ending, failing):
        self.open(failing)
        self.service.start()
        await asyncio.gather(*(self.user(40) for _ in range(4)))
        if ending == "crash":
            self.service.journal._jobs.clear()  # what nobody had been told about yet
            self.service.journal.close()
            for _ in range(3):  # what is on disk is applied here, too, so that it can be compared
                await asyncio.sleep(0)
        else:
            await self.service.stop()

    def check(self):
        """What is on disk is what was left, and has all that was acknowledged."""
        left = {name: (live.version, model(live)) for name, live in self.service.live_rankers.items()}
        service = RankingService(self.folder, CONFIG, self.journal)
        try:
            found = {name: (live.version, model(live)) for name, live in service.live_rankers.items()}
            assert found == left or self.deleted(found, left)
            for live in service.live_rankers.values():
                self.check_entries(live, [(v, _entry.decode(body)) for v, body, _ in service.journal.entries(live.id)])
        finally:
            service.journal.close()

    def deleted(self, found, left):
        """A ranker that was being made or deleted when the crash came is there or is not; the others are the same."""
        return all(found[name] == left[name] for name in found.keys() & left.keys())

    def check_entries(self, live, entries):
        received = {entry.round: (feedback_labels(entry), v) for v, entry in entries if entry.kind == "feedback"}
        assert len(received) == sum(entry.kind == "feedback" for _, entry in entries), "a round was learnt twice"
        totals = {v: feedback_labels(entry) for v, entry in entries if entry.kind == "gains"}
        for (ranker, number), (labels, version) in self.told.items():
            if ranker == live.id:  # labels that say what is known after gains have come before, too
                assert labels in (received[number][0], totals.get(version)), "acknowledged feedback is missing"
                # Of a round that has gained since, feedback that comes again has the answer of what came last.
                since = (ranker, number) in self.tried and version > received[number][1]
                assert since or version == received[number][1], "feedback was acknowledged with another version"
        assert not received.keys() & live.rounds.open.keys()
        last = {entry.round: feedback_labels(entry) for _, entry in entries if entry.kind in ("feedback", "gains")}
        for (ranker, number, document), total in self.gained.items():
            if ranker == live.id:
                assert last[number][document] >= total, "an acknowledged gain is missing"


def model(live):
    return replace(live.model, record={}).to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "backend"), [(seed, "postgres" if seed % 4 == 3 else "sqlite") for seed in range(SEEDS)]
)
def test_whatever_the_order_of_events(serving, tmp_path, seed, monkeypatch, caplog):
    week = Week(tmp_path, seed, monkeypatch, serving.address(tmp_path))
    for _ in range(4):
        ending = week.chance.choice(["crash", "stop"])
        asyncio.run(week.day(ending, week.chance.choice([0.0, 0.0, 0.2])))
        week.check()
    assert week.told
    assert week.gained
    assert {each for each in week.refusals if each[0] >= 500} <= {(503, "not_written"), (503, "busy")}
    assert "could not be" not in caplog.text
