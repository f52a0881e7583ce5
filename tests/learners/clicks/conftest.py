import numpy as np
import pytest

from ranktron import Impressions


def log_of_counts(cells):
    """A log in which each (query, item, position, shown, clicked) stands as often as it says."""
    rows = [
        (query, item, position, float(number < clicked))
        for query, item, position, shown, clicked in cells
        for number in range(shown)
    ]
    query, item, position, clicks = map(np.array, zip(*rows, strict=True))
    return Impressions.from_arrays(clicks, np.arange(len(rows)), position, query=query, item=item)


def simulated_log(seed, sessions, *, shuffled, eta=1.0, queries=40, m=10):
    """Position-based users of a few queries, whose lists are shuffled, or shown by three rankers in turn."""
    rng = np.random.default_rng(seed)
    relevance = 0.1 + 0.9 * rng.random((queries, m)) ** 2
    query, ranker = rng.integers(queries, size=sessions), rng.integers(3, size=sessions)
    if shuffled:
        order = np.argsort(rng.random((sessions, m)), axis=1)
    else:
        order = np.argsort(-(relevance + 0.4 * rng.normal(size=(3, queries, m))), axis=2)[ranker, query]
    theta = (1.0 / np.arange(1, m + 1)) ** eta
    clicks = rng.random(order.shape) < theta * np.take_along_axis(relevance[query], order, axis=1)
    of = np.repeat(np.arange(sessions), m)
    drawn = np.full(len(of), 1.0 / m) if shuffled else None
    place = np.tile(np.arange(1, m + 1), sessions)
    names = {"query": query[of], "item": order.ravel(), "ranker": ranker[of]}
    return Impressions.from_arrays(clicks.ravel(), of, place, exploration=drawn, **names), theta


@pytest.fixture
def counted():
    return log_of_counts


@pytest.fixture
def simulated():
    return simulated_log
