"""A curve holds among positions that documents moved between: no swaps, two islands, swaps, randomised pages."""

import numpy as np
import pytest

from ranktron import DataError, Impressions, RankingWarning
from ranktron.learners.clicks.em import MODEL_ALONE, em_examination
from ranktron.learners.clicks.estimating import METHODS, estimate_examination
from ranktron.learners.clicks.harvesting import harvested_examination
from ranktron.learners.clicks.identification import Swaps, compared_with_first, islands, name_islands, overlaps
from ranktron.learners.clicks.randomised import randomised_examination

M, QUERIES = 6, 30
MISSING = "a second ranker show other orders, or draw some pages at random"


def a_log(how, seed=0, sessions=1500, separate=False):
    """Pages of six documents of thirty queries, in an order that never changes, changes within halves, or is drawn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QUERIES, M, 2))
    if separate:
        X[..., 0] = -10.0 * np.arange(M)  # documents come in the order of this feature, which tells positions apart
    relevance = 1.0 / (1.0 + np.exp(-X[..., 1]))
    query = rng.integers(QUERIES, size=sessions)
    order = np.tile(np.arange(M), (sessions, 1))
    if how == "islands":
        order = np.concatenate([rng.permuted(order[:, :3], axis=1), rng.permuted(order[:, 3:], axis=1)], axis=1)
    elif how == "swaps":
        swapped = rng.random(sessions) < 0.5
        order[swapped] = np.roll(order, 1, axis=1)[swapped]
    elif how == "randomised":
        order = rng.permuted(order, axis=1)
    clicks = rng.random((sessions, M)) < relevance[query[:, None], order] / np.arange(1, M + 1)
    rows = np.repeat(np.arange(sessions), M)
    exploration = {"islands": np.full(rows.size, 1 / 3), "randomised": np.full(rows.size, 1 / M)}.get(how)
    log = Impressions.from_arrays(
        clicks.ravel().astype(float), rows, np.tile(np.arange(1, M + 1), sessions), query=query[rows],
        item=order.ravel(), exploration=exploration,
    )  # fmt: skip
    return log, X[query[:, None], order].reshape(-1, 2)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("still", "positions 1 | 2 | 3 | 4 | 5 | 6"),
        ("islands", "positions 1 to 3 | 4 to 6"),
        ("swaps", "positions 1 to 6"),
        ("randomised", "positions 1 to 6"),
    ],
)
def test_swaps_of_documents_connect_positions(how, expected):
    log, _ = a_log(how)
    assert name_islands(islands(Swaps(log).joined)) == expected


@pytest.mark.parametrize("how", ["still", "islands"])
@pytest.mark.parametrize("method", METHODS)
def test_a_log_that_does_not_connect_positions_is_refused_by_every_method(how, method):
    log, X = a_log(how, separate=how == "still")
    if how == "islands":
        X = np.column_stack([X, 10.0 * (log.position > 3)])
    with pytest.raises(DataError, match=MISSING if log.exploration is not None or method != "randomised" else "explor"):
        estimate_examination(log, X, method)
    if method == "em":
        with pytest.raises(DataError, match=rf"both sides of positions 1.*{MISSING}"):
            em_examination(log)


@pytest.mark.parametrize("how", ["still", "islands"])
def test_what_only_a_model_compares_is_said_and_has_no_interval(how):
    log, X = a_log(how, sessions=600)
    with pytest.warns(RankingWarning, match=f"rests on a model of relevance alone.*{MISSING}"):
        curve = em_examination(log, X, tol=1e-2, replicates=10)
    assert curve.basis == MODEL_ALONE
    assert curve.low is None
    assert curve.high is None


@pytest.mark.parametrize("how", ["swaps", "randomised"])
def test_a_log_that_connects_positions_gives_the_curve_with_an_interval(how):
    log, X = a_log(how, sessions=3000)
    curves = [harvested_examination(log, 40)]
    curves += [em_examination(log, features, tol=1e-3, replicates=2) for features in (None, X)]
    curves += [randomised_examination(log, 40)] if how == "randomised" else []
    for curve in curves:
        assert curve.values == pytest.approx(1.0 / np.arange(1, M + 1), rel=0.35)
        assert curve.basis == ("pages drawn at random" if curve.method == "randomised" else "documents that moved")
        assert np.isfinite(curve.high).all()


def test_a_position_that_few_clicks_connect_has_an_interval_without_bounds(counted):
    """Position 3 is compared by three impressions, which every twentieth resampled log leaves out."""
    cells = [("q", "a", 1, 40, 20), ("q", "a", 2, 40, 10), ("q", "b", 1, 2, 1), ("q", "b", 3, 1, 1)]
    curve = harvested_examination(counted(cells), 100)
    assert (curve.low[1] > 0.2, curve.high[1] < 1.0) == (True, True)
    assert (curve.low[2], curve.high[2]) == (0.0, np.inf)


def test_a_position_without_a_click_among_documents_that_moved_has_an_interval_without_bounds(counted):
    curve = harvested_examination(counted([("q", "a", 1, 40, 20), ("q", "a", 2, 40, 0)]), 20)
    assert curve.values[1] < 1e-3
    assert (curve.low[1], curve.high[1]) == (0.0, np.inf)
    assert compared_with_first(np.array([[0.0, 10.0], [0.0, 0.0]])).tolist() == [True, False]


def test_features_that_tell_positions_apart_do_not_overlap():
    log, X = a_log("still")
    assert islands(overlaps(log, X)) == [list(range(1, M + 1))]
    noise = np.random.default_rng(0).normal(size=(len(X), 60))
    few = np.flatnonzero(log.impression_of_rows < 25)  # fewer rows of a position than features
    small = Impressions.from_arrays(log.gains[few], log.impression_of_rows[few], log.position[few])
    assert islands(overlaps(small, noise[few])) == [list(range(1, M + 1))]
    apart = X.copy()
    apart[log.position > 2, 1] += 100.0
    assert islands(overlaps(log, apart)) == [[1, 2], [3, 4, 5, 6]]


def test_queries_are_resampled_with_all_of_their_impressions():
    """Where queries differ in their examination, an interval over impressions is too narrow."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(8), 400)
    steep = np.repeat(np.linspace(0.1, 0.9, 8), 400)
    order = rng.permuted(np.tile([0, 1], (3200, 1)), axis=1)
    clicks = rng.random((3200, 2)) < 0.5 * np.column_stack([np.ones(3200), steep])
    rows = np.repeat(np.arange(3200), 2)
    log = Impressions.from_arrays(clicks.ravel(), rows, np.tile([1, 2], 3200), query=query[rows], item=order.ravel())
    by_impression, by_query = (harvested_examination(log, 60, resample=unit) for unit in ("impressions", "queries"))
    assert np.log(by_query.high / by_query.low)[1] > 4.0 * np.log(by_impression.high / by_impression.low)[1]
    with pytest.raises(DataError, match="impressions or queries, not 'users'"):
        harvested_examination(log, 2, resample="users")
    alone = Impressions.from_arrays(log.gains[:800], rows[:800], log.position[:800], query="q", item=log.item[:800])
    with pytest.raises(DataError, match="there is one query in the log"):
        harvested_examination(alone, 2, resample="queries")
