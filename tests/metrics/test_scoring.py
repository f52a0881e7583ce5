"""Metrics as scorers of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ranktron
from ranktron import DataError, Rounds, evaluate
from ranktron.data.synthetic import WebSearch
from ranktron.metrics import scorer

LISTS = WebSearch(features=4, documents=7).rounds(30)
QID = np.repeat(np.arange(30), np.diff(LISTS.offsets))
X, Y = LISTS.X.astype(float), LISTS.labels
FOLDS = GroupKFold(3)
RANKER = ranktron.RankSVM()


def by_hand(name, ranker=RANKER):
    """The value of every fold, without scikit-learn's help."""
    found = []
    for train, test in FOLDS.split(X, Y, QID):
        fitted = clone(ranker).fit(X[train], Y[train], qid=QID[train])
        rounds = Rounds.from_arrays(X[test], Y[test], QID[test])
        found.append(evaluate(rounds, fitted.predict(rounds.X), name).means[name])
    return found


@pytest.mark.parametrize("name", ["map", "ndcg@3:letor", "mrr"])
@pytest.mark.parametrize("given", ["qid", "groups"])
def test_folds_are_measured_by_the_metric(name, given):
    params = {"groups": QID} | ({"qid": QID} if given == "qid" else {})
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(RANKER, X, Y, scoring=scorer(name), params=params, cv=FOLDS)
    assert found == pytest.approx(by_hand(name))
    assert found != pytest.approx(by_hand("ndcg@10"))


def test_less_may_be_better():
    with sklearn.config_context(enable_metadata_routing=True):
        found = cross_val_score(RANKER, X, Y, scoring=scorer("inversions"), params={"groups": QID}, cv=FOLDS)
    assert found == pytest.approx([-value for value in by_hand("inversions")])


def test_searches_pipelines_and_several_metrics_at_once():
    pipe = make_pipeline(StandardScaler(), ranktron.RankSVM())
    grid = {"ranksvm__C": [1e-3, 1.0]}
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(pipe, grid, scoring=scorer("map"), cv=FOLDS).fit(X, Y, qid=QID, groups=QID)
        measures = {name: scorer(name) for name in ("map", "mrr")}
        found = cross_validate(RANKER, X, Y, scoring=measures, params={"groups": QID}, cv=FOLDS)
    assert 0.0 < search.best_score_ < 1.0
    assert found["test_map"] == pytest.approx(by_hand("map"))
    assert found["test_mrr"] == pytest.approx(by_hand("mrr"))


def test_query_ids_reach_rankers_whose_scores_depend_on_the_list():
    ranker = ranktron.RankSVM(scale="minmax-query").fit(X, Y, qid=QID)
    mixed = np.random.default_rng(0).permutation(len(Y))
    value = scorer("map")(ranker, X[mixed], Y[mixed], qid=QID[mixed])
    assert value == pytest.approx(ranker.score(X, Y, qid=QID, metric="map"))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=QID)
    assert scorer("map")(ranktron.RankSVM().fit(frame, Y), frame, Y) == pytest.approx(
        ranktron.RankSVM().fit(X, Y, qid=QID).score(X, Y, qid=QID, metric="map")
    )


class FirstFeature(BaseEstimator):
    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


def test_whatever_predicts_can_be_measured():
    assert scorer("map")(FirstFeature(), X, Y, qid=QID) == evaluate(LISTS, X[:, 0], "map").means["map"]


def test_without_query_ids_there_is_no_number():
    with pytest.raises(DataError, match="map is measured within queries, and there are no query ids"):
        scorer("map")(RANKER.fit(X, Y, qid=QID), X, Y)
    with pytest.raises(DataError, match="there are no query ids"):
        cross_val_score(RANKER, X, Y, groups=QID, scoring=scorer("map"), cv=FOLDS, error_score="raise")
    with pytest.raises(DataError, match="did you mean"):
        scorer("mapp")
