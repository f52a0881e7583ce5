import sys
from pathlib import Path

import numpy as np
import pytest

from ranktron.metrics.interleaving import PairwisePreference

sys.path.insert(0, str(Path(__file__).parent))
from enumeration import pages

RANKINGS = (0, 1, 2, 3, 4), (3, 0, 4, 1, 2), (1, 0, 2, 4, 3)


def best(d):
    return 1 + min(ranking.index(d) for ranking in RANKINGS)


def test_pairs_are_those_from_the_top_to_one_below_the_last_click():
    """Of five documents that all rankers may show first, clicks at 1 and 3: {1, 3} over {2, 4}, and not over 5."""
    rankings = [[(d + r) % 5 for d in range(5)] for r in range(5)]
    method = PairwisePreference(5)
    shown = method.combine(rankings, np.random.default_rng(0))
    a, b, c, d, _ = shown.items.tolist()
    agree = [
        sum(1 if ranking.index(i) < ranking.index(j) else -1 for i in (a, c) for j in (b, d)) for ranking in rankings
    ]
    assert method.credit(shown, [1, 0, 1, 0, 0]).tolist() == agree


def test_weights_are_one_over_the_probability_that_the_pair_could_swap():
    """The probability is counted over all pages, not taken from the formula."""
    method = PairwisePreference(5)
    everything = pages(method, RANKINGS)
    for shown, _ in everything:
        order = shown.items.tolist()
        for place in range(4):
            i, j = order[place], order[place + 1]
            r = max(best(i), best(j))
            clicks = np.zeros(5)
            clicks[: place + 1] = 1.0  # all above are clicked too: the one pair (i, j) is the last
            others = clicks.copy()
            others[place] = 0.0
            single = np.zeros(5)
            single[place] = 1.0
            credit = method.credit(shown, clicks)
            expected = np.zeros(3)
            for above in order[: place + 1]:
                high = max(best(above), best(j))
                if min(order.index(above), order.index(j)) + 1 >= high:
                    p = sum(
                        q for page, q in everything if min(page.items.tolist().index(d) for d in (above, j)) + 1 >= high
                    )
                    for ranker, ranking in enumerate(RANKINGS):
                        expected[ranker] += (1 if ranking.index(above) < ranking.index(j) else -1) / p
            np.testing.assert_allclose(credit, expected, atol=1e-12)
            assert r >= 1


def test_the_two_orders_of_a_pair_that_counts_are_equally_likely():
    p = {tuple(shown.items.tolist()): q for shown, q in pages(PairwisePreference(5), RANKINGS)}
    for page, q in p.items():
        for i in range(5):
            for j in range(i + 1, 5):
                if i + 1 >= max(best(page[i]), best(page[j])):
                    swapped = list(page)
                    swapped[i], swapped[j] = swapped[j], swapped[i]
                    assert p[tuple(swapped)] == pytest.approx(q)


def test_a_single_choice_at_a_place_is_no_division_by_zero():
    method = PairwisePreference(4)
    shown = method.combine([[0, 1, 2, 3], [0, 1, 3, 2]], np.random.default_rng(0))
    assert shown.items[:2].tolist() == [0, 1]
    credit = method.credit(shown, [0, 0, 1, 0])
    sign = 1.0 if shown.items[2] == 2 else -1.0
    assert credit.tolist() == [sign, -sign]
    assert method.credit(shown, np.zeros(4)).tolist() == [0.0, 0.0]


def test_what_a_ranker_lacks_stands_below_all_it_has():
    method = PairwisePreference(3)
    shown = method.combine([[0], [5, 6]], np.random.default_rng(0))
    credit = method.credit(shown, shown.items == shown.items[0])
    assert np.isfinite(credit).all()
    assert sorted(shown.items.tolist()) == [0, 5, 6]
