import numpy as np
import pytest

from ranktron import DataError, Impressions
from ranktron.learners.clicks.em import em_examination

CURVE = np.array([1.0, 0.5, 0.25])


def likelihood(log, curve, gamma):
    chance = curve[log.position - 1] * gamma[log.documents()]
    return np.where(log.clicks > 0, np.log(chance), np.log1p(-chance)).sum()


def test_counts_that_fit_the_model_give_its_curve(counted):
    cells = [("q", "a", k + 1, 40, round(40 * CURVE[k] * 0.8)) for k in range(3)]
    cells += [("q", "b", k + 1, 40, round(40 * CURVE[k] * 0.4)) for k in range(3)]
    assert em_examination(counted(cells), tol=1e-9).values == pytest.approx(CURVE, abs=1e-4)


def test_no_curve_near_it_is_likelier(simulated):
    """The slow twin: the likelihood itself, with the best relevance of each document found by a search."""
    log, _ = simulated(1, 400, shuffled=False, queries=6, m=4)
    curve = em_examination(log, tol=1e-10, iterations=3000).values
    grid = np.linspace(0.001, 0.999, 999)

    def best(curve):
        chance = np.clip(curve[log.position - 1][:, None] * grid, 1e-12, 1 - 1e-12)
        terms = np.where(log.clicks[:, None] > 0, np.log(chance), np.log1p(-chance))
        total = np.zeros((log.documents().max() + 1, len(grid)))
        np.add.at(total, log.documents(), terms)
        return total.max(axis=1).sum()

    at = best(curve)
    for k in (1, 2, 3):
        for factor in (0.9, 1.1):
            moved = curve.copy()
            moved[k] *= factor
            assert best(moved) < at


def test_features_stand_for_documents_that_are_never_seen_again():
    rng = np.random.default_rng(0)
    sessions, m = 1500, 6
    X = rng.normal(size=(sessions, m, 3))
    relevance = 1.0 / (1.0 + np.exp(-(X @ [0.0, 1.5, -1.0])))
    place = np.argsort(np.argsort(-(X[..., 0] + 0.3 * rng.normal(size=(sessions, m))), axis=1), axis=1) + 1
    clicks = rng.random((sessions, m)) < relevance / place
    log = Impressions.from_arrays(clicks.ravel(), np.repeat(np.arange(sessions), m), place.ravel())
    curve = em_examination(log, X.reshape(-1, 3))
    assert curve.values == pytest.approx(1.0 / np.arange(1, m + 1), rel=0.2)
    with pytest.raises(DataError, match="takes features, or query= and item="):
        em_examination(log)
    with pytest.raises(DataError, match="2 rows of features for 9000 rows"):
        em_examination(log, X.reshape(-1, 3)[:2])


def test_trust_gives_each_position_clicks_of_its_own(counted):
    slope, extra, relevance = [1.0, 0.5, 0.25], [0.0, 0.1, 0.05], {"a": 0.9, "b": 0.5, "c": 0.1, "d": 0.0}
    cells = [
        ("q", item, k + 1, 400, round(400 * (slope[k] * r + extra[k])))
        for item, r in relevance.items()
        for k in range(3)
    ]
    curve = em_examination(counted(cells), trust=True, tol=1e-10, iterations=3000)
    assert curve.values == pytest.approx(slope, abs=0.02)
    assert curve.offsets == pytest.approx(extra, abs=0.02)
    blind = em_examination(counted(cells), tol=1e-10)
    assert np.abs(blind.values - slope).max() > 0.05


def test_an_interval_lies_around_the_curve(simulated):
    log, _ = simulated(2, 200, shuffled=False, queries=5, m=3)
    curve = em_examination(log, replicates=10)
    assert ((curve.low < curve.values) & (curve.values < curve.high))[1:].all()
