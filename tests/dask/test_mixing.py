import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from ranktron import DataError, Model, metric
from ranktron.dask.mixed_pass import MixedPass, play_pieces
from ranktron.data.synthetic import WebSearch
from ranktron.learners import hinge_perceptron, predtron_ranker
from ranktron.learners.checks import same
from ranktron.learners.schedule import Fit, History, Schedule
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import TrainingPlan, play_schedule, train
from ranktron.training.shards import Division, QueryPiece
from tests.plans import evenly, run_in, train_in_shards

LISTS = WebSearch(features=8, documents=10).rounds(60)
VALID = WebSearch(features=8, documents=10).rounds(90)[60:]
METRICS = (metric("ndcg@10"),)


class Late(Executor):
    """Runs tasks in another order than they came in, some of them late, on as many threads as there are tasks."""

    def __init__(self, seed):
        self.rng, self.lock = np.random.default_rng(seed), threading.Lock()

    def submit(self, function, /, *arguments, **named):
        future, wait = Future(), float(self.rng.random() * 0.01)

        def work():
            time.sleep(wait)
            future.set_result(function(*arguments, **named))

        threading.Thread(target=work).start()
        return future


class AtOnce(Executor):
    """No thread at all, and every task is run twice: the first result is lost, as with a worker that dies."""

    def submit(self, function, /, *arguments, **named):
        function(*arguments, **named)
        future = Future()
        future.set_result(function(*arguments, **named))
        return future


def mixed(executor, name="hinge", shards=4, parameters=()):
    make = partial(algorithm(name).learner, 8, dict(parameters))
    learner, division = make(), evenly(len(LISTS), shards, mixes=3)
    fit = Fit(LISTS, Schedule(2, seed=1))
    play_schedule(learner, fit, (), MixedPass(division, run_in(executor, make, LISTS, division)))
    return learner.state()


@pytest.mark.parametrize("name", ["slam", "minimax", "hinge", "listnet", "predtron"])
def test_the_result_depends_on_shards_and_not_on_who_runs_them(name):
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(3) as three:
        states = [mixed(executor, name) for executor in (one, three, AtOnce(), Late(0), Late(1))]
        other = mixed(one, name, shards=3)
    assert states[0]["rounds"] == 120
    assert all(same(state, states[0]) for state in states)
    assert not same(other, states[0])


@pytest.mark.slow
def test_processes_give_the_same_bits():
    with ProcessPoolExecutor(2) as processes, ThreadPoolExecutor(2) as threads:
        assert same(mixed(processes), mixed(threads))


def test_a_mixed_model_says_how_it_was_divided():
    plan = TrainingPlan("hinge", {"average": True}, Schedule(3), scaling="standard")
    trained, again = (train_in_shards(plan, LISTS, 4, valid=VALID) for _ in range(2))
    assert trained.history.rounds == 180
    assert len(trained.history.valid) == 3
    assert trained.model.record["division"] == {"parts": [15] * 4, "shards": 4, "mixes": 10, "sequential": 0}
    assert again.model.to_bytes() == trained.model.to_bytes()
    assert not same(train(plan, LISTS, valid=VALID).model.state, trained.model.state)


def test_a_mixed_model_is_continued_in_memory_from_the_start_of_a_pass():
    mixed = train_in_shards(TrainingPlan("hinge"), LISTS, 2).model
    more = train(TrainingPlan("hinge"), LISTS, start=mixed)
    assert (more.history.rounds, more.history.epoch) == (60, 2)
    assert "division" not in more.model.record


def test_going_on_in_the_middle_of_a_pass_equals_never_having_stopped():
    import os
    import signal

    played = []

    def interrupt(count):
        played.append(count)
        if len(played) == 14:
            os.kill(os.getpid(), signal.SIGINT)

    whole = train_in_shards(TrainingPlan("hinge", schedule=Schedule(3, seed=2)), LISTS, 2).model
    stopped = train_in_shards(TrainingPlan("hinge", schedule=Schedule(3, seed=2)), LISTS, 2, progress=interrupt)
    assert stopped.history.interrupted
    assert (stopped.history.epoch, stopped.history.position) == (1, 24)
    kept = Model.from_bytes(stopped.model.to_bytes())
    resumed = train_in_shards(TrainingPlan("hinge", schedule=Schedule(1, seed=2)), LISTS, 2, start=kept)
    assert same(resumed.model.state, whole.state)
    other = train_in_shards(TrainingPlan("hinge", schedule=Schedule(1, seed=2)), LISTS, 3, start=kept)
    assert other.history.rounds == 60  # other shards begin a pass of their own


@pytest.mark.parametrize(
    ("name", "options", "shards", "message"),
    [
        ("topk", {}, 2, "the states of topk cannot be mixed"),
        ("kernel", {}, 2, "the states of kernel cannot be mixed"),
        ("smoothrank", {}, 2, "smoothrank solves for all queries at once"),
        ("hinge", {"feedback": "perfect"}, 2, "a simulated user answers one round after the other"),
        ("hinge", {}, 61, "61 shards need as many parts, and there are 60"),
    ],
)
def test_what_cannot_be_divided_is_refused(name, options, shards, message):
    with pytest.raises(DataError, match=message):
        train_in_shards(TrainingPlan(name, **options), LISTS, shards)
    with pytest.raises(DataError, match="the number of shards"):
        Division((60,), 0)


def test_an_error_in_a_shard_is_the_one_that_is_raised():
    import dataclasses

    broken = dataclasses.replace(
        LISTS, X=np.where(np.arange(len(LISTS.X))[:, None] > 500, np.inf, LISTS.X).astype(np.float32)
    )
    make, division = partial(hinge_perceptron, 8), evenly(len(broken), 2)
    with ThreadPoolExecutor(2) as executor:
        mixed_pass = MixedPass(division, run_in(executor, make, broken, division))
        with pytest.raises(DataError, match="numbers overflow"):
            play_schedule(make(), Fit(broken, Schedule()), (), mixed_pass)


def test_online_metrics_count_every_query_once():
    trained = train_in_shards(TrainingPlan("hinge", schedule=Schedule(2), metrics=[metric("ndcg@10")]), LISTS, 4)
    assert trained.history.rounds == 120
    assert 0.3 < trained.history.averages()[0] < 1.0
    assert trained.history.mistakes == trained.model.state["mistakes"]


@pytest.mark.parametrize("name", ["minimax", "hinge"])
def test_after_a_pass_of_one_learner_shards_begin_with_the_mean_where_no_step_is_small(name):
    make, begun = partial(algorithm(name).learner, 8, {}), []
    learner, division = make(), evenly(len(LISTS), 6, mixes=2)

    with ThreadPoolExecutor(1) as executor:
        run = run_in(executor, make, LISTS, division)

        def watched(shard, state, *rest):
            begun.append(state)
            return run(shard, state, *rest)

        play_schedule(learner, Fit(LISTS, Schedule(1, seed=1)), (), MixedPass(division, watched))
        w, mean = learner.w.copy(), learner.w - learner.lagged_sum / learner.rounds
        begun.clear()
        fit = Fit(LISTS, Schedule(1, seed=1), History(epoch=1, first_epoch=1))
        play_schedule(learner, fit, (), MixedPass(division, watched))
    assert np.array_equal(begun[0]["w"], mean if name == "minimax" else w)
    assert not np.allclose(w, mean)
    total = begun[0]["rounds"] * begun[0]["w"] - begun[0]["lag"]
    assert total / begun[0]["rounds"] == pytest.approx(mean)  # the sum of all weights is what it was


def test_a_run_that_goes_on_after_the_pass_of_one_learner_equals_one_that_never_stopped():
    one, two = (TrainingPlan("minimax", schedule=Schedule(epochs, seed=2)) for epochs in (1, 2))
    first = Model.from_bytes(train_in_shards(one, LISTS, 6).model.to_bytes())
    assert same(train_in_shards(one, LISTS, 6, start=first).model.state, train_in_shards(two, LISTS, 6).model.state)


@pytest.mark.parametrize("make", [partial(hinge_perceptron, 8), partial(predtron_ranker, 8)])
def test_a_pass_is_a_pure_function_and_continues_to_the_bit(make):
    start = make().state()
    kept = {name: np.copy(value) for name, value in start.items()}
    whole = play_pieces(make, start, [QueryPiece(0, np.arange(40))], lambda _: LISTS, METRICS)
    again = play_pieces(make, start, [QueryPiece(0, np.arange(40))], lambda _: LISTS, METRICS)
    assert same(whole.state, again.state)
    assert all(np.array_equal(start[name], kept[name]) for name in kept)
    first = play_pieces(make, start, [QueryPiece(0, np.arange(17))], lambda _: LISTS, METRICS)
    rest = play_pieces(
        make, first.state, [QueryPiece(0, np.arange(17, 30)), QueryPiece(0, np.arange(30, 40))], lambda _: LISTS
    )
    assert same(rest.state, whole.state)
    assert np.array_equal(np.concatenate([first.losses, rest.losses]), whole.losses)
    assert whole.values.shape == (40, 1)
    assert rest.values.shape == (23, 0)


def test_nothing_to_play_changes_nothing():
    start = hinge_perceptron(8).state()
    played = play_pieces(partial(hinge_perceptron, 8), start, [], lambda _: LISTS, METRICS)
    assert same(played.state, start)
    assert (played.losses.shape, played.values.shape) == ((0,), (0, 1))
