"""A slow, readable reader of LETOR text: what the fast one is compared with."""

import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

NUMBER = re.compile(rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
FEATURE = re.compile(rb"(\d+):(.*)", re.DOTALL)
NAME = re.compile(rb"[^\x00-\x20]+")
DOCID = re.compile(rb"docid[ \t]*=[ \t]*([^\x00-\x20]*)")


FIRST_WORD = re.compile(rb"[# \t]*([^\x00-\x20]*)")


class Document(NamedTuple):
    label: float
    qid: str
    values: dict
    docid: str
    comment: str


class Malformed(Exception):
    pass


def demand(condition):
    if not condition:
        raise Malformed


def as_number(word):
    demand(NUMBER.fullmatch(word))
    with np.errstate(over="ignore"):
        return np.float32(float(word))


def documents(content):
    """Yields the documents; a NULL value is NaN."""
    after_hash = None
    for line in content.split(b"\n"):
        body, sharp, comment = line.removesuffix(b"\r").partition(b"#")
        words = re.split(rb"[ \t]+", body.strip(b" \t"))
        if words == [b""]:
            continue
        has_qid = len(words) > 1 and words[1].startswith(b"qid:")
        if after_hash is None:
            after_hash = not has_qid and sharp == b"#"
        demand(has_qid != after_hash)
        demand(NUMBER.fullmatch(words[0]) and 0 <= float(words[0]) < float("inf"))
        qid = comment.strip(b" \t") if after_hash else words[1].removeprefix(b"qid:")
        demand(NAME.fullmatch(qid))
        values = {}
        for word in words[1 if after_hash else 2 :]:
            parts = FEATURE.fullmatch(word)
            demand(parts)
            index, value = int(parts[1]), parts[2]
            demand(index not in values)
            values[index] = np.float32("nan") if value == b"NULL" else as_number(value)
            demand(value == b"NULL" or np.isfinite(values[index]))
        docid = None if after_hash else DOCID.search(comment)
        first = None if after_hash else FIRST_WORD.match(comment)
        yield Document(
            float(words[0]),
            decoded(qid),
            values,
            docid[1].decode("utf-8", "replace") if docid else "",
            first[1].decode("utf-8", "replace") if first else "",
        )


def decoded(qid):
    try:
        return qid.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed from None


def filled(column, null):
    known = column[~np.isnan(column)]
    values = {
        "zero": 0.0,
        "min": known.min() if len(known) else 0.0,
        "mean": known.mean(dtype=float) if len(known) else 0,
    }
    demand(null != "error" or len(known) == len(column))
    return np.where(np.isnan(column), np.float32(values.get(null, 0)), column)


def slow_read(content, null="error", n_features=None, first_index=None):
    found = list(documents(content))
    indices = [index for document in found for index in document.values]
    first = first_index if first_index is not None else int(0 not in indices)
    width = n_features if n_features is not None else max(indices, default=-1) - first + 1
    demand(found and width > 0 and all(first <= index < first + width for index in indices))
    queries = list(dict.fromkeys(document.qid for document in found))
    rows = sorted(range(len(found)), key=lambda row: queries.index(found[row][1]))
    X = np.zeros((len(rows), width), np.float32)
    for i, row in enumerate(rows):
        for index, value in found[row][2].items():
            X[i, index - first] = value
    ids = [found[row][1] for row in rows]
    for q in queries:
        mine = [i for i, qid in enumerate(ids) if qid == q]
        for j in range(width):
            X[mine, j] = filled(X[mine, j], null)
    docids = [found[row].docid for row in rows]
    if not any(docids) and found[0].comment:
        named = [(document.qid, document.comment) for document in found if document.comment]
        docids = [found[row].comment for row in rows] if len(set(named)) == len(named) else []
    return SimpleNamespace(
        X=X,
        labels=[found[row][0] for row in rows],
        qids=queries,
        sizes=[ids.count(q) for q in queries],
        docids=docids if any(docids) else None,
        rows=rows,
        first_index=first,
    )


def assert_same(rounds, expected):
    assert rounds.X.dtype == np.float32
    assert rounds.X.tobytes() == expected.X.tobytes()
    assert rounds.X.shape == expected.X.shape
    assert rounds.labels.tolist() == expected.labels
    assert rounds.qids.tolist() == expected.qids
    assert np.diff(rounds.offsets).tolist() == expected.sizes
    assert (None if rounds.docids is None else rounds.docids.tolist()) == expected.docids
    assert (list(range(len(rounds.X))) if rounds.rows is None else rounds.rows.tolist()) == expected.rows
    assert rounds.first_index == expected.first_index


@pytest.fixture(scope="session")
def slow():
    """The slow reader, its error, and the comparison with what the fast one read."""
    return SimpleNamespace(read=slow_read, Malformed=Malformed, assert_same=assert_same)
