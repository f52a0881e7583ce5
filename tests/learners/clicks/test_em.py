import numpy as np
import pytest

from ranktron import DataError, Impressions, RankingWarning
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


def seen_once(seed, relevance, sessions=2000, m=6):
    """Lists that are sorted by a feature that says nothing, of documents that are never seen again."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sessions, m, 3))
    place = np.argsort(np.argsort(-(X[..., 0] + 0.3 * rng.normal(size=(sessions, m))), axis=1), axis=1) + 1
    clicks = rng.random((sessions, m)) < relevance(X) / place
    return Impressions.from_arrays(clicks.ravel(), np.repeat(np.arange(sessions), m), place.ravel()), X.reshape(-1, 3)


def test_features_stand_for_documents_that_are_never_seen_again():
    log, X = seen_once(0, lambda X: 1.0 / (1.0 + np.exp(-(X @ [0.0, 1.5, -1.0]))))
    with pytest.warns(RankingWarning, match="rests on a model of relevance alone"):
        curve = em_examination(log, X)
    assert curve.values == pytest.approx(1.0 / np.arange(1, 7), rel=0.2)
    with pytest.raises(DataError, match="takes features, or query= and item="):
        em_examination(log)
    with pytest.raises(DataError, match="2 rows of features for 12000 rows"):
        em_examination(log, X[:2])


@pytest.mark.filterwarnings("ignore:position bias rests")
def test_clicks_that_no_feature_explains_do_not_make_the_curve_flatter():
    """Without the floor of the relevance the curve is too flat by 11 % here, on average over six logs."""
    apart = []
    for seed in range(6):
        log, X = seen_once(seed, lambda X: 0.2 + 0.8 * (X @ [0.0, 1.0, -1.0] > 1.0))
        apart.append(np.log(em_examination(log, X).values * np.arange(1, 7))[1:].mean())
    assert abs(np.mean(apart)) < 0.04


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
