import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from ranktron import DataError, Model, evaluate, metric
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners import feedback, hinge_perceptron
from ranktron.learners.checks import same
from ranktron.learners.loop import play
from ranktron.learners.schedule import Fit, Schedule
from ranktron.training.fit import TrainingPlan, play_schedule, train
from tests.plans import plan_of

LISTS = WebSearch(features=8, documents=10).rounds(40)
HELD_OUT = WebSearch(features=8, documents=10).rounds(80)[40:]
NDCG = metric("ndcg@10")


def trained(epochs, start=None, **options):
    plan = plan_of(options, "hinge", {"eta": 0.5}, Schedule(epochs, seed=3), scaling="standard")
    return train(plan, LISTS, start=start, **options)


def test_going_on_equals_never_having_stopped():
    whole = trained(5).model
    halves = trained(2, start=Model.from_bytes(trained(3).model.to_bytes())).model
    assert whole.to_bytes() == halves.to_bytes()


def test_an_interrupted_pass_is_finished_first(monkeypatch):
    monkeypatch.setattr("ranktron.training.fit.CHUNK", 5)
    played = []

    def interrupt(count):
        played.append(count)
        if sum(played) >= 55 > sum(played) - count:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = trained(3, progress=interrupt)
    position = stopped.history.position
    assert stopped.history.interrupted
    assert (stopped.history.epoch, position) == (1, sum(played) - 40)
    assert 15 <= position < 40
    resumed = trained(1, start=Model.from_bytes(stopped.model.to_bytes()))
    assert resumed.history.rounds == 40 - position + 40
    assert same(resumed.model.state, trained(3).model.state)


@pytest.mark.parametrize("options", [{}, {"map": "products:3"}, {"nan": "indicator"}])
@pytest.mark.parametrize("scaling", ["standard-query", "minmax", "none"])
def test_the_features_of_rounds_that_nobody_uses_afterwards_are_overwritten_and_the_model_is_the_same(scaling, options):
    def copy(rounds):
        return replace(rounds, X=rounds.X.copy())

    def learnt(rounds, valid, **more):
        plan = TrainingPlan("hinge", schedule=Schedule(2), scaling=scaling, **options)
        return train(plan, rounds, valid=valid, **more)

    kept, used = (copy(LISTS), copy(HELD_OUT)), (copy(LISTS), copy(HELD_OUT))
    assert learnt(*kept).model.to_bytes() == learnt(*used, consume=True).model.to_bytes()
    for before, left, overwritten in zip((LISTS, HELD_OUT), kept, used, strict=True):
        assert (left.X == before.X).all()
        assert (overwritten.X == before.X).all() == (scaling == "none")


def test_a_pass_over_other_data_starts_at_its_beginning():
    model = trained(1).model
    other = train(TrainingPlan("hinge"), LISTS[:7], start=model)
    assert other.history.rounds == 7


def test_the_best_epoch_on_held_out_queries_is_kept():
    chosen = trained(8, valid=HELD_OUT, select=NDCG)
    values = [v["ndcg@10"] for v in chosen.history.valid]
    assert len(values) == 8
    assert chosen.history.epoch == 1 + int(np.argmax(values))
    assert same(chosen.model.state, trained(chosen.history.epoch).model.state)
    kept = evaluate(HELD_OUT, chosen.model.score_rounds(HELD_OUT), [NDCG]).means["ndcg@10"]
    assert kept == pytest.approx(max(values))


def test_a_metric_to_be_minimised_keeps_the_lowest():
    chosen = trained(8, valid=HELD_OUT, select=metric("inversions"))
    values = [v["inversions"] for v in chosen.history.valid]
    assert chosen.history.epoch == 1 + int(np.argmin(values))


def test_the_history_counts_and_averages():
    lists = Separable(features=4).rounds(30)
    fit, twin = Fit(lists, Schedule(2)), hinge_perceptron(4)
    play_schedule(hinge_perceptron(4), fit, [NDCG])
    epochs = [fit.schedule.epoch(lists, epoch) for epoch in range(2)]
    turns = [turn for rounds in epochs for turn in play(twin, rounds, feedback.full, [NDCG])]
    history = fit.history
    assert history.rounds == 60
    assert history.averages()[0] == pytest.approx(np.mean([turn.values[0] for turn in turns]))
    assert history.curve[-1] == (60, history.averages())


def test_order_depends_on_the_seed_only():
    one, two, other = (
        train(TrainingPlan("hinge", schedule=Schedule(2, seed)), LISTS).model.to_bytes() for seed in (1, 1, 2)
    )
    assert one == two != other
    with pytest.raises(DataError, match="epochs"):
        Schedule(0)


def test_going_on_with_simulated_users_equals_never_having_stopped():
    """A user's choices are a function of (seed, round number): a second half meets the users of the whole."""

    def users(epochs, start=None):
        schedule = Schedule(epochs, seed=3)
        plan = TrainingPlan("pdgd", {"eta": 0.5}, schedule, scaling="standard", feedback="navigational")
        return train(plan, LISTS, start=start).model

    whole = users(4)
    halves = users(1, Model.from_bytes(users(3).to_bytes()))
    assert whole.to_bytes() == halves.to_bytes()
    assert whole.record["feedback"] == "navigational"
    assert "feedback" not in trained(1).model.record


@pytest.mark.parametrize("name", ["hinge", "listnet", "topk", "kernel", "predtron", "pdgd"])
def test_any_learner_that_plays_may_be_given_a_user(name):
    by_name = train(
        TrainingPlan(name, schedule=Schedule(1, seed=5, shuffle=False), feedback="informational"), LISTS
    ).model
    learner = by_name.blank_learner()
    user = feedback.cascade("informational", int(LISTS.labels.max()) + 1, seed=5, k=learner.labels_received or 10)
    for _ in play(learner, LISTS, user):
        pass
    assert same(by_name.state, learner.state())


@pytest.mark.parametrize("name", ["ranksvm", "committee"])
def test_whoever_learns_from_all_labels_at_once_has_no_user(name):
    with pytest.raises(DataError, match=f"{name} learns from all labels at once"):
        train(TrainingPlan(name, feedback="informational"), LISTS)
