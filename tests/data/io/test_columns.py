import warnings

import pytest

from ranktron.data.io import read
from ranktron.data.io.columns import Columns, as_columns, assign_roles
from ranktron.errors import DataError, RankingWarning


def roles(*names, labelled=True, **asked):
    return assign_roles(names, [], as_columns(*(asked.get(role) for role in Columns._fields)), labelled)


@pytest.mark.parametrize(
    ("names", "label", "query", "doc"),
    [
        (("label", "qid", "docid", "a"), "label", "qid", "docid"),
        (("relevance", "query_id", "doc_id", "a"), "relevance", "query_id", "doc_id"),
        (("Relevance", "Query-ID", "Product ID", "a"), "Relevance", "Query-ID", "Product ID"),
        (("grade", "queryId", "a"), "grade", "queryId", None),
        (("y", "session", "id", "a"), "y", "session", "id"),
        (("rating", "label", "qid", "a"), "label", "qid", None),
        (("target", "srch_id", "prop_id", "a"), "target", "srch_id", "prop_id"),
    ],
)
def test_the_usual_names_are_found(names, label, query, doc):
    found = roles(*names)
    assert (found.label, found.query, found.doc) == (label, query, doc)
    assert "a" in found.features
    assert found.guessed == tuple(role for role in ("label", "query", "doc") if getattr(found, role))


def test_a_likelier_name_wins_and_the_other_is_a_feature_only_where_it_may_be_one():
    assert roles("label", "qid", "rating", "a").features == ("rating", "a")
    assert roles("label", "qid", "docid", "id").features == ("id",)
    with pytest.raises(DataError, match=r"column 'relevance' would be learnt from .*--drop relevance"):
        roles("label", "qid", "relevance", "a")
    assert roles("label", "qid", "relevance", "a", drop="relevance").features == ("a",)
    assert roles("label", "qid", "relevance", "a", features="a,relevance").features == ("a", "relevance")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("qid", "a", "b"), r"found no 'label' or the like among the columns qid, a, b: .* \(--label NAME\)"),
        (("label", "a", "b"), r"found no 'qid' or the like among the columns label, a, b: .* \(--query NAME\)"),
        (("relevance", "grade", "qid", "a"), r"'relevance' and 'grade' may each be the label .*--label relevance"),
        (("label", "query_id", "session_id", "a"), r"'query_id' and 'session_id' may each be the query id"),
        (("label", "qid", "docno", "item_id", "a"), r"'docno' and 'item_id' may each be the document id"),
        (("label", "qid", "a", "a"), "two columns are called 'a'"),
    ],
)
def test_what_is_missing_or_ambiguous_is_said_with_the_option_to_give(names, message):
    with pytest.raises(DataError, match=message):
        roles(*names)


def test_what_the_caller_says_counts():
    found = roles("clicks", "user", "sku", "a", "b", label="clicks", query="user", doc="sku", drop=["b"])
    assert found == ("clicks", "user", "sku", ("a",), ("b",), (), ())
    assert roles("label", "qid", "id", "a", features=("id",)).doc is None
    assert roles("qid", "a", labelled=False).label is None
    with pytest.raises(DataError, match="there is no column 'c'; the columns are label, qid, a"):
        roles("label", "qid", "a", features="c")
    with pytest.raises(DataError, match="give one of them"):
        roles("label", "qid", "a", "b", features="a", drop="b")
    with pytest.raises(DataError, match="'qid' is named twice"):
        roles("label", "qid", "a", features="qid,a", query="qid")


def test_the_index_of_a_frame_is_no_feature():
    assert roles("", "label", "qid", "a").dropped == ("",)
    assert roles("Unnamed: 0", "label", "qid", "a").features == ("a",)


NAMES = ["position", "Click-Bool", "clickBool", "id", "session", "user_id", "brandId", "timestamp"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_features_seldom_have_are_warned_of_until_they_are_named(tmp_path, name):
    path = tmp_path / "log.csv"
    path.write_text(f"label,qid,docid,{name},price\n1,a,x,1,2\n0,a,y,2,3\n")
    with pytest.warns(RankingWarning, match=rf"log\.csv: '{name}' is learnt as a feature: .*--drop"):
        read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path, features=[name, "price"]).feature_names == (name, "price")
        assert read(path, drop=name).feature_names == ("price",)


def test_a_rating_is_a_label_only_where_nothing_else_is():
    assert roles("y", "qid", "rating").features == ("rating",)
    assert roles("rating", "qid", "a").label == "rating"
