from functools import partial

import numpy as np
import pytest

from ranktron import DataError
from ranktron.dask.mixed_pass import play_pieces
from ranktron.learners import hinge_perceptron, predtron_ranker
from ranktron.learners.base import BaseLearner
from ranktron.learners.mixing import mix_states
from ranktron.learners.schedule import Schedule
from ranktron.training.shards import Division


def whole_numbers(queries, documents=4, features=9, seed=0):
    """Queries of small whole numbers: with steps and weights that are powers of 2, no sum is ever rounded."""
    from ranktron import Rounds

    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (queries * documents, features))
    labels = rng.integers(0, 2, queries * documents)
    return Rounds.from_arrays(X, labels, group=[documents] * queries)


def iterates(learner: BaseLearner, rounds, queries) -> np.ndarray:
    """The weights before each round, one row each: the slow way."""
    rows = []
    for q in queries:
        rows.append(learner.ranking_weights.copy())
        round = rounds[int(q)]
        ranking = learner.rank(round.X, learner.rounds)
        learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
    return np.array(rows)


def test_counts_and_sums_of_averaged_weights_add_up_exactly():
    from ranktron.learners import minimax_perceptron

    lists = whole_numbers(64)
    make = partial(minimax_perceptron, 9, eta=0.5, average=True)
    learner, seen, mistakes = make(), [], 0
    for _ in range(3):  # three mixes of four shards
        start, states = learner.state(), []
        for shard in range(4):
            own = make()
            own.restore(start)
            seen.append(iterates(own, lists, range(16 * shard, 16 * shard + 16)))
            mistakes += own.mistakes - start["mistakes"]
            states.append(own.state())
        mixed = learner.mix(start, states, np.ones(4))
        assert np.array_equal(mixed["w"], np.mean([state["w"] for state in states], axis=0))
        learner.restore(mixed)
    assert (learner.rounds, learner.mistakes) == (3 * 64, mistakes)
    total = np.concatenate(seen).sum(axis=0)
    assert np.array_equal(learner.rounds * learner.w - learner.lagged_sum, total)
    assert learner.coef == pytest.approx(total / 192, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("norm", ["l2", "l1"])
def test_predtron_is_mixed_where_its_steps_add_up(norm):
    lists = whole_numbers(30)
    make = partial(predtron_ranker, 9, norm=norm, average=True)
    learner, seen = make(), []
    for _ in range(2):
        start, states = learner.state(), []
        for shard in range(3):
            own = make()
            own.restore(start)
            seen.append(iterates(own, lists, range(10 * shard, 10 * shard + 10)))
            states.append(own.state())
        learner.restore(learner.mix(start, states, [1, 2, 1]))
        assert learner.core.theta == pytest.approx(np.average([s["theta"] for s in states], axis=0, weights=[1, 2, 1]))
    assert learner.mistakes > 0
    assert learner.coef == pytest.approx(np.concatenate(seen).mean(axis=0), rel=1e-9, abs=1e-12)


def test_one_state_is_returned_to_the_bit():
    state = {**hinge_perceptron(2).state(), "w": np.array([0.1, 0.3]), "rounds": 7, "lag": np.array([1 / 3, 0.7])}
    mixed = mix_states(hinge_perceptron(2).state(), [state], [5.0])
    assert mixed is not state
    assert all(np.array_equal(mixed[name], state[name]) for name in state)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, np.nan]])
def test_weights_that_cannot_be_are_refused(weights):
    state = hinge_perceptron(2).state()
    with pytest.raises(DataError, match="mixing 2 states takes"):
        mix_states(state, [state, state], weights)


def test_a_shard_that_plays_nothing_pulls_towards_where_all_began():
    lists, make = whole_numbers(8), partial(hinge_perceptron, 9)
    start = make().state()
    pieces = Division((8,)).pieces(Schedule(shuffle=False), 0)[0][0]
    played = play_pieces(make, start, pieces, lambda part: lists).state
    mixed = mix_states(start, [played, start], [1, 1])
    assert np.array_equal(mixed["w"], played["w"] / 2)
    assert mixed["rounds"] == 8
