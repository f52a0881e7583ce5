"""Small cases of every problem, and streams that a known W separates."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from ranktron.learners.predtron import (
    Counted,
    ErrorSetSize,
    Hamming,
    Permutations,
    PlaceLoss,
    Places,
    Subsets,
    SubsetZeroOne,
    binary,
    make_link,
    multiclass,
    ordinal,
    with_costs,
    with_reject,
)
from reproduction.theory.predtron_bounds import weak_margin

COSTS = [[0.0, 2.0, 1.0], [0.5, 0.0, 4.0], [3.0, 1.0, 0.0]]
PLACES = ("-i", "-i^1.1", "-i^2", "1/i", "discount")


def _subsets(m):
    return [np.array(bits, float) for bits in product((0, 1), repeat=m)]


def _rankings(m):
    return [np.array(places) for places in permutations(range(m))]


def _grades(m, highest=2, count=12):
    rng = np.random.default_rng(m)
    return [rng.integers(highest + 1, size=m).astype(float) for _ in range(count)]


def instances():
    """Name -> (problem, all its predictions, some of its labels)."""
    cases = {
        "binary": (binary(), range(2), range(2)),
        "weighted": (binary((1.0, 10.0)), range(2), range(2)),
        "binary reject": (with_reject(2, (0.6, 0.3)), range(3), range(2)),
        "free reject": (with_reject(2, (0.6, 0.0)), range(3), range(2)),
        "multiclass": (multiclass(4), range(4), range(4)),
        "costs": (with_costs(COSTS), range(3), range(3)),
        "multiclass reject": (with_reject(4, 0.4), range(5), range(4)),
        "ordinal": (ordinal(5), range(5), range(5)),
    }
    losses = {"subset": SubsetZeroOne(), "hamming": Hamming(), "error-set": ErrorSetSize()}
    losses["counted"] = Counted(lambda b, c: b + 3.0 * c + b * c)
    for name, loss in losses.items():
        cases[name] = (Subsets(4, loss), _subsets(4), _subsets(4))
    for measure, places in [*product(["ndcg"], PLACES), ("ndcg@2", "-i^1.1"), ("p@2", "-i"), ("p@1", "discount")]:
        problem = Permutations(PlaceLoss(measure), Places(places), documents=4, highest=2)
        cases[f"{measure} {places}"] = (problem, _rankings(4), _grades(4))
    return cases


def pytest_generate_tests(metafunc):
    if "instance" in metafunc.fixturenames:
        cases = instances()
        metafunc.parametrize("instance", cases.values(), ids=cases.keys())


def _weak_grades(t, rng):
    """Grades that t orders, and whose ties stand in input order: a new grade wherever the input order is broken."""
    order = np.argsort(-t)
    drops = [0] + [int(b < a or rng.random() < 0.3) for a, b in pairwise(order)]
    levels = np.cumsum(drops)
    grades = np.empty(len(t))
    grades[order] = levels.max() - levels
    return grades


def _label(problem, t, rng):
    if isinstance(problem, Permutations):
        return _weak_grades(t, rng)
    if isinstance(problem, Subsets):
        return (t > 0.0).astype(float)
    margins = [weak_margin(problem, t, y, problem.correct(t, y)) for y in range(problem.losses.shape[1])]
    return int(np.argmax(margins))


@pytest.fixture
def separable():
    """A maker of (stream, W, margin): W has norm 1 (of the link), and weak margin γ on every round."""

    def make(problem, shape, norm="l2", n=150, lead=0.02, seed=0, documents=4):
        rng = np.random.default_rng(seed)
        W = rng.normal(size=shape)
        if norm != "l2":
            W[..., 3:] = 0.0
        W /= make_link(norm, shape).sparse(W)
        stream, gamma, scale = [], np.inf, lead * np.linalg.norm(W)
        while len(stream) < n:
            X = rng.uniform(-1.0, 1.0, size=shape[1] if len(shape) == 2 else (documents, shape[0]))
            t = W @ X if len(shape) == 2 else X @ W
            label = _label(problem, t, rng)
            margin = weak_margin(problem, t, label, problem.correct(t, label))
            if scale <= margin < np.inf:
                stream.append((X, label))
                gamma = min(gamma, margin)
        return stream, W, gamma

    return make
