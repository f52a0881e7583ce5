"""The rules: what counts as reproduced, and what does not."""

import numpy as np
import pytest

from ranktron.papers.harness.verdicts import (
    DIFFERS,
    HOLDS,
    OTHER_LEVEL,
    REPRODUCED,
    AtLeast,
    AtMost,
    Near,
    Ordered,
    spread,
)


def seeds(mean, deviation, n=5):
    """Values with exactly this mean and standard deviation."""
    z = np.linspace(-1.0, 1.0, n)
    return mean + deviation * (z - z.mean()) / z.std(ddof=1)


def test_spread_is_the_deviation_over_seeds():
    assert spread(seeds(3.0, 0.25)) == pytest.approx(0.25)
    assert spread(np.array([7.0])) == 0.0
    assert spread(np.full(5, 0.1) + 1e-17) == 0.0


@pytest.mark.parametrize(
    ("mean", "deviation", "verdict"),
    [
        (0.509, 0.0, REPRODUCED),  # inside the tolerance
        (0.511, 0.0, OTHER_LEVEL),  # just outside
        (0.540, 0.0201, REPRODUCED),  # inside two spreads
        (0.540, 0.0199, OTHER_LEVEL),
        (0.300, 0.01, DIFFERS),  # below b
    ],
)
def test_a_number_is_reproduced_within_two_spreads_or_the_tolerance(mean, deviation, verdict):
    rule = Near("a", {"a": 0.5, "b": 0.4}, tolerance=0.01)
    found = rule({"a": seeds(mean, deviation), "b": seeds(0.4, 0.01)})
    assert found.verdict == verdict
    assert (found.ours, found.spread, found.seeds) == (pytest.approx(mean), pytest.approx(deviation), 5)
    assert rule.published == 0.5


def test_other_level_needs_something_to_be_ordered_against():
    assert Near("a", {"a": 0.5}, 0.01)({"a": seeds(0.6, 0.0)}).verdict == DIFFERS
    tied = Near("a", {"a": 0.5, "b": 0.505}, 0.01)  # printed within the tolerance: no order is claimed
    assert tied({"a": seeds(0.6, 0.0), "b": seeds(0.2, 0.0)}).verdict == DIFFERS


@pytest.mark.parametrize(("gap", "verdict"), [(0.1, REPRODUCED), (0.02, DIFFERS), (-0.1, DIFFERS)])
def test_an_order_needs_gaps_beyond_two_standard_errors(gap, verdict):
    deviation = 0.03
    a = seeds(1.0 + gap, deviation)
    found = Ordered(("a", "b"))({"a": a, "b": np.full(5, 1.0)})
    assert (gap > 2.0 * deviation / np.sqrt(5)) == (verdict == REPRODUCED)
    assert found.verdict == verdict
    assert found.ours == pytest.approx(gap)


def test_one_broken_link_breaks_the_chain():
    values = {"a": seeds(3.0, 0.1), "b": seeds(1.0, 0.1), "c": seeds(2.0, 0.1)}
    assert Ordered(("a", "b", "c"))(values).verdict == DIFFERS
    assert Ordered(("a", "c", "b"))(values).verdict == REPRODUCED


def test_a_bound_is_broken_by_one_seed():
    values = {"x": np.array([0.2, 0.9, 1.0])}
    assert AtMost(1.0)(values).verdict == HOLDS
    assert AtMost(0.99)(values).verdict == DIFFERS
    assert AtLeast(0.2)(values).verdict == HOLDS
    assert AtLeast(0.3)(values).verdict == DIFFERS
