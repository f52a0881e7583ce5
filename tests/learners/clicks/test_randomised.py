import itertools

import numpy as np
import pytest

from ranktron import DataError, Impressions
from ranktron.learners.clicks import power_law
from ranktron.learners.clicks.randomised import randomised_examination, update_examination

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


def shuffled(seed, sessions=300, m=4):
    """A log of shuffled lists: users see position k with the probability 1/k."""
    rng = np.random.default_rng(seed)
    order = np.argsort(rng.random((sessions, m)), axis=1)
    clicks = rng.random((sessions, m)) < np.linspace(0.2, 0.9, m)[order] / np.arange(1, m + 1)
    rows, place = np.repeat(np.arange(sessions), m), np.tile(np.arange(1, m + 1), sessions)
    return clicks.ravel().astype(float), rows, place, np.full(rows.size, 1.0 / m)


def cut(log, first, last):
    clicks, rows, place, exploration = (each[(log[1] >= first) & (log[1] < last)] for each in log)
    return Impressions.from_arrays(clicks, rows, place, exploration=exploration)


def test_an_estimate_that_goes_on_is_that_of_all_impressions_however_cut():
    log = shuffled(0)
    whole = randomised_examination(cut(log, 0, 300), replicates=0)
    pieces = randomised_examination(cut(log, 0, 50), replicates=0)
    for first, last in ((50, 51), (51, 200), (200, 300)):
        pieces = update_examination(pieces, cut(log, first, last))
    assert pieces.sums.tobytes() == whole.sums.tobytes()
    assert pieces.values == pytest.approx(whole.values, rel=1e-14)


def test_an_estimate_that_goes_on_learns_of_further_positions():
    short = Impressions.from_arrays([1, 1], ["a", "b"], [1, 1], exploration=[0.5, 0.5])
    log = shuffled(1)
    found = update_examination(randomised_examination(short, replicates=0), cut(log, 0, 300))
    assert len(found.values) == 4
    assert found.values[1] > found.values[3]


def test_the_interval_of_an_estimate_that_goes_on_holds_the_curve_in_95_of_100_logs():
    held = []
    for seed in range(400):
        log = shuffled(seed)
        found = update_examination(randomised_examination(cut(log, 0, 100), replicates=0), cut(log, 100, 300))
        theta = power_law(1.0, 4).values[1:]
        held.append((found.low[1:] <= theta) & (theta <= found.high[1:]))
    assert 0.93 < np.mean(held) < 0.97  # 1,200 intervals, those of a log not independent: within three of its errors


def test_an_estimate_of_another_kind_does_not_go_on():
    with pytest.raises(DataError, match="not one that is known"):
        update_examination(power_law(1.0, 4), cut(shuffled(0), 0, 10))
