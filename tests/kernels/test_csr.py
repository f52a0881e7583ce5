"""Sparse rows stand for the same numbers as a matrix, and their kernels are twins of the dense ones."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from ranktron import DataError, Feedback, Rounds, play
from ranktron.data.scaling import feature_ranges, fit_scaler, scale
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr import ONES, descend_rows, pull_back_rows, score_rows
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import descend, pull_back, score
from ranktron.learners import classification_perceptron, feedback, hinge_perceptron, online_listnet, slam_perceptron
from ranktron.learners.checks import same
from ranktron.learners.fused import play_pass
from ranktron.metrics import metric
from ranktron.training.algorithms import ALGORITHMS


def random_rows(rng, m, d, density, ones):
    X = (rng.random((m, d)) < density).astype(np.float32)
    if not ones:
        X *= rng.normal(size=(m, d)).astype(np.float32)
    rows = Sparse.from_matrix(X)
    if not ones:
        return X, rows
    return X, Sparse(rows.starts, rows.columns.astype(rng.choice([np.int32, np.uint16])), ONES, d)


SHAPES = given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 12),
    d=st.sampled_from([1, 3, 40, 500]),
    density=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    ones=st.booleans(),
)


@SHAPES
def test_score_and_pull_back_equal_the_dense_ones(seed, m, d, density, ones):
    rng = np.random.default_rng(seed)
    X, rows = random_rows(rng, m, d, density, ones)
    w, items = rng.normal(size=d), rng.permutation(m)[: max(1, m // 2)]
    gradient = rng.normal(size=len(items)) * (rng.random(len(items)) < 0.7)
    parts = rows.starts, rows.columns, rows.values
    assert score_rows(*parts, w) == pytest.approx(score(X, w), rel=1e-12, abs=1e-12)
    assert score_rows.py_func(*parts, w) == pytest.approx(score(X, w), rel=1e-12, abs=1e-12)
    dense, sparse = np.ones(d), np.ones(d)
    squared = pull_back(X, items, gradient, dense, 0)
    assert pull_back_rows(*parts, items, gradient, sparse) == pytest.approx(squared, rel=1e-12)
    assert (sparse == dense).all()  # each column adds up in the same order: to the bit


@SHAPES
def test_descend_equals_the_dense_one(seed, m, d, density, ones):
    rng = np.random.default_rng(seed)
    X, rows = random_rows(rng, m, d, density, ones)
    items, gradient = np.arange(m), rng.normal(size=m) * (rng.random(m) < 0.7)
    w, lag = rng.normal(size=d), rng.normal(size=d)
    dense, sparse = (w.copy(), lag.copy(), np.zeros(3)), (w.copy(), lag.copy(), np.zeros(3))
    scratch = np.zeros(d)
    assert descend(X, items, gradient, 0.5, 0.1, 3.0, *dense, np.empty(d), 0)
    assert descend_rows(rows.starts, rows.columns, rows.values, items, gradient, 0.5, 0.1, 3.0, *sparse, scratch)
    for one, two in zip(dense, sparse, strict=True):
        assert two == pytest.approx(one, rel=1e-11, abs=1e-13)
    assert not scratch.any()
    huge = np.full(m, 1e200)
    kept = sparse[0].copy()
    if density == 1.0:
        assert not descend_rows(rows.starts, rows.columns, rows.values, items, huge, 0.5, 0.1, 3.0, *sparse, scratch)
        assert (sparse[0] == kept).all()
        assert not scratch.any()


def test_columns_of_two_bytes_and_of_four_go_together():
    rng = np.random.default_rng(0)
    X, rows = random_rows(rng, 9, 7, 0.3, ones=True)
    small, large = (Sparse(rows.starts, rows.columns.astype(kind), ONES, 7) for kind in (np.uint16, np.int32))
    both = Sparse.concatenate([small, large[2:]])
    assert (both.dense() == np.concatenate([X, X[2:]])).all()
    assert (small[[3, 1]].dense() == X[[3, 1]]).all()
    assert (small.divided(np.full(7, 2.0)).dense() == X / 2.0).all()
    assert (small[:, 4] == X[:, 4]).all()


def test_rows_are_a_matrix():
    rng = np.random.default_rng(0)
    X, rows = random_rows(rng, 9, 7, 0.3, ones=False)
    assert rows.shape == X.shape
    assert (rows.dense() == X).all()
    assert (rows[2:5].dense() == X[2:5]).all()
    assert (rows[2:5][1:].dense() == X[3:5]).all()
    assert rows[2:5].columns is rows.columns  # a view
    assert (rows[np.array([8, 0, 0])].dense() == X[[8, 0, 0]]).all()
    assert (rows[2:8][::2].dense() == X[2:8:2]).all()
    assert (rows[1:4][:, 2] == X[1:4, 2]).all()
    assert (Sparse.concatenate([rows[3:], rows[:2]]).dense() == np.concatenate([X[3:], X[:2]])).all()
    assert (rows[4:].divided(np.full(7, 2.0)).dense() == X[4:] / 2).all()
    assert (rows[4:].padded(2, 1).dense() == np.pad(X[4:], ((0, 0), (2, 1)))).all()
    assert rows.trimmed() is rows
    assert len(rows[2:4].trimmed().columns) == np.count_nonzero(X[2:4])
    _, ones = random_rows(rng, 4, 7, 0.5, ones=True)
    mixed = Sparse.concatenate([ones, rows])
    assert (mixed.dense() == np.concatenate([ones.dense(), X])).all()
    with pytest.raises(DataError, match="too many to write out"):
        Sparse(np.zeros(10**6, np.int64), np.empty(0, np.int32), ONES, 10**6).dense()


@pytest.mark.parametrize(
    ("starts", "columns", "values", "words"),
    [
        ([0, 2], [1, 1], [1, 1], "row 0 has a column twice"),
        ([0, 1, 2], [1, 3], [1, 1], "row 1 has a column twice, or one beyond the 3"),
        ([0, 1], [-1], [1], "beyond"),
        ([0, 3], [1, 2], [1, 1], "row 0"),
        ([0, 2, 1], [1, 2], [1, 1], "row 1"),
        ([0, 2], [1, 2], [1], "fit together"),
        ([], [1, 2], [1, 1], "fit together"),
        ([0, 1], [2], [np.inf], "row 0, column 2"),
    ],
)
def test_rows_that_kernels_could_not_trust_are_refused(starts, columns, values, words):
    rows = Sparse(np.array(starts, np.int64), np.array(columns, np.int32), np.array(values, np.float32), 3)
    with pytest.raises(DataError, match=words):
        Rounds.from_arrays(rows, np.zeros(max(len(starts) - 1, 1)))


def test_a_slice_is_checked_for_itself():
    _, rows = random_rows(np.random.default_rng(5), 9, 7, 0.5, ones=False)
    rows[2:6].check()
    rows.values[rows.starts[7]] = np.nan
    rows[2:6].check()
    with pytest.raises(DataError, match="row 1,"):
        rows[6:].check()


def test_scipy_matrices_become_rounds_in_any_format():
    rng = np.random.default_rng(1)
    X, _ = random_rows(rng, 12, 6, 0.4, ones=False)
    labels, qid = rng.integers(3, size=12), np.tile([0, 1, 2], 4)
    dense = Rounds.from_arrays(X, labels, qid=qid)
    for make in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array):
        sparse = Rounds.from_arrays(make(X), labels, qid=qid)
        assert isinstance(sparse.X, Sparse)
        assert (sparse.X.dense() == dense.X).all()
        assert [(r.X.dense() == s.X).all() for r, s in zip(sparse, dense, strict=True)] == [True] * 3
        assert (sparse[np.array([2, 0])].X.dense() == dense[np.array([2, 0])].X).all()
        assert (Rounds.concat([sparse[:1], sparse[1:]]).X.dense() == dense.X).all()
    twice = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 3))
    assert Rounds.from_arrays(twice, [1]).X.dense().tolist() == [[0.0, 3.0, 0.0]]
    with pytest.raises(DataError, match="row 1, column 2"):
        Rounds.from_arrays(scipy.sparse.csr_array([[1.0, 0, 0], [0, 0, np.nan]]), [1, 0])
    with pytest.raises(DataError, match="nothing to rank"):
        Rounds.from_arrays(scipy.sparse.csr_array((0, 3)), [])


def lists(density=0.3, ones=False):
    source = WebSearch(features=30, documents=10).rounds(60)
    X = source.X * (np.random.default_rng(2).random(source.X.shape) < density)
    dense = Rounds.from_arrays(X, source.labels, group=np.diff(source.offsets))
    return dense, Rounds.from_arrays(scipy.sparse.csr_array(X), source.labels, group=np.diff(source.offsets))


DENSE, SPARSE = lists()


@pytest.mark.parametrize("make", [slam_perceptron, online_listnet, hinge_perceptron, classification_perceptron])
def test_linear_learners_learn_the_same_from_both(make):
    one, two = make(30, average=True), make(30, average=True)
    losses = [
        [turn.loss for turn in play(learner, data, feedback.full)] for learner, data in ((one, DENSE), (two, SPARSE))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-9)
    assert two.w == pytest.approx(one.w, rel=1e-9, abs=1e-12)
    assert two.predict(SPARSE.X) == pytest.approx(one.predict(DENSE.X), rel=1e-9, abs=1e-12)
    part = Feedback(np.array([3, 1]), np.array([0.0, 1.0]))
    for learner, data in ((one, DENSE), (two, SPARSE)):
        learner.learn(data[0].X, learner.rank(data[0].X, 99), part)
    assert two.w == pytest.approx(one.w, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("make", [slam_perceptron, online_listnet, hinge_perceptron])
def test_lists_of_both_kinds_may_come_in_turn(make):
    one, two = make(30), make(30)
    for number, lists in enumerate(zip(DENSE, SPARSE, strict=True)):
        for learner, list_ in ((one, lists[0]), (two, lists[number % 2])):
            for _ in play(learner, [list_], feedback.full):
                pass
    assert two.w == pytest.approx(one.w, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("make", [slam_perceptron, online_listnet])
def test_the_fused_sparse_pass_is_play(make):
    one, two = make(30), make(30)
    queries = np.random.default_rng(3).permutation(len(SPARSE))
    for _ in play(one, [SPARSE[int(q)] for q in queries], feedback.full):
        pass
    losses, values = play_pass(two, SPARSE, queries, (metric("ndcg@10"),))
    assert same(one.state(), two.state())
    assert losses.shape == (60,)
    assert ((values >= 0.0) & (values <= 1.0)).all()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_learns_the_same_from_sparse_features(name):
    from ranktron.learners.schedule import Schedule
    from ranktron.training.fit import TrainingPlan, train

    models = [train(TrainingPlan(name, schedule=Schedule(2), scaling="none"), data).model for data in (DENSE, SPARSE)]
    one, two = (model.score_rounds(data) for model, data in zip(models, (DENSE, SPARSE), strict=True))
    assert two == pytest.approx(one, rel=1e-5, abs=1e-5)
    assert models[1].rank(SPARSE[0].X).tolist() == models[0].rank(DENSE[0].X).tolist()


def test_scaling_leaves_zeros_alone():
    low, high = feature_ranges(SPARSE.X)
    assert (low == DENSE.X.min(axis=0)).all()
    assert (high == DENSE.X.max(axis=0)).all()
    assert fit_scaler("auto", SPARSE).name == "range"
    for name in ("standard", "minmax"):
        dense, sparse = fit_scaler(name, DENSE), fit_scaler(name, SPARSE)
        assert not sparse.shift.any()
        assert sparse.divisor == pytest.approx(dense.divisor, rel=1e-6)
        assert scale(SPARSE, sparse).X.dense() == pytest.approx(DENSE.X / sparse.divisor, rel=1e-6)
    with pytest.raises(DataError, match="needs dense"):
        scale(SPARSE, fit_scaler("minmax-query", SPARSE))


def test_explaining_a_sparse_list():
    from ranktron.training.fit import TrainingPlan, train

    model = train(TrainingPlan("listnet", scaling="none"), SPARSE).model
    explanation = model.explain(SPARSE[0].X)
    assert explanation.contributions.sum(axis=1) == pytest.approx(explanation.scores)


def test_a_model_of_dense_features_gives_sparse_ones_the_same_order():
    from ranktron.training.fit import TrainingPlan, train

    for name in ("slam", "rankboost"):  # the one is linear, so that the shift of its scaling moves all scores alike
        model = train(TrainingPlan(name, scaling="standard"), DENSE).model
        assert model.scaler.shift.any()
        dense, sparse = model.score_rounds(DENSE), model.score_rounds(SPARSE)
        assert dense - sparse == pytest.approx(np.full(len(dense), dense[0] - sparse[0]), abs=1e-6)
        assert name == "slam" or (dense == sparse).all()


def test_the_constants_of_a_run_are_those_of_the_written_rows():
    from ranktron.data.rounds import largest_row_norm
    from ranktron.theory.bounds import best_margin, margin

    w = np.random.default_rng(6).normal(size=30)
    assert largest_row_norm(SPARSE) == pytest.approx(largest_row_norm(DENSE), rel=1e-12)
    assert margin(w, SPARSE) == pytest.approx(margin(w, DENSE), rel=1e-12)
    few = slice(0, 4)
    found = [best_margin(lists[few]) for lists in (DENSE, SPARSE)]
    assert found[0].separable
    assert found[1].margin == pytest.approx(found[0].margin, rel=1e-9)
    _, ones = random_rows(np.random.default_rng(7), 20, 9, 0.5, ones=True)
    assert largest_row_norm(Rounds.from_arrays(ones, np.zeros(20))) == pytest.approx(np.diff(ones.starts).max() ** 0.5)
