"""Grades in a separate file: RankLib's and Elasticsearch's judgment lists, TREC's qrels, and tables."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ranktron.data.io.columns import Columns, assign_roles
from ranktron.data.io.formats import TABLES, InputFile, blocks, detect
from ranktron.data.io.table_sources import index_columns, open_table
from ranktron.data.io.trec import read_qrels
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, RankingWarning

Grades = Mapping[str, Mapping[str, float]]
_JUDGMENT = re.compile(r"\s*(?P<grade>[\d.]+(?:[eE][+-]?\d+)?)\s+qid:(?P<qid>\S+)[^#]*#\s*(?P<comment>.*)")
_NAMED = re.compile(r"docid\s*=\s*(\S+)")


class Judgments:
    """Grades by query and document."""

    def __init__(self, grades: Grades) -> None:
        self.grades = grades
        self._queries: dict[str, list[str]] = {}
        for qid, documents in grades.items():
            for docid in documents:
                self._queries.setdefault(docid, []).append(qid)

    def query_of(self, docid: str, where: str) -> str | None:
        """The query for which a document is judged, None if it is not judged."""
        queries = self._queries.get(docid, [])
        if len(queries) > 1:
            raise DataError(
                f"{where}: this document is judged for the queries {', '.join(queries[:3])}: put the query id beside "
                'each answer or hit as "qid"'
            )
        return queries[0] if queries else None

    def applied_to(self, rounds: Rounds, name: str) -> Rounds:
        """The judged documents, with their grades as labels; a warning counts those that are left out."""
        if rounds.docids is None:
            raise DataError(
                f"{name}: judgments are found by the documents' ids, and these have none: name them (--doc)"
            )
        qids = np.repeat(rounds.qids, np.diff(rounds.offsets)).tolist()
        found = [
            self.grades.get(str(qid), {}).get(str(docid))
            for qid, docid in zip(qids, rounds.docids.tolist(), strict=True)
        ]
        judged = np.array([grade is not None for grade in found])
        if not judged.any():
            raise DataError(f"{name}: none of its documents is judged: do the ids of the two files agree?")
        wanted = sum(len(documents) for documents in self.grades.values())
        if not judged.all() or wanted > len(found):
            warnings.warn(
                f"{name}: {int((~judged).sum())} of {len(found)} documents are not judged and were left out; "
                f"{int(judged.sum())} of {wanted} judgments were used",
                RankingWarning,
                stacklevel=2,
            )
        labels = np.array([max(float(grade), 0.0) for grade in found if grade is not None])
        lengths = np.add.reduceat(judged.astype(np.int64), rounds.offsets[:-1])
        offsets = np.concatenate(([0], np.cumsum(lengths[lengths > 0]))).astype(np.int64)
        return replace(
            rounds, X=rounds.X[judged], labels=labels, offsets=offsets, qids=rounds.qids[lengths > 0],
            docids=rounds.docids[judged], rows=None,
        )  # fmt: skip


def read_judgments(path: str | os.PathLike[str]) -> Judgments:
    """Reads grades: `grade qid:Q # document title` on each line, TREC's qrels, or a table with these three columns.

    Parameters
    ----------
    path : path
        The file, in one of the three formats; it may be compressed.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "judgments.txt"
    >>> _ = path.write_text("# qid:1: rambo\\n4 qid:1 # 7555 Rambo\\n0 qid:1 # 1370 Rambo III\\n")
    >>> read_judgments(path).grades
    {'1': {'7555': 4.0, '1370': 0.0}}
    """
    file = detect(Path(path))
    if file.format in TABLES:
        return Judgments(_from_table(file))
    lines = b"".join(blocks(file)).decode("utf-8", "replace").splitlines()
    judgments = [
        (number, line) for number, line in enumerate(lines, start=1) if line.strip() and line.lstrip()[0] != "#"
    ]
    if not judgments:
        raise DataError(f"{path}: there is no judgment in it")
    if "qid:" not in judgments[0][1]:
        return Judgments(read_qrels(file.path))
    grades: dict[str, dict[str, float]] = {}
    for number, line in judgments:
        found = _JUDGMENT.match(line)
        named = _NAMED.search(found["comment"]) if found else None
        words = found["comment"].split() if found else []
        if found is None or not words:
            raise DataError(
                f"{path}, line {number}: expected 'grade qid:QUERY # document', found {line.strip()[:60]!r}"
            )
        docid = named[1] if named else words[0]
        documents = grades.setdefault(found["qid"], {})
        if docid in documents:
            raise DataError(f"{path}, line {number}: document {docid!r} is judged twice for query {found['qid']!r}")
        documents[docid] = float(found["grade"])
    return Judgments(grades)


def _from_table(file: InputFile) -> dict[str, dict[str, float]]:
    source = open_table(file, whole=True)
    names = source.schema.names
    roles = assign_roles(names, index_columns(source.schema), Columns(), labelled=True)
    if roles.doc is None:
        raise DataError(f"{file}: found no column with the document id among {', '.join(names)}")
    grades: dict[str, dict[str, float]] = {}
    for batch in source.batches(roles._replace(features=())):
        columns: list[list[Any]] = [batch.column(name).to_pylist() for name in (roles.query, roles.doc, roles.label)]
        for qid, docid, grade in zip(*columns, strict=True):
            grades.setdefault(str(qid), {})[str(docid)] = float(grade)
    return grades
