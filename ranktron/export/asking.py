"""Requests a running engine's scores of known documents, and compares them with the model's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.export.pushing import EngineCall, exchange
from ranktron.types import Floats

ENGINES = ("elasticsearch", "opensearch", "solr", "lucene-expression")
MAX_RESPONSE = 50_000_000  # bytes


@dataclass(frozen=True)
class EngineComparison:
    """Comparison of an engine's scores with a model's, up to a constant in each query.

    `error` is the largest difference, relative to the largest absolute score of the model; `swapped` counts the pairs
    of documents that the two order differently although the model's scores differ by more than the tolerance allows.
    `worst` describes the document with the largest difference; `missing` counts documents that the engine did not
    return.
    """

    queries: int
    documents: int
    missing: int
    error: float
    swapped: int
    worst: str
    fits: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def score_call(
    to: str, place: str, key: str, ids: Sequence[str], name: str, script: Any, params: Mapping[str, Any]
) -> EngineCall:
    """The request for the scores of the documents with these ids.

    `place` is the index or the collection, `key` Solr's field with the ids, `params` the query's parameters of the
    features.

    >>> call = score_call("solr", "films", "id", ["7", "9"], "mine", None, {"text": "war"})
    >>> call.path, json.loads(call.body)["params"]["rq"]
    ('/films/query', "{!ltr model='mine' reRankDocs=2 efi.text='war'}")
    """
    purpose, size = "ask for scores", len(ids)
    if to == "solr":
        feature_info = "".join(f" efi.{word}={_quoted(str(value))}" for word, value in params.items())
        rerank = f"{{!ltr model={_quoted(name)} reRankDocs={size}{feature_info}}}"
        query = {"query": "{!terms f=" + key + " separator='\t' v=$ids}", "limit": size, "fields": [key, "score"]}
        body = {**query, "params": {"ids": "\t".join(ids), "rq": rerank}}
        return EngineCall(purpose, "POST", f"/{quote(place, safe='')}/query", json.dumps(body).encode())
    ids_query: dict[str, Any] = {"ids": {"values": list(ids)}}
    body = {"size": size, "_source": False}
    if to == "lucene-expression":
        body |= {"query": ids_query, "script_fields": {"score": {"script": script}}}
    else:
        model = {"sltr": {"params": dict(params), "model": name}}
        body |= {"query": {"bool": {"filter": [ids_query], "should": [model]}}}
    return EngineCall(purpose, "POST", f"/{quote(place, safe='')}/_search", json.dumps(body).encode())


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def read_scores(to: str, key: str, answer: bytes) -> dict[str, float]:
    """The scores in an answer, by document id.

    >>> read_scores("solr", "id", b'{"response": {"docs": [{"id": "7", "score": 1.5}]}}')
    {'7': 1.5}
    """
    try:
        content = json.loads(answer)
        if to == "solr":
            return {str(row[key]): float(row["score"]) for row in content["response"]["docs"]}
        hits = content["hits"]["hits"]
        if to == "lucene-expression":
            return {str(hit["_id"]): float(hit["fields"]["score"][0]) for hit in hits}
        return {str(hit["_id"]): float(hit["_score"]) for hit in hits}
    except (ValueError, KeyError, IndexError, TypeError):
        raise DataError(
            f"the engine's answer is not one of {to}: {answer[:200].decode('utf-8', 'replace')!r}"
        ) from None


def ask_scores(
    url: str, to: str, place: str, rounds: Rounds, *, key: str, name: str, script: Any, params: Mapping[str, Any],
    headers: Mapping[str, str], timeout: float,
) -> Floats:  # fmt: skip
    """The engine's scores of all documents, by one request for each query; NaN for those that it did not return."""
    if rounds.docids is None:
        raise DataError("the data has no document ids, which the engine needs: name their column with --doc")
    engine_scores = np.full(len(rounds.docids), np.nan)
    for q, (a, b) in enumerate(zip(rounds.offsets, rounds.offsets[1:], strict=False)):
        ids = [str(docid) for docid in rounds.docids[a:b]]
        call = score_call(to, place, key, ids, name, script, params.get(str(rounds.qids[q]), {}))
        scores = read_scores(to, key, exchange(url, call, headers, timeout, MAX_RESPONSE)[1])
        engine_scores[a:b] = [scores.get(docid, np.nan) for docid in ids]
    return engine_scores


def compare_scores(rounds: Rounds, model_scores: Floats, engine_scores: Floats, tolerance: float) -> EngineComparison:
    """Compares an engine's scores with the model's; a document that the engine did not return is a misfit.

    >>> rounds = Rounds.from_arrays(np.eye(3), [0, 0, 1], qid=0)
    >>> compare_scores(rounds, np.array([1.0, 2.0, 3.0]), np.array([5.0, 6.0, 7.0]), 1e-6).fits
    True
    >>> compare_scores(rounds, np.array([1.0, 2.0, 3.0]), np.array([5.0, 7.0, 6.0]), 1e-6).swapped
    1
    """
    allowed = tolerance * max(float(np.abs(model_scores).max(initial=0.0)), 1e-30)
    largest, worst, swapped = 0.0, "", 0
    for q, (a, b) in enumerate(zip(rounds.offsets, rounds.offsets[1:], strict=False)):
        rows = a + np.flatnonzero(np.isfinite(engine_scores[a:b]))
        if not len(rows):
            continue
        ours, theirs = model_scores[rows], engine_scores[rows]
        difference = theirs - ours
        difference -= np.median(difference)
        at = int(np.argmax(np.abs(difference)))
        if abs(difference[at]) > largest:
            largest = float(abs(difference[at]))
            docid = "" if rounds.docids is None else rounds.docids[rows[at]]
            worst = f"document {docid} of query {rounds.qids[q]}: {theirs[at]:.7g}, model {ours[at]:.7g}"
        for i in range(len(rows) - 1):
            our_gaps, their_gaps = ours[i] - ours[i + 1 :], theirs[i] - theirs[i + 1 :]
            swapped += int(np.count_nonzero((np.abs(our_gaps) > 2.0 * allowed) & (our_gaps * their_gaps <= 0.0)))
    missing = int(np.count_nonzero(~np.isfinite(engine_scores)))
    error = largest * tolerance / allowed
    fits = not missing and not swapped and largest <= allowed
    return EngineComparison(len(rounds), len(model_scores), missing, error, swapped, worst, fits)
