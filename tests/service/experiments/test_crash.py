"""kill -9 at random moments of an experiment: no acknowledged click and no assignment is lost, none counts twice.

`RANKTRON_KILLS` says how many times.
"""

import time

import numpy as np
import pytest

from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.experiments.rounds import read_outcome
from ranktron.store.experiments.tally import Tally
from ranktron.store.rankers.recovery import _entry
from tests.service.test_crash import DOCUMENTS, FEATURES, KILLS, PARAMETERS, SETTINGS, User, define_ranker, torture

ARMS = ("one", "other")
KILLS = max(2, KILLS // 4)


class Visitor(User):
    """Many people: each comes now and then, and should always see the same arm."""

    path = "/v1/experiments/test"

    def __init__(self, *given):
        super().__init__(*given)
        self.arms = {}

    def rank(self):
        X = self.rng.normal(size=(DOCUMENTS, FEATURES)).astype(np.float32)
        documents = [{"id": f"d{i}", "features": row} for i, row in enumerate(X.tolist())]
        person = f"{self.name} {self.random.randrange(1000)}"
        status, answer = self.post("rank", {"documents": documents, "user": person})
        if status != 200:
            return self.wrong.append((status, answer))
        number, arm = answer["round"], answer["arm"]
        if number in self.shown or self.arms.setdefault(person, arm) != arm:
            self.wrong.append((number, person, arm))
        self.shown[number] = (person, arm)
        labels = {ranked["id"]: float(self.rng.integers(3)) for ranked in answer["ranking"][:2]}
        return self.waiting.append((number, labels))

    def answer(self, which):
        number, labels = self.waiting[which]
        status, answer = self.post("feedback", {"round": number, "labels": labels})
        if status == 410:
            self.gone.add(number)
        elif status != 200:
            self.wrong.append((status, answer))
        elif self.acknowledged.setdefault(number, answer) != answer:
            self.wrong.append((number, answer, self.acknowledged[number]))
        if self.over or self.random.random() < 0.95:  # the others are sent twice
            self.waiting.pop(which)


def define_experiment(port):
    for arm, seed in zip(ARMS, (5, 6), strict=True):
        parameters = {**PARAMETERS, "seed": seed}
        body = {"features": ["a", "b", "c", "d"], "algorithm": "topk", "parameters": parameters, "scale": "none"}
        define_ranker(port, f"/v1/rankers/{arm}", body)
    define_ranker(port, "/v1/experiments/test", {"arms": [{"ranker": arm} for arm in ARMS], "seed": 3, "k": 2})


@pytest.mark.slow
def test_kill_9_during_an_experiment(tmp_path):
    visitors = torture(tmp_path, KILLS, int(time.time()), Visitor, define_experiment)
    assert not [wrong for visitor in visitors for wrong in visitor.wrong]
    shown = {number: page for visitor in visitors for number, page in visitor.shown.items()}
    assert len(shown) == sum(len(visitor.shown) for visitor in visitors), "a number was given out twice"
    acknowledged = {number: told for visitor in visitors for number, told in visitor.acknowledged.items()}
    gone = set.union(*(visitor.gone for visitor in visitors))

    service = RankingService(tmp_path, Config(**SETTINGS))
    experiment = service.experiments.find("test")
    entries = [_entry.decode(body) for _, body, _ in service.journal.entries(experiment.id)]
    learnt = [len(list(service.journal.entries(service.live(arm).id))) for arm in ARMS]
    service.journal.close()
    outcomes = {entry.round: read_outcome(entry.body) for entry in entries}
    assert len(outcomes) == len(entries), "a page was counted twice"
    assert acknowledged.keys() <= outcomes.keys(), "an acknowledged click is missing"
    assert not gone & outcomes.keys()
    assert sum(learnt) == len(outcomes), "an arm learnt without the tally, or the tally counted without the arm"

    tally, seen = Tally(experiment.definition), set()
    for number, outcome in outcomes.items():
        assert ARMS[outcome.arm] == shown[number][1]
        counted = outcome.user not in seen
        if counted:
            tally.add(outcome.arm, outcome.values)
        seen.add(outcome.user)
        assert number not in acknowledged or acknowledged[number]["counted"] == counted
    assert tally.state() == experiment.tally.state()
    assert len(acknowledged) > KILLS
