"""The change detector: a supermartingale by enumeration, false alarms at the stated rate, and short delays."""

from itertools import product

import numpy as np
import pytest

from ranktron.errors import DataError
from ranktron.metrics import ConfidenceSequence, FallDetector


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.9, 0.1), (0.2, 0.8)])
def test_evidence_grows_by_one_on_average_at_the_limit(chances):
    """Values of two kinds whose mean is the limit: the mean of R_3 over all paths is 3."""
    values = np.array([-chances[1], chances[0]])
    total = 0.0
    for path in product([0, 1], repeat=3):
        detector = FallDetector(0.0, 1e9)
        for kind in path:
            detector.update(values[kind], high=1.0)
        total += np.prod([chances[kind] for kind in path]) * detector.evidence
    assert total == pytest.approx(3.0, rel=1e-12)


def alarms(mean, runs, horizon, run_length, seed, before=0):
    """When each of many runs of ±1 with this mean, after some good ones, raises its alarm; 0 where it does not."""
    rng, times = np.random.default_rng(seed), []
    for _ in range(runs):
        detector = FallDetector(-0.1, run_length)
        for _ in range(before):
            detector.update(1.0 if rng.random() < 0.55 else -1.0, 1.0)
        assert detector.alarm is None
        while detector.alarm is None and detector.n < before + horizon:
            detector.update(1.0 if rng.random() < (1.0 + mean) / 2.0 else -1.0, 1.0)
        times.append(0 if detector.alarm is None else detector.alarm - before)
    return np.array(times)


def test_false_alarms_are_as_rare_as_promised():
    """At the limit itself: at most n / run_length of the runs within n values; the error of 300 runs is 0.03."""
    found = alarms(-0.1, runs=300, horizon=100, run_length=500, seed=0)
    assert np.mean(found > 0) <= 100 / 500 + 0.05
    assert np.mean(found > 0) > 0.0


def test_late_breakage_is_noticed_soon_where_a_mean_of_all_is_not():
    late = alarms(-0.6, runs=20, horizon=2000, run_length=1000, seed=1, before=1000)
    assert (late > 0).all()
    assert np.median(late) < 60
    rng, sequence, n = np.random.default_rng(2), ConfidenceSequence(0.05), 0
    sequence.update(np.where(rng.random(1000) < 0.55, 1.0, -1.0))
    while sequence.interval[1] > -0.1 and n < 1500:
        n += 100
        sequence.update(np.where(rng.random(100) < 0.2, 1.0, -1.0))
    assert n > 10 * np.median(late)


def test_state_goes_on_to_the_bit():
    rng, one, other = np.random.default_rng(0), FallDetector(0.0, 1e6), FallDetector(0.0, 1e6)
    for value in rng.uniform(-1, 1, 50):
        one.update(value, 1.0)
    other.restore(one.state())
    for value in rng.uniform(-1, 1, 50):
        one.update(value, 1.5)
        other.update(value, 1.5)
    assert one.state() == other.state()


def test_what_makes_no_sense_is_refused():
    for wrong in ({"limit": np.nan}, {"run_length": 1.0}, {"run_length": np.inf}):
        with pytest.raises(DataError):
            FallDetector(**{"limit": 0.0, "run_length": 100.0, **wrong})
    assert FallDetector(0.0, 1.5).run_length == 1.5
    detector = FallDetector(0.0, 100.0)
    for value, high in ((2.0, 1.0), (0.0, 0.0), (np.nan, 1.0), (0.0, np.inf)):
        with pytest.raises(DataError, match="high"):
            detector.update(value, high)
    with pytest.raises(DataError, match="state"):
        detector.restore({"n": 1, "sums": [0.0], "alarm": None})
    assert detector.n == 0
