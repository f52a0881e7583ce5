import sys
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from ranktron import DataError
from ranktron.metrics.interleaving import Probabilistic

sys.path.insert(0, str(Path(__file__).parent))
from enumeration import pages

RANKINGS = (0, 1, 2), (2, 0, 1)


def draws(ranking, left, tau):
    """P(d next) of one ranker: the formula, document by document."""
    weights = {d: (ranking.index(d) + 1.0) ** -tau for d in left}
    return {d: weight / sum(weights.values()) for d, weight in weights.items()}


@pytest.mark.parametrize("tau", [1.0, 3.0])
def test_pages_and_credits_are_those_of_the_formulas(tau):
    """Against the sum over all assignments of places to rankers, which the method marginalises in closed form."""
    method = Probabilistic(3, tau)
    found = {tuple(shown.items.tolist()): (shown, p) for shown, p in pages(method, RANKINGS)}
    for page in permutations(range(3)):
        total, credit = 0.0, np.zeros((3, 2))
        for teams in product(range(2), repeat=3):
            p = 1.0
            for place, team in enumerate(teams):
                p *= 0.5 * draws(RANKINGS[team], page[place:], tau)[page[place]]
            total += p
            for place, team in enumerate(teams):
                credit[place, team] += p
        shown, p = found[page]
        assert p == pytest.approx(total)
        for place, click in enumerate(np.eye(3)):
            np.testing.assert_allclose(method.credit(shown, click), credit[place] / total)


def test_documents_of_one_ranker_alone_are_its_own():
    method = Probabilistic(3)
    shown = method.combine([[0], [5, 6]], np.random.default_rng(0))
    assert sorted(shown.items.tolist()) == [0, 5, 6]
    assert method.credit(shown, shown.items == 6).tolist() == [0.0, 1.0]
    with pytest.raises(DataError, match="tau is a number above 0"):
        Probabilistic(tau=0.0)
