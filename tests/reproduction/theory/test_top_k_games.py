"""Games of RTop-kF with clicks for labels; those with labels are in tests/reproduction/claims."""

import numpy as np
import pytest

from ranktron.surrogates import Squared
from reproduction.theory.top_k_bounds import regret_bound, theorem_settings
from reproduction.theory.top_k_games import KnownClicks, Pool, regret


@pytest.mark.parametrize("labels", [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
def test_a_corrected_click_is_the_label_on_average(labels):
    clicks = KnownClicks(k=2, noise=0.2)
    chances = clicks.user(seed=0).click_probabilities(labels)
    corrected = [clicks.examination.correct([c, c], [1, 2]) for c in (0.0, 1.0)]
    assert (1.0 - chances) * corrected[0] + chances * corrected[1] == pytest.approx(labels, abs=1e-12)


def test_the_theorem_is_asked_for_the_largest_corrected_click():
    assert KnownClicks(k=3, noise=0.1).limits(Pool()).R_max == pytest.approx((1.0 - 0.1 / 3.0) / (0.9 / 3.0))


def test_regret_from_clicks_falls_per_round_and_keeps_the_bound():
    pool, clicks, horizons = Pool(lists=20), KnownClicks(), (500, 4_000)
    found = np.array([np.mean([regret(Squared(), pool, T, seed, clicks) for seed in range(3)]) for T in horizons])
    limits = clicks.limits(pool)
    assert found[1] / horizons[1] < 0.8 * found[0] / horizons[0]  # T^(2/3) from the first round on would be 0.5
    for value, T in zip(found, horizons, strict=True):
        assert value < regret_bound(Squared(), limits, T, *theorem_settings(Squared(), limits, T))
