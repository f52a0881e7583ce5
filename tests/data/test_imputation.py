import numpy as np
import pytest
import scipy.sparse
from sklearn.impute import MissingIndicator, SimpleImputer

import ranktron
from ranktron import DataError
from ranktron.data.imputation import Imputer, fit_imputer, imputer_from_dict
from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from ranktron.training.model import Model

GROUP = np.full(20, 6)


def holes(seed=0, share=0.2, d=5):
    """Lists of which the last feature is never missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (120, d)).astype(np.float32)
    y = np.floor(np.clip(X @ np.arange(d) / 10.0, 0.0, 4.0)).astype(float)
    X[:, :-1][rng.random((120, d - 1)) < share] = np.nan
    return X, y


def lists(X, y):
    return Rounds.from_arrays(X, y, group=GROUP, missing=True)


@pytest.mark.parametrize(("name", "strategy"), [("mean", "mean"), ("zero", "constant"), ("indicator", "mean")])
def test_fills_in_what_scikit_learn_fills_in(name, strategy):
    X, y = holes()
    other, _ = holes(seed=1)
    other[0, -1] = np.nan  # never missing at fit: its mean, and no indicator
    theirs = SimpleImputer(strategy=strategy, fill_value=0.0, keep_empty_features=True).fit(X)
    wanted = theirs.transform(other)
    if name == "indicator":
        told = MissingIndicator(error_on_new=False).fit(X).transform(other)
        wanted = np.hstack([wanted, told])
    found = fit_imputer(name, lists(X, y))(other)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["mean", "zero", "indicator"])
def test_sparse_rows_have_zeros_that_are_not_missing(name):
    X, y = holes()
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0.0
    dense = fit_imputer(name, lists(X, y))
    sparse = fit_imputer(name, lists(scipy.sparse.csr_matrix(X), y))
    np.testing.assert_allclose(sparse.fill, dense.fill, rtol=1e-12)
    found = sparse(Sparse.from_matrix(X))
    found.check()
    np.testing.assert_array_equal(found.dense(), dense(X))
    part = Sparse.from_matrix(X)[7:31]  # a slice shares the arrays of the whole
    np.testing.assert_array_equal(sparse(part).dense(), dense(X[7:31]))


def test_a_feature_without_any_value_is_0():
    X = np.array([[np.nan, 1.0], [np.nan, 3.0]])
    assert fit_imputer("mean", Rounds.from_arrays(X, [0, 1], missing=True)).fill.tolist() == [0.0, 2.0]


def test_missing_values_need_a_rule():
    X, y = holes()
    with pytest.raises(DataError, match=r"features contain NaN.*nan='mean'"):
        Rounds.from_arrays(X, y, group=GROUP)
    with pytest.raises(DataError, match="without a rule for them: train it with nan='mean'"):
        train(TrainingPlan("hinge"), lists(X, y))
    with pytest.raises(DataError, match="nan must be one of 'error', 'mean', 'zero', 'indicator', not 'median'"):
        train(TrainingPlan("hinge", nan="median"), lists(X, y))
    X[3, 1] = np.inf
    with pytest.raises(DataError, match=r"\(inf\), first in row 3, column 1$"):
        lists(X, y)
    whole = train(TrainingPlan("hinge"), Rounds.from_arrays(np.nan_to_num(X, posinf=0.0), y, group=GROUP)).model
    with pytest.raises(DataError, match="features contain NaN"):
        whole.predict([[np.nan, 1.0, 1.0, 1.0, 1.0]])


@pytest.mark.parametrize("scaling", [None, "standard", "minmax", "minmax-query"])
@pytest.mark.parametrize("name", ["mean", "zero", "indicator"])
def test_a_model_imputes_before_it_scales(name, scaling):
    X, y = holes()
    model = train(TrainingPlan("hinge", schedule=Schedule(3), nan=name, scaling=scaling), lists(X, y)).model
    filled = model.imputer(X)
    twin = train(
        TrainingPlan("hinge", schedule=Schedule(3), scaling=scaling), Rounds.from_arrays(filled, y, group=GROUP)
    ).model
    np.testing.assert_array_equal(model.coef, twin.coef)
    qid = np.repeat(np.arange(20), 6)
    np.testing.assert_array_equal(model.predict(X, qid), twin.predict(filled, qid))
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    np.testing.assert_array_equal(again.predict(X, qid), model.predict(X, qid))
    explained = again.explain(X[:6])
    assert explained.feature_names[:5] == ("1", "2", "3", "4", "5")
    assert explained.feature_names[5:] == (("1 is missing", "2 is missing", "3 is missing", "4 is missing")
                                           if name == "indicator" else ())  # fmt: skip
    np.testing.assert_allclose(explained.contributions.sum(axis=1), explained.scores, atol=1e-5)
    if scaling in (None, "standard"):
        np.testing.assert_allclose(np.diff(again.folded().predict(X)), np.diff(again.predict(X)), atol=1e-4)


@pytest.mark.parametrize("recipe", ["bins:4", "products:3"])
def test_a_map_sees_what_was_filled_in(recipe):
    X, y = holes()
    model = train(
        TrainingPlan("hinge", schedule=Schedule(2), nan="indicator", scaling="standard", map=recipe), lists(X, y)
    ).model
    assert model.map.n_inputs == 9
    again = Model.from_bytes(model.to_bytes())
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_lists_joined_and_chosen_keep_their_missing_values():
    X, y = holes()
    parts = [lists(X, y)[:10], Rounds.from_arrays(np.nan_to_num(X[60:]), y[60:], np.repeat(np.arange(10, 20), 6))]
    assert [part.missing for part in parts] == [True, False]
    assert Rounds.concat(parts[::-1]).missing
    assert not Rounds.from_arrays(np.zeros((2, 1)), [0, 1], missing=True).missing


def test_a_forged_imputer_is_refused():
    good = {"name": "mean", "fill": np.zeros(3), "indicators": np.array([0, 2])}
    assert isinstance(imputer_from_dict(good, 3), Imputer)
    for key, value in [("name", "error"), ("fill", np.zeros(2)), ("fill", np.array([0.0, np.nan, 0.0])),
                       ("fill", np.array([0.0, 1e300, 0.0])), ("indicators", np.array([0, 3])),
                       ("indicators", np.array([1, 1])), ("indicators", np.array([-1]))]:  # fmt: skip
        with pytest.raises(DataError, match="the model "):
            imputer_from_dict({**good, key: value}, 3)


def test_indicators_help_where_what_is_missing_tells():
    rng = np.random.default_rng(0)
    y = (rng.random(120) < 0.3).astype(float)
    X = rng.normal(size=(120, 3)).astype(np.float32)
    X[y > 0, 1] = np.nan
    ranker = ranktron.RankSVM(nan="indicator").fit(X, y, group=GROUP)
    assert ranker.score(X, y, qid=np.repeat(np.arange(20), 6)) == 1.0
    assert ranker.coef_.shape == (4,)
    assert ranktron.RankSVM(nan="mean").fit(X, y, group=GROUP).score(X, y, qid=np.repeat(np.arange(20), 6)) < 0.9
