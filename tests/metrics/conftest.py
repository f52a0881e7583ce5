import numpy as np
import pytest

from ranktron.data.rounds import Rounds


def make_lists(seed, queries=80, *, ties=True, shortest=1, highest=4):
    """Random scores and lists: some of one document, some without relevant documents, scores with or without ties."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(shortest, 30, queries)
    sizes[:5] = shortest
    n = int(sizes.sum())
    labels = rng.integers(0, highest + 1, n) * (rng.random(n) < 0.5)
    labels[np.repeat(rng.random(queries) < 0.2, sizes)] = 0
    scores = rng.integers(0, 12, n) / 4.0 if ties else rng.permutation(n) / 8.0
    docids = np.array([f"d{i}" for i in rng.permutation(n)])
    return scores, Rounds.from_arrays(np.zeros((n, 1)), labels, group=sizes, docids=docids)


@pytest.fixture
def tied_lists():
    return make_lists(1)


@pytest.fixture
def distinct_lists():
    return make_lists(2, ties=False)


@pytest.fixture
def lists_of_two_or_more():
    return make_lists(3, shortest=2)


@pytest.fixture
def binary_lists():
    return make_lists(4, highest=1)
