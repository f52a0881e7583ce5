"""Evaluates a run (documents with scores for each query) against judgments (qrels), which may be on other documents.

The rules are those of trec_eval -c:

- a document that was returned but not judged is not relevant (bpref ignores it); a grade below 0 is no judgment,
- a relevant document that was not returned is part of the ideal ranking and of the number of relevant documents, and
  gains nothing. Metrics that count pairs rank such documents last, the least relevant first,
- a query that is judged but not in the run counts 0; one that is in the run but not judged is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics.gain import ideal_dcg
from ranktron.metrics.metric import Metric
from ranktron.metrics.ties import arrange
from ranktron.types import Floats

ByQuery = dict[str, dict[str, float]]
Measured = Callable[[Floats, Rounds, Metric], Floats]
PAIRS = ("tau", "inversions", "rankeff", "auc")
SCORE = ("score", "sim")


class JudgedRun:
    """The documents of a run and of its judgments, query by query."""

    def __init__(self, run: ByQuery, qrels: ByQuery) -> None:
        if not qrels:
            raise DataError("there is no query in the judgments")
        if not any(qid in run for qid in qrels):
            few = ", ".join(map(repr, list(run)[:3])), ", ".join(map(repr, list(qrels)[:3]))
            raise DataError(f"no query of the run is judged: it has {few[0]}, the judgments have {few[1]}")
        self.qids = list(qrels)
        self.lists = [_List(run.get(qid, {}), qrels[qid]) for qid in self.qids]
        self.relevant = np.array([each.relevant for each in self.lists])

    def values(self, metric: Metric, measure: Measured) -> Floats:
        """The values of a metric, one per query; `measure` computes those of complete rankings."""
        if metric.name in PAIRS:
            return self._measured(metric, measure, "all")
        if metric.name == "bpref":
            found = self._measured(metric, measure, "judged")
            return np.where([each.all_relevant for each in self.lists], self._share(), found)
        if metric.name == "rprec":
            values = np.array([each.r_precision(metric) for each in self.lists])
        else:
            values = self._measured(metric, measure, "returned")
        if metric.name in ("map", "recall"):
            values = values * self._share()
        if metric.name == "ndcg":
            values = values * np.array([each.share_of_ideal(metric) for each in self.lists])
        some = np.array([each.hits for each in self.lists]) > 0
        return np.where(self.relevant > 0, np.where(some, values, 0.0), metric.choices.empty_of(metric.name))

    def _share(self) -> Floats:
        """The share of the relevant documents that was returned."""
        share: Floats = np.array([each.hits / max(each.relevant, 1) for each in self.lists])
        return share

    def _measured(self, metric: Metric, measure: Measured, which: str) -> Floats:
        """The values on some of the documents; a query without any of them counts as one without relevant documents."""
        chosen = [getattr(each, which) for each in self.lists]
        values: Floats = np.full(len(chosen), 0.0 if which == "returned" else metric.choices.empty_of(metric.name))
        some = [q for q, (scores, _, _) in enumerate(chosen) if len(scores)]
        if some:
            scores, labels, docids = (np.concatenate([chosen[q][part] for q in some]) for part in range(3))
            sizes = [len(chosen[q][0]) for q in some]
            rounds = Rounds.from_arrays(np.zeros((len(scores), 1)), labels, group=sizes, docids=docids)
            values[some] = measure(scores, rounds, metric)
        return values

    @property
    def empty_queries(self) -> int:
        return int(np.count_nonzero(self.relevant == 0))


Documents = tuple[Floats, Floats, np.ndarray[Any, np.dtype[Any]]]


class _List:
    """One query: its documents as (scores, labels, ids)."""

    def __init__(self, found: Mapping[str, float], grades: Mapping[str, float]) -> None:
        grades = {docid: grade for docid, grade in grades.items() if grade >= 0.0}
        missed = sorted((docid for docid in grades if docid not in found), key=lambda docid: grades[docid])
        self.relevant = sum(grade > 0 for grade in grades.values())
        self.all_relevant = len(grades) == self.relevant > 0
        self.hits = sum(grades.get(docid, 0.0) > 0 for docid in found)
        self.grades = grades
        scores = np.array(list(found.values()), np.float32)
        # Ranks from the bottom, equal for equal scores, so that documents that were not returned can be placed below.
        places = np.unique(scores, return_inverse=True)[1].astype(float) + len(missed)
        labels = np.array([grades.get(docid, 0.0) for docid in found], float)
        ids = np.array(list(found), dtype=str)
        self.returned: Documents = (places, labels, ids)
        below = np.arange(len(missed), 0, -1) - 1.0
        self.all: Documents = (
            np.concatenate([places, below]),
            np.concatenate([labels, [grades[docid] for docid in missed]]),
            np.concatenate([ids, np.array(missed, dtype=str)]),
        )

    @cached_property
    def judged(self) -> Documents:
        n = len(self.returned[0])
        known = np.ones(len(self.all[0]), bool)
        known[:n] = [docid in self.grades for docid in self.returned[2].tolist()]
        return self.all[0][known], self.all[1][known], self.all[2][known]

    def share_of_ideal(self, metric: Metric) -> float:
        """The ideal DCG of the documents returned, divided by that of all judged documents."""
        _, k, gain, discount, *_ = metric.record[0]
        best = ideal_dcg(np.array(list(self.grades.values()), float), k, gain, discount)
        return ideal_dcg(self.returned[1], k, gain, discount) / best if best else 0.0

    def r_precision(self, metric: Metric) -> float:
        """The share of relevant documents among the first R returned."""
        scores, labels, ids = self.returned
        if not len(scores) or not self.relevant:
            return 0.0
        ranked = arrange(scores, labels, metric.choices.ties, ids)
        return float(np.count_nonzero(ranked[: self.relevant] > 0)) / self.relevant


def as_values(given: Any, what: str) -> ByQuery:
    """A run or judgments as `{query: {document: number}}`: a TREC file, a dict, a data frame, an object of ranx.

    >>> as_values({"q1": {"d1": 2}}, "qrels")
    {'q1': {'d1': 2.0}}
    """
    if isinstance(given, str | os.PathLike):
        from ranktron.data.io.trec import read_qrels, read_run

        given = read_run(os.fspath(given)) if what == "run" else read_qrels(os.fspath(given))
    elif hasattr(given, "columns") or hasattr(given, "column_names"):
        given = _from_frame(given, what)
    elif not isinstance(given, Mapping) and hasattr(given, "to_dict"):
        given = given.to_dict()
    if not isinstance(given, Mapping):
        raise DataError(
            f"expected a {what} as a path, a dict {{query: {{document: number}}}}, a data frame or an object of ranx, "
            f"found a {type(given).__name__}"
        )
    return {str(qid): _numbers(qid, documents, what) for qid, documents in given.items()}


def _numbers(qid: Any, documents: Any, what: str) -> dict[str, float]:
    if not isinstance(documents, Mapping):
        raise DataError(f"expected {{document: number}} for query {qid!r} of the {what}, found {documents!r}")
    numbers = {}
    for docid, given in documents.items():
        try:
            value = float(given)
        except (TypeError, ValueError):
            value = float("nan")
        if not isfinite(value):
            raise DataError(f"expected a number for document {docid!r} of query {qid!r} of the {what}, found {given!r}")
        numbers[str(docid)] = value
    return numbers


def _from_frame(frame: Any, what: str) -> dict[str, dict[str, float]]:
    """The rows of a data frame of pandas, polars or pyarrow, by the usual names of its columns."""
    from ranktron.data.io.columns import Columns, assign_roles, join_names, plain

    columns = [str(name) for name in (frame.column_names if hasattr(frame, "column_names") else frame.columns)]
    value = next((name for name in columns if plain(name) in SCORE), None)
    if what == "run" and value is None:
        raise DataError(f"found no 'score' among the columns {join_names(columns)} of the run")
    others = [name for name in columns if name != value]
    roles = assign_roles(others, [], Columns(features=()), labelled=what == "qrels" and value is None)
    if roles.doc is None:
        raise DataError(f"found no 'doc_id' or the like among the columns {join_names(columns)} of the {what}")
    names = (roles.query, roles.doc, roles.label if what == "qrels" and roles.label is not None else value)
    found: dict[str, dict[str, float]] = {}
    for qid, docid, number in zip(*(_cells(frame, str(name)) for name in names), strict=True):
        documents = found.setdefault(str(qid), {})
        if str(docid) in documents:
            raise DataError(f"document {docid!r} stands twice for query {qid!r} of the {what}")
        documents[str(docid)] = number
    return found


def _cells(frame: Any, name: str) -> Iterable[Any]:
    column = frame[name]
    cells: Iterable[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return cells
