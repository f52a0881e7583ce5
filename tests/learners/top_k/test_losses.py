"""The surrogates of feedback at the top against their definitions."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from ranktron import metric
from ranktron.learners.checks import check_surrogate
from ranktron.surrogates import (
    KL,
    CalibratedSquared,
    ListNet,
    PairwiseHinge,
    SmoothDCG,
    Squared,
    calibrated,
    kl,
    pairwise_hinge,
    smooth_dcg,
    squared,
)
from reproduction.theory.top_k_games import Indistinguishable

claim = pytest.mark.claim
RNG = np.random.default_rng(0)
LISTS = [(RNG.normal(size=m), RNG.integers(4, size=m).astype(float)) for m in (1, 2, 3, 5, 9) for _ in range(5)]


def softmax(values):
    return np.exp(values) / np.exp(values).sum()


CONVEX = [Squared(), pytest.param(KL(), marks=claim("TOPK", "14 s4.1")), KL(printed=True), CalibratedSquared()]


@pytest.mark.parametrize("surrogate", CONVEX, ids=repr)
def test_convex_surrogates_pass_the_checks(surrogate):
    check_surrogate(surrogate)


@claim("TOPK", "15 s4.1.1")
@pytest.mark.parametrize("surrogate", [SmoothDCG(1.0), SmoothDCG(0.2), SmoothDCG(0.5, printed=True)], ids=repr)
def test_smooth_dcg_passes_the_checks_but_is_not_convex(surrogate):
    check_surrogate(surrogate, convex=False)
    with pytest.raises(AssertionError, match="not convex"):
        check_surrogate(surrogate)


def test_squared_is_the_squared_distance():
    for s, R in LISTS:
        loss, gradient = Squared()(s, R)
        assert loss == pytest.approx(np.sum((s - R) ** 2))
        assert gradient == pytest.approx(2 * (s - R))


@claim("TOPK", "14 s4.1")
def test_kl_is_never_negative_and_zero_at_the_labels_only():
    for s, R in LISTS:
        loss, gradient = KL()(s, R)
        p, q = np.exp(R), np.exp(s)
        assert loss == pytest.approx(np.sum(p * np.log(p)) - np.sum(p * np.log(q)) - p.sum() + q.sum())
        assert gradient == pytest.approx(q - p)
        assert loss > 0.0
        assert KL()(R, R)[0] == pytest.approx(0.0, abs=1e-9)
        assert not KL()(R, R)[1].any()


@claim("TOPK", "13 s4.1")
def test_kl_of_distributions_is_the_cross_entropy_but_for_a_constant():
    for s, R in LISTS:
        p, q = softmax(R), softmax(s)
        divergence = np.sum(p * np.log(p)) - np.sum(p * np.log(q)) - p.sum() + q.sum()
        assert divergence - np.sum(p * np.log(p)) == pytest.approx(ListNet()(s, R)[0])


@claim("TOPK", "12 s4.1")
def test_listnets_gradient_is_a_difference_of_softmaxes():
    for s, R in LISTS:
        assert ListNet()(s, R)[1] == pytest.approx(softmax(s) - softmax(R), abs=1e-12)


def test_smooth_dcg_is_the_gain_of_a_softmax_with_its_sign_turned():
    for s, R in LISTS:
        loss, gradient = SmoothDCG(0.3)(s, R)
        assert loss == pytest.approx(-np.sum((2.0**R - 1) * softmax(s / 0.3)))
        printed = SmoothDCG(0.3, printed=True)(s, R)
        assert printed[0] == pytest.approx(-loss)
        assert printed[1] == pytest.approx(-gradient)
    sharp = SmoothDCG(1e-3)(np.array([0.1, 0.7, 0.2]), np.array([0.0, 2.0, 3.0]))[0]
    assert sharp == pytest.approx(-metric("dcg@1")(np.array([2.0, 3.0, 0.0])))


def test_the_calibrated_loss_shares_out_the_ideal_dcg():
    for s, R in LISTS:
        Z = metric("dcg")(np.sort(R)[::-1])
        shares = (2.0**R - 1) / Z if Z else np.zeros(len(R))
        loss, gradient = CalibratedSquared()(s, R)
        assert loss == pytest.approx(np.sum((s - shares) ** 2))
        assert gradient == pytest.approx(2 * (s - shares))


def test_the_kernels_equal_their_python_twins():
    for s, R in LISTS:
        one, two = np.empty(len(s)), np.empty(len(s))
        for call in (squared._squared_loss, kl._kl, calibrated._calibrated_loss):
            assert call(s, R, one) == pytest.approx(call.py_func(s, R, two))
            assert one == pytest.approx(two)
        k = min(3, len(s))
        places, weights = np.arange(k), RNG.uniform(1, 9, size=k)
        for call in (squared._estimate_squared, kl._estimate_kl, kl._estimated_as_printed):
            size = k if call is kl._estimated_as_printed else len(s)
            one, two = np.empty(size), np.empty(size)
            assert call(s, places, R[:k], weights, one) == pytest.approx(call.py_func(s, places, R[:k], weights, two))
            assert one == pytest.approx(two)
        one, two = np.empty(len(s)), np.empty(len(s))
        smooth = (s, places, R[:k], weights, 0.5, -1.0)
        assert smooth_dcg._estimate_smooth_dcg(*smooth, one) == pytest.approx(
            smooth_dcg._estimate_smooth_dcg.py_func(*smooth, two)
        )
        assert one == pytest.approx(two)
        pairs = (s, places, R[:k], np.add.outer(weights, weights), 1.0)
        one, two = np.empty(k), np.empty(k)
        assert pairwise_hinge.estimate_hinge(*pairs, one) == pairwise_hinge.estimate_hinge.py_func(*pairs, two)
        assert one == pytest.approx(two)


def expected(surrogate, s, patterns, P):
    return sum(p * surrogate(s, np.array(R, float))[0] for R, p in zip(patterns, P, strict=True))


@claim("TOPK", "25 Thm5.1")
def test_the_calibrated_loss_is_minimal_at_the_expected_shares():
    rng = np.random.default_rng(3)
    patterns = list(product(range(3), repeat=3))
    for _ in range(5):
        P = rng.dirichlet(np.full(len(patterns), 0.2))
        shares = [CalibratedSquared()(np.zeros(3), np.array(R, float))[1] / -2.0 for R in patterns]
        target = P @ np.array(shares)
        found = minimize(lambda s, P=P: expected(CalibratedSquared(), s, patterns, P), np.zeros(3)).x
        assert found == pytest.approx(target, abs=1e-5)
        gains = {
            o: P @ [metric("ndcg")(np.array(R, float)[list(o)]) if any(R) else 1.0 for R in patterns]
            for o in permutations(range(3))
        }
        assert gains[tuple(np.argsort(-target).tolist())] >= max(gains.values()) - 1e-12  # its order is best for NDCG


PATTERNS = [(1, 0, 0), (0, 1, 1)]


@claim("TOPK", "26 s1")
@pytest.mark.parametrize(
    ("surrogate", "share"), [(Squared(), 0.45), (PairwiseHinge(), 0.45), (ListNet(), 0.4)], ids=repr
)
def test_the_usual_surrogates_are_not_calibrated(surrogate, share):
    """The first document is best for expected NDCG, and the minimiser of the expected loss puts it last."""
    P = [share, 1.0 - share]
    ndcg = {
        o: sum(p * metric("ndcg")(np.array(R, float)[list(o)]) for R, p in zip(PATTERNS, P, strict=True))
        for o in ((0, 1, 2), (1, 2, 0))
    }
    assert ndcg[0, 1, 2] > ndcg[1, 2, 0]
    if isinstance(surrogate, PairwiseHinge):
        s = hinge_minimiser(P)
    else:
        s = minimize(lambda s: expected(surrogate, s, PATTERNS, P), np.zeros(3), method="BFGS").x
    assert s[0] < min(s[1], s[2]) - 1e-3
    target = (
        sum(p * CalibratedSquared()(np.zeros(3), np.array(R, float))[1] for R, p in zip(PATTERNS, P, strict=True)) / -2
    )
    assert target[0] > max(target[1], target[2])


def hinge_minimiser(P):
    """The minimiser of the expected pairwise hinge, as a linear program: scores, then a slack for every pair."""
    pairs = [(i, j, p) for R, p in zip(PATTERNS, P, strict=True) for i in range(3) for j in range(3) if R[i] > R[j]]
    A = np.zeros((len(pairs), 3 + len(pairs)))
    for row, (i, j, _) in enumerate(pairs):
        A[row, [i, j, 3 + row]] = -1.0, 1.0, -1.0
    cost = np.append(np.zeros(3), [p for _, _, p in pairs])
    bounds = [(-5, 5)] * 3 + [(0, None)] * len(pairs)
    return linprog(cost, A_ub=A, b_ub=-np.ones(len(pairs)), bounds=bounds).x[:3]


def test_the_two_distributions_look_the_same_from_the_top():
    one, other = Indistinguishable(), Indistinguishable(other=True)
    assert one.patterns.mean(axis=0).tolist() == other.patterns.mean(axis=0).tolist() == [0.5] * 3
    assert np.argmax(one.target) != np.argmax(other.target)


def test_labels_that_do_not_come_leave_the_printed_estimate_of_kl_at_0():
    _, gradient = KL(printed=True).estimate(np.full(3, 0.2), np.array([1]), np.array([2.0]), np.array([1.0, 4.0, 1.0]))
    assert gradient == pytest.approx([0.0, 4.0 * (np.exp(0.2) - np.exp(2.0)), 0.0])
