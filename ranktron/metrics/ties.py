"""Ordering documents for metrics. Scores are compared as 32-bit floats.

Documents are ordered by score, equal scores in input order; then each run of equal scores is rearranged according to
the convention.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import copy_into
from ranktron.kernels.sorting import argsort_ascending, argsort_descending
from ranktron.metrics.conventions import TIES
from ranktron.types import Floats, Integers


@jit
def by_score(scores: Floats, offsets: Integers, order: Integers, ends: Integers) -> int:
    """Orders every query; `ends` gets the end of each position's run of equal scores. Returns how many have ties."""
    tied = 0
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        ranked = argsort_descending(scores[start:stop])
        for i in range(stop - start):
            order[start + i] = start + ranked[i]
        end = stop
        runs = 0
        for i in range(stop - 1, start - 1, -1):
            ends[i] = end
            if i > start and np.float32(scores[order[i]]) != np.float32(scores[order[i - 1]]):
                end = i
                runs += 1
        tied += stop > start and runs < stop - start - 1
    return tied


@jit
def lowest_label_first(ranked: Floats, ends: Integers) -> None:
    """Sorts the labels of each run of equal scores, in place."""
    i = 0
    while i < ranked.shape[0]:
        if ends[i] > i + 1:
            labels = ranked[i : ends[i]]
            copy_into(labels, labels[argsort_ascending(labels)])
        i = ends[i]


@jit
def average(ranked: Floats, ends: Integers) -> None:
    """Replaces the labels of a run of equal scores by their mean, in place."""
    i = 0
    while i < ranked.shape[0]:
        total = 0.0
        for j in range(i, ends[i]):
            total += ranked[j]
        mean = total / (ends[i] - i)
        for j in range(i, ends[i]):
            ranked[j] = mean
        i = ends[i]


def last_docid_first(order: Integers, ends: Integers, docids: npt.NDArray[Any]) -> None:
    """Orders each run of equal scores by document id, as text, descending; in place."""
    positions = np.arange(len(order))
    starts = np.concatenate(([0], np.flatnonzero(ends[1:] != ends[:-1]) + 1)) if len(ends) else positions
    lengths = np.diff(np.append(starts, len(order)))
    tied = np.flatnonzero(np.repeat(lengths > 1, lengths))
    keys = np.unique(docids[order[tied]].astype(str), return_inverse=True)[1]
    order[tied] = order[tied][np.lexsort((-keys, ends[tied]))]


class Ordering:
    """All queries ordered by score, from which each tie rule derives its ranking."""

    def __init__(self, scores: Floats, offsets: Integers, docids: npt.NDArray[Any] | None = None) -> None:
        self.order = np.empty(len(scores), np.int64)
        self.ends = np.empty(len(scores), np.int64)
        self.docids = docids
        self.tied = by_score(scores, offsets, self.order, self.ends)

    def labels(self, labels: Floats, ties: str) -> Floats:
        """The labels in ranked order; runs of equal scores stay in input order under "average"."""
        order = self.order
        if ties == "docid" and self.tied and self.docids is not None:
            order = order.copy()
            last_docid_first(order, self.ends, self.docids)
        ranked = labels[order]
        if ties == "worst" and self.tied:
            lowest_label_first(ranked, self.ends)
        return ranked


def arrange(scores: Any, labels: Any, ties: str = "worst", docids: Any = None) -> Floats:
    """The labels of one query in the order of its scores, best first.

    Parameters
    ----------
    scores : array
        One number per document.
    labels : array
        One number per document.
    ties : "worst", "line", "docid" or "average"
        Documents with equal scores: lower label first; input order; document ids descending as text (input order
        if there are none); each gets the mean label of the tied documents.
    docids : array, optional
        One name per document.

    Examples
    --------
    >>> arrange([0.5, 0.5, 2.0], [1.0, 0.0, 0.0], "worst")
    array([0., 0., 1.])
    >>> arrange([0.5, 0.5, 2.0], [1.0, 0.0, 0.0], "average")
    array([0. , 0.5, 0.5])
    """
    if ties not in TIES:
        raise DataError(f"there is no rule of ties {ties!r}; there are: {', '.join(TIES)}")
    try:
        labels = np.array(labels, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"labels must be numbers: {error}") from None
    if labels.ndim != 1:
        raise DataError(f"labels must be one number per document, not of shape {labels.shape}")
    scores = as_scores(scores, len(labels))
    ids = None if docids is None else np.asarray(docids)
    if ids is not None and ids.shape != labels.shape:
        raise DataError(f"docids must be one name per document: {len(labels)} documents, names of shape {ids.shape}")
    ordering = Ordering(scores, np.array([0, len(scores)]), ids)
    ranked = ordering.labels(labels, ties)
    if ties == "average":
        average(ranked, ordering.ends)
    return ranked


def as_scores(scores: Any, n: int) -> Floats:
    """Checks scores: one number per document, none of them NaN."""
    try:
        given = np.require(np.asarray(scores), np.float64, ["C", "W", "E"])
    except (TypeError, ValueError) as error:
        raise DataError(f"scores must be numbers: {error}") from None
    if given.shape != (n,):
        raise DataError(f"scores must be one number per document: {n} documents, scores of shape {given.shape}")
    bad = np.flatnonzero(np.isnan(given))
    if len(bad):
        raise DataError(f"scores contain NaN, first in row {bad[0]}")
    return given
