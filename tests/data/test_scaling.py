from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ranktron import DataError, Model, Rounds, Sparse
from ranktron.data import io
from ranktron.data.scaling import (
    Global,
    PerQuery,
    _between_zero_and_one,
    _shift_and_divide,
    choose_scaling,
    fit_scaler,
    scale,
    scale_in_place,
    scaler_from_dict,
    scaler_to_dict,
)

RNG = np.random.default_rng(0)
X = np.hstack([RNG.normal(5.0, 3.0, (40, 3)), np.full((40, 1), 0.1)]).astype(np.float32)
LISTS = Rounds.from_arrays(X, RNG.integers(3, size=40), group=[10, 1, 29])


def test_each_scaling_is_its_formula():
    standard = scale(LISTS, fit_scaler("standard", LISTS)).X
    assert standard[:, :3] == pytest.approx((X[:, :3] - X[:, :3].mean(0)) / X[:, :3].std(0), abs=1e-5)
    minmax = scale(LISTS, fit_scaler("minmax", LISTS)).X
    assert (minmax.min(0) == 0).all()
    assert minmax.max(0).tolist() == [1.0, 1.0, 1.0, 0.0]
    for round in scale(LISTS, fit_scaler("minmax-query", LISTS)):
        original = LISTS[list(LISTS.qids).index(round.qid)].X
        spread = np.ptp(original, axis=0)
        expected = np.where(spread > 0, (original - original.min(0)) / np.where(spread > 0, spread, 1), 0)
        assert pytest.approx(expected, abs=1e-6) == round.X


@pytest.mark.parametrize("name", ["standard", "minmax", "minmax-query"])
def test_a_constant_feature_becomes_zero(name):
    assert not scale(LISTS, fit_scaler(name, LISTS)).X[:, 3].any()


def test_auto_standardises():
    auto, standard = (fit_scaler(name, LISTS) for name in ("auto", "standard"))
    assert auto.name == "standard"
    assert (auto.shift == standard.shift).all()
    assert (auto.divisor == standard.divisor).all()


@pytest.mark.parametrize("kind", [np.asarray, Sparse.from_matrix])
@pytest.mark.parametrize("name", ["standard", "minmax"])
def test_a_query_of_weight_two_scales_as_two_queries(name, kind):
    weights = np.array([2.0, 0.5, 1.0])
    lists = replace(LISTS, X=kind(LISTS.X))
    weighted = fit_scaler(name, lists, weights)
    repeated = fit_scaler(name, lists[np.repeat([0, 1, 2], [4, 1, 2])])
    np.testing.assert_allclose(weighted.shift, repeated.shift, rtol=1e-6)
    np.testing.assert_allclose(weighted.divisor, repeated.divisor, rtol=1e-6)
    if name == "standard":
        assert np.abs(weighted.divisor / fit_scaler(name, lists).divisor - 1.0).max() > 1e-3
    by_document = fit_scaler(name, lists, weights / 2.0, np.full(len(LISTS.labels), 2.0))
    np.testing.assert_allclose(by_document.divisor, weighted.divisor)
    assert fit_scaler(None, LISTS) is fit_scaler("none", LISTS) is None
    assert scale(LISTS, None) is LISTS


def test_wrong_widths_and_names_are_refused():
    for name in ("standard", "minmax", "minmax-query"):
        with pytest.raises(DataError, match=r"4 features.*has 3"):
            fit_scaler(name, LISTS)(X[:, :3].copy(), LISTS.offsets)
    with pytest.raises(DataError, match=r"no scaling 'robust'"):
        fit_scaler("robust", LISTS)


@pytest.mark.parametrize("name", ["none", "standard", "minmax"])
def test_a_folded_model_scores_the_same(name):
    w = np.array([1.0, -2.0, 0.5, 3.0])
    state = {"rounds": 1, "mistakes": 0, "w": w, "lag": np.zeros(4), "sums": np.zeros(3)}
    model = Model("hinge", {}, state, 4, scaler=fit_scaler(name, LISTS))
    folded = model.folded()
    assert folded.scaler is None
    assert folded.predict(X) == pytest.approx(model.predict(X), abs=1e-5)
    assert Model.from_bytes(folded.to_bytes()).predict(X).tolist() == folded.predict(X).tolist()


def test_per_query_scaling_cannot_be_folded_and_needs_query_ids():
    state = {"rounds": 1, "mistakes": 0, "w": np.ones(4), "lag": np.zeros(4), "sums": np.zeros(3)}
    model = Model("hinge", {}, state, 4, scaler=fit_scaler("minmax-query", LISTS))
    with pytest.raises(DataError, match="cannot be folded"):
        model.folded()
    with pytest.raises(DataError, match="query ids"):
        model.predict(X)
    qid = np.repeat([0, 1, 2], [10, 1, 29])
    shuffled = RNG.permutation(40)
    assert model.predict(X[shuffled], qid[shuffled]) == pytest.approx(model.predict(X, qid)[shuffled])
    assert model.rank(X[:10]).tolist() == np.argsort(-model.predict(X[:10], np.zeros(10)), kind="stable").tolist()


def test_kernels_equal_their_python_twins():
    scaler = fit_scaler("standard", LISTS)
    assert isinstance(scaler, Global)
    fast, slow = np.empty_like(X), np.empty_like(X)
    for kernel, arguments in (
        (_shift_and_divide, (X, scaler.shift, scaler.divisor)),
        (_between_zero_and_one, (X, LISTS.offsets)),
    ):
        kernel(*arguments, fast)
        kernel.py_func(*arguments, slow)
        assert fast == pytest.approx(slow, rel=1e-6)


def test_standard_query_scales_each_list_by_its_own_mean_and_deviation():
    X = np.array([[1.0, 5.0], [2.0, 5.0], [6.0, 5.0], [1e6, 3.0], [3e6, 1.0]], np.float32)
    lists = Rounds.from_arrays(X, np.zeros(5), group=[3, 2])
    scaler = fit_scaler("standard-query", lists)
    scaled = scale(lists, scaler).X
    for part, rows in zip((X[:3], X[3:]), (scaled[:3], scaled[3:]), strict=True):
        wide = part.astype(float)
        deviation = np.where(np.ptp(wide, axis=0) > 0.0, wide.std(axis=0), np.inf)
        np.testing.assert_allclose(rows, (wide - wide.mean(axis=0)) / deviation, rtol=1e-6)
    factors = np.exp(np.linspace(-8.0, 8.0, 2)).astype(np.float32)
    other = Rounds.from_arrays(X * factors, np.zeros(5), group=[3, 2])
    np.testing.assert_allclose(scale(other, scaler).X, scaled, rtol=1e-4)  # units do not matter
    assert scaler_from_dict(scaler_to_dict(scaler), 2) == scaler == PerQuery(2, "standard-query")


def test_a_constant_of_many_rows_stays_zero_however_it_is_rounded():
    X = np.full((1000, 1), 0.1, np.float32)
    assert not scale(Rounds.from_arrays(X, np.zeros(1000), qid=0), PerQuery(1, "standard-query")).X.any()


def test_whole_lists_are_scaled_by_query_where_that_can_be():
    assert choose_scaling("auto-lists", sparse=False, mapped=False) == "standard-query"
    assert choose_scaling("auto-lists", sparse=False, mapped=True) == "standard"
    for mapped in (True, False):
        assert choose_scaling("auto-lists", sparse=True, mapped=mapped) == "range"
    for name in ("auto", "none", "minmax", None):
        assert choose_scaling(name, sparse=True, mapped=True) == name


@pytest.mark.parametrize("name", ["minmax-query", "standard-query"])
def test_many_queries_are_scaled_by_several_threads_to_the_same_bits(monkeypatch, name):
    monkeypatch.setattr("ranktron.kernels.blocks.os.cpu_count", lambda: 3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 70)).astype(np.float32)
    X[rng.random(X.shape) < 0.3] = 0.0
    offsets = np.unique([0, *rng.integers(0, len(X), 200), len(X)])
    scaler = PerQuery(70, name)
    each = [scaler(X[a:b], np.array([0, b - a])) for a, b in pairwise(offsets)]
    assert scaler(X, offsets).tobytes() == np.concatenate(each).tobytes()


def many_lists():
    """Enough for several threads and many parts, with lists that are larger than a part, and empty ones."""
    rng = np.random.default_rng(1)
    sizes = np.concatenate([[0, 3], rng.integers(0, 300, 60), [4000, 0, 1]])
    X = rng.normal(2.0, 5.0, (sizes.sum(), 40)).astype(np.float32)
    X[:, 7] = 0.1
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Rounds(X, np.zeros(len(X)), offsets, np.arange(len(sizes)))


@pytest.mark.parametrize("name", ["standard", "minmax", "minmax-query", "standard-query", "running-standard"])
def test_scaling_in_place_gives_the_same_bits_in_the_same_memory(name):
    lists = many_lists()
    lists = lists[np.flatnonzero(np.diff(lists.offsets))]
    scaler = fit_scaler(name, lists)
    expected, given = scale(lists, scaler).X.tobytes(), lists.X
    scaled = scale_in_place(lists, scaler)
    assert scaled.X is given
    assert given.tobytes() == expected


def test_a_slice_is_scaled_in_place_and_its_neighbours_are_left_alone():
    lists = many_lists()
    part, before = lists[30:40], lists.X.copy()
    scaler = fit_scaler("standard", part)
    expected = scale(part, scaler).X
    scale_in_place(part, scaler)
    first, last = lists.offsets[[30, 40]]
    before[first:last] = expected
    assert (before == lists.X).all()


def test_scaling_in_place_does_not_write_to_what_is_not_its_own_to_write(tmp_path):
    io.write(LISTS, tmp_path / "lists.rounds")
    locked = LISTS.X.copy()[:]
    locked.flags.writeable = False
    for lists in (io.read(tmp_path / "lists.rounds"), replace(LISTS, X=locked)):
        scaled = scale_in_place(lists, fit_scaler("standard-query", lists))
        assert (lists.X == LISTS.X).all()
        assert (scaled.X == scale(LISTS, fit_scaler("standard-query", LISTS)).X).all()
    assert scale_in_place(LISTS, None) is LISTS
    sparse = replace(LISTS, X=Sparse.from_matrix(LISTS.X))
    scaled = scale_in_place(sparse, fit_scaler("standard", sparse))
    assert (sparse.X.dense() == LISTS.X).all()
    assert (scaled.X.dense() == scale(sparse, fit_scaler("standard", sparse)).X.dense()).all()


class TestRange:
    """Scaling by ranges, the default of sparse features."""

    def test_one_hot_features_stay_alike_however_rare(self):
        rng = np.random.default_rng(0)
        X = np.zeros((200, 3), np.float32)
        X[np.arange(200), rng.choice(3, 200, p=[0.9, 0.09, 0.01])] = 1.0
        rounds = replace(Rounds.from_arrays(X, np.zeros(200)), X=Sparse.from_matrix(X))
        scaled = scale(rounds, fit_scaler("auto", rounds)).X.dense()
        assert len(np.unique(scaled)) == 2
        standard = scale(rounds, fit_scaler("standard", rounds)).X.dense()
        assert len(np.unique(standard)) == 4

    def test_rows_are_as_far_from_their_mean_as_those_of_fifty_standardised_features(self):
        X = np.random.default_rng(0).normal(size=(300, 5)) * [1, 10, 100, 1e-3, 0] + [0, 0, 1e3, 0, 7]
        rounds = Rounds.from_arrays(X, np.zeros(300))
        scaler = fit_scaler("range", rounds)
        scaled = scaler(rounds.X, rounds.offsets).astype(float)
        assert scaled.var(axis=0).sum() == pytest.approx(50.0, rel=1e-4)
        ranges = np.ptp(scaled, axis=0)
        assert ranges[:4] == pytest.approx(np.full(4, ranges[0]), rel=1e-4)
        assert scaler.shift.tolist() == [0.0] * 5

    def test_constant_data_are_left_alone(self):
        rounds = Rounds.from_arrays(np.full((4, 2), 3.0), [0, 1, 0, 1])
        assert fit_scaler("range", rounds).divisor.tolist() == [1.0, 1.0]

    def test_it_is_stored(self):
        scaler = fit_scaler("range", LISTS)
        again = scaler_from_dict(scaler_to_dict(scaler), LISTS.n_features)
        assert (again.name, again.divisor.tolist()) == ("range", scaler.divisor.tolist())
