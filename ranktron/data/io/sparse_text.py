"""Reading text with many features of which lines mention few, into sparse rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ranktron.data.io import grammar, lexer
from ranktron.data.io.decimals import parse_decimal, round_to_single
from ranktron.data.io.lexer import (
    BELOW,
    BEYOND,
    COLON,
    FINE,
    HASH,
    INDEX,
    LARGEST_INDEX,
    NONE,
    NULL,
    TWICE,
    VALUE,
    Bytes,
    line_ends,
    skip_blanks,
    skip_line,
    stops,
)
from ranktron.data.io.parse_errors import Look, ParseProblem, explain_problem
from ranktron.data.io.text import Piece, Text, settle
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers

WIDE, RARE = 1000, 0.05
"""Text is read as sparse rows where it has so many features and a line names no more than this share of them."""


@jit
def count_entries(data: Bytes, start: int, end: int) -> int:
    """Counts the colons from start to end, an upper bound on the number of entries."""
    total = 0
    for p in range(start, end):
        total += data[p] == COLON
    return total


@jit
def _entries(
    data: Bytes, p: int, first: int, width: int, null: float, columns: Columns, values: Values, at: int,
    stamps: Columns, stamp: int, slow: Integers, n: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses `index:value ...` of one line: (error code, its position or the end, the next entry, slow numbers)."""
    while True:
        p = skip_blanks(data, p)
        if data[p] == HASH or line_ends(data, p):
            return FINE, p, at, n
        index, q = grammar.index_at(data, p)
        if index < 0 or index > LARGEST_INDEX or data[q] != COLON:
            return INDEX, p, at, n
        column = index - first
        if column < 0 or column >= width or stamps[column] == stamp:
            return (BELOW if column < 0 else BEYOND if column >= width else TWICE), p, at, n
        stamps[column] = stamp
        p = q + 1
        value, sure, q = parse_decimal(data, p)
        columns[at] = column
        if sure != NONE and stops(data, q):
            values[at], certain = round_to_single(value, sure)
            if not certain:
                slow[n, 0], slow[n, 1], slow[n, 2], slow[n, 3] = stamp, at, p, q
                n += 1
        elif grammar.is_null(data, p):
            if null < 0.0:
                return NULL, p, at, n
            values[at] = null
            q = p + 4
        else:
            return VALUE, p, at, n
        at += 1
        p = q


@jit
def _lines(
    data: Bytes, p: int, end: int, first: int, width: int, after_hash: bool, null: float,
    starts: Integers, columns: Columns, values: Values, labels: Floats, spans: Integers, stamps: Columns,
    slow: Integers,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses all lines from p to end: (error code, where it stopped, rows, slow numbers)."""
    i, at, n = 0, 0, 0
    while p < end:
        p = skip_blanks(data, p)
        if data[p] != HASH and not line_ends(data, p):
            wrong, p, n = grammar.parse_document(data, p, after_hash, labels, spans, i, slow, n)
            if wrong == FINE:
                wrong, p, at, n = _entries(data, p, first, width, null, columns, values, at, stamps, i, slow, n)
            if wrong != FINE:
                return wrong, p, i, n
            if after_hash:
                spans[i, 0], spans[i, 1] = grammar.comment_word(data, p) if data[p] == HASH else (p, p)
                if spans[i, 0] == spans[i, 1]:
                    return lexer.ID_COMMENT, p, i, n
                spans[i, 2] = spans[i, 3] = 0
            else:
                spans[i, 2], spans[i, 3] = grammar.comment_docid(data, p) if data[p] == HASH else (0, 0)
            i += 1
            starts[i] = at
        p = skip_line(data, p)
    return FINE, p, i, n


class SparseTable(NamedTuple):
    """The parsed lines of a text: rows, labels, and the positions of the ids in the bytes."""

    X: Sparse
    labels: Floats
    spans: Integers


def is_rare(text: Text, sample: int, width: int) -> bool:
    """Whether the start of a text mentions few of many features."""
    if width < WIDE:
        return False
    piece = next(text.pieces(sample))
    lines = max(grammar.count_lines(piece.data, piece.start, piece.end), 1)
    return bool(count_entries(piece.data, piece.start, piece.end) <= RARE * width * lines)


def parse_sparse(text: Text, piece: Piece, look: Look, lines_before: int = 0) -> SparseTable:
    """Parses one piece of a text; the error for an invalid line says where it is."""
    lines = grammar.count_lines(piece.data, piece.start, piece.end)
    entries = count_entries(piece.data, piece.start, piece.end)
    starts, labels, spans = np.zeros(lines + 1, np.int64), np.empty(lines), np.empty((lines, 4), np.int64)
    columns, values = np.empty(entries, np.int32), np.empty(entries, np.float32)
    slow = np.empty((entries + lines, 4), np.int64)
    wrong, p, rows, n = _lines(
        piece.data, piece.start, piece.end, look.first, look.width, look.after_hash, look.null,
        starts, columns, values, labels, spans, np.full(look.width, -1, np.int32), slow,
    )  # fmt: skip
    problem = settle(piece.data, values, labels, slow[:n])
    if problem is None and wrong != FINE:
        problem = ParseProblem(wrong, p)
    if problem is not None:
        raise explain_problem(
            text.name, text.data, ParseProblem(problem.wrong, problem.at + piece.base), look, lines_before
        )
    end = starts[rows]
    X = Sparse(starts[: rows + 1], columns[:end].copy(), values[:end].copy(), look.width)
    return SparseTable(X, labels[:rows], spans[:rows] + piece.base)
