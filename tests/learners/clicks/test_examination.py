import numpy as np
import pytest

from ranktron import DataError
from ranktron.data.serialization import deserialize, serialize
from ranktron.learners.clicks.examination import Examination, power_law
from ranktron.learners.clicks.harvesting import harvested_examination
from ranktron.learners.clicks.randomised import randomised_examination

CURVE = np.array([1.0, 0.5, 0.25])


@pytest.mark.parametrize("shuffled", [True, False])
def test_intervals_hold_the_truth_about_as_often_as_they_say(shuffled, simulated):
    """The five hundred simulations of the benchmark in small: 60 of them, 540 intervals."""
    estimate = randomised_examination if shuffled else harvested_examination
    held = []
    for seed in range(60):
        log, theta = simulated(seed, 600, shuffled=shuffled)
        curve = estimate(log, replicates=40, seed=seed)
        held += ((curve.low <= theta) & (theta <= curve.high))[1:].tolist()
    assert 0.90 <= np.mean(held) <= 0.99


def test_a_corrected_click_is_on_average_what_it_would_be_at_the_top():
    curve = Examination([1.0, 0.6, 0.2], offsets=[0.0, 0.15, 0.05])
    for relevance in (0.0, 0.3, 1.0):
        for position in (1, 2, 3):
            chance = curve.values[position - 1] * relevance + curve.offsets[position - 1]
            label = chance * curve.correct([1], [position]) + (1.0 - chance) * curve.correct([0], [position])
            assert label == pytest.approx(relevance)


def test_an_interval_is_the_same_for_the_same_seed_and_contains_its_estimate(simulated):
    log, _ = simulated(0, 300, shuffled=True)
    one, two, other = (randomised_examination(log, replicates=20, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.low, two.low)
    assert not np.array_equal(one.low, other.low)
    assert ((one.low <= one.values) & (one.values <= one.high)).all()
    assert one.low[0] == one.high[0] == 1.0


def test_it_is_kept_to_the_bit():
    curve = Examination(CURVE, offsets=[0.0, 0.1, 0.2], low=0.9 * CURVE, high=1.1 * CURVE, method="em-trust")
    kept = Examination.from_dict(deserialize(serialize({"examination": curve.to_dict()}))["examination"])
    assert serialize(kept.to_dict()) == serialize(curve.to_dict())
    assert Examination.from_dict(power_law(2.0).to_dict()).offsets is None


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"values": [1.0, 0.0]}, "above 0 for each position.*position 2 has 0"),
        ({"values": []}, "above 0 for each position"),
        ({"values": [1.0, np.nan]}, "position 2 has nan"),
        ({"values": [1.0, 0.5], "offsets": [0.1]}, "one number for each of its values"),
        ({"values": "steep"}, "one number a position"),
    ],
)
def test_a_curve_that_cannot_be_is_refused(given, complaint):
    with pytest.raises(DataError, match=complaint):
        Examination(**given)
