"""The projection on the ℓ1,∞ ball against a general solver."""

import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from ranktron import DataError
from ranktron.learners.batch.projections import _lower_cap, _sum_from, cap_groups
from reproduction.theory.rank_mm import project_l1_inf

claim = pytest.mark.claim


def solved(A, radius, nonnegative):
    """The projection as a quadratic program over (b, γ) with −γ_g ≤ b_gi ≤ γ_g and Σ γ ≤ radius."""
    groups, members = A.shape
    n = A.size
    upper = np.kron(np.eye(groups), np.ones((members, 1)))
    bounds = [(0.0 if nonnegative else None, None)] * n + [(0.0, None)] * groups
    total = np.append(np.zeros(n), -np.ones(groups))
    constraints = [
        {"type": "ineq", "fun": lambda x: upper @ x[n:] - x[:n], "jac": lambda _: np.hstack([-np.eye(n), upper])},
        {"type": "ineq", "fun": lambda x: upper @ x[n:] + x[:n], "jac": lambda _: np.hstack([np.eye(n), upper])},
        {"type": "ineq", "fun": lambda x: radius - x[n:].sum(), "jac": lambda _: total},
    ]
    found = minimize(
        lambda x: ((x[:n] - A.ravel()) ** 2).sum(),
        np.append(np.zeros(n), np.full(groups, radius / groups)),
        jac=lambda x: np.append(2.0 * (x[:n] - A.ravel()), np.zeros(groups)),
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x[:n].reshape(A.shape)


@claim("RANKMM", "18 s3.3")
@pytest.mark.parametrize("nonnegative", [False, True])
def test_it_is_the_nearest_point(nonnegative):
    rng = np.random.default_rng(0)
    for _ in range(25):
        A, radius = rng.normal(size=(4, 3)), rng.uniform(0.01, 3.0)
        assert project_l1_inf(A, radius, nonnegative=nonnegative) == pytest.approx(
            solved(A, radius, nonnegative), abs=1e-6
        )


@claim("RANKMM", "18 s3.3")
def test_projecting_before_clipping_is_not_the_projection():
    rng = np.random.default_rng(1)
    wrong, right = [], []
    for _ in range(25):
        A, radius = rng.normal(size=(4, 3)), rng.uniform(0.01, 3.0)
        nearest = solved(A, radius, nonnegative=True)
        printed = np.maximum(project_l1_inf(A, radius), 0.0)
        wrong.append(np.abs(printed - nearest).max())
        right.append(np.abs(project_l1_inf(np.maximum(A, 0.0), radius) - nearest).max())
    assert max(right) < 1e-6
    assert max(wrong) > 0.3


@given(
    st.lists(st.lists(st.floats(-5.0, 5.0), max_size=6), min_size=1, max_size=6),
    st.floats(0.0, 10.0),
    st.booleans(),
)
def test_what_characterises_a_projection(groups, radius, nonnegative):
    values = np.array([v for group in groups for v in group])
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    found = project_l1_inf(values, radius, offsets, nonnegative=nonnegative)
    parts = [found[a:b] for a, b in pairwise(offsets)]
    norm = sum(np.abs(part).max() for part in parts if len(part))
    assert norm <= radius + 1e-9
    assert project_l1_inf(found, radius, offsets, nonnegative=nonnegative) == pytest.approx(found, abs=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(5):  # no feasible point lies in the direction of what was cut off: ⟨a − b, z − b⟩ ≤ 0
        other = rng.normal(size=len(values)) * (rng.random(len(values)) < 0.5)
        other = np.maximum(other, 0.0) if nonnegative else other
        size = sum(np.abs(other[a:b]).max() for a, b in pairwise(offsets) if b > a)
        other *= radius / max(size, 1e-300) if size > radius else 1.0
        assert (values - found) @ (other - found) <= 1e-7


def test_one_member_groups_are_the_l1_ball_and_one_group_is_the_box():
    a = np.array([3.0, -1.0, 0.5])
    assert project_l1_inf(a[:, None], 2.0)[:, 0] == pytest.approx([2.0, 0.0, 0.0])
    assert project_l1_inf(a[None, :], 2.0)[0] == pytest.approx([2.0, -1.0, 0.5])
    assert project_l1_inf(a[None, :], 0.0)[0].tolist() == [0.0, 0.0, 0.0]
    assert project_l1_inf([[1.0, 2.0]], 5.0).tolist() == [[1.0, 2.0]]


def test_a_small_radius_keeps_few_groups():
    rng = np.random.default_rng(2)
    weights = rng.normal(size=(20, 5)) * np.where(np.arange(20) < 3, 3.0, 0.2)[:, None]
    kept = [int(np.count_nonzero(np.abs(project_l1_inf(weights, r)).max(axis=1))) for r in (0.5, 2.0, 8.0, 1e3)]
    assert kept == sorted(kept)
    assert kept[1] <= 3
    assert kept[-1] == 20


def test_kernels_equal_their_python():
    rng = np.random.default_rng(3)
    values, offsets = np.maximum(rng.normal(size=12), 0.0), np.array([0, 5, 5, 12])
    fast, slow = values.copy(), values.copy()
    cap_groups(fast, offsets, 1.0)
    cap_groups.py_func(slow, offsets, 1.0)
    assert fast == pytest.approx(slow)
    assert _sum_from.py_func(np.array([3.0, 1.0, 0.5]), 1.0) == (4.0, 2)
    assert _lower_cap.py_func(np.array([3.0, 1.0]), 2.0, 3.0) == (1.0, 1)
    assert _lower_cap.py_func(np.array([3.0, 1.0]), 4.5, 3.0) == (0.0, 0)


def test_it_is_what_sorting_finds():
    """Caps lose the same θ: the sum of caps as a function of θ by sorting each group, solved by bisection."""
    rng = np.random.default_rng(5)

    def cap(group, theta):
        ordered = np.sort(group)[::-1]
        caps = (np.cumsum(ordered) - theta) / np.arange(1, len(group) + 1)  # if so many values are cut
        return max(float(caps.max()), 0.0)

    for _ in range(200):
        sizes = rng.integers(1, 9, rng.integers(1, 7))
        offsets = np.append(0, np.cumsum(sizes))
        values = np.maximum(np.round(rng.normal(size=offsets[-1]), int(rng.integers(1, 9))), 0.0)  # some are equal
        groups = [values[a:b] for a, b in pairwise(offsets)]
        radius = rng.uniform(0.0, 1.2) * sum(float(group.max()) for group in groups)
        low, high = 0.0, float(values.sum())
        for _ in range(80):
            theta = 0.5 * (low + high)
            low, high = (theta, high) if sum(cap(group, theta) for group in groups) > radius else (low, theta)
        expected = np.concatenate([np.minimum(group, cap(group, high)) for group in groups])
        cap_groups(values, offsets, radius)
        assert values == pytest.approx(expected, abs=1e-12)


@claim("RANKMM", "19 s3.3")
@pytest.mark.timed
def test_its_time_grows_like_n_log_n():
    def seconds(n):
        values = np.random.default_rng(4).random(n)
        offsets = np.arange(0, n + 1, 50)
        times = []
        for copy in [values.copy() for _ in range(7)]:
            began = time.process_time()
            cap_groups(copy, offsets, n / 500)
            times.append(time.process_time() - began)
        return min(times)

    seconds(1000)
    sizes = np.array([20_000, 80_000, 320_000, 1_280_000])
    slope = np.polyfit(np.log(sizes * np.log(sizes)), np.log([seconds(n) for n in sizes]), 1)[0]
    assert slope == pytest.approx(1.0, abs=0.2)


def test_nonsense_is_refused():
    with pytest.raises(DataError, match="radius"):
        project_l1_inf([[1.0]], -1.0)
    with pytest.raises(DataError, match="finite"):
        project_l1_inf([[np.nan]], 1.0)
    with pytest.raises(DataError, match="a group in each row"):
        project_l1_inf([1.0, 2.0], 1.0)
    with pytest.raises(DataError, match="offsets must rise"):
        project_l1_inf([1.0, 2.0], 1.0, [0, 2, 1])
