import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ranktron
from ranktron import DataError, RankingWarning
from ranktron.data.synthetic import WebSearch

LISTS = WebSearch(features=3, documents=8).rounds(30)
QID = np.repeat(np.arange(len(LISTS)), np.diff(LISTS.offsets))
X, Y = LISTS.X.astype(float), LISTS.labels
FEATURES = dict(zip("abc", X.T, strict=True))
EXPECTED = ranktron.RankSVM().fit(X, Y, qid=QID).coef_.tolist()

frames = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


@frames
@pytest.mark.parametrize("name", ["query_id", "QueryID", "group", "session", "session_id", "q-id", "srch_id"])
def test_a_column_of_ids_without_query_ids_is_refused(frame, name):
    table = frame({**FEATURES, name: QID})
    for ranker in (ranktron.RankSVM(), ranktron.RankSVM(ungrouped="one-list")):
        with pytest.raises(DataError, match=f"the column '{name}' looks like them: pass qid='{name}'"):
            ranker.fit(table, Y)
    assert ranktron.RankSVM().fit(table, Y, qid=name).coef_.tolist() == EXPECTED
    assert ranktron.RankSVM().fit(table, Y, qid=name).model_.feature_names == ("a", "b", "c")


@frames
@pytest.mark.parametrize("name", ["label", "relevance", "y", "click", "Relevance Label"])
def test_a_column_that_is_y_is_refused(frame, name):
    table = frame({**FEATURES, name: Y, "qid": QID})
    with pytest.raises(DataError, match=f"the column '{name}' is among the features and equals y"):
        ranktron.RankSVM().fit(table, Y)
    with pytest.raises(DataError, match="equals y"):
        ranktron.HingePerceptron().partial_fit(table, Y)


@frames
def test_a_column_that_may_be_a_feature_is_warned_of_until_features_are_named(frame):
    position = np.concatenate([np.arange(1, n + 1) for n in np.diff(LISTS.offsets)])
    table = frame({**FEATURES, "position": position, "query_id": QID, "qid": QID})
    with pytest.warns(RankingWarning, match="'position', 'query_id' are learnt as features"):
        ranktron.RankSVM().fit(table, Y)
    named = ranktron.RankSVM(features=["a", "b", "c", "position"]).fit(table, Y)
    assert named.model_.feature_names == ("a", "b", "c", "position")
    assert named.predict(table).shape == Y.shape
    assert named.score(table, Y) == named.score(frame({**FEATURES, "position": position}), Y, qid=QID)
    plain = ranktron.RankSVM(features=("a", "b", "c")).fit(table, Y)
    assert plain.coef_.tolist() == EXPECTED
    assert sorted(plain.rank(table)) == list(range(len(Y)))


def test_features_that_are_named_in_vain_are_refused():
    table = pd.DataFrame(FEATURES)
    with pytest.raises(DataError, match="there is no column 'z'; there are 'a', 'b', 'c'"):
        ranktron.RankSVM(features=["a", "z"]).fit(table, Y, qid=QID)
    with pytest.raises(DataError, match="names columns of a data frame, and X is none"):
        ranktron.RankSVM(features=["a"]).fit(X, Y, qid=QID)
    with pytest.raises(DataError, match="there is no column 'query' to take the query ids from"):
        ranktron.RankSVM().fit(table, Y, qid="query")


def test_a_column_without_a_name_that_is_y_is_warned_of():
    leak = np.column_stack([X, Y])
    with pytest.warns(RankingWarning, match=f"the feature 3 equals the labels in all {len(Y)} rows"):
        ranktron.RankSVM().fit(leak, Y, qid=QID)
    with pytest.warns(RankingWarning, match="the feature 'signal' equals the labels"):
        ranktron.RankSVM().fit(pd.DataFrame({**FEATURES, "signal": Y}), Y, qid=QID)
    ranktron.RankSVM().fit([[0.0], [1.0]], [0, 1], qid=0)  # two rows agree by chance


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, np.array], ids=["pandas", "polars", "numpy"])
def test_a_column_of_text_is_named(table):
    words = np.array(["red", "blue", "red"], object)
    columns = {"a": [1.0, 2.0, 3.0], "colour": words}
    if table is np.array:
        given = np.column_stack([columns["a"], words])
        told = "column 1 holds text, 'red' in row 0: leave it out, or make numbers of it"
    else:
        given, told = (
            table(columns),
            r"column 'colour' holds 'red' in row 0, which is no number: name it in categorical=",
        )
    with pytest.raises(DataError, match=told):
        ranktron.RankSVM().fit(given, [0, 1, 2], qid=0)
    ranker = ranktron.RankSVM().fit([[1.0, 0.0], [2.0, 1.0]], [0, 1], qid=0)
    with pytest.raises(DataError, match="'red' in row 0"):
        ranker.predict(np.column_stack([columns["a"], words]))


def test_numbers_in_quotes_are_numbers():
    ranker = ranktron.RankSVM().fit(np.array([["1", "2"], ["3", "4"]], object), [0, 1], qid=0)
    assert ranker.n_features_in_ == 2


class UnknownFrame:
    """A data frame of a library that scikit-learn does not know."""

    columns = ("a", "b")
    shape = (2, 2)

    def __len__(self):
        return 2

    def __array__(self, dtype=None, copy=None):
        return np.array([[1.0, 0.0], [0.0, 1.0]], dtype)


def test_names_that_scikit_learn_does_not_see_are_not_lost_silently():
    with pytest.raises(ranktron.DataError, match="does not see the names of the columns"):
        ranktron.RankSVM().fit(UnknownFrame(), [0, 1], qid=0)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, lambda columns: pd.DataFrame(columns).to_numpy()])
def test_missing_values_lead_to_the_parameter_for_them(table):
    columns = {"a": [1.0, 2.0, 3.0], "b": [1.0, np.nan, 3.0]}
    where = "1" if isinstance(table(columns), np.ndarray) else "'b'"
    told = f"features contain NaN, first in column {where}, row 1: nan='mean' (or 'zero', 'indicator') of the ranker"
    with pytest.raises(DataError, match=re.escape(told)):
        ranktron.RankSVM().fit(table(columns), [0, 1, 2], qid=0)
    fitted = ranktron.RankSVM(nan="mean").fit(table(columns), [0, 1, 2], qid=0)
    with pytest.raises(DataError, match=re.escape(told)):
        ranktron.RankSVM().fit(table({**columns, "b": [1.0, 2.0, 3.0]}), [0, 1, 2], qid=0).predict(table(columns))
    assert np.isfinite(fitted.predict(table(columns))).all()
    with pytest.raises(ValueError, match="infinity"):
        fitted.predict(table({**columns, "b": [1.0, np.nan, np.inf]}))


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_dates_is_named(table):
    dates = np.array(["2024-01-01"] * 3, "datetime64[us]")
    with pytest.raises(DataError, match="column 'sold' holds dates: leave it out, or make numbers of it"):
        ranktron.RankSVM().fit(table({"a": [1.0, 2.0, 3.0], "sold": dates}), [0, 1, 2], qid=0)


@pytest.mark.filterwarnings("ignore:all queries of the validation set:ranktron.RankingWarning")
@frames
def test_columns_are_found_by_name_and_those_missing_or_surplus_are_named(frame, tmp_path):
    ranker = ranktron.HingePerceptron().fit(frame(FEATURES), Y, qid=QID)
    ranker.save(tmp_path / "m")
    model = ranktron.load(tmp_path / "m")
    turned = frame({name: FEATURES[name] for name in "cab"})
    expected = ranker.predict(frame(FEATURES))
    for predict in (ranker.predict, model.predict, model.estimator().predict):
        np.testing.assert_array_equal(predict(turned), expected)
        np.testing.assert_array_equal(predict(turned.assign(qid=QID) if frame is pd.DataFrame else turned), expected)
        with pytest.raises(DataError, match="column 'rating' is surplus: the model was fitted without it"):
            predict(frame({**FEATURES, "rating": np.full(len(Y), np.nan)}))
        with pytest.raises(DataError, match="column 'b' is missing: the model was fitted to a, b, c"):
            predict(frame({"a": FEATURES["a"], "c": FEATURES["c"], "x": FEATURES["b"]}))
    assert ranker.score(turned, Y, qid=QID) == ranker.score(frame(FEATURES), Y, qid=QID)
    again = ranktron.HingePerceptron().fit(frame(FEATURES), Y, qid=QID, eval_set=(turned, Y), eval_qid=QID)
    assert again.history_.best_values["ndcg@10"] == again.score(turned, Y, qid=QID)
    more = ranktron.load(tmp_path / "m").estimator().partial_fit(turned, Y, qid=QID)
    assert more.coef_.tolist() == ranker.partial_fit(frame(FEATURES), Y, qid=QID).coef_.tolist()
