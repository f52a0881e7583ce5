import os
import signal
from math import exp, log2

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Rounds, evaluate, metric
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch import smooth_rank
from ranktron.learners.batch.smooth_rank import SMOOTHINGS, SmoothNDCG, fit_smooth_rank, maximise, spread_within
from ranktron.learners.schedule import Fit, Schedule
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=5, documents=9, seed=1).rounds(15)
W = np.random.default_rng(0).normal(size=5)
DEFAULTS = {"k": 10, "C": 20.0, "max_iter": 50}


def reference(lists, w, k, smoothing):
    """The definition, document by document; queries of one grade are left out."""
    values = []
    for each in lists:
        if len(set(each.labels)) == 1:
            continue
        scores = each.X.astype(float) @ w
        gains = 2.0**each.labels - 1.0
        best = sum(g / log2(2 + j) for j, g in enumerate(sorted(gains, reverse=True)[:k]))
        total = 0.0
        for j, at in enumerate(sorted(scores, reverse=True)[:k]):
            near = [exp(-((s - at) ** 2) / smoothing) for s in scores]
            total += sum(h * g for h, g in zip(near, gains, strict=True)) / sum(near) / log2(2 + j)
        values.append(total / best)
    return float(np.mean(values))


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("smoothing", [0.1, 2.0])
def test_value_is_the_definition_and_gradient_its_slope(k, smoothing):
    objective = SmoothNDCG(LISTS, k)
    value, gradient = objective(W, smoothing)
    assert value == pytest.approx(reference(LISTS, W, k, smoothing))
    h = 1e-5
    for v in np.eye(5):
        slope = (objective(W + h * v, smoothing)[0] - objective(W - h * v, smoothing)[0]) / (2 * h)
        assert gradient @ v == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_without_smoothing_it_is_ndcg():
    lists = LISTS[[q for q in range(len(LISTS)) if len(set(LISTS[q].labels)) > 1]]
    expected = evaluate(lists, lists.X.astype(float) @ W, [metric("ndcg@3")]).means["ndcg@3"]
    assert SmoothNDCG(lists, 3)(W, 1e-9)[0] == pytest.approx(expected)


def test_a_query_of_weight_two_counts_like_two_queries():
    weights = np.ones(len(LISTS))
    weights[[2, 5]] = 2.0
    twice = LISTS[np.concatenate([np.arange(len(LISTS)), [2, 5]])]
    for one, two in zip(SmoothNDCG(LISTS, 5, weights)(W, 1.0), SmoothNDCG(twice, 5)(W, 1.0), strict=True):
        assert one == pytest.approx(two)


def test_scores_are_measured_by_their_spread_within_lists():
    scores = np.concatenate([[1.0, 5.0], [100.0, 100.0]])
    lists = Rounds.from_arrays(np.ones((4, 1)), [0, 1, 0, 1], group=[2, 2])
    assert spread_within(lists, scores) == pytest.approx(np.sqrt((4.0 + 4.0) / 4))


def test_a_narrow_smoothing_begins_where_a_wide_one_ended(monkeypatch):
    objective = SmoothNDCG(LISTS)
    whole = maximise(objective, W, C=20.0)

    def loss(w):
        return 0.5 * (w - W) @ (w - W) - 20.0 * objective(w, SMOOTHINGS[-1])[0]

    monkeypatch.setattr(smooth_rank, "SMOOTHINGS", SMOOTHINGS[-1:])
    at_once = maximise(objective, W, C=20.0)
    assert loss(whole) < loss(W)  # what is gained is worth the distance
    assert not np.allclose(whole, at_once)


def test_it_begins_with_listnet_and_stays_there_if_c_is_small():
    lists = WebSearch(features=5, seed=2).rounds(40)
    recommended = ranktron.OnlineListNet(random_state=0).fit(lists.X, lists.labels, group=np.diff(lists.offsets))
    near = train(TrainingPlan("smoothrank", {"C": 1e-9}, Schedule(10), scaling="standard"), lists).model
    listnet = recommended.predict(lists.X)
    expected = listnet / spread_within(lists, listnet)
    found = near.score_rounds(lists)
    assert found - found.mean() == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_it_improves_ndcg_on_what_it_learns_from():
    lists = WebSearch(features=8, documents=20, seed=3).rounds(60)
    ndcg = metric("ndcg@5")
    start, end = (
        evaluate(
            lists,
            train(TrainingPlan("smoothrank", given, Schedule(10), scaling="standard"), lists).model.score_rounds(lists),
            [ndcg],
        )
        for given in ({"k": 5, "C": 1e-9}, {"k": 5, "C": 100.0})
    )
    assert end.means["ndcg@5"] > start.means["ndcg@5"] + 0.005


def test_units_of_the_features_do_not_matter_to_the_start():
    lists = Separable(features=4).rounds(30)
    scaled = Rounds.from_arrays(lists.X * 1e6, lists.labels, group=np.diff(lists.offsets))
    one, other = (
        train(TrainingPlan("smoothrank", schedule=Schedule(3), scaling="standard"), each).model
        for each in (lists, scaled)
    )
    assert one.score_rounds(lists) == pytest.approx(other.score_rounds(scaled), rel=1e-3, abs=1e-3)


def test_sparse_features_give_the_same_ranker():
    sparse = Rounds(Sparse.from_matrix(LISTS.X), LISTS.labels, LISTS.offsets, LISTS.qids)
    dense = fit_smooth_rank(Fit(LISTS, Schedule(3)), DEFAULTS)["coef"]
    assert fit_smooth_rank(Fit(sparse, Schedule(3)), DEFAULTS)["coef"] == pytest.approx(dense, rel=1e-6)


def test_a_model_is_continued_from_its_weights():
    found = fit_smooth_rank(Fit(LISTS, Schedule(3), start={"coef": W, "constant": 0.0}), {**DEFAULTS, "C": 1e-9})
    assert found["coef"] == pytest.approx(W / spread_within(LISTS, LISTS.X.astype(float) @ W), rel=1e-6)


def test_queries_of_one_grade_teach_nothing_and_are_counted():
    flat = Rounds.from_arrays(LISTS.X, np.ones(len(LISTS.labels)), group=np.diff(LISTS.offsets))
    fit = Fit(flat, Schedule(1))
    assert not fit_smooth_rank(fit, DEFAULTS)["coef"].any()
    assert fit.history.remarks["queries of one grade"] == len(LISTS)


def test_weights_of_documents_are_refused():
    with pytest.raises(DataError, match="same for all rows of a query"):
        fit_smooth_rank(Fit(LISTS, Schedule(1), document_weights=np.ones(len(LISTS.labels))), DEFAULTS)


def test_ctrl_c_keeps_what_was_found(monkeypatch):
    asked, value = [], SmoothNDCG.__call__

    def interrupted(self, w, smoothing):
        if not asked:
            os.kill(os.getpid(), signal.SIGINT)
        asked.append(smoothing)
        return value(self, w, smoothing)

    monkeypatch.setattr(SmoothNDCG, "__call__", interrupted)
    fit = Fit(LISTS, Schedule(1))
    found = fit_smooth_rank(fit, DEFAULTS)["coef"]
    assert fit.history.interrupted
    assert set(asked) == {SMOOTHINGS[0]}
    assert found.any()
