import os
import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktron
from ranktron import DataError, Model, Rounds, evaluate, metric
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch import rank_boost
from ranktron.learners.batch.rank_boost import Boosting, Stumps, add_up, fill_potentials, stump_state
from ranktron.learners.batch.thresholds import _best_of_entries, add_step, find_thresholds, step_scores
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.learners.schedule import Fit, Schedule
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=5, documents=9).rounds(12)
HELD_OUT = WebSearch(features=5, documents=9).rounds(24)[12:]
NDCG = metric("ndcg@10")


def pairs_of(lists):
    pairs = Pairs.of(lists.labels, lists.offsets)
    upper, lower = pairs.decode(pairs.all())
    return upper, lower, pairs.counts, np.searchsorted(lists.offsets, upper, side="right") - 1


def distribution(lists, scores, balance):
    """D over all pairs, and its sum before it is normalised."""
    upper, lower, counts, query = pairs_of(lists)
    first = np.full(len(upper), 1.0) if balance == "pair" else 1.0 / counts[query]
    weights = first / first.sum() * np.exp(scores[lower] - scores[upper])
    return weights / weights.sum(), weights.sum()


@pytest.mark.parametrize("balance", ["query", "pair"])
def test_one_number_per_document_stands_for_all_its_pairs(balance):
    scores = np.random.default_rng(0).normal(size=len(LISTS.labels))
    upper, lower, *_ = pairs_of(LISTS)
    D, total = distribution(LISTS, scores, balance)
    expected = total * (np.bincount(upper, D, len(scores)) - np.bincount(lower, D, len(scores)))
    boosting = Boosting(LISTS, balance)
    for function in (fill_potentials, fill_potentials.py_func):
        found, above = np.empty((2, len(scores)))
        weights = boosting._weights, boosting._parts
        function(scores, LISTS.labels, LISTS.offsets, *weights, found, above, 0, len(LISTS))
        assert add_up(above) == pytest.approx(total)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("balance", ["query", "pair"])
def test_each_threshold_is_the_best_of_all_and_mends_as_much_as_it_promises(balance):
    boosting = Boosting(LISTS, balance)
    upper, lower, *_ = pairs_of(LISTS)
    for _ in range(8):
        before = boosting.scores.copy()
        D, total = distribution(LISTS, before, balance)
        assert boosting.step()
        assert boosting.potential == pytest.approx(total)
        best = 0.0
        for feature in range(5):
            for threshold in np.unique(LISTS.X[:, feature]):
                h = (LISTS.X[:, feature] > threshold).astype(float)
                best = max(best, abs(D @ (h[upper] - h[lower])))
        h = (LISTS.X[:, boosting.features[-1]] > boosting.thresholds[-1]).astype(float)
        r = D @ (h[upper] - h[lower])
        assert abs(r) == pytest.approx(best)
        assert boosting.alphas[-1] == pytest.approx(0.5 * np.log((1.0 + r) / (1.0 - r)))
        assert boosting.scores == pytest.approx(before + boosting.alphas[-1] * h)
        _, after = distribution(LISTS, boosting.scores, balance)
        assert after <= total * np.sqrt(1.0 - r * r) + 1e-12
        misordered = np.mean(boosting.scores[lower] >= boosting.scores[upper])
        if balance == "pair":
            assert misordered <= after


def test_the_scorer_adds_up_the_thresholds_it_was_given():
    boosting = Boosting(LISTS)
    for _ in range(20):
        boosting.step()
    stumps = Stumps(5)
    stumps.restore(stump_state(boosting, 20))
    assert stumps.predict(LISTS.X) == pytest.approx(boosting.scores)
    few = Stumps(5)
    few.restore(stump_state(boosting, 3))
    assert len(np.unique(few.predict(LISTS.X))) <= 8
    for bad in ({"features": np.array([5])}, {"alphas": np.zeros(2)}):
        with pytest.raises(DataError, match="state does not hold"):
            stumps.restore({**stump_state(boosting, 1), **bad})
    with pytest.raises(DataError, match="cannot learn online"):
        stumps.learn(LISTS[0].X, stumps.rank(LISTS[0].X, 0), stumps.simulated_feedback(LISTS[0], None))


@pytest.mark.filterwarnings("ignore:nothing can be learnt:ranktron.RankingWarning")
def test_it_stops_where_every_pair_is_in_order_or_nothing_helps():
    lists = Rounds.from_arrays([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]], [0, 1, 2])
    trained = train(TrainingPlan("rankboost", {"n_rounds": 500}), lists)
    assert 2 <= trained.history.epoch < 500
    assert evaluate(lists, trained.model.score_rounds(lists), "ndcg").means["ndcg"] == 1.0
    alike = Rounds.from_arrays(np.ones((3, 2)), [0, 1, 2])
    assert train(TrainingPlan("rankboost"), alike).history.epoch == 0
    one_grade = Rounds.from_arrays(LISTS.X[:4], np.ones(4))
    nothing = train(TrainingPlan("rankboost"), one_grade)
    assert nothing.history.remarks == {"queries of one grade": 1}
    assert nothing.model.score_rounds(one_grade).tolist() == [0.0] * 4


def test_held_out_lists_choose_how_many_thresholds_are_kept():
    trained = train(TrainingPlan("rankboost", {"n_rounds": 40}), LISTS, valid=HELD_OUT)
    values = [means["ndcg@10"] for means in trained.history.valid]
    assert len(values) == 40
    assert trained.history.epoch == 1 + int(np.argmax(values)) == len(trained.model.state["alphas"])
    measured = evaluate(HELD_OUT, trained.model.score_rounds(HELD_OUT), NDCG).means["ndcg@10"]
    assert measured == pytest.approx(max(values)) == trained.history.best_values["ndcg@10"]
    lowest = train(TrainingPlan("rankboost", {"n_rounds": 9}, select=metric("inversions")), LISTS, valid=HELD_OUT)
    assert lowest.history.epoch == 1 + int(np.argmin([means["inversions"] for means in lowest.history.valid]))


def test_going_on_equals_never_having_stopped():
    whole = train(TrainingPlan("rankboost", {"n_rounds": 9}), LISTS).model
    part = train(TrainingPlan("rankboost", {"n_rounds": 3}), LISTS).model
    more = train(TrainingPlan("rankboost"), LISTS, start=Model.from_bytes(part.to_bytes()), valid=HELD_OUT)
    assert more.history.first_epoch == 3
    assert len(more.history.valid) == 3
    rest = train(
        TrainingPlan("rankboost"),
        LISTS,
        start=train(TrainingPlan("rankboost", {"n_rounds": 3}), LISTS, start=part).model,
    )
    assert rest.model.state["thresholds"].tolist() == whole.state["thresholds"].tolist()
    assert rest.model.state["alphas"] == pytest.approx(whole.state["alphas"])


def test_ctrl_c_keeps_what_was_chosen(monkeypatch):
    steps = 0
    step = Boosting.step

    def interrupted(self):
        nonlocal steps
        steps += 1
        if steps == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return step(self)

    monkeypatch.setattr(Boosting, "step", interrupted)
    fit = Fit(LISTS, Schedule())
    state = rank_boost.fit_rank_boost(fit, {"n_rounds": 9, "balance": "pair"})
    assert fit.history.interrupted
    assert len(state["alphas"]) == 3


def test_it_learns_what_no_linear_ranker_can():
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = (np.abs(X[:, 0] - 0.5) < 0.2).astype(float)
    ranker = ranktron.RankBoost(n_rounds=20).fit(X, y, group=[20] * 20)
    assert evaluate(Rounds.from_arrays(X, y, group=[20] * 20), ranker.predict(X), "rankeff").means["rankeff"] > 0.98
    with pytest.raises(DataError, match="not linear"):
        ranker.coef_


@pytest.mark.parametrize("sparse", [False, True])
def test_what_thresholds_of_a_feature_add_up_to_explains_a_score(sparse):
    model = train(TrainingPlan("rankboost", {"n_rounds": 20}), LISTS).model
    X, stumps = LISTS[0].X, model.learner()
    found = stumps.contributions(Sparse.from_matrix(X) if sparse else X)
    for j in range(X.shape[1]):
        own = stumps.features == j
        steps = X[:, [j]] > stumps.thresholds[own]
        assert found[:, j].tolist() == pytest.approx((steps * stumps.alphas[own]).sum(axis=1))
    explanation = model.explain(X)
    assert explanation.contributions.sum(axis=1) == pytest.approx(explanation.scores)
    assert np.ptp(explanation.scores) > 0.0


def test_scores_stay_finite_over_many_rounds():
    lists = Separable(documents=8, features=6, margin=0.1).rounds(10)
    trained = train(TrainingPlan("rankboost", {"n_rounds": 2000}), lists)
    assert np.isfinite(trained.model.score_rounds(lists)).all()


@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 9),
    density=st.sampled_from([0.0, 0.3, 0.9, 1.0]),
    kind=st.sampled_from(["ones", "positive", "negative", "mixed"]),
    zeros=st.booleans(),
)
def test_sparse_thresholds_are_those_of_the_written_rows(seed, m, density, kind, zeros):
    """Up to rounding, and where several thresholds gather as much, up to which of them is found first."""
    rng = np.random.default_rng(seed)
    values = {"ones": np.ones((m, 4)), "mixed": rng.integers(-3, 4, (m, 4))}.get(kind, rng.integers(1, 4, (m, 4)))
    X = ((rng.random((m, 4)) < density) * values * (-1 if kind == "negative" else 1)).astype(np.float32)
    rows = Sparse.from_matrix(X)
    if zeros:  # a 0 that is written out counts as one that is not
        every = np.tile(np.arange(4, dtype=np.int32), m)
        rows = Sparse(np.arange(m + 1) * 4, every, X.reshape(-1), 4)
    pi = rng.normal(size=m)
    pi -= pi.mean()
    dense, sparse = find_thresholds(X).best(pi), find_thresholds(rows).best(pi)
    assert abs(sparse.gathered) == pytest.approx(abs(dense.gathered), rel=1e-9, abs=1e-12)
    if np.isfinite(sparse.value):
        assert pi[X[:, sparse.feature] > sparse.value].sum() == pytest.approx(sparse.gathered, abs=1e-12)
        assert sparse.value not in X[:, sparse.feature]
    two = find_thresholds(rows)
    arrays = two.bounds, two.rows, two.values
    slow, fast = _best_of_entries.py_func(*arrays, pi)[2], _best_of_entries(*arrays, pi)[2]
    assert abs(slow) == pytest.approx(abs(fast))  # numpy sums in another order: of equal thresholds it may meet another
    steps = rng.integers(4, size=6), rng.normal(size=6), rng.normal(size=6)
    assert (step_scores(rows, *steps) == step_scores(X, *steps)).all()  # in the same order: to the bit
    scores = np.zeros((2, m))
    for features, own in zip((X, rows), scores, strict=True):
        add_step(features, 2, 0.5, 3.0, own)
    assert (scores[0] == scores[1]).all()
    assert (scores[0] == 3.0 * (X[:, 2] > 0.5)).all()


def test_boosting_sparse_lists_chooses_the_same_thresholds():
    lists = WebSearch(features=8, documents=15).rounds(40)
    X = lists.X * (np.random.default_rng(0).random(lists.X.shape) < 0.5)
    group = np.diff(lists.offsets)
    both = (Rounds.from_arrays(features, lists.labels, group=group) for features in (X, Sparse.from_matrix(X)))
    runs = [Boosting(each) for each in both]
    for boosting in runs:
        for _ in range(40):
            assert boosting.step()
    assert runs[1].features == runs[0].features
    assert runs[1].thresholds == pytest.approx(runs[0].thresholds, rel=1e-12)
    assert runs[1].alphas == pytest.approx(runs[0].alphas, rel=1e-9)
    assert runs[1].scores == pytest.approx(runs[0].scores, rel=1e-9)
