"""What the papers say about metrics, claim by claim."""

from itertools import permutations
from math import comb, log2, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron.metrics import metric

binary_list = st.lists(st.integers(0, 1), min_size=1, max_size=25).filter(any)
mixed_list = binary_list.filter(lambda labels: 0 in labels)
graded_list = st.lists(st.integers(0, 3), min_size=1, max_size=6)
AP, RR, RPREC, BPREF, RANKEFF, Q = map(metric, ["map", "mrr", "rprec", "bpref", "rankeff", "inversions"])


def ranks_of_relevant(labels):
    return [i for i, y in enumerate(labels, start=1) if y > 0]


def phi(Z, m, ranks):
    return sum(i / r for i, r in enumerate(ranks[:m], start=1)) / Z


def root_sum(m):
    return sum(sqrt(i) for i in range(1, m + 1))


def measures_as_phi(labels):
    """Table 6: (value, Z, m) of each measure that is bounded by Φ."""
    ranks = ranks_of_relevant(labels)
    R = len(ranks)
    yield AP(labels), R, R
    yield RR(labels), 1, 1
    yield RPREC(labels), R, sum(r <= R for r in ranks)
    for K in (1, 3, 10):
        yield metric(f"p@{K}")(labels), K, sum(r <= K for r in ranks)


@pytest.mark.claim("COMMITTEE", "1 s3")
@pytest.mark.parametrize(
    ("shown", "dcg", "ndcg", "rr", "ap"),
    [
        ("RNRNRN", 1 + 1 / log2(3) + 1 / log2(5), 0.784, 1, (1 / 1 + 2 / 3 + 3 / 5) / 3),  # printed as 0.783
        ("NRRRNN", 1 + 1 / log2(3) + 1 / log2(4), 0.810, 1 / 2, (1 / 2 + 2 / 3 + 3 / 4) / 3),
        ("RRNNNR", 1 + 1 + 1 / log2(6), 0.907, 1, (1 / 1 + 2 / 2 + 3 / 6) / 3),
    ],
)
def test_same_inversions_other_values(shown, dcg, ndcg, rr, ap):
    labels = [float(c == "R") for c in shown]
    value = metric("ndcg:letor")(labels)
    assert value == pytest.approx(dcg / (1 + 1 + 1 / log2(3)))
    assert round(value, 3) == ndcg
    assert Q(labels) == 3
    assert RR(labels) == rr
    assert AP(labels) == pytest.approx(ap)


@pytest.mark.claim("COMMITTEE", "2 Thm1")
@given(binary_list)
def test_few_inversions_bound_every_phi_from_below(labels):
    R = sum(labels)
    for value, Z, m in measures_as_phi(labels):
        bound = root_sum(m) ** 2 / (Q(labels) + comb(R + 1, 2)) / Z
        assert phi(Z, m, ranks_of_relevant(labels)) >= bound - 1e-12
        assert value >= bound - 1e-12


@pytest.mark.claim("COMMITTEE", "3 Eq.3")
@given(binary_list)
def test_sum_of_ranks(labels):
    assert sum(ranks_of_relevant(labels)) == Q(labels) + comb(sum(labels) + 1, 2)


@pytest.mark.claim("COMMITTEE", "4 Eq.4/13")
@given(binary_list)
def test_the_bound_by_the_inversions_of_the_first_m(labels):
    """Eq. 13's binomial reads (m + 1 over 2); the printed q is a slip of the pen."""
    ranks = ranks_of_relevant(labels)
    for m in range(1, len(ranks) + 1):
        Q_m = Q(labels[: ranks[m - 1]])
        assert sum(ranks[:m]) == Q_m + comb(m + 1, 2) <= sum(ranks)
        assert phi(1, m, ranks) >= root_sum(m) ** 2 / (Q_m + comb(m + 1, 2)) - 1e-12
        sharper = root_sum(m) ** 2 / (Q_m + comb(m + 1, 2))
        assert sharper >= root_sum(m) ** 2 / (Q(labels) + comb(len(ranks) + 1, 2)) - 1e-12


@pytest.mark.claim("COMMITTEE", "5 T6")
@given(binary_list)
def test_average_precision_is_phi(labels):
    R = sum(labels)
    assert AP(labels) == pytest.approx(phi(R, R, ranks_of_relevant(labels)))


@pytest.mark.claim("COMMITTEE", "6 T6")
@given(binary_list)
def test_reciprocal_rank_is_phi(labels):
    assert RR(labels) == pytest.approx(phi(1, 1, ranks_of_relevant(labels)))


@pytest.mark.claim("COMMITTEE", "7 T6")
@given(binary_list, st.integers(1, 30))
def test_precision_is_at_least_phi(labels, K):
    """Equal only where the relevant documents among the first K lead the list."""
    ranks = ranks_of_relevant(labels)
    m = sum(r <= K for r in ranks)
    difference = metric(f"p@{K}")(labels) - phi(K, m, ranks)
    assert difference >= -1e-12
    assert (difference < 1e-12) == (ranks[:m] == list(range(1, m + 1)))


@pytest.mark.claim("COMMITTEE", "8 T6")
@given(binary_list)
def test_r_precision_is_at_least_phi(labels):
    ranks = ranks_of_relevant(labels)
    R = len(ranks)
    m = sum(r <= R for r in ranks)
    difference = RPREC(labels) - phi(R, m, ranks)
    assert difference >= -1e-12
    assert (difference < 1e-12) == (ranks[:m] == list(range(1, m + 1)))


@pytest.mark.claim("COMMITTEE", "9 s3.1")
@given(mixed_list)
def test_bpref_by_inversions(labels):
    """The paper divides by N R; bpref's own denominator is R min(N, R)."""
    R = sum(labels)
    N = len(labels) - R
    first = [i for i, y in enumerate(labels) if y == 0][: min(N, R)]
    Q_R = sum(n < r - 1 for r in ranks_of_relevant(labels) for n in first)
    assert BPREF(labels) == pytest.approx(1 - Q_R / (R * min(N, R)))
    assert BPREF(labels) >= 1 - Q(labels) / (R * min(N, R)) - 1e-12
    assert BPREF(labels) <= RANKEFF(labels) + 1e-12


@pytest.mark.claim("COMMITTEE", "10 s3.1")
@given(mixed_list)
def test_rank_efficiency_by_inversions(labels):
    R = sum(labels)
    assert RANKEFF(labels) == pytest.approx(1 - Q(labels) / ((len(labels) - R) * R))


@pytest.mark.claim("SLAM", "1 Eq.1")
@given(graded_list, st.integers(1, 7))
def test_ndcg_divides_by_the_best_permutation(labels, k):
    def dcg(ys):
        return sum((2**y - 1) / log2(i + 1) for i, y in enumerate(ys[:k], start=1))

    Z = max(dcg(order) for order in permutations(labels))
    expected = dcg(labels) / Z if Z > 0 else 1.0
    assert metric(f"ndcg@{k}")(labels) == pytest.approx(expected)


@pytest.mark.claim("SLAM", "2 Eq.2")
@given(binary_list)
def test_average_precision_is_the_mean_precision_at_relevant_ranks(labels):
    precisions = [sum(labels[: i + 1]) / (i + 1) for i, y in enumerate(labels) if y == 1]
    assert AP(labels) == pytest.approx(np.mean(precisions))


@pytest.mark.claim("RANKMM", "21 s4")
@given(graded_list.filter(any), st.integers(1, 6))
def test_letor_ndcg(labels, k):
    def discount(j):
        return 1 if j == 1 else log2(j)

    def dcg(ys):
        return sum((2**y - 1) / discount(j) for j, y in enumerate(ys[:k], start=1))

    if k <= len(labels):
        expected = dcg(labels) / max(map(dcg, permutations(labels)))
        assert metric(f"ndcg@{k}:letor")(labels) == pytest.approx(expected)
    else:
        assert metric(f"ndcg@{k}:letor")(labels) == 0.0


@pytest.mark.claim("RANKMM", "22 s4")
@given(binary_list)
def test_letor_precision(labels):
    for k in range(1, len(labels) + 1):
        assert metric(f"p@{k}:letor")(labels) == pytest.approx(sum(labels[:k]) / k)


@pytest.mark.claim("RANKMM", "23 s4")
@given(binary_list)
def test_letor_average_precision(labels):
    at_relevant = [metric(f"p@{k}:letor")(labels) for k, y in enumerate(labels, start=1) if y]
    assert metric("map:letor")(labels) == pytest.approx(np.mean(at_relevant))
