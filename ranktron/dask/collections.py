"""Dask's data frames, arrays and bags as parts with whole queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranktron.dask.cluster import Answer, Cluster
from ranktron.dask.tasks import PartSummary, summarise_part
from ranktron.data.io.grouping import in_file
from ranktron.data.io.parts import hash_queries, shared_query
from ranktron.data.rounds import Rounds, frame_feature_names, stack_rows
from ranktron.errors import DataError, warn

NO_QUERIES = "queries have no ids: give qid=, or a column named qid"


def is_frame_of_dask(X: Any) -> bool:
    """Whether a collection is a Dask data frame."""
    return hasattr(X, "to_delayed") and hasattr(X, "columns")


def as_futures(client: Any, X: Any, y: Any = None, qid: Any = None, missing: bool = False) -> list[Any]:
    """Futures of `Rounds`, one for each partition, which stay on the workers.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    X : data frame, array or bag of Dask
        The features; each item of a bag is a query: a `Round` or (X, labels, qid).
    y, qid : series, arrays, or names of columns
        The labels and the query ids.
    missing : bool
        Whether features may be missing.
    """
    from dask.delayed import delayed

    if hasattr(X, "to_delayed") and not hasattr(X, "ndim"):
        if y is not None or qid is not None:
            raise DataError("the items of a bag are queries with their labels and ids: leave y and qid out")
        return [Answer(client.compute(delayed(_from_items)(part, missing))) for part in X.to_delayed()]
    names = None
    if is_frame_of_dask(X):
        X, y, qid = _from_columns(X, y, qid)
        names = frame_feature_names(X)
    if y is None:
        raise DataError("labels are missing: give y, or the name of their column")
    if qid is None:
        raise DataError(NO_QUERIES)
    columns = [_partitions(each, X, name) for each, name in ((X, "X"), (y, "y"), (qid, "qid"))]
    if len({len(parts) for parts in columns}) > 1:
        raise DataError(
            f"X, y and qid have {', '.join(str(len(parts)) for parts in columns)} partitions: divide them alike"
        )
    make = delayed(_from_rows)
    return [Answer(client.compute(make(*rows, names, missing))) for rows in zip(*columns, strict=True)]


def _from_columns(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Separates labels and query ids that are columns from a frame."""
    qid = "qid" if qid is None and "qid" in list(X.columns) else qid
    named = [each for each in (y, qid) if isinstance(each, str)]
    for name in named:
        if name not in list(X.columns):
            raise DataError(f"there is no column {name!r}; the columns are {', '.join(map(str, X.columns))}")
    y, qid = (X[each] if isinstance(each, str) else each for each in (y, qid))
    return X.drop(columns=named) if named else X, y, qid


def _partitions(collection: Any, X: Any, name: str) -> list[Any]:
    if not hasattr(collection, "to_delayed"):
        raise DataError(f"{name} must be a collection of Dask, like X, not {type(collection).__name__}")
    if hasattr(collection, "rechunk"):
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        elif hasattr(X, "chunks") and collection.chunks[0] != X.chunks[0]:
            collection = collection.rechunk({0: X.chunks[0]})
    parts = collection.to_delayed()
    return list(parts.ravel() if isinstance(parts, np.ndarray) else parts)


def _from_rows(X: Any, y: Any, qid: Any, names: tuple[str, ...] | None, missing: bool) -> Rounds:
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    if table.shape[0] == 0:
        width = table.shape[1]
        return Rounds(np.zeros((0, width), np.float32), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, object),
                      feature_names=names)  # fmt: skip
    rounds = Rounds.from_arrays(table, np.asarray(y), np.asarray(qid), feature_names=names, missing=missing)
    return replace(rounds, rows=None)


def _from_items(items: Sequence[Any], missing: bool) -> Rounds:
    queries = list(items)
    if not queries:
        return Rounds(np.zeros((0, 1), np.float32), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, object))
    sizes = [len(query[1]) for query in queries]
    ids = np.repeat(np.arange(len(queries)), sizes)
    X, y = (np.concatenate([np.asarray(query[k]) for query in queries]) for k in (0, 1))
    qids = np.empty(len(queries), object)
    qids[:] = [query[2] for query in queries]
    rounds = Rounds.from_arrays(X, y, ids, missing=missing)
    return replace(rounds, qids=qids)


def whole_queries(cluster: Cluster, parts: list[Any]) -> tuple[list[Any], int]:
    """Parts in which every query is whole, and the number of queries that were joined.

    A query that is cut by the border of two partitions is joined in the first of them, which keeps the order. If rows
    of a query are further apart, all rows are shuffled by query id, with a warning.
    """
    cuts = list(_gathered([cluster.submit(_borders, part, home=p) for p, part in enumerate(parts)]))
    heads: list[list[int]] = [[] for _ in parts]
    moved, owner = set(), None
    for p, (queries, first, last) in enumerate(cuts):
        if queries == 0:
            continue
        if owner is not None and cuts[owner][2] == first:
            heads[owner].append(p)
            moved.add(p)
            owner = owner if queries == 1 else p
        else:
            owner = p
        assert last is not None
    joined = [
        cluster.submit(_join, part, p in moved, [parts[head] for head in heads[p]], home=p)
        if p in moved or heads[p] else part
        for p, part in enumerate(parts)
    ]  # fmt: skip
    summaries: list[PartSummary] = _gathered(
        [cluster.submit(summarise_part, part, True, home=p) for p, part in enumerate(joined)]
    )
    if shared_query([summary.hashes for summary in summaries]) is None:
        return joined, sum(map(bool, heads))
    warn("rows of a query are in several partitions that are not neighbours: all rows are shuffled by query id")
    count = len(joined)
    split = [cluster.submit(_split, part, count, home=p) for p, part in enumerate(joined)]
    return [
        cluster.submit(_merge, [cluster.submit(_pick, each, p, home=p) for each in split], home=p)
        for p in range(count)
    ], sum(map(bool, heads))  # fmt: skip


def _gathered(answers: list[Any]) -> list[Any]:
    """The results for all partitions; an error names its partition."""
    results = []
    for p, answer in enumerate(answers):
        with in_file(f"partition {p}"):
            results.append(answer.result())
    return results


def _borders(rounds: Rounds) -> tuple[int, Any, Any]:
    ids = rounds.qids.tolist()
    return (len(ids), ids[0], ids[-1]) if ids else (0, None, None)


def _join(rounds: Rounds, behead: bool, others: list[Rounds]) -> Rounds:
    """Drops the first query, if another part has joined it, and completes the last one from other parts."""
    rounds = rounds[1:] if behead else rounds
    tails = [other[:1] for other in others]
    if not tails:
        return rounds
    offsets = rounds.offsets.copy()
    offsets[-1] += sum(len(tail.labels) for tail in tails)
    X = stack_rows([rounds.X, *(tail.X for tail in tails)])
    labels = np.concatenate([rounds.labels, *(tail.labels for tail in tails)])
    return replace(rounds, X=X, labels=labels, offsets=offsets, missing=any(r.missing for r in (rounds, *tails)))


def _split(rounds: Rounds, count: int) -> list[Rounds]:
    """The queries of a part, grouped by the part they move to."""
    targets = hash_queries(rounds.qids) % np.uint64(count)
    return [rounds[np.flatnonzero(targets == target)] for target in range(count)]


def _pick(parts: list[Rounds], number: int) -> Rounds:
    return parts[number]


def _merge(parts: list[Rounds]) -> Rounds:
    """One part of rows that belong to the same queries."""
    parts = [part for part in parts if len(part)] or parts[:1]
    ids = np.concatenate([np.repeat(part.qids.astype(object), np.diff(part.offsets)) for part in parts])
    if not len(ids):
        return parts[0]
    names, missing = parts[0].feature_names, any(part.missing for part in parts)
    X, labels = stack_rows([part.X for part in parts]), np.concatenate([part.labels for part in parts])
    _, codes = np.unique([str(each) for each in ids.tolist()], return_inverse=True)
    rounds = Rounds.from_arrays(X, labels, codes, feature_names=names, missing=missing)
    assert rounds.rows is None or len(rounds.rows) == len(ids)
    first = rounds.offsets[:-1] if rounds.rows is None else rounds.rows[rounds.offsets[:-1]]
    return replace(rounds, qids=ids[first], rows=None)
