"""The rules: what counts as reproduced, and what does not."""

import numpy as np
import pytest

from reproduction.harness.verdicts import (
    CANNOT_TELL,
    DIFFERS,
    HOLDS,
    OTHER_LEVEL,
    REPRODUCED,
    TOO_FEW,
    AtLeast,
    AtMost,
    InSettings,
    Near,
    Ordered,
    in_settings,
    judge_few,
    standard_deviation,
    worst,
)


def seeds(mean, deviation, n=5):
    """Values with exactly this mean and standard deviation."""
    z = np.linspace(-1.0, 1.0, n)
    return mean + deviation * (z - z.mean()) / z.std(ddof=1)


def test_spread_is_the_deviation_over_seeds():
    assert standard_deviation(seeds(3.0, 0.25)) == pytest.approx(0.25)
    assert standard_deviation(np.array([7.0])) == 0.0
    assert standard_deviation(np.full(5, 0.1) + 1e-17) == 0.0


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


@pytest.mark.parametrize(
    ("deviation", "tolerance", "verdict"),
    [
        (0.0, 0.01, CANNOT_TELL),  # Table 4's MAP: six systems within 0.009, accepted within 0.01
        (0.0, 0.002, REPRODUCED),  # refuses 0.440, 0.443 and 0.4495
        (0.0, 0.004, CANNOT_TELL),  # refuses two of five
        (0.001, 0.0, REPRODUCED),  # the spread over seeds counts as the tolerance does
        (0.002, 0.0, CANNOT_TELL),
    ],
)
def test_reproduced_means_that_the_neighbours_are_refused(deviation, tolerance, verdict):
    column = {"a": 0.447, "b": 0.440, "c": 0.447, "d": 0.4495, "e": 0.440, "f": 0.443}
    found = Near("a", column, tolerance)({"a": seeds(0.447, deviation)})
    assert found.verdict == verdict
    assert "of 5 numbers printed beside it, which span 0.0095" in found.detail


def test_any_system_in_place_of_another_is_noticed_or_nothing_is_claimed():
    """Whatever the tolerance: where a row says reproduced, most other rows' numbers would not have been."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        column = dict(zip("abcdef", rng.normal(scale=0.01, size=6), strict=True))
        values = seeds(column["a"] + rng.normal(scale=0.01), rng.random() * 0.01)
        tolerance = rng.random() * 0.01
        if Near("a", column, tolerance)({"a": values}).verdict == REPRODUCED:
            exchanged = [
                Near(b, {b: number}, tolerance)({b: values}).verdict for b, number in column.items() if b != "a"
            ]
            assert exchanged.count(DIFFERS) >= 3


def test_settings_are_counted():
    values = {name: np.array([float(name in "bd")]) for name in "abcd"}
    found = InSettings()(values)
    assert (found.verdict, found.ours, found.seeds) == ("holds in 2 of 4 settings", 2, 4)
    assert "b; d" in found.detail
    assert InSettings()({"a": np.array([0.0])}).verdict == in_settings(0, 1) == DIFFERS
    assert worst([HOLDS, in_settings(1, 4)]) == in_settings(1, 4)
    assert worst([CANNOT_TELL, in_settings(1, 4), REPRODUCED]) == CANNOT_TELL
    assert worst([CANNOT_TELL, OTHER_LEVEL, DIFFERS]) == DIFFERS


def test_other_level_needs_something_to_be_ordered_against():
    assert Near("a", {"a": 0.5}, 0.01)({"a": seeds(0.6, 0.0)}).verdict == DIFFERS
    tied = Near("a", {"a": 0.5, "b": 0.505}, 0.01)  # printed within the tolerance: no order is claimed
    assert tied({"a": seeds(0.6, 0.0), "b": seeds(0.2, 0.0)}).verdict == DIFFERS


@pytest.mark.parametrize(
    ("gap", "verdict"), [(0.1, REPRODUCED), (0.02, CANNOT_TELL), (-0.02, CANNOT_TELL), (-0.1, DIFFERS)]
)
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


class TestFewerRuns:
    """A quick run has the verdict of the full one, or says that it cannot know it."""

    def judged(self, rule, same_runs=True, **values):
        return judge_few(rule, {name: np.array(each) for name, each in values.items()}, same_runs).verdict

    def test_an_order_needs_a_gap_beyond_its_interval(self):
        order = Ordered(("a", "b"))
        assert self.judged(order, a=seeds(1.0, 0.1, 3), b=seeds(0.0, 0.0, 3)) == REPRODUCED
        assert self.judged(order, a=seeds(-1.0, 0.1, 3), b=seeds(0.0, 0.0, 3)) == DIFFERS
        for mean in (0.15, -0.15):  # more than twice the standard error, of 0.058: enough in a full run
            assert Ordered(("a", "b"))({"a": seeds(mean, 0.1, 3), "b": np.zeros(3)}).verdict != CANNOT_TELL
            assert self.judged(order, a=seeds(mean, 0.1, 3), b=seeds(0.0, 0.0, 3)) == TOO_FEW
        assert self.judged(order, a=[1.0, 1.0], b=[0.0, 0.0]) == TOO_FEW
        assert self.judged(order, same_runs=False, a=seeds(1.0, 0.1, 3), b=seeds(0.0, 0.0, 3)) == TOO_FEW

    def test_a_number_needs_to_lie_inside_or_outside_with_its_interval(self):
        near = Near("a", {"a": 0.5, "b": 0.1}, tolerance=0.05)
        assert self.judged(near, a=seeds(0.5, 0.005), b=[0.1]) == REPRODUCED
        assert self.judged(near, a=seeds(0.5, 0.03), b=[0.1]) == TOO_FEW
        assert self.judged(near, a=seeds(0.05, 0.01), b=[0.1]) == DIFFERS

    def test_a_bound_that_is_kept_widely_holds_and_an_exception_stays_one(self):
        assert self.judged(AtMost(1.0), same_runs=False, a=[0.1, 0.2, 0.15]) == HOLDS
        assert self.judged(AtMost(1.0), a=[0.5, 0.95, 0.7]) == TOO_FEW
        assert self.judged(AtMost(1.0), a=[0.5, 1.5, 0.7]) == DIFFERS
        assert self.judged(AtMost(1.0), same_runs=False, a=[0.5, 1.5, 0.7]) == TOO_FEW
        assert self.judged(AtLeast(1.0), a=[2.0, 2.1]) == HOLDS
        assert self.judged(InSettings(), a=[1.0], b=[0.0]) == in_settings(1, 2)
        assert self.judged(InSettings(), same_runs=False, a=[1.0], b=[0.0]) == TOO_FEW
