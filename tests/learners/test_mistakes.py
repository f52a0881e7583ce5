from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ranktron import metric
from ranktron.kernels.grades import by_grade
from ranktron.learners.mistakes import Misordered, misordered, misordered_list


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=6))
def test_a_mistake_is_a_loss_under_the_worst_tie_breaking(documents):
    scores = np.array([s for s, _ in documents], float)
    labels = np.array([y for _, y in documents], float)
    shown = [np.array(p) for p in permutations(range(len(scores))) if (np.diff(scores[list(p)]) <= 0).all()]
    worst = min(metric("ndcg")(labels[order]) for order in shown)
    assert Misordered()(scores, labels) == (worst < 1.0 - 1e-12)
    assert misordered.py_func(scores, labels, 0, False) == Misordered()(scores, labels)
    by_first = scores, *by_grade(labels)[:2]
    assert misordered_list(*by_first) == misordered_list.py_func(*by_first) == Misordered()(scores, labels)


def test_scores_that_differ_below_32_bits_tie():
    assert Misordered()(np.array([1.0 + 1e-12, 1.0]), np.array([1.0, 0.0]))


def test_scores_that_are_no_numbers_are_never_in_order():
    for labels in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
        documents, starts, _ = by_grade(np.array(labels))
        assert misordered_list(np.array([np.nan, 0.0]), documents, starts)
    huge = np.array([1e300, 1.0])  # infinite in 32 bits, and still above the other
    assert not misordered_list(huge, np.array([0, 1]), np.array([0, 1, 2]))


def test_a_list_sorted_by_relevance_is_no_success_at_zero_weights():
    assert Misordered()(np.zeros(3), np.array([2.0, 1.0, 0.0]))
