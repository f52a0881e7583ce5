"""How much weights still move, however training is cut into runs."""

import numpy as np
import pytest

from ranktron import Model
from ranktron.data.serialization import same
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners import online_listnet, slam_perceptron
from ranktron.learners.schedule import Fit, Schedule, Spread, next_snapshot
from ranktron.training.fit import TrainingPlan, play_schedule, train

NOISY = WebSearch(features=6, documents=10).rounds(64)


def test_snapshots_are_eight_for_every_doubling():
    due, at = [], 0
    while at < 4096:
        at = next_snapshot(at)
        due.append(at)
    assert due[:3] == [32, 36, 40]
    for low in (32, 64, 1024, 2048):
        assert sum(low < rounds <= 2 * low for rounds in due) == 8
    assert all(next_snapshot(n) > n for n in range(5000))


def test_the_first_snapshots_have_their_plain_mean_and_variance():
    values = np.random.default_rng(0).normal(size=(4, 3))
    spread = Spread()
    for n, value in enumerate(values, start=16):
        spread.note(n, value)
    assert spread.mean == pytest.approx(values.mean(axis=0))
    assert spread.deviation == pytest.approx(values.std(axis=0))


def test_old_snapshots_fade():
    spread = Spread()
    for n in range(100):
        spread.note(n, np.array([5.0 if n < 50 else 1.0 + (n % 2)]))
    weights = (1 / 4) * (3 / 4) ** np.arange(50)[::-1]
    late = 1.0 + np.arange(50) % 2
    assert spread.mean[0] == pytest.approx(late @ weights, rel=0.02)
    assert spread.deviation[0] == pytest.approx(0.5, rel=0.02)


def test_two_snapshots_make_a_spread():
    spread = Spread()
    assert (spread.deviation, spread.record()) == (None, {})
    spread.note(16, np.array([1.0]))
    assert spread.deviation is None
    assert same(Spread.of({"spread": spread.record()}).record(), spread.record())
    assert Spread.of({}).snapshots == 0


def spread_of(make):
    fit = Fit(NOISY, Schedule(3, 5))
    play_schedule(make(6), fit)
    return fit.history.spread.record()


@pytest.mark.parametrize("make", [slam_perceptron, online_listnet])
def test_it_is_the_same_in_compiled_passes_and_round_by_round(make, monkeypatch):
    fused = spread_of(make)
    monkeypatch.setattr("ranktron.training.fit.can_fuse", lambda learner: False)
    assert same(fused, spread_of(make))


def test_going_on_equals_never_having_stopped():
    whole = train(TrainingPlan("slam", schedule=Schedule(4, 1)), NOISY).model
    part = Model.from_bytes(train(TrainingPlan("slam", schedule=Schedule(1, 1)), NOISY).model.to_bytes())
    assert train(TrainingPlan("slam", schedule=Schedule(3, 1)), NOISY, start=part).model.to_bytes() == whole.to_bytes()
    assert whole.record["spread"]["rounds"] == 256  # 4 × 64, and due


def test_held_out_lists_choose_the_spread_with_the_epoch():
    chosen = train(
        TrainingPlan("slam", schedule=Schedule(8, 1)), NOISY, valid=WebSearch(features=6, documents=10).rounds(120)[64:]
    )
    assert chosen.history.epoch < 8
    alone = train(TrainingPlan("slam", schedule=Schedule(chosen.history.epoch, 1)), NOISY).model
    assert same(chosen.model.record["spread"], alone.record["spread"])


def test_weights_come_to_rest_where_the_data_let_them():
    easy = Separable(features=6, margin=1.0).rounds(64)
    still, moving = (train(TrainingPlan("minimax", schedule=Schedule(30, 0)), lists).model for lists in (easy, NOISY))
    relative = [np.max(Spread.of(m.record).deviation) / np.abs(m.coef).max() for m in (still, moving)]
    assert relative[0] < 0.01 < relative[1]


@pytest.mark.parametrize("name", ["ranksvm", "pairwise", "rankboost"])
def test_solved_models_have_none(name):
    assert "spread" not in train(TrainingPlan(name), NOISY).model.record
