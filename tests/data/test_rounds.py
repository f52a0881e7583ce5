import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktron
from ranktron import DataError, Rounds
from ranktron.data.rounds import take_qid_column
from ranktron.errors import RankingWarning


def three_lists():
    return Rounds.from_arrays(np.arange(12).reshape(6, 2), range(6), qid=["a", "a", "b", "b", "b", "c"])


@given(st.lists(st.sampled_from(["x", "y", "z", 1, 2.5, ("t", 1)]), min_size=1, max_size=20))
def test_any_query_ids_in_any_order_group_stably(ids):
    qid = np.empty(len(ids), object)
    qid[:] = ids
    rounds = Rounds.from_arrays(np.arange(len(ids))[:, None], range(len(ids)), qid=qid)
    assert list(rounds.qids) == list(dict.fromkeys(ids))
    for round in rounds:
        assert round.labels.tolist() == [i for i, q in enumerate(ids) if q == round.qid]
        assert round.X[:, 0].tolist() == round.labels.tolist()
    assert rounds.restore(rounds.labels).tolist() == list(range(len(ids)))


def test_grouped_input_is_not_copied():
    X = np.ones((4, 2), np.float32)
    rounds = Rounds.from_arrays(X, np.zeros(4), qid=[3, 3, 1, 1])
    assert rounds.rows is None
    assert np.shares_memory(rounds.X, X)
    assert all(np.shares_memory(round.X, X) for round in rounds)


def test_group_sizes_are_another_way_to_say_it():
    rounds = Rounds.from_arrays(np.ones((5, 1)), range(5), group=[2, 3])
    assert [len(round.labels) for round in rounds] == [2, 3]
    assert len(Rounds.from_arrays(np.ones((5, 1)), range(5))) == 1


def test_slices_and_choices():
    rounds = three_lists()
    assert rounds[-1].qid == "c"
    assert np.shares_memory(rounds[1:].X, rounds.X)
    assert rounds[1:].labels.tolist() == [2, 3, 4, 5]
    assert rounds[::-1].qids.tolist() == ["c", "b", "a"]
    assert rounds[[2, 0]].labels.tolist() == [5, 0, 1]
    assert rounds[np.array([False, True, False])].labels.tolist() == [2, 3, 4]
    assert len(rounds[1:1]) == 0
    with pytest.raises(IndexError):
        rounds[3]


@pytest.mark.parametrize("seed", [None, 0])
def test_split_divides_queries_and_concat_joins_them(seed):
    rounds = three_lists()
    one, two = rounds.split(0.67, seed)
    assert (len(one), len(two)) == (2, 1)
    joined = Rounds.concat([one, two])
    assert sorted(joined.qids) == sorted(rounds.qids)
    assert sorted(joined.labels) == sorted(rounds.labels)
    for round in joined:
        original = rounds[list(rounds.qids).index(round.qid)]
        assert (round.X == original.X).all()


def test_a_query_in_two_parts_is_refused():
    with pytest.raises(DataError, match="query 'a' is split"):
        Rounds.concat([three_lists(), three_lists()])
    with pytest.raises(DataError, match="with 2 and with 1 features"):
        Rounds.concat([three_lists(), Rounds.from_arrays([[1.0]], [0], qid=["z"])])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": [[1.0, np.nan], [0.0, 0.0]]}, "row 0, column 1"),
        ({"X": [[1.0, 0.0], [0.0, 1e300]]}, r"1e\+300.*row 1, column 1"),
        ({"X": [["a", "b"], ["c", "d"]]}, "must be numbers"),
        ({"X": [1.0, 2.0]}, "table"),
        ({"X": np.ones((0, 2)), "y": []}, "nothing to rank"),
        ({"y": [0, -1]}, "row 1 has -1"),
        ({"y": [0, np.inf]}, "row 1 has inf"),
        ({"y": [0]}, "one number per document"),
        ({"y": None}, "labels are missing"),
        ({"qid": [1]}, "one query id per document"),
        ({"qid": [1.0, np.nan]}, "row 1"),
        ({"qid": [1, 2], "group": [2]}, "not both"),
        ({"group": [1]}, "add up to 1"),
        ({"group": [2, 0]}, "positive"),
        ({"X": [[1.0], [1.0, 2.0]]}, "as many in each row"),
        ({"X": np.ones((2, 2)) * 1j}, "complex128"),
        ({"X": np.zeros((2, 2), "M8[s]")}, "must be numbers"),
        ({"y": [0, 1j]}, "complex128"),
        ({"qid": pd.Series(["1", None], dtype="string")}, "missing.* in row 1"),
        ({"qid": pd.Series([1, None], dtype="Int64")}, "missing.* in row 1"),
        ({"qid": np.array(["2026-01-01", "NaT"], "M8[D]")}, "missing.* in row 1"),
        ({"qid": ["a", float("nan")]}, "missing.* in row 1"),
        ({"qid": [1, {}]}, "texts, numbers or tuples.*dict"),
        ({"qid": [[1], [1, 2]]}, "texts, numbers or tuples.*list"),
        ({"qid": [[1], [1]]}, "texts, numbers or tuples.*list"),
        ({"docids": ["a"]}, "one document id per document"),
        ({"docids": 3}, "one document id per document"),
        ({"feature_names": ["a"]}, "1 feature names for 2"),
    ],
)
def test_bad_input_is_one_clear_error(change, words):
    with pytest.raises(DataError, match=words):
        Rounds.from_arrays(**({"X": np.ones((2, 2)), "y": [0, 1]} | change))


@pytest.mark.parametrize(
    "ids",
    [
        [1, "1"],
        [2**63, 2**63 + 1, -1],
        [2**53 + 1, 2.0**53],
        ["a", "a\0"],
        [("a", 1), ("a", 2)],
        [("a", 1), ("a",)],
        ["nan", 0.5],
    ],
)
def test_query_ids_in_a_list_are_told_apart_as_python_does(ids):
    rounds = Rounds.from_arrays(np.ones((2 * len(ids), 1)), np.zeros(2 * len(ids)), qid=ids + ids)
    assert rounds.qids.tolist() == ids
    assert [round.qid for round in rounds] == ids


def test_parts_whose_query_ids_are_of_two_kinds_are_joined_as_they_are():
    parts = [Rounds.from_arrays([[1.0]] * 2, [0, 1], qid=ids) for ids in ([1, 2], ["1", "2"], [("a", 1), ("a", 2)])]
    joined = Rounds.concat(parts)
    assert joined.qids.tolist() == [1, 2, "1", "2", ("a", 1), ("a", 2)]
    assert joined.offsets.tolist() == list(range(7))
    with pytest.raises(DataError, match=r"query \('a', 1\) is split"):
        Rounds.concat([*parts, parts[2]])
    with pytest.raises(DataError, match="the seed"):
        joined.split(0.5, seed=-1)


def test_query_ids_of_one_kind_stay_an_array_of_it():
    for ids, kind in (([3, 1], "int64"), (["a", "bc"], "<U2"), ([0.5, 1.0], "float64")):
        assert Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=ids).qids.dtype == kind


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.array([0, 3, 1, 4])},
        {"offsets": np.array([0, -1, 1, 4])},
        {"offsets": np.array([0, 1, 2, 3])},
        {"offsets": [0, 1, 2, 4]},
        {"X": [[1.0]] * 4},
        {"labels": [0.0] * 4},
        {"labels": np.zeros((4, 1))},
        {"qids": ["a", "b", "c"]},
        {"qids": np.array("a")},
        {"docids": ["a", "b", "c", "d"]},
        {"rows": np.arange(3)},
    ],
)
def test_arrays_that_kernels_could_not_trust_are_refused(change):
    good = {"X": np.ones((4, 1), np.float32), "labels": np.zeros(4), "offsets": np.array([0, 1, 2, 4])}
    good["qids"] = np.array(["a", "b", "c"])
    assert len(Rounds(**good)) == 3
    with pytest.raises(DataError, match="do not fit together"):
        Rounds(**(good | change))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_qid_column_of_a_frame_is_never_a_feature(frame):
    X, qid = take_qid_column(frame({"a": [1.0, 2.0], "qid": ["x", "y"]}))
    assert list(X.columns) == ["a"]
    assert qid.tolist() == ["x", "y"]
    assert take_qid_column(X)[1] is None


def test_values_that_32_bits_cannot_tell_apart_are_warned_of(tmp_path):
    """Times in milliseconds; seconds are coarser than 32 bits as well, and yet tell days apart."""
    milliseconds, seconds = 1.7e12 + np.arange(100.0), 1.7e9 + 86_400.0 * np.arange(100.0)
    table = np.column_stack([seconds, milliseconds, np.arange(100.0)])
    with pytest.warns(RankingWarning, match="^column 1 has values that differ and are equal in 32 bits"):
        Rounds.from_arrays(table, np.arange(100) % 2)
    text = "".join(f"{i % 2},1,{row[1]:.0f},{row[0]:.0f}\n" for i, row in enumerate(table))
    (tmp_path / "a.csv").write_text(f"label,qid,when,day\n{text}")
    with pytest.warns(RankingWarning, match="column 'when' has values that differ") as caught:
        ranktron.read(tmp_path / "a.csv")
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Rounds.from_arrays(table - table[0], np.arange(100) % 2)
