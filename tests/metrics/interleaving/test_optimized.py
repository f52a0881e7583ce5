from itertools import permutations

import numpy as np
import pytest

from ranktron import DataError
from ranktron.metrics.interleaving import Optimized
from ranktron.metrics.interleaving.optimized import _sensitivities, _solve, possible_pages


def test_pages_are_made_of_the_best_remaining_documents():
    assert possible_pages((0, 1, 2, 3), (3, 0, 1, 2), 2) == [(0, 1), (0, 3), (3, 0)]


@pytest.mark.parametrize("k", [2, 3, 4])
def test_every_place_is_fair_for_all_rankings_of_four(k):
    first = tuple(range(4))
    for second in permutations(first):
        pages, p = _solve(first, second, k)
        apart = [[1 / (first.index(d) + 1) - 1 / (second.index(d) + 1) for d in page] for page in pages]
        np.testing.assert_allclose(p @ np.array(apart), 0.0, atol=1e-9)
        assert p.sum() == pytest.approx(1.0)


def test_of_the_fair_draws_the_most_telling_is_taken():
    """Against two draws that are fair by symmetry: both orders of abcd and badc, half and half."""
    first, second = (0, 1, 2, 3), (1, 0, 3, 2)
    pages, p = _solve(first, second, 4)
    apart = np.array([[1 / (first.index(d) + 1) - 1 / (second.index(d) + 1) for d in page] for page in pages])
    telling = _sensitivities(apart)
    for pair in [((0, 1, 2, 3), (1, 0, 3, 2)), ((0, 1, 3, 2), (1, 0, 2, 3))]:
        assert p @ telling >= np.mean([telling[pages.index(page)] for page in pair]) - 1e-9


def test_where_nothing_is_fair_the_nearest_is_taken():
    """A ranker that has one document only is never level with one that has two others."""
    pages, p = _solve((0,), (1, 2), 2)
    apart = {0: 1 - 1 / 3, 1: 1 / 2 - 1, 2: 1 / 2 - 1 / 2}
    missed = {page: np.abs([apart[d] for d in page]) for page in pages}
    assert p.sum() == pytest.approx(1.0)
    mean = p @ np.array([[apart[d] for d in page] for page in pages])
    assert np.abs(mean).sum() <= min(m.sum() for m in missed.values()) + 1e-9


def test_equal_rankings_show_themselves():
    shown = Optimized(3).combine([[2, 1, 0], [2, 1, 0]], np.random.default_rng(0))
    assert shown.items.tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="at most 12"):
        Optimized(13)
    with pytest.raises(DataError, match="at least 1"):
        Optimized(0)
    alone = Optimized(1).combine([[2, 1, 0], [0, 1, 2]], np.random.default_rng(0))
    assert alone.items.tolist() in ([2], [0])
