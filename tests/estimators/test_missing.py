"""Missing values in the estimators: learnt at fit, kept in the model."""

import numpy as np
import pandas
import polars
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import ranktron

QID = np.repeat(np.arange(20), 6)
CLASSES = [ranktron.HingePerceptron, ranktron.RankSVM, ranktron.RankBoost, ranktron.KernelPerceptron]
CLASSES += [ranktron.TopKRanker, ranktron.CommitteePerceptron]


def holes(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(3.0, 2.0, (120, 4))
    y = np.floor(np.clip(X[:, 0] - X[:, 1] + 2.0, 0.0, 3.0))
    X[rng.random(X.shape) < 0.15] = np.nan
    return X, y


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("nan", ["mean", "zero", "indicator"])
def test_what_fit_learns_predict_applies(cls, nan, tmp_path):
    X, y = holes()
    given = {"n_rounds": 20} if cls is ranktron.RankBoost else {"random_state": 0}
    ranker = cls(nan=nan, scale="standard", **given).fit(X, y, qid=QID)
    filled = ranker.model_.imputer(X.astype(np.float32))
    twin = cls(scale="standard", **given).fit(filled, y, qid=QID)
    other, _ = holes(1)
    np.testing.assert_array_equal(ranker.predict(other, qid=QID),
                                  twin.predict(ranker.model_.imputer(other.astype(np.float32)), qid=QID))  # fmt: skip
    assert ranker.score(X, y, qid=QID) == twin.score(filled, y, qid=QID)
    np.testing.assert_array_equal(ranker.rank(other[:6]), ranker.model_.rank(other[:6]))
    ranker.save(tmp_path / "m")
    np.testing.assert_array_equal(ranktron.load(tmp_path / "m").predict(other, qid=QID), ranker.predict(other, qid=QID))


def test_missing_values_are_refused_unless_asked_for():
    X, y = holes()
    with pytest.raises(ValueError, match="NaN"):
        ranktron.HingePerceptron().fit(X, y, qid=QID)
    with pytest.raises(ValueError, match="nan must be error or mean or zero or indicator, not 'median'"):
        ranktron.HingePerceptron(nan="median").fit(X, y, qid=QID)
    whole = ranktron.HingePerceptron().fit(np.nan_to_num(X), y, qid=QID)
    with pytest.raises(ValueError, match="NaN"):
        whole.predict(X)


def test_the_first_batch_decides_and_the_others_follow():
    X, y = holes()
    ranker = ranktron.HingePerceptron(nan="mean")
    for a in range(0, 120, 24):
        ranker.partial_fit(X[a : a + 24], y[a : a + 24], qid=QID[a : a + 24])
    np.testing.assert_allclose(ranker.model_.imputer.fill, np.nanmean(X[:24].astype(np.float32), axis=0), rtol=1e-6)


def test_frames_bring_their_missing_values():
    X, y = holes()
    names = ["a", "b", "c", "d"]
    wanted = ranktron.HingePerceptron(nan="indicator", random_state=0).fit(X, y, qid=QID)
    frames = [
        pandas.DataFrame(X, columns=names),
        pandas.DataFrame(X, columns=names).astype("Float64"),  # pandas' own NA
        polars.DataFrame(X, schema=names, nan_to_null=True),
    ]
    for frame in frames:
        ranker = ranktron.HingePerceptron(nan="indicator", random_state=0).fit(frame, y, qid=QID)
        np.testing.assert_array_equal(ranker.coef_, wanted.coef_)
        assert ranker.model_.filled_names == (*names, *(f"{name} is missing" for name in names))
        np.testing.assert_array_equal(ranker.model_.predict(frame), wanted.predict(X))


def test_in_pipelines_and_searches():
    import sklearn

    X, y = holes()
    pipeline = make_pipeline(StandardScaler(), ranktron.HingePerceptron(nan="mean"))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, y, qid=QID)
        scores = cross_val_score(ranktron.HingePerceptron(nan="mean"), X, y, cv=GroupKFold(4),
                                 params={"qid": QID, "groups": QID})  # fmt: skip
    assert np.isfinite(scores).all()


def test_scikit_learn_is_told():
    assert not get_tags(ranktron.HingePerceptron()).input_tags.allow_nan
    assert get_tags(ranktron.HingePerceptron(nan="mean")).input_tags.allow_nan
