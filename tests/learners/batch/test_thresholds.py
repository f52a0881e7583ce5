import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron.data.synthetic import WebSearch
from ranktron.kernels import blocks
from ranktron.learners.batch import thresholds
from ranktron.learners.batch.rank_boost import Boosting
from ranktron.learners.batch.thresholds import MatrixThresholds


def gather_all(X, pi):
    """Every threshold of every feature in turn, document by document: the first of the best."""
    found, best = (0, np.inf, 0.0), 0.0
    for f in range(X.shape[1]):
        order = np.argsort(-X[:, f], kind="stable")
        values, sums = X[order, f].astype(float), np.cumsum(pi[order])  # cumsum adds up from first to last
        for at in np.flatnonzero(values[:-1] > values[1:]):
            if abs(sums[at]) > best:
                found, best = (f, 0.5 * (values[at] + values[at + 1]), sums[at]), abs(sums[at])
    return found


def draw(kind, n, rng):
    X = {
        "all different": lambda: rng.normal(size=(n, 5)),
        "few values": lambda: rng.integers(-2, 3, (n, 5)),
        "many ties": lambda: np.round(rng.normal(size=(n, 5)), 2),
        "copies": lambda: np.tile(rng.normal(size=(n, 1)), 5) * [1, 1, -1, 2, 0],
        "signed zeros": lambda: rng.choice([0.0, -0.0, 1.0], (n, 5)),
    }[kind]()
    return np.ascontiguousarray(X, np.float32)


@given(
    seed=st.integers(0, 10**6),
    n=st.sampled_from([1, 2, 7, 300, 1500]),
    kind=st.sampled_from(["all different", "few values", "many ties", "copies", "signed zeros"]),
)
def test_the_best_threshold_is_that_of_gathering_all_of_them_to_the_bit(seed, n, kind):
    rng = np.random.default_rng(seed)
    X = draw(kind, n, rng)
    every = MatrixThresholds(X)
    pi = rng.normal(size=n) ** 3
    for _ in range(4):  # bounds of one call serve the next ones
        assert tuple(every.best(pi)) == gather_all(X, pi)
        pi = pi * rng.uniform(0.5, 1.3, n)
    assert tuple(every.best(np.zeros(n))) == (0, np.inf, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_many_features_may_lie_within_a_bin(seed):
    rng = np.random.default_rng(seed)
    X, pi = rng.normal(size=(1500, 60)).astype(np.float32), rng.normal(size=1500)
    every = MatrixThresholds(X)
    for _ in range(3):
        assert tuple(every.best(pi)) == gather_all(X, pi)
        pi = pi * rng.uniform(0.9, 1.1, len(pi))


def test_interpreted_kernels_find_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    X, pi = draw("many ties", 600, rng), rng.normal(size=600)
    expected = MatrixThresholds(X).best(pi)
    for name in ("_best", "_best_of_borders", "_search_bins", "_growth"):
        monkeypatch.setattr(thresholds, name, getattr(thresholds, name).py_func)
    assert MatrixThresholds(X).best(pi) == expected == gather_all(X, pi)


def test_the_number_of_threads_changes_nothing(monkeypatch):
    lists = WebSearch(features=7, documents=20).rounds(40)
    runs = []
    for large, cores in ((10**9, 1), (0, 2), (0, 9)):
        monkeypatch.setattr(blocks, "LARGE", large)
        monkeypatch.setattr(blocks.os, "cpu_count", lambda cores=cores: cores)
        boosting = Boosting(lists)
        for _ in range(30):
            assert boosting.step()
        runs.append((boosting.features, boosting.thresholds, boosting.alphas, boosting.scores.tolist()))
    assert runs[0] == runs[1] == runs[2]


def test_bins_prune_most_of_the_search(monkeypatch):
    """Bins that are searched, of those that hold more than one value: with all of them, nothing would be gained."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 10)).astype(np.float32)
    pi = X[:, 3].astype(float) + rng.normal(size=20000)
    every, least = MatrixThresholds(X), []
    search = thresholds._search_bins

    def noted(X, orders, ends, pi, sums, loads, goal, found, first, last):
        after = np.cumsum(sums, axis=1)
        before = after - sums
        least.append((0.5 * (abs(before) + abs(after) + loads) >= goal).mean())
        return search(X, orders, ends, pi, sums, loads, goal, found, first, last)

    monkeypatch.setattr(thresholds, "_search_bins", noted)
    assert every.best(pi).feature == 3
    assert 0 < least[0] < 0.02


@pytest.mark.parametrize("n", [1, 2, 5000])
def test_columns_are_sorted_as_numpy_sorts_them(n):
    rng = np.random.default_rng(n)
    for kind in ("all different", "few values", "many ties", "signed zeros"):
        X = draw(kind, n, rng)
        assert np.array_equal(MatrixThresholds(X).orders, np.argsort(-X.T, axis=1, kind="stable"))
