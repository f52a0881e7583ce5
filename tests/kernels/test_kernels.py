import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ranktron
from ranktron.kernels import dense, grades, sorting

SCORES = hnp.arrays(np.float64, st.integers(1, 30), elements=st.floats(-1e3, 1e3) | st.sampled_from([0.0, -0.0, 1.0]))
LABELS = hnp.arrays(
    np.float64, st.integers(1, 30), elements=st.integers(0, 4) | st.sampled_from([0.5, 40.0, -1.0, -90.0])
)


@given(SCORES)
def test_descending_is_a_stable_sort_of_float32_scores(scores):
    expected = np.argsort(-scores.astype(np.float32), kind="stable")
    assert (sorting.argsort_descending(scores) == expected).all()


@given(SCORES, st.integers(1, 35))
def test_the_foremost_are_the_beginning_of_descending(scores, k):
    first = sorting.argsort_top(scores, k)
    assert first.tolist() == sorting.argsort_descending(scores)[:k].tolist()
    assert (first == sorting.argsort_top.py_func(scores, k)).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([33, 100, 159, 160, 161, 700]), st.integers(1, 50))
def test_long_lists_are_sorted_alike(seed, m, k):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=m) * 10.0 ** rng.integers(-30, 30, size=m) * rng.integers(0, 2, size=m)
    order = np.argsort(-scores.astype(np.float32), kind="stable")
    assert (sorting.argsort_descending(scores) == order).all()
    assert (sorting.argsort_top(scores, k) == order[:k]).all()


@given(hnp.arrays(np.float64, st.sampled_from([3, 40, 200]), elements=st.floats(width=32)))
def test_even_scores_that_are_no_numbers_are_put_in_some_order(scores):
    assert sorted(sorting.argsort_descending(scores).tolist()) == list(range(len(scores)))
    assert (sorting.argsort_top(scores, 5) == sorting.argsort_descending(scores)[:5]).all()


@given(LABELS, st.integers(0, 2**32 - 1))
def test_documents_by_grade_and_their_extremes(labels, seed):
    documents, starts, values = grades.by_grade(labels)
    assert documents.tolist() == sorted(range(len(labels)), key=lambda i: (-labels[i], i))
    assert values.tolist() == sorted(set(labels.tolist()), reverse=True)
    assert all((labels[documents[a:b]] == v).all() for a, b, v in zip(starts, starts[1:], values, strict=False))
    assert starts[0] == 0
    assert starts[-1] == len(labels)
    scores = np.random.default_rng(seed).integers(-3, 4, len(labels)) / 2.0
    lowest, highest = grades.extremes(scores, documents, starts)
    below = grades.best_below(scores, highest)
    for g, v in enumerate(values):
        own = [i for i in range(len(labels)) if labels[i] == v]
        assert lowest[g] == min(own, key=lambda i: scores[i])
        assert highest[g] == max(own, key=lambda i: scores[i])
        lower = [i for i in range(len(labels)) if labels[i] < v]
        assert below[g] == -1 if not lower else scores[below[g]] == max(scores[lower])
    for fast, slow in ((grades.by_grade, (labels,)), (grades.extremes, (scores, documents, starts))):
        assert all((a == b).all() for a, b in zip(fast(*slow), fast.py_func(*slow), strict=True))


@given(hnp.arrays(np.float64, st.integers(0, 60), elements=st.integers(-5, 5)))
def test_rising_is_a_stable_sort(values):
    assert (sorting.argsort_ascending(values) == np.argsort(values, kind="stable")).all()
    assert (sorting.argsort_ascending.py_func(values) == sorting.argsort_ascending(values)).all()


def test_no_kernel_sorts_with_numpy():
    """Cached kernels that contain numpy's sorts have disturbed one another: `rising` and `descending` replace them."""
    for path in Path(ranktron.__file__).parent.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            marks = {getattr(mark, "id", "") for mark in getattr(function, "decorator_list", [])}
            if marks & {"jit", "jit_dot", "jit_rounding"}:
                called = {getattr(c.func, "attr", "") for c in ast.walk(function) if isinstance(c, ast.Call)}
                assert not called & {"sort", "argsort", "unique", "median"}, f"{path.name}: {function.name}"


def test_descending_handles_extremes():
    scores = np.array([0.0, np.inf, -1e300, 1e300, -np.inf, -0.0])
    assert sorting.argsort_descending(scores).tolist() == [1, 3, 0, 5, 2, 4]


def test_score_and_pull_back_are_matrix_products():
    rng = np.random.default_rng(0)
    X, w, g = rng.normal(size=(7, 5)).astype(np.float32), rng.normal(size=5), rng.normal(size=3)
    items = np.array([4, 0, 6])
    direction = np.full(5, 9.0)
    squared = dense.pull_back(X, items, g, direction, 0)
    assert dense.score(X, w) == pytest.approx(X.astype(float) @ w)
    assert direction == pytest.approx(X[items].astype(float).T @ g)
    assert squared == pytest.approx(direction @ direction)


def test_move_steps_against_the_direction():
    w, lag = np.ones(2), np.zeros(2)
    dense.move(w, lag, np.array([1.0, -2.0]), 0.5, 3.0)
    assert w.tolist() == [0.5, 2.0]
    assert lag.tolist() == [-1.5, 3.0]


@given(LABELS)
def test_grades_are_dense_ranks_of_the_labels(labels):
    codes, count = grades.grades(labels)
    values, inverse = np.unique(labels, return_inverse=True)
    assert count == len(values)
    assert (codes == inverse).all()


@pytest.mark.parametrize(
    ("items", "labels", "bad"),
    [
        ([1, 0], [0, 1], -1),
        ([2], [0], 0),
        ([-1], [0], 0),
        ([0, 0], [1, 1], 1),
        ([0], [-1], 0),
        ([0], [np.nan], 0),
        ([0], [np.inf], 0),
    ],
)
def test_observed_finds_what_cannot_be(items, labels, bad):
    gathered, found = dense.gather_observed(np.array([5.0, 6.0]), np.array(items), np.array(labels, float))
    assert found == bad
    if bad < 0:
        assert gathered.tolist() == [6.0, 5.0]


@pytest.mark.parametrize(
    ("items", "labels", "full"),
    [
        ([0, 1], [0, 2], True),
        ([1, 0], [0, 2], False),
        ([0], [0], False),
        ([0, 1], [0], False),
        *(([0, 1], [1, wrong], False) for wrong in (-1, -1e-300, np.nan, np.inf, -np.inf)),
    ],
)
def test_feedback_is_full_with_valid_labels_of_all_documents(items, labels, full):
    assert dense.is_full(np.array(items), np.array(labels, float), 2) == full


@given(SCORES, st.integers(0, 2**32 - 1))
def test_kernels_equal_their_python_twins(scores, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=len(scores)) * rng.choice([1.0, 0.5])
    items = rng.permutation(len(scores))
    X, w = rng.normal(size=(len(scores), 3)).astype(np.float32), rng.normal(size=3)
    assert (sorting.argsort_descending(scores) == sorting.argsort_descending.py_func(scores)).all()
    assert dense.score(X, w) == pytest.approx(dense.score.py_func(X, w), rel=1e-12, abs=1e-12)
    assert (grades.grades(labels)[0] == grades.grades.py_func(labels)[0]).all()
    assert (
        dense.gather_observed(scores, items, labels)[0] == dense.gather_observed.py_func(scores, items, labels)[0]
    ).all()
    one, two = np.empty(3), np.empty(3)
    dense.pull_back(X, items, labels, one, 0)
    dense.pull_back.py_func(X, items, labels, two, 0)
    assert one == pytest.approx(two, rel=1e-12, abs=1e-12)
