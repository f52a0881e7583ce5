"""Feature logs of the learning-to-rank plugins of Elasticsearch and OpenSearch: search hits with `fields._ltrlog`.

A file contains responses (`{"hits": {"hits": [...]}}`, or `{"responses": [...]}` of several searches) or single
hits: one JSON value, an array of them, or one per line. The query id is in the response or hit as `qid`, `query_id` or
`query`; if it is missing, it is taken from the judgments of the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.io.formats import Source, blocks
from ranktron.data.io.grouping import assemble, placeholder
from ranktron.data.io.judgments import Judgments
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError

QUERY = ("qid", "query_id", "query")
GRADE = ("label", "grade", "relevance")
LARGEST = float(np.finfo(np.float32).max)


class _Hit(NamedTuple):
    """A logged document."""

    qid: Any
    docid: str
    grade: float
    values: dict[str, float | None]


def read_ltr_log(path: Source, null: str, judgments: Judgments | None) -> Rounds:
    """Reads a feature log; the features have their names in the order in which they first appear.

    The engines leave out the value of a feature that does not match a document, and score it as 0. It is read as 0,
    unless `null` is "min" or "mean". A hit without a grade has the label NaN.
    """
    hits = [hit for number, value in _values(path) for hit in _hits(value, f"{path}, entry {number}", None, judgments)]
    if not hits:
        raise DataError(f"{path}: there is no hit with a feature log (fields._ltrlog) in it")
    names = tuple(dict.fromkeys(name for hit in hits for name in hit.values))
    if not names:
        raise DataError(f"{path}: there is no feature in it")
    missing = 0.0 if null in ("error", "zero") else placeholder(null)
    X = np.full((len(hits), len(names)), missing, np.float32)
    places = {name: j for j, name in enumerate(names)}
    for row, hit in enumerate(hits):
        for name, value in hit.values.items():
            if value is not None:
                X[row, places[name]] = value
    ids = np.array([str(hit.qid) for hit in hits])
    labels, docids = np.array([hit.grade for hit in hits]), np.array([hit.docid for hit in hits])
    rounds = assemble(X, labels, ids, docids, null)
    return replace(rounds, feature_names=names)


def _values(path: Source) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file: one, an array of them, or one per line."""
    text = b"".join(blocks(path)).decode("utf-8", "replace").lstrip("\ufeff")
    decoder, at, number = json.JSONDecoder(), 0, 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError as error:
            line = text.count("\n", 0, at) + 1
            raise DataError(f"{path}, line {line}: not JSON that can be read: {error}") from None
        for each in value if isinstance(value, list) else [value]:
            number += 1
            yield number, each


def _hits(value: Any, where: str, qid: Any, judgments: Judgments | None) -> Iterator[_Hit]:
    """The hits in one JSON value: a response, several responses, or a hit."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a search hit or the answer to a search, found {str(value)[:40]!r}")
    if "error" in value and "hits" not in value:
        raise DataError(f"{where}: the search engine answered with an error: {str(value['error'])[:200]}")
    qid = next((value[key] for key in QUERY if isinstance(value.get(key), str | int)), qid)
    if "responses" in value:
        for each in value["responses"]:
            yield from _hits(each, where, qid, judgments)
    elif "hits" in value:
        inner = value["hits"]
        for hit in inner["hits"] if isinstance(inner, dict) and "hits" in inner else inner:
            yield from _hits(hit, where, qid, judgments)
    else:
        yield _hit(value, where, qid, judgments)


def _hit(hit: dict[str, Any], where: str, qid: Any, judgments: Judgments | None) -> _Hit:
    docid = str(hit.get("_id", hit.get("docid", "")))
    where = f"{where}, document {docid!r}"
    try:
        entries = hit["fields"]["_ltrlog"][0]
        logged = [entry for entries_of in entries.values() for entry in entries_of]
    except (KeyError, IndexError, TypeError, AttributeError):
        raise DataError(f"{where}: expected features in fields._ltrlog[0], found none") from None
    if qid is None and judgments is not None:
        qid = judgments.query_of(docid, where)
    if qid is None:
        raise DataError(
            f'{where}: the query id is missing; put it beside each answer or hit as "qid", or give judgments= '
            "(--judgments FILE), which tell it where a document is judged for one query"
        )
    values: dict[str, float | None] = {}
    for entry in logged:
        name, value = str(entry.get("name")), entry.get("value")
        if name in values:
            raise DataError(f"{where}: the feature {name!r} is logged twice")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and abs(value) <= LARGEST):
            raise DataError(f"{where}: expected a number of 32 bits as the value of {name!r}, found {value!r}")
        values[name] = value
    grade = next((hit[key] for key in GRADE if isinstance(hit.get(key), int | float)), float("nan"))
    return _Hit(qid, docid, float(grade), values)
