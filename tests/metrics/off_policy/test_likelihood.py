"""Empirical likelihood intervals: against closed forms and a plain optimiser, and how often they hold the value."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import t as student

from benchmarks.off_policy import drawn_policies, likelihood_intervals, measure, worlds
from ranktron.metrics.off_policy import ips, self_normalised
from ranktron.metrics.off_policy.likelihood import likelihood_interval, threshold

FEW = 0.5 * student.ppf(0.975, 30) ** 2


@pytest.mark.parametrize("n", [5, 30, 100, 10_000])
def test_the_threshold_is_that_of_students_t(n):
    """Of n equal deviations among rows without any; below 30 it stays at that of 30."""
    m = np.append(np.ones(n), np.zeros(50))
    found = threshold(np.ones_like(m), m)
    assert found == pytest.approx(0.5 * student.ppf(0.975, max(n, 30)) ** 2, rel=1e-4)
    assert found == pytest.approx(threshold(np.ones_like(m), 7.0 * m))


def divergence(p, q):
    """Of a coin with p from one with q."""
    return (p * np.log(p / q) if p else 0.0) + ((1 - p) * np.log((1 - p) / (1 - q)) if p < 1 else 0.0)


@pytest.mark.parametrize("clicks", [0, 1, 7, 99, 100])
def test_of_equal_weights_it_is_the_likelihood_ratio_interval_of_a_coin(clicks):
    n, rate = 100, clicks / 100
    gains = np.repeat([1.0, 0.0], [clicks, n - clicks])
    low, high = likelihood_interval(gains, np.ones(n), np.zeros(n), np.ones(n))

    def excess(v):
        return n * divergence(rate, v) - FEW

    assert low == pytest.approx(brentq(excess, 1e-12, rate) if clicks else 0.0, abs=1e-5)
    assert high == pytest.approx(brentq(excess, rate, 1 - 1e-12) if clicks < n else 1.0, abs=1e-5)


def a_log(n=400, rate=0.03, seed=0):
    rng = np.random.default_rng(seed)
    weights = rng.lognormal(sigma=1.2, size=n)
    weights /= weights.mean()
    return weights, (rng.random(n) < rate).astype(float)


@pytest.mark.parametrize("ratio", [False, True])
def test_at_its_ends_the_best_bet_reaches_the_threshold(ratio):
    weights, clicks = a_log()
    divisors = weights if ratio else np.ones_like(weights)
    ends = likelihood_interval(weights * clicks, divisors, 0.0 * weights, weights)
    value = (weights @ clicks) / divisors.sum()
    assert ends[0] < value < ends[1]
    wanted = threshold(np.ones_like(weights), weights * clicks - divisors * value)
    for end in ends:
        m = weights * clicks - divisors * end
        bounds = -1.0 / (weights - divisors * end).max(), -1.0 / (-divisors * end).min()
        best = minimize_scalar(lambda bet, m=m: -np.log1p(bet * m).sum(), bounds=bounds, method="bounded",
                               options={"xatol": 1e-10})  # fmt: skip
        assert -best.fun == pytest.approx(float(wanted), rel=1e-4)


def test_counted_rows_are_rows():
    weights, clicks = a_log()
    whole = likelihood_interval(weights * clicks, weights, 0.0 * weights, weights)
    both = np.concatenate([weights, weights])
    counts = np.concatenate([clicks, 1.0 - clicks])
    terms = np.concatenate([weights, 0.0 * weights])
    counted = likelihood_interval(terms, both, 0.0 * both, both, counts)
    np.testing.assert_allclose(counted, whole, rtol=1e-7)
    several = likelihood_interval(*(np.stack([each, each]) for each in (terms, both, 0.0 * both, both)),
                                  np.stack([counts, counts]))  # fmt: skip
    np.testing.assert_allclose(several, np.stack([whole, whole], axis=1), rtol=1e-7)


def test_what_the_benchmark_measures_is_what_the_estimators_return():
    rng = np.random.default_rng(3)
    weights, clicks = np.array([0.25, 1.0, 4.0]), np.array([0.01, 0.05, 0.02])
    cells = rng.choice(3, p=[0.6, 0.3, 0.1], size=500)
    gains, logged = (rng.random(500) < clicks[cells]).astype(float), np.full(500, 0.2)
    shown = np.bincount(cells, minlength=3)[None]
    clicked = np.bincount(cells, gains, minlength=3)[None].astype(int)
    for estimator, is_ratio in ((ips, False), (self_normalised, True)):
        found = estimator(gains[:, None], logged[:, None], (weights[cells] * logged)[:, None])
        counted = likelihood_intervals(shown, clicked, weights, is_ratio)
        np.testing.assert_allclose([found.low, found.high], np.concatenate(counted), rtol=1e-6)


def test_intervals_of_rare_clicks_cover():
    """150 logs for each of six kinds, in which 143 are expected; 134 is three standard errors of .93 below."""
    chosen = [(mean, world) for mean, world in worlds(*drawn_policies()) if world.name in (
        "uniform, asked about peaked", "peaked, asked about uniform")]  # fmt: skip
    assert len(chosen) == 6
    for mean, world in chosen:
        found, _ = measure(world, 3_000, 150, seed=1)
        for name in ("ips", "self", "difference"):
            assert found[name][0] >= 0.93 - 3 * np.sqrt(0.93 * 0.07 / 150), (name, mean, world.name)
        assert found["self"][1] <= 0.65 * found["gamma"][1] or found["self"][1] <= 1.8 * found["normal"][1]
        if mean == 0.003:
            assert found["normal"][0] < 0.85
