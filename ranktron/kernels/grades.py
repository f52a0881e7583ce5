"""Documents by grade: which documents have which label, and which have the best and worst scores in each grade."""

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_ascending
from ranktron.types import Floats, Integers, validation


def check_scores(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The scores and labels of one query as kernels take them, after checking that they match.

    >>> check_scores([1, 2], [0, 1])
    (array([1., 2.]), array([0., 1.]))
    """
    s = validation.floats(scores, "scores are one number for each document")
    y = validation.floats(labels, "labels are one number for each document")
    if s.shape != y.shape:
        raise DataError(f"{len(s)} scores, but {len(y)} labels: there must be one of each for every document")
    if first_non_finite(y) >= 0:
        raise DataError(f"labels must be finite; document {first_non_finite(y)} has {y[first_non_finite(y)]}")
    return s, y


_SMALL = 32  # whole-number labels below this are graded by counting instead of sorting


@jit
def _sorted_grades(labels: Floats) -> tuple[Integers, int]:
    order = argsort_ascending(labels)
    codes = np.empty(labels.shape[0], np.int64)
    count = 0
    for i in range(order.shape[0]):
        if i == 0 or labels[order[i]] != labels[order[i - 1]]:
            count += 1
        codes[order[i]] = count - 1
    return codes, count


@jit
def grades(labels: Floats) -> tuple[Integers, int]:
    """Numbers the grades of a query from 0 (its lowest label) upwards: (the grade of each document, how many grades).

    >>> grades(np.array([2.0, 0.0, 2.0, 0.5]))
    (array([2, 0, 2, 1]), 3)
    """
    codes = np.empty(labels.shape[0], np.int64)
    present = np.zeros(_SMALL, np.int64)
    for i in range(labels.shape[0]):
        whole = np.int64(labels[i])
        if not 0 <= whole < _SMALL or whole != labels[i]:
            return _sorted_grades(labels)
        codes[i] = whole
        present[whole] = 1
    count = 0
    for grade in range(_SMALL):
        if present[grade]:
            present[grade] = count
            count += 1
    for i in range(labels.shape[0]):
        codes[i] = present[codes[i]]
    return codes, count


@jit
def pair_weights(labels: Floats, offsets: Integers, weights: Floats) -> Floats:
    """For each list the sum of w_i w_j over its pairs of documents of different grade: their number where w = 1.

    >>> pair_weights(np.array([2.0, 0.0, 2.0, 1.0, 1.0]), np.array([0, 3, 5]), np.array([1.0, 3.0, 1.0, 1.0, 1.0]))
    array([6., 0.])
    """
    sums = np.zeros(offsets.shape[0] - 1)
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        codes, count = grades(labels[start:stop])
        of_grade = np.zeros(count)
        for i in range(stop - start):
            of_grade[codes[i]] += weights[start + i]
        lower = 0.0
        for grade in range(count):
            sums[q] += lower * of_grade[grade]
            lower += of_grade[grade]
    return sums


@jit
def by_grade(labels: Floats) -> tuple[Integers, Integers, Floats]:
    """Groups documents by label, the highest first: (documents, starts, the label of each grade).

    The documents of grade g, counted from the best, are `documents[starts[g]:starts[g + 1]]`, in their input order.

    >>> by_grade(np.array([2.0, 0.0, 2.0, 0.5]))
    (array([0, 2, 3, 1]), array([0, 2, 3, 4]), array([2. , 0.5, 0. ]))
    """
    m = labels.shape[0]
    space = np.empty(2 * m, np.int64)  # one array for both: to allocate costs as much as to count
    documents, codes = space[:m], space[m:]
    highest, others = 0, 0
    for i in range(m):
        codes[i] = np.int64(labels[i])
        highest = codes[i] if codes[i] > highest else highest
        others += (codes[i] != labels[i]) | (codes[i] < 0)
    count = 0
    if others or highest >= _SMALL:
        negated = np.empty(m)
        for i in range(m):
            negated[i] = -labels[i]
        documents = argsort_ascending(negated)
        starts, values = np.empty(m + 1, np.int64), np.empty(m)
        for place in range(m):
            label = labels[documents[place]]
            if count == 0 or label != values[count - 1]:
                starts[count], values[count] = place, label
                count += 1
    else:
        places = np.empty(2 * highest + 3, np.int64)
        starts, values = places[highest + 1 :], np.empty(highest + 1)
        first = 0
        for grade in range(highest, -1, -1):
            size = 0  # a vectorised count per grade is faster than a histogram
            for i in range(m):
                size += codes[i] == grade
            starts[count], values[count], places[grade] = first, grade, first
            count += size > 0
            first += size
        for i in range(m):
            documents[places[codes[i]]] = i
            places[codes[i]] += 1
    starts[count] = m
    return documents, starts[: count + 1], values[:count]


@jit
def grades_seen(labels: Floats, binary: bool) -> tuple[Integers, Integers, Floats]:
    """The documents by grade as a metric sees them: for a binary one all labels above 0 are the same."""
    seen = labels
    if binary:
        seen = np.empty(labels.shape[0])
        for i in range(labels.shape[0]):
            seen[i] = labels[i] > 0.0
    return by_grade(seen)


@jit
def extremes(scores: Floats, documents: Integers, starts: Integers) -> tuple[Integers, Integers]:
    """For each grade the document with the lowest and the one with the highest score; of several the first.

    >>> extremes(np.array([2.0, 5.0, 1.0]), np.array([1, 0, 2]), np.array([0, 1, 3]))
    (array([1, 2]), array([1, 0]))
    """
    count = starts.shape[0] - 1
    lowest, highest = np.empty(count, np.int64), np.empty(count, np.int64)
    for g in range(count):
        low = high = documents[starts[g]]
        lowest_score = highest_score = scores[low]
        # Conditional moves instead of branches, which would often be mispredicted.
        for place in range(starts[g] + 1, starts[g + 1]):
            i, s = documents[place], scores[documents[place]]
            below, above = s < lowest_score, s > highest_score
            low, lowest_score = i if below else low, s if below else lowest_score
            high, highest_score = i if above else high, s if above else highest_score
        lowest[g], highest[g] = low, high
    return lowest, highest


@jit
def best_below(scores: Floats, highest: Integers) -> Integers:
    """For each grade the best-scored document of any lower grade, -1 for the lowest grade."""
    best = np.empty(highest.shape[0], np.int64)
    best[-1:] = -1
    for g in range(highest.shape[0] - 2, -1, -1):
        new, before = highest[g + 1], best[g + 1]
        best[g] = new if before < 0 or scores[new] > scores[before] else before
    return best


# Fenwick trees (P. M. Fenwick, A New Data Structure for Cumulative Frequency Tables, 1994): numbers and sums of values
# by grade, updated and queried in O(log grades). A tree for n grades is an array of zeros of shape (n + 1, 2).


@jit
def add_to_tree(tree: Floats, grade: int, value: float, weight: float = 1.0) -> None:
    """Adds a document of a grade to a Fenwick tree of numbers and sums; one of weight 2 counts as two."""
    position = grade + 1
    while position < tree.shape[0]:
        tree[position, 0] += weight
        tree[position, 1] += weight * value
        position += position & -position


@jit
def sum_below(tree: Floats, grade: int) -> tuple[float, float]:
    """The number of documents of grades below `grade`, and the sum of their values."""
    number, total = 0.0, 0.0
    while grade > 0:
        number += tree[grade, 0]
        total += tree[grade, 1]
        grade -= grade & -grade
    return number, total
