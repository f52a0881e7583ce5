import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError
from ranktron.metrics import ConfidenceSequence, user_differences
from ranktron.metrics.always_valid import BETS, log_capital

RUNS, HORIZON = 2_000, 2_000
NULLS = {
    "a coin": ([-1.0, 1.0], [0.5, 0.5]),
    "few clicks": ([-1.0, 0.0, 1.0], [0.03, 0.94, 0.03]),
    "skewed": ([-0.1, 0.9], [0.9, 0.1]),
}


@pytest.mark.parametrize("values", NULLS)
def test_few_null_runs_reject_however_often_one_looks(values):
    """2,000 runs of 2,000 users without a difference, looked at after every user: at most 6.5 % may reject at 5 %."""
    support, p = NULLS[values]
    assert np.dot(support, p) == pytest.approx(0.0)
    rng = np.random.default_rng(7)
    rejections = 0
    for _ in range(10):
        drawn = rng.choice(support, p=p, size=(RUNS // 10, HORIZON))
        capitals = np.maximum(*log_capital(drawn, 0.0, -1.0, 1.0))
        rejections += np.count_nonzero(capitals.max(axis=-1) >= np.log(2 / 0.05))
    assert 1 <= rejections <= 0.065 * RUNS


def test_a_fixed_size_test_looked_at_all_the_time_rejects_often():
    """What the always-valid test is for: the same looks at a t-test reject a third of the null runs, and more."""
    drawn = np.random.default_rng(7).choice([-1.0, 1.0], size=(500, HORIZON))
    n = np.arange(1, HORIZON + 1)
    sums = np.cumsum(drawn, axis=1)
    z = np.abs(sums) / np.sqrt(n - sums**2 / n + 1e-9)
    assert np.mean((z[:, 10:] > 1.96).any(axis=1)) > 0.3


def test_each_capital_is_a_martingale_at_the_true_mean():
    """The expected capital after three values is 1, exactly, by enumeration; at a wrong mean it is not."""
    support, p = np.array([-0.5, 0.0, 1.0]), np.array([0.3, 0.5, 0.2])
    mean = support @ p
    paths = np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(-1, 3)
    weights = p[paths].prod(axis=1)
    for capital in log_capital(support[paths], mean, -1.0, 1.0):
        for t in range(3):
            assert weights @ np.exp(capital[:, t]) == pytest.approx(1.0, abs=1e-12)
    up, down = log_capital(support[paths], mean - 0.2, -1.0, 1.0)
    assert weights @ np.exp(up[:, -1]) > 1.0 > weights @ np.exp(down[:, -1])


def test_the_sequence_covers_the_true_mean_at_all_times():
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(300):
        drawn = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.6, 0.3], size=500)
        capitals = np.maximum(*log_capital(drawn, 0.2, -1.0, 1.0))
        missed += capitals.max() >= np.log(2 / 0.05)
    assert missed <= 0.065 * 300


@given(st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), min_size=1, max_size=60))
def test_the_class_agrees_with_the_formula(values):
    sequence = ConfidenceSequence(level=0.2)
    sequence.update(values)
    up, down = log_capital(np.array(values), 0.0, -1.0, 1.0)
    reached = np.flatnonzero(np.maximum(up, down) >= np.log(2 / 0.2))
    assert sequence.decided_after == (reached[0] + 1 if len(reached) else None)
    low, high = sequence.interval
    assert low <= np.mean(values) + 1e-9
    assert high >= np.mean(values) - 1e-9
    for mean, side in ((low, 0), (high, 1)):
        if -1.0 < mean < 1.0 and mean != 0.0:
            assert log_capital(np.array(values), mean, -1.0, 1.0)[side][-1] == pytest.approx(np.log(2 / 0.2), abs=1e-6)


def test_a_decision_is_final_and_the_interval_stays_on_its_side():
    sequence = ConfidenceSequence()
    sequence.update(np.ones(30))
    assert sequence.decision == 1
    assert sequence.interval[0] > 0.0
    sequence.update(-np.ones(40))
    assert (sequence.decision, sequence.interval[0]) == (1, 0.0)
    other = ConfidenceSequence()
    other.update(-np.ones(30))
    assert other.decision == -1
    assert other.interval[1] < 0.0


def test_a_stored_sequence_goes_on_to_the_bit():
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, 200)
    whole, first = ConfidenceSequence(0.1), ConfidenceSequence(0.1)
    whole.update(values)
    first.update(values[:77])
    second = ConfidenceSequence(0.1)
    second.restore(json.loads(json.dumps(first.state())))
    second.update(values[77:])
    assert second.state() == whole.state()
    assert second.interval == whole.interval


def test_a_scale_of_other_ends_is_the_same_test():
    values = np.random.default_rng(1).uniform(-1, 1, 50)
    one, other = ConfidenceSequence(), ConfidenceSequence(low=-10, high=10)
    one.update(values)
    other.update(10 * values)
    np.testing.assert_allclose(other.interval, 10 * np.array(one.interval))


def test_bad_input_is_one_sentence_and_changes_nothing():
    sequence = ConfidenceSequence()
    with pytest.raises(DataError, match="between -1 and 1, not at 3"):
        sequence.update([0.5, 3.0])
    with pytest.raises(DataError, match="not at nan"):
        sequence.update([np.nan])
    assert (sequence.n, sequence.interval) == (0, (-1.0, 1.0))
    for wrong in ({"level": 0.0}, {"low": 0.0}, {"high": np.inf}):
        with pytest.raises(DataError):
            ConfidenceSequence(**wrong)
    with pytest.raises(DataError, match="not the state"):
        sequence.restore({"logs": [[0.0]]})
    with pytest.raises(DataError, match="3 differences of 2 users"):
        user_differences([1, 2], [0.0, 0.0, 1.0])
    assert len(BETS) == 10
