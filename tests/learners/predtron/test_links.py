"""Links: inverse of ∇ψ, strong convexity, dual norms and the inequalities of the appendices."""

import numpy as np
import pytest

from ranktron.learners.predtron import Euclidean, GroupLink, L1Link, Trace
from ranktron.learners.predtron import links as module

LINKS = {
    "vector": (L1Link(30), (30,)),
    "entrywise": (L1Link(60), (5, 12)),
    "group": (GroupLink(12), (5, 12)),
    "trace": (Trace(9), (9, 12)),
    "euclidean": (Euclidean(), (5, 12)),
    "smallest": (L1Link(8), (8,)),
}


def claim(item):
    return pytest.mark.claim("PREDTRON", item)


@pytest.fixture(params=LINKS.values(), ids=LINKS.keys())
def case(request):
    link, shape = request.param
    rng = np.random.default_rng(0)
    return link, [rng.normal(size=shape) * scale for scale in (1e-3, 1.0, 1.0, 50.0)]


@claim("44 Eq.6-7")
def test_the_link_is_the_gradient_of_the_dual_half_square(case):
    link, thetas = case
    rng = np.random.default_rng(1)
    for theta in thetas:
        d = rng.normal(size=theta.shape)
        h = 1e-5 * np.abs(theta).max()
        slope = (link.dual(theta + h * d) ** 2 - link.dual(theta - h * d) ** 2) / (4.0 * h)
        assert np.sum(link(theta) * d) == pytest.approx(slope, rel=1e-5, abs=1e-7 * link.dual(theta))


@claim("44 Eq.6-7")
def test_the_link_inverts_the_gradient_of_psi(case):
    """∇ψ(W) = Θ: the slope of ½‖W‖² at the link of Θ is Θ, so that Fenchel's inequality is tight."""
    link, thetas = case
    for theta in thetas:
        W = link(theta)
        assert link.norm(W) == pytest.approx(link.dual(theta))
        assert np.sum(W * theta) == pytest.approx(link.norm(W) * link.dual(theta))
        assert link(3.0 * theta) == pytest.approx(3.0 * W)
    assert not link(np.zeros_like(thetas[0])).any()


@claim("44 Eq.6-7")
def test_psi_is_strongly_convex(case):
    """ψ(V) >= ψ(W) + <∇ψ(W), V − W> + α/2 ‖V − W‖²."""
    link, thetas = case
    rng = np.random.default_rng(2)
    tightest = np.inf
    for theta in thetas:
        W = link(theta)
        for scale in (0.01, 1.0):
            V = W + scale * np.abs(W).max() * rng.normal(size=W.shape)
            rest = 0.5 * link.norm(V) ** 2 - 0.5 * link.norm(W) ** 2 - np.sum(theta * (V - W))
            quadratic = 0.5 * link.norm(V - W) ** 2
            assert rest >= link.alpha * quadratic * (1.0 - 1e-6)
            tightest = min(tightest, rest / quadratic)
    assert tightest < 10.0 * link.alpha


@claim("32 D")
def test_the_sparse_norm_is_within_a_factor_of_three(case):
    """‖w‖_r <= ‖w‖_1 <= 3 ‖w‖_r, also for columns and singular values."""
    link, Ws = case
    flat = np.ones_like(Ws[0]) if not isinstance(link, Trace) else np.eye(*Ws[0].shape)
    for W in [*Ws, flat]:
        assert link.norm(W) <= link.sparse(W) * (1.0 + 1e-12)
        assert link.sparse(W) <= 3.0 * link.norm(W)
    if not isinstance(link, Euclidean):
        assert link.sparse(flat) > 2.0 * link.norm(flat)  # p^(1/q) = e: the factor is nearly used up


@claim("32 D")
@claim("44 Eq.6-7")
def test_gradients_are_bounded_by_the_radius(case):
    """‖u vᵀ‖_* <= ‖u‖_2 |||v|||, Eq. (6); for lists ‖Xᵀu‖_q <= 3 max_j ‖X_j‖_2 ‖u‖_2."""
    link, Ws = case
    rng = np.random.default_rng(3)
    loosest = 0.0
    for W in Ws:
        for _ in range(50):
            if W.ndim == 2:
                u, v = rng.normal(size=W.shape[0]), rng.choice([-1.0, 1.0], size=W.shape[1])
                left, right = link.dual(np.outer(u, v)), np.linalg.norm(u) * link.radius(v)
            else:
                u, X = rng.normal(size=4), rng.normal(size=(4, W.shape[0]))
                left, right = link.dual(X.T @ u), np.linalg.norm(u) * link.radius(X)
            assert left <= right * (1.0 + 1e-12)
            loosest = max(loosest, left / right)
    assert loosest > 0.1


def test_kernels_equal_their_python():
    theta = np.array([0.5, -2.0, 0.0, 1e-9])
    for kernel in (module._power_norm, module._half_square_slope):
        for values in (theta, np.zeros(4)):
            assert kernel(values, 3.3) == pytest.approx(kernel.py_func(values, 3.3))


def test_large_exponents_do_not_overflow():
    theta = np.full(10**6, 1e200)
    link = L1Link(10**6)
    assert np.isfinite(link(theta)).all()
    assert link.dual(theta) == pytest.approx(1e200 * np.e)
