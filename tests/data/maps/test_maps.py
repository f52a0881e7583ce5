"""Feature maps: what they compute, and that they are fitted once, stored, and the same everywhere."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from ranktron import DataError, OnlineListNet, Rounds, load
from ranktron.data.maps import Bins, Leaves, LinearBins, Nystroem, Products, RandomFourier, as_map
from ranktron.data.maps.bins import find_cuts
from ranktron.data.maps.naming import MAPS, map_from_dict, map_to_dict
from ranktron.data.maps.protocols import Explainable, map_rounds
from ranktron.data.maps.strengths import strength_shares, strengths
from ranktron.data.serialization import deserialize, serialize
from ranktron.data.synthetic import WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import Gaussian
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=5, documents=12).rounds(60)
RECIPES = [Bins(8), LinearBins(4), RandomFourier(30), Nystroem(10), Products(3), Leaves(5)]
TEXTS = ["bins:8", "bins-linear:4", "rff:30", "nystroem:10", "products:3", "leaves:5"]


@given(
    values=st.lists(st.integers(-20, 20), min_size=1, max_size=60), count=st.integers(2, 12), zeros=st.integers(0, 60)
)
def test_cuts_divide_evenly_and_frequent_values_stand_alone(values, count, zeros):
    X = np.array(values + [0] * zeros, np.float32)
    cuts = find_cuts(X, count)
    assert len(cuts) <= count - 1
    assert (np.diff(cuts) > 0).all()
    assert set(cuts) <= set(X)
    parts = np.searchsorted(cuts, X, side="right")
    assert len(np.unique(parts)) == len(cuts) + 1  # no part is empty
    for part in np.unique(parts):
        inside = X[parts == part]
        if len(inside) > 2 * len(X) / count + 1:  # fuller than two: then it holds a single frequent value
            most = max(np.count_nonzero(inside == v) for v in np.unique(inside))
            assert len(inside) - most <= 2 * len(X) / count + 1


@pytest.mark.parametrize("count", [2, 3, 8, 33])
def test_bins_are_where_searchsorted_says(count):
    fitted = Bins(count).fit(LISTS)
    X = np.concatenate([LISTS.X, [[-1e30] * 5, [1e30] * 5]]).astype(np.float32)
    mapped = fitted(X)
    assert len(mapped.values) == 0
    columns = mapped.columns.reshape(X.shape)
    for j in range(5):
        edges = fitted.edges[j][np.isfinite(fitted.edges[j])]
        assert (columns[:, j] == fitted.firsts[j] + np.searchsorted(edges, X[:, j], side="right")).all()
    assert (np.diff(mapped.starts) == 5).all()
    assert (mapped.dense().sum(axis=1) == 5).all()
    filling = mapped.dense()[: len(LISTS.X)].sum(axis=0)
    assert filling.max() <= 2.0 * len(LISTS.X) / count


def test_columns_take_two_bytes_where_they_fit():
    rng = np.random.default_rng(0)
    for d, kind in ((63, np.uint16), (65, np.int32)):  # 1,024 bins each: up to 64,512 columns, and 66,560
        X = rng.permuted(np.tile(np.arange(1024, dtype=np.float32), (d, 1)), axis=1).T.copy()
        for recipe in (Bins(1024), LinearBins(1023)):
            mapped = recipe.fit(Rounds.from_arrays(X, np.ones(1024)))(X)
            assert mapped.columns.dtype == kind
            assert mapped.columns.max() == mapped.width - 1 == 1024 * d - 1


@pytest.mark.parametrize("count", [1, 2, 7])
def test_linear_bins_interpolate(count):
    fitted = LinearBins(count).fit(LISTS)
    rng = np.random.default_rng(0)
    w = rng.normal(size=fitted.n_outputs)
    X = np.concatenate([LISTS.X, rng.normal(size=(20, 5)) * 100]).astype(np.float32)
    wanted = np.zeros(len(X))
    for j in range(5):
        shape = fitted.shape(j, w)
        wanted += np.interp(X[:, j], shape.places, shape.values)
    assert fitted(X).score(w) == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    assert fitted.contributions(X, w).sum(axis=1) == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    assert (np.diff(fitted(X).starts) == 10).all()
    # lines are among the functions: with each knot weighing its place, a value within the range gives itself back
    identity = np.concatenate([fitted.shape(j, w).places for j in range(5)])
    assert fitted.contributions(LISTS.X, identity) == pytest.approx(LISTS.X, rel=1e-4, abs=1e-4)


def test_features_that_never_vary():
    X = np.column_stack([np.ones(6), np.arange(6.0)]).astype(np.float32)
    rounds = Rounds.from_arrays(X, [0, 1, 0, 2, 0, 1])
    for recipe in RECIPES:
        fitted = recipe.fit(rounds)
        mapped = fitted(np.array([[1.0, 2.5], [7.0, -3.0]], np.float32))
        assert mapped.shape == (2, fitted.n_outputs)
        assert np.isfinite(mapped.dense() if hasattr(mapped, "dense") else mapped).all()


def test_random_waves_come_near_the_gaussian_kernel_and_nystroem_nearer():
    X = LISTS.X[:50]
    alike = Rounds.from_arrays(X, np.ones(50))  # labels that tell nothing: every feature has the same share
    K = X @ X.T + 5 * Gaussian(0.2)(X, X)  # 5 features: the curved part is as long as a standardised row
    waves = RandomFourier(20_000, gamma=0.2, sees=5, weight=1.0).fit(alike)(X)
    assert waves @ waves.T == pytest.approx(K, abs=0.15)
    Z = Nystroem(50, gamma=0.2, weight=1.0).fit(alike)(X)
    assert pytest.approx(K, abs=0.01) == Z @ Z.T
    assert waves.dtype == Z.dtype == np.float32
    assert (waves[:, :5] == X).all()
    assert (Z[:, :5] == X).all()


def test_waves_see_few_features_and_those_that_tell_most():
    sees_two = RandomFourier(3000).fit(LISTS).directions
    assert ((sees_two != 0.0).sum(axis=0) == 2).all()
    sees_one = RandomFourier(3000, sees=1).fit(LISTS)
    drawn = (sees_one.directions != 0.0).mean(axis=1)
    assert drawn == pytest.approx(strength_shares(LISTS), abs=0.04)
    assert np.ptp(strength_shares(LISTS)) > 0.1
    for j in range(5):  # N(0, 2 / variance): 0 leaves the width to the data
        own = sees_one.directions[j][sees_one.directions[j] != 0.0] * LISTS.X[:, j].std()
        assert own.std() == pytest.approx(np.sqrt(2.0), rel=4.0 / np.sqrt(len(own)))


def test_landmarks_are_near_where_the_features_that_tell_most_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    rounds = Rounds.from_arrays(X, (X[:, 1] > 0.5).astype(float), group=[10] * 30)
    fitted = Nystroem(20).fit(rounds)
    assert fitted.factors == pytest.approx(np.sqrt(strength_shares(rounds)) / X.std(axis=0), rel=1e-5)
    assert fitted.factors[1] > 3.0 * fitted.factors[[0, 2]].max()


def test_maps_that_mix_features_keep_the_linear_part():
    for recipe in (RandomFourier(30), Nystroem(10), Products(3)):
        fitted = recipe.fit(LISTS)
        one, full = fitted(LISTS.X), replace(recipe, weight=1.0).fit(LISTS)(LISTS.X)
        assert (one[:, :5] == LISTS.X).all()
        assert one[:, 5:] == pytest.approx(60 / 1060 * full[:, 5:], rel=1e-5, abs=1e-7)  # 60 lists bear few curves
        with pytest.raises(DataError, match="weight must be"):
            replace(recipe, weight=-1.0).fit(LISTS)


def test_products_are_of_the_strongest_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    labels = (np.abs(X[:, 2]) > 1.0).astype(float) + (X[:, 0] > 0.0)  # 2 matters without any correlation
    rounds = Rounds.from_arrays(X, labels, group=[20] * 20)
    assert set(np.argsort(-strengths(rounds))[:2]) == {0, 2}
    fitted = Products(2, weight=1.0).fit(rounds)
    z = ((X[:, [0, 2]] - X[:, [0, 2]].mean(axis=0)) / X[:, [0, 2]].std(axis=0)).clip(-2.0, 2.0)
    assert (np.abs(z) == 2.0).any()
    wanted = np.column_stack([X, np.sqrt(4 / 3) * np.column_stack([z[:, 0] ** 2, z[:, 0] * z[:, 1], z[:, 1] ** 2])])
    assert fitted(X) == pytest.approx(wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("recipe", "text"), list(zip(RECIPES, TEXTS, strict=True)), ids=TEXTS)
def test_texts_stand_for_recipes_and_maps_survive_a_file(recipe, text):
    assert as_map(text) == recipe
    fitted = recipe.fit(LISTS)
    assert fitted.name == text
    kept = map_from_dict(deserialize(serialize(map_to_dict(fitted))), 5)
    assert type(kept) is MAPS[text.partition(":")[0]][1]
    one, two = fitted(LISTS.X), kept(LISTS.X)
    assert (one.columns == two.columns).all() if hasattr(one, "columns") else (one == two).all()
    assert serialize(map_to_dict(kept)) == serialize(map_to_dict(fitted))
    with pytest.raises(DataError, match="fitted on 5 features"):
        kept(LISTS.X[:, :4].copy())
    with pytest.raises(DataError, match="its map is for 5"):
        map_from_dict(map_to_dict(fitted), 6)


@pytest.mark.parametrize(
    ("recipe", "damage"),
    [
        (Bins(4), {"edges": np.array([[2.0, 1.0, 3.0]])}),
        (Bins(4), {"edges": np.zeros((2, 2))}),
        (Bins(4), {"edges": np.array([[-np.inf, 1.0, 3.0]])}),
        (LinearBins(4), {"low": np.zeros(1)}),
        (LinearBins(4), {"high": np.array([1.0, np.nan, 1.0])}),
        (RandomFourier(4), {"phases": np.zeros(3)}),
        (Nystroem(4), {"factors": np.zeros(1)}),
        (Products(2), {"chosen": np.array([0, 3])}),
        (Products(2), {"chosen": np.array([-9, 0])}),
        (Products(2), {"shift": np.zeros(1)}),
        (Leaves(2), {"features": np.full((2, 7), 3)}),
        (Leaves(2), {"features": np.full((2, 7), -1)}),
        (Leaves(2), {"features": np.zeros((2, 6), int), "thresholds": np.zeros((2, 6))}),
        (Leaves(2), {"thresholds": np.full((2, 7), np.nan)}),
    ],
)
def test_maps_that_kernels_could_not_trust_are_refused(recipe, damage):
    fitted = recipe.fit(WebSearch(features=3, documents=5).rounds(4))
    type(fitted).from_state(fitted.name, fitted.state())
    with pytest.raises(DataError, match="do not fit together"):
        type(fitted).from_state(fitted.name, {**fitted.state(), **damage})


def test_what_is_no_map_is_named():
    for wrong in ("bins:", "bins:-3", "waves:3", "bins:1", "rff:0", 7, Bins):
        with pytest.raises(DataError):
            as_map(wrong)
    assert as_map(None) is as_map("none") is None
    with pytest.raises(DataError, match="does not know"):
        map_from_dict({"name": "waves:3"}, 5)
    with pytest.raises(DataError, match="dense"):
        Bins(4).fit(LISTS)(Bins(4).fit(LISTS)(LISTS.X))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("scaling", ["standard", "minmax-query"])
def test_a_model_with_a_map_goes_on_exactly(text, scaling, tmp_path):
    through = train(TrainingPlan("listnet", schedule=Schedule(4), scaling=scaling, map=text), LISTS).model
    half = train(TrainingPlan("listnet", schedule=Schedule(2), scaling=scaling, map=text), LISTS).model
    half.save(tmp_path / "m")
    resumed = train(TrainingPlan("listnet", schedule=Schedule(2)), LISTS, start=load(tmp_path / "m")).model
    assert resumed.to_bytes() == through.to_bytes()
    assert load(tmp_path / "m").to_bytes() == half.to_bytes()
    qid = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
    assert load(tmp_path / "m").predict(LISTS.X, qid).tolist() == half.score_rounds(LISTS).tolist()
    with pytest.raises(DataError, match="map"):
        _ = half.coef
    if scaling == "standard":
        with pytest.raises(DataError, match="cannot be folded"):
            half.folded()


@pytest.mark.parametrize("text", TEXTS)
def test_explaining_through_a_map(text):
    model = train(TrainingPlan("listnet", scaling="standard", map=text), LISTS).model
    if isinstance(model.map, Explainable):
        explanation = model.explain(LISTS[0].X)
        assert explanation.contributions.shape == LISTS[0].X.shape
        assert explanation.contributions.sum(axis=1) == pytest.approx(explanation.scores)
    else:
        with pytest.raises(DataError, match="mixes features"):
            model.explain(LISTS[0].X)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_maps_compose_with_every_algorithm(name):
    options = {"k": 2} if name == "topk" else {}
    for text in ("rff:10", "products:2", "bins:4", "bins-linear:3", "leaves:3"):
        model = train(TrainingPlan(name, options, scaling="standard", map=text), LISTS).model
        assert np.isfinite(model.score_rounds(LISTS)).all()


def test_estimators_take_names_and_objects():
    sizes = np.diff(LISTS.offsets)
    named = OnlineListNet(map="bins:8", random_state=0).fit(LISTS.X, LISTS.labels, group=sizes)
    given_one = OnlineListNet(map=Bins(8), random_state=0).fit(LISTS.X, LISTS.labels, group=sizes)
    assert named.predict(LISTS.X).tolist() == given_one.predict(LISTS.X).tolist()
    streamed = OnlineListNet(map=Bins(8)).partial_fit(LISTS.X, LISTS.labels, group=sizes)
    once = OnlineListNet(map=Bins(8), n_epochs=1, shuffle=False).fit(LISTS.X, LISTS.labels, group=sizes)
    assert streamed.predict(LISTS.X).tolist() == once.predict(LISTS.X).tolist()
    with pytest.raises(DataError, match="no map"):
        OnlineListNet(map="bents:3").fit(LISTS.X, LISTS.labels, group=sizes)


def test_curvature_is_learnt_in_one_pass():
    source = WebSearch(features=20, documents=40)
    lists, test = source.rounds(600), source.rounds(200, 600)
    values = {}
    for text, eta in ((None, 0.3), ("bins:16", 1.0), ("bins-linear:4", 3.0), ("products:20", 1.0)):
        model = train(TrainingPlan("listnet", {"eta": eta}, scaling="standard", map=text), lists).model
        values[text] = evaluate(test, model.score_rounds(test), "ndcg@10").means["ndcg@10"]
    assert min(values[text] for text in values if text) > values[None] + 0.03


def test_mapping_keeps_the_rest_of_the_rounds():
    mapped = map_rounds(LISTS, Bins(4).fit(LISTS))
    assert mapped.labels is LISTS.labels
    assert mapped.n_features == Bins(4).fit(LISTS).n_outputs
    assert map_rounds(LISTS, None) is LISTS


@pytest.mark.parametrize("name", MAPS)
def test_fitted_maps_take_tables_of_any_kind_and_refuse_the_rest(name):
    lists = WebSearch(features=4, documents=10).rounds(5)
    fitted = as_map(f"{name}:3").fit(lists)
    mapped, X = fitted(lists.X), lists.X
    mapped = mapped.dense() if isinstance(mapped, Sparse) else mapped
    for same in (pd.DataFrame(X), X.tolist(), X.astype(np.float64), np.asfortranarray(X)):
        found = fitted(same)
        assert np.array_equal(found.dense() if isinstance(found, Sparse) else found, mapped)
    for wrong, words in ((csr_matrix(X), "sparse"), (X[0], "table"), (X[:, :2], "4 features"), (X * np.nan, "NaN")):
        with pytest.raises(DataError, match=words):
            fitted(wrong)
    with pytest.raises(DataError, match="fitted on Rounds"):
        as_map(f"{name}:3").fit(X)
