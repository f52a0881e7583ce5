"""Mixed pages: what counts is a tie when clicks are random, by enumeration; and it lies between -1 and 1."""

from itertools import permutations, product

import numpy as np
import pytest

from ranktron.metrics.interleaving.optimized import _solve
from ranktron.store.experiments.arms import MIXERS, highest_credit, mixed_page, outcome_of

LISTS = [(0, 1, 2, 3), *list(permutations(range(4)))[3::6], (1, 2, 3, 0)]


def optimized_pages(first, second):
    """Every page with its probability, and the difference in credit for a click at each place."""
    pages, chances = _solve(first, second, 4)
    for page, chance in zip(pages, chances, strict=True):
        yield chance, np.array([1.0 / (1 + second.index(each)) - 1.0 / (1 + first.index(each)) for each in page])


def test_random_clicks_tie_in_optimized_credit_but_not_in_its_sign():
    signs = {}
    for second in LISTS:
        first, mean, sign = LISTS[0], 0.0, 0.0
        for chance, apart in optimized_pages(first, second):
            mean += chance * np.mean([outcome_of("optimized", 4, each) for each in apart])
            sign += chance * np.mean(np.sign(np.round(apart, 12)))
        assert abs(mean) < 1e-4  # outcomes have four digits
        signs[second] = sign
    assert signs[1, 2, 3, 0] == pytest.approx(0.5)  # in favour of the second


def test_random_clicks_tie_in_the_sign_of_a_team_draft():
    """Teams are coin flips: each pattern of clicks favours either arm on as many draws of the coins."""
    coins = list(product([0, 1], repeat=2))
    for clicks in product([0, 1], repeat=4):
        total = 0.0
        for flips in coins:
            teams = np.array([team for flip in flips for team in (flip, 1 - flip)])
            total += outcome_of("team-draft", 4, float(np.array(clicks) @ (2 * teams - 1)))
        assert total == 0.0


@pytest.mark.parametrize("method", MIXERS)
def test_outcomes_are_bounded_and_pages_are_functions_of_seed_and_number(method):
    rng = np.random.default_rng(0)
    for number in range(30):
        orders = [rng.permutation(8) for _ in range(2)]
        items, credits = mixed_page(method, orders, 5, 3, number)
        again, _ = mixed_page(method, orders, 5, 3, number)
        assert (items == again).all()
        assert len(set(items.tolist())) == 5
        for clicks in product([0.0, 1.0], repeat=5):
            first, second = credits @ clicks
            assert abs(second - first) <= highest_credit(method, 5) + 1e-12
            assert -1.0 <= outcome_of(method, 5, second - first) <= 1.0


def test_credits_are_those_of_the_library():
    rng = np.random.default_rng(0)
    for method, kind in MIXERS.items():
        orders = [rng.permutation(6) for _ in range(2)]
        items, credits = mixed_page(method, orders, 4, 1, 2)
        mixer = kind(4)
        shown = mixer.combine([order[:4] for order in orders], np.random.default_rng((1, 2)))
        assert (shown.items == items).all()
        for clicks in product([0.0, 1.0], repeat=4):
            np.testing.assert_allclose(credits @ clicks, mixer.credit(shown, clicks), atol=1e-12)
