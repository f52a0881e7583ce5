"""A replay leaves the ranker that was, to the bit, however many rounds are learnt at a time."""

import asyncio

import numpy as np
import pytest

from ranktron.learners.top_k import passes
from ranktron.service.config import Config
from ranktron.service.service import RankingService
from ranktron.store.journal.journal import Call
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest
from ranktron.store.rankers import recovery

CONFIG = {"remembered": 5, "explained_rounds": 5, "snapshot_every": 10_000}


def everything(live):
    """All that a ranker knows, but when it knew it."""
    stats = {name: np.asarray(value).tolist() for name, value in live.stats.state().items() if name != "counts"}
    stats["counts"] = live.stats.state()["counts"][2:]  # rankings are not logged
    return (
        live.model.to_bytes(), live.version, live.weights.tolist(), dict(live.rounds.open),
        dict(live.rounds.past), live.refused,
        [(number, each.labels, each.at, each.result[:2]) for number, each in live.rounds.answered.items()],
        live.drift[0], live.drift[1].tolist(), stats, live.rounds.answered_ever.state()["bits"].tolist(),
    )  # fmt: skip


async def play(folder, parameters, rounds, algorithm="topk"):
    """Rounds with lists of several lengths, answered late, in part, too highly, or never; then the service is gone."""
    rng = np.random.default_rng(3)
    service = RankingService(folder, Config(**CONFIG))
    service.start()
    await service.create("shop", Definition(["a", "b", "c"], algorithm, parameters, (0.0, 2000.0)))
    waiting = []
    for _ in range(rounds):
        size = int(rng.choice([1, 2, 5, 6, 6, 6, 6]))
        X = rng.normal(size=(size, 3)).astype(np.float32) * (1e18 if rng.random() < 0.02 else 1.0)
        shown = service.rank("shop", RankRequest([Document(f"d{i}", row) for i, row in enumerate(X)]))
        waiting.append((shown.round, [ranked.id for ranked in shown.ranking[: service.live("shop").k]]))
        if rng.random() < 0.85:
            number, page = waiting.pop(int(rng.integers(len(waiting))))
            told = {document: float(rng.choice([0, 1, 2, 3, 1500])) for document in page if rng.random() < 0.9}
            if told:
                await service.feedback("shop", FeedbackRequest(number, told))
    live = service.live("shop")
    await service._writer.written(Call(lambda: None))
    service._close_task.cancel()
    service.journal.close()
    return live


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [
        ("topk", {}),
        ("topk", {"k": 4, "preset": "recommended", "radius": 2.0}),
        ("topk", {"k": 3, "surrogate": "squared"}),
        ("pdgd", {"k": 4}),
        ("hinge", {}),
    ],
)
def test_a_replay_leaves_the_ranker_that_was(tmp_path, monkeypatch, algorithm, parameters):
    live = asyncio.run(play(tmp_path, parameters, 260, algorithm))
    monkeypatch.setattr(recovery, "BATCH_SIZE", 16)
    at_once = []
    learn_many = passes.learn_many
    monkeypatch.setattr(recovery, "learn_many", lambda *given: at_once.append(learn_many(*given)) or at_once[-1])
    service = RankingService(tmp_path, Config(**CONFIG))
    again = service.live("shop")
    service.journal.close()
    assert everything(again) == everything(live)
    fast = algorithm == "topk" and "surrogate" not in parameters
    assert (sum(len(learnt) for learnt in at_once if learnt is not None) > 50) == fast
