"""Features from JSON: the quick kernel reads what the careful decoder reads, or leaves it to it."""

import asyncio
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ranktron.service.http.endpoint import read_in_turns
from ranktron.store.errors import RequestError
from ranktron.store.messages import Document
from ranktron.store.rankers.features import MAX_CHUNK, _fill_matrix, _join_bytes, document_matrix

NAMES = ["a", "b", "c"]


def read(*texts):
    return document_matrix([Document(f"d{i}", Raw(text.encode())) for i, text in enumerate(texts)], NAMES)


@given(
    st.lists(st.floats(-1e38, 1e38), min_size=3, max_size=3),
    st.sampled_from([", ", ",", " ,\n "]),
)
def test_any_number_that_python_writes(values, separator):
    wanted = np.array(values).astype(np.float32)
    given_back = read(json.dumps(values, separators=(separator, ":")))[0]
    # a decimal is rounded to single precision at once, not by way of double precision
    assert ((given_back == wanted) | (np.abs(given_back - wanted) <= np.spacing(np.abs(wanted)))).all()


@pytest.mark.parametrize(
    "text",
    [
        "[1,2,3]",
        "[ -1.5 , 2e3,\t0.000001 ]",
        "[-0, 0.0, -0.0]",
        "[1E5,1e+5,1e-5]",
        "[123456789012345678901234567890,1,2]",
    ],
)
def test_forms_of_numbers(text):
    assert (read(text)[0] == np.array(json.loads(text), np.float32)).all()


def test_the_python_twin_agrees():
    X, Y = np.empty((2, 3), np.float32), np.empty((2, 3), np.float32)
    data = _join_bytes([Raw(b"[1, -2.5,3e2]"), Raw(b"[0.125,4,17]")])
    assert _fill_matrix(data, X)
    assert _fill_matrix.py_func(data, Y)
    assert (X == Y).all()
    for bad in (b"[1,2]", b"[1,2,3,4]", b'["1",2,3]', b"{}", b"[[1],2,3]", b"[null,1,2]", b"[]", b"7"):
        assert not _fill_matrix(_join_bytes([Raw(bad)]), X[:1])
        assert not _fill_matrix.py_func(_join_bytes([Raw(bad)]), X[:1])


def test_lists_and_names_may_be_mixed():
    assert read("[1,2,3]", '{"c": 6, "a": 4, "b": 5}').tolist() == [[1, 2, 3], [4, 5, 6]]
    assert document_matrix([Document("a", [1.0, 2.0, 3.0])], NAMES).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[1,2]", "wrong_features"),
        ('{"a": 1, "b": 2}', "wrong_features"),
        ('{"a": 1, "b": 2, "d": 3}', "wrong_features"),
        ('["1", 2, 3]', "invalid"),
        ("7", "invalid"),
        ("null", "invalid"),
        ("[1e39, 0, 0]", "feature_too_large"),
        ("[1e999, 0, 0]", "invalid"),
    ],
)
def test_what_is_refused(text, code):
    with pytest.raises(RequestError) as refused:
        read("[1,2,3]", text)
    assert refused.value.code == code
    assert "d1" in str(refused.value)


def test_what_is_too_large_is_named():
    with pytest.raises(RequestError, match=r"feature 'b' of document 'd1' is too large: the largest number is 3\.4e38"):
        read("[1,2,3]", "[1,1e39,1e39]")


@pytest.mark.parametrize("by_name", [False, True])
def test_a_large_list_is_read_in_turns(by_name):
    rows = np.random.default_rng(0).normal(size=(200, 500)).round(4)
    names = [f"f{j}" for j in range(500)]
    features = [dict(zip(names, row, strict=True)) if by_name else row for row in rows.tolist()]
    documents = [Document(f"d{i}", Raw(json.dumps(each).encode())) for i, each in enumerate(features)]
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def both():
        watching = asyncio.create_task(others())
        read = await read_in_turns(documents, names)
        watching.cancel()
        return read

    read = asyncio.run(both())
    assert turns >= rows.size // MAX_CHUNK
    assert np.array_equal(document_matrix(read, names), document_matrix(documents, names))
    assert [each.id for each in read] == [each.id for each in documents]


def test_rows_that_were_read_for_another_ranker_are_refused():
    read = asyncio.run(read_in_turns([Document("a", Raw(b"[1, 2]"))], ["x", "y"]))
    with pytest.raises(RequestError, match="should have 3 features"):
        document_matrix(read, ["x", "y", "z"])
