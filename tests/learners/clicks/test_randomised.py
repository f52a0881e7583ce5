import itertools

import numpy as np
import pytest

from ranktron import DataError, Impressions
from ranktron.learners.clicks.randomised import randomised_examination

THETA = np.array([1.0, 0.5, 0.25])


def test_rankings_drawn_with_any_known_probabilities_give_the_curve():
    """All six rankings of three documents, each as often as it is likely, and clicked as often as users would."""
    relevance, chances = np.array([0.8, 0.4, 0.4]), np.array([0.35, 0.05, 0.2, 0.1, 0.1, 0.2])
    orders = np.array(list(itertools.permutations(range(3))))
    at = np.array([[chances[orders[:, k] == d].sum() for k in range(3)] for d in range(3)])  # documents by positions
    clicks, position, exploration = [], [], []
    for order, chance in zip(orders, chances, strict=True):
        shown = round(200 * chance)
        for k, d in enumerate(order):
            clicked = round(shown * THETA[k] * relevance[d])
            assert clicked == pytest.approx(shown * THETA[k] * relevance[d])
            clicks += [1.0] * clicked + [0.0] * (shown - clicked)
            position += [k + 1] * shown
            exploration += [at[d, k]] * shown
    log = Impressions.from_arrays(clicks, np.arange(len(clicks)), position, exploration=exploration)
    assert randomised_examination(log, replicates=0).values == pytest.approx(THETA)
    naive = log.click_through() / log.click_through()[0]
    assert np.abs(naive - THETA).max() > 0.03


def test_what_was_not_randomised_is_refused():
    log = {"clicks": [1, 0], "qid": [0, 0], "position": [1, 2]}
    with pytest.raises(DataError, match="takes exploration="):
        randomised_examination(Impressions.from_arrays(**log))
    with pytest.raises(DataError, match="nothing was randomised"):
        randomised_examination(Impressions.from_arrays(**log, exploration=[1, 1]))
    with pytest.raises(DataError, match="nobody clicked at position 1"):
        randomised_examination(Impressions.from_arrays([0, 1], [0, 0], [1, 2], exploration=[0.5, 0.5]))
