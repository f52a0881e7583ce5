import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import ranktron
from ranktron import RankingWarning
from ranktron.data.synthetic import WebSearch

LISTS = WebSearch(features=3, documents=8).rounds(30)
QID = np.repeat(LISTS.qids, np.diff(LISTS.offsets))
X, Y = LISTS.X.astype(float), LISTS.labels
NAMED = {"hingeperceptron__qid": QID}


def test_saving_a_ranker_without_its_scaler_is_warned_of(tmp_path):
    pipe = make_pipeline(StandardScaler(), ranktron.HingePerceptron()).fit(X, Y, **NAMED)
    with pytest.warns(RankingWarning, match="features that StandardScaler had transformed.*scale="):
        pipe[-1].save(tmp_path / "m")
    pipe = make_pipeline(MinMaxScaler(), "passthrough", SelectKBest(k=2), ranktron.HingePerceptron()).fit(X, Y, **NAMED)
    with pytest.warns(RankingWarning, match="MinMaxScaler, SelectKBest"):
        pipe[-1].save(tmp_path / "m")


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8),
    reason="the score of a pipeline in a search is told no groups before scikit-learn 1.8",
)
def test_it_is_found_in_frames_in_a_search_and_in_a_copy(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipe = make_pipeline(StandardScaler(), ranktron.HingePerceptron()).set_output(transform="pandas")
    with pytest.warns(RankingWarning, match="StandardScaler"):
        pipe.fit(frame, Y, **NAMED)[-1].save(tmp_path / "m")
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipe, {"hingeperceptron__eta": [1.0]}, cv=GroupKFold(3)).fit(frame, Y, groups=QID)
    with pytest.warns(RankingWarning, match="StandardScaler"):
        search.best_estimator_[-1].save(tmp_path / "m")


def test_nothing_is_said_where_nothing_was_transformed(tmp_path):
    alone = Pipeline([("nothing", "passthrough"), ("rank", ranktron.HingePerceptron(scale="standard"))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone.fit(X, Y, rank__qid=QID)[-1].save(tmp_path / "m")
        ranktron.HingePerceptron().fit(X, Y, qid=QID).save(tmp_path / "m")
        pipe = make_pipeline(StandardScaler(), ranktron.HingePerceptron()).fit(X, Y, **NAMED)
        pipe[-1].fit(X, Y, qid=QID).save(tmp_path / "m")  # fitted again, to the features themselves
