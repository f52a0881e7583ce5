import pickle

import numpy as np
import pytest

from ranktron import DataError, metric
from ranktron.learners.parameters import Parameter
from ranktron.training.algorithms import ALGORITHMS, algorithm

ETA = Parameter("eta", "step", 1.0, above=0.0)
SIZE = Parameter("size", "members", 3, above=0)
SHUFFLE = Parameter("shuffle", "mix", paper=True)
STEP = Parameter("step", "rule", "sqrt", choices=("sqrt", "constant"))
RADIUS = Parameter("radius", "ball", above=0.0, kind=float)


def test_values_become_the_parameters_own_type():
    assert (ETA.check(2), type(ETA.check(2))) == (2.0, float)
    assert ETA.check(np.array(0.5)) == 0.5
    assert (SIZE.check(np.int64(4)), type(SIZE.check(np.float32(4.0)))) == (4, int)
    assert SHUFFLE.check(np.bool_(False)) is False
    assert Parameter("metric", "measure", "map").check(metric("ndcg@10")) == "ndcg@10"
    assert (ETA.parse("1e-3"), SIZE.parse("7"), SHUFFLE.parse("no"), STEP.parse("constant")) == (
        1e-3,
        7,
        False,
        "constant",
    )


def test_a_parameter_whose_printed_value_is_none_takes_none():
    assert (RADIUS.check(None), RADIUS.parse("none"), RADIUS.parse("2"), RADIUS.check(3)) == (None, None, 2.0, 3.0)
    assert RADIUS.annotation == float | None


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (RADIUS, [0.0, "none", True]),
        (ETA, [0.0, -1.0, np.nan, np.inf, "fast", None, True, [1.0], np.array([0.1]), 10**400, np.complex128(1)]),
        (SIZE, [0, 1.5, np.nan, np.inf, "3", False]),
        (SHUFFLE, [1, "perhaps", None]),
        (STEP, ["fast", 1, None]),
    ],
)
def test_what_does_not_fit_is_named(parameter, values):
    for value in values:
        with pytest.raises(DataError, match=f"{parameter.name} must be"):
            parameter.check(value)
    with pytest.raises(DataError, match=f"{parameter.name} must be"):
        parameter.parse("certainly not")


def test_a_whole_number_says_the_smallest_that_is_allowed():
    with pytest.raises(DataError, match="size must be a whole number of at least 1, not 0"):
        SIZE.check(0)


def test_algorithms_are_found_by_name_and_know_their_parameters():
    for name, each in ALGORITHMS.items():
        assert algorithm(name) is each
        assert each.complete({}) == {p.name: p.default for p in each.parameters}
    with pytest.raises(DataError, match="no algorithm 'alien'"):
        algorithm("alien")
    for width in (-1, 2.5, None):
        with pytest.raises(DataError, match="number of features"):
            algorithm("slam").learner(width, {})
    complete = algorithm("slam").complete({"eta": 2})
    assert algorithm("slam").complete(complete) is complete
    assert pickle.loads(pickle.dumps(complete)) == complete == {**algorithm("slam").preset("recommended"), "eta": 2.0}
    with pytest.raises(AttributeError):
        complete.eta = 3.0
    with pytest.raises(AttributeError, match="speed"):
        _ = complete.speed
    with pytest.raises(DataError, match="no parameter 'speed'"):
        algorithm("slam").complete({"speed": 1})
