import pytest

from ranktron.data.io.columns import Columns, as_columns, assign_roles
from ranktron.errors import DataError


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
        (("label", "qid", "doc_id", "item_id", "a"), r"'doc_id' and 'item_id' may each be the document id"),
        (("label", "qid", "a", "a"), "two columns are called 'a'"),
    ],
)
def test_what_is_missing_or_ambiguous_is_said_with_the_option_to_give(names, message):
    with pytest.raises(DataError, match=message):
        roles(*names)


def test_what_the_caller_says_counts():
    found = roles("clicks", "user", "sku", "a", "b", label="clicks", query="user", doc="sku", drop=["b"])
    assert found == ("clicks", "user", "sku", ("a",), ("b",), ())
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
