import json

import numpy as np
import pandas
import pytest

from ranktron import DataError, RankingWarning
from ranktron.data.io import read_click_log, read_impressions, read_ubi, write
from ranktron.data.io.click_logs import find_log_columns

TABLE = pandas.DataFrame(
    {
        "srch_id": [7, 8, 7, 8],
        "position": [2, 1, 1, 2],
        "click_bool": [1, 0, 0, 1],
        "prop_id": ["a", "b", "b", "c"],
        "query": ["lamp", "lamp", "lamp", "lamp"],
        "model": ["old", "new", "old", "new"],
        "price": [2.5, 1.5, 3.5, 4.5],
    }
)


@pytest.mark.parametrize("how", ["frame", "csv", "jsonl", "parquet"])
def test_a_log_is_the_same_from_a_frame_and_from_every_kind_of_file(how, tmp_path):
    path = tmp_path / f"log.{how}"
    if how == "csv":
        TABLE.to_csv(path, index=False)
    elif how == "jsonl":
        TABLE.to_json(path, orient="records", lines=True)
    elif how == "parquet":
        TABLE.to_parquet(path)
    rounds, log = read_click_log(TABLE if how == "frame" else path)
    assert rounds.feature_names == ("price",)
    assert rounds.X[:, 0].tolist() == [2.5, 3.5, 1.5, 4.5]
    assert rounds.labels.tolist() == log.gains.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert log.position.tolist() == [2, 1, 1, 2]
    assert log.item.tolist() == ["a", "b", "b", "c"]
    assert log.query.tolist() == ["lamp"] * 4
    assert log.ranker.tolist() == ["old", "old", "new", "new"]


def test_columns_are_named_where_their_names_do_not_tell(tmp_path):
    table = TABLE.rename(columns={"position": "slot", "click_bool": "went_there"})
    with pytest.raises(DataError, match=r"found no 'position' or the like among the columns .* position='NAME'"):
        read_impressions(table)
    log = read_impressions(table, position="slot", click="went_there")
    assert log.position.tolist() == [2, 1, 1, 2]
    with pytest.raises(DataError, match="there is no column 'rang'"):
        read_impressions(table, position="rang")
    with pytest.raises(DataError, match="no 'pisition'"):
        read_impressions(table, pisition="slot")


@pytest.mark.parametrize("click", ["click", "clicked", "is_clicked", "isClicked", "clicks", "click_bool"])
def test_usual_names_of_clicks_and_queries_are_known(click):
    log = read_impressions(TABLE.rename(columns={"click_bool": click, "query": "query_id"}))
    assert log.gains.tolist() == [1.0, 0.0, 0.0, 1.0]
    assert log.query.tolist() == ["lamp"] * 4


def test_columns_are_found_without_reading_rows_and_not_among_those_that_are_dropped():
    expected = {"impression": "srch_id", "position": "position", "click": "click_bool", "query": "query"}
    expected |= {"item": "prop_id", "ranker": "model"}
    assert find_log_columns(TABLE) == expected
    assert find_log_columns(TABLE, drop="model, query", ranker="price")["ranker"] == "price"
    assert "query" not in find_log_columns(TABLE, drop="query")
    with pytest.raises(DataError, match="found no 'exploration' or the like"):
        find_log_columns(TABLE, needed=("exploration",))
    with pytest.raises(DataError, match="found no 'position' or the like"):
        find_log_columns(TABLE, features="position,price")


def test_what_is_no_number_is_said_and_what_is_no_table_is_refused(tmp_path):
    with pytest.warns(RankingWarning, match="colour hold no numbers"):
        rounds, _ = read_click_log(TABLE.assign(colour="red"))
    assert rounds.feature_names == ("price",)
    with pytest.warns(RankingWarning, match="'user_id' is learnt as a feature: drop what is not"):
        read_click_log(TABLE.assign(user_id=1.0))
    path = tmp_path / "lists.txt"
    write(rounds, path)
    with pytest.raises(DataError, match="a click log is a table"):
        read_impressions(path)


def event(query, item, action="click", place=None):
    attributes = {"object": {"object_id": item}, "position": {"ordinal": place}}
    return {"query_id": query, "action_name": action, "event_attributes": attributes}


def test_ubi_joins_queries_and_events(tmp_path):
    queries = [
        {"query_id": "1", "user_query": "lamp", "query_response_object_ids": ["a", "b", "c"]},
        {"query_id": "2", "user_query": "lamp", "query_response_hit_ids": ["c", "a"]},
        {"query_id": "3", "user_query": "desk", "query_response_object_ids": ["z"]},
    ]
    events = [
        event("1", "b"),
        event("1", "b", "purchase"),
        event("2", "a", "impression", 1),
        event("2", "d", "impression", 2),
        event("2", "d"),
        event("9", "a"),
        event("1", "unseen"),
    ]
    for name, rows in (("queries", queries), ("events", events)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, rows)))
    with pytest.warns(RankingWarning, match="2 events"):
        log = read_ubi(tmp_path / "queries", tmp_path / "events")
    assert list(zip(log.item, log.position.tolist(), log.gains.tolist(), strict=True)) == [
        ("a", 1, 0.0), ("b", 2, 1.0), ("c", 3, 0.0),
        ("a", 1, 0.0), ("d", 2, 1.0),
        ("z", 1, 0.0),
    ]  # fmt: skip
    assert log.query.tolist() == ["lamp"] * 5 + ["desk"]
    assert np.array_equal(read_ubi(queries, events[:1], click="purchase").gains, np.zeros(6))


def test_an_event_that_lacks_something_is_refused():
    queries = [{"query_id": "1", "query_response_object_ids": ["a"]}]
    with pytest.raises(DataError, match="event 0: an impression has no position"):
        read_ubi(queries, [event("1", "a", "impression")])
    with pytest.raises(DataError, match=r"event 0, event_attributes\.object has no 'object_id'"):
        read_ubi(queries, [{"query_id": "1", "action_name": "click", "event_attributes": {}}])
    with pytest.raises(DataError, match="query 0 has no 'query_id'"):
        read_ubi([{}], [])
    with pytest.raises(DataError, match="no query has shown anything"):
        read_ubi([{"query_id": "1"}], [])
