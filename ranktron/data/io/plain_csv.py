"""Parses the usual lines of a large CSV file straight into the rows of a matrix.

Numbers such as 12, 0.25, -3.5 or 1.5e-05, empty cells, and ids in ASCII. At anything else a block of lines is left to
pyarrow, which parses everything and knows what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.io.bit_masks import REACH as AT_ONCE
from ranktron.data.io.bit_masks import bytes_equal, count_bits, lowest_bit, non_digits
from ranktron.data.io.columns import Roles
from ranktron.data.io.decimals import parse_decimal, round_to_single
from ranktron.data.io.fast_path import A_WORD, ONE, WHOLE_POWERS, Word, eight, parse_digits
from ranktron.data.io.grammar import heads, spell
from ranktron.data.io.lexer import DOT, EXACT, LINE_FEED, MINUS, NONE, POWERS, RETURN, SPACE, ZERO, Bytes
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix

if TYPE_CHECKING:
    from ranktron.data.io.table_sources import CsvFile

QUOTE = 34
REACH = 64  # bytes that are looked at from the start of a number on, or fewer
LAST = 1 << 18  # bytes at the end of a block, of usually more than one line
LABEL, QUERY, DOC, DROPPED = -1, -2, -3, -4  # roles of columns; a feature has its own column of the matrix


@jit
def count_plain_lines(data: Bytes) -> int:
    """Counts the line feeds; -1 if there is a quote, behind which a line feed may end no row."""
    total, p, end, quotes = 0, 0, data.shape[0], Word(0)
    while p + AT_ONCE <= end:
        total += count_bits(bytes_equal(data, p, LINE_FEED))
        quotes |= Word(bytes_equal(data, p, QUOTE))
        p += AT_ONCE
    while p < end:
        total += data[p] == LINE_FEED
        quotes |= Word(data[p] == QUOTE)
        p += 1
    return total if quotes == 0 else -1


@jit
def _find_end(data: Bytes, p: int, separator: int, anything: bool) -> int:
    """Finds where a text of ASCII, or of anything, ends: at the separator, at the end of the line, or before."""
    while data[p] != separator and data[p] != LINE_FEED and data[p] != RETURN:
        if not anything and not SPACE <= data[p] < 128:
            break
        p += 1
    return p


@jit
def _parse_long_number(data: Bytes, p: int, exactly: bool) -> tuple[float, np.float32, int]:
    """Parses a number of any form that starts with a digit: in 64 bits, in 32, and its end; -1 if not certainly so."""
    first = int(data[p + (data[p] == MINUS)])
    if first < ZERO or first > ZERO + 9:
        return 0.0, np.float32(0.0), -1
    value, sure, q = parse_decimal(data, p)
    single, certain = round_to_single(value, sure)
    taken = sure != NONE and certain and (sure == EXACT or not exactly)
    return value, single, q if taken else -1


@jit
def parse_plain_lines(
    data: Bytes, p: int, end: int, base: int, row: int, separator: int, places: Integers, filler: float,
    X: Matrix, labels: Floats, spans: Integers,
) -> int:  # fmt: skip
    """Parses the lines from p to end into the rows of X from `row` on: the row after the last, or -1.

    -1 if a line is not as usual, or data ends less than `REACH` bytes after a cell begins. `base` is added to spans.

    The usual number is parsed here and not in a function that takes an array: as in `fast_path`, numba's reference
    counting would cost as much as the parsing.
    """
    last = places.shape[0] - 1
    while p < end:
        if row == X.shape[0]:
            return -1
        for column in range(last + 1):
            if p + REACH > data.shape[0]:
                return -1
            place, q = places[Word(column)], p
            if place >= LABEL:
                negative = data[Word(q)] == MINUS
                others = Word(non_digits(data, q)) & ~Word(negative)
                ends = others & ~Word(bytes_equal(data, q, DOT))
                dots = others & ~ends & (ends - ONE)  # those before the end of the number
                stop, dot = lowest_bit(ends), dots != 0
                n = lowest_bit(others) - negative
                m = stop - negative - n - dot
                q = p + stop
                ended = data[Word(q)] if stop < REACH else np.uint8(0)
                cell_ends = ended in (separator, LINE_FEED, RETURN)
                if cell_ends and 0 < n <= A_WORD and (0 < m <= A_WORD or not dot) and dots & (dots - ONE) == 0:
                    low = p + negative
                    mantissa = parse_digits(eight(data, low), Word(n)) * WHOLE_POWERS[Word(m)]
                    mantissa += parse_digits(eight(data, low + n + 1), Word(m))
                    value = float(np.int64(mantissa)) / POWERS[m]  # at most 14 digits: exact factors, as in `decimals`
                    single = np.float32(-value if negative else value)
                elif cell_ends and stop == 0 and place >= 0 and not filler < 0:
                    value, single = 0.0, np.float32(filler)
                else:
                    value, single, q = _parse_long_number(data, p, place == LABEL)
                    if q < 0:
                        return -1
                if place >= 0:
                    X[row, place] = single
                elif negative:
                    return -1
                else:
                    labels[row] = value
            else:
                q = _find_end(data, p, separator, place == DROPPED)
                if place == QUERY:
                    if q == p:
                        return -1
                    spans[row, 0], spans[row, 1] = base + p, base + q
                elif place == DOC:
                    spans[row, 2], spans[row, 3] = base + p, base + q
            if column == last:
                q += data[q] == RETURN
                if data[q] != LINE_FEED:
                    return -1
            elif data[q] != separator:
                return -1
            p = q + 1
        row += 1
    return row


class PlainRows(NamedTuple):
    """Rows whose features are in the matrix already."""

    labels: Floats
    qids: npt.NDArray[Any]
    docids: npt.NDArray[Any] | None


class PlainCsv:
    """How the columns of a file are parsed.

    Parameters
    ----------
    names : sequence of str
        The columns of the file, in order.
    roles : Roles
        What they are; each has one role.
    separator : str
        The byte between two cells.
    filler : float
        What to write into empty cells of features; a negative one leaves them to pyarrow, which finds them missing.
    """

    def __init__(self, names: Sequence[str], roles: Roles, separator: str, filler: float) -> None:
        known = {roles.label: LABEL, roles.query: QUERY, roles.doc: DOC}
        known |= {name: j for j, name in enumerate(roles.features)}
        self._places = np.array([known.get(name, DROPPED) for name in names])
        self._separator, self._filler = ord(separator), filler
        self._named = roles.doc is not None

    @classmethod
    def of(cls, source: CsvFile, roles: Roles, filler: float) -> PlainCsv | None:
        """That of a file; None if a column has no role of its own, or holds words for true and false."""
        names = [name for name in (roles.label, roles.query, roles.doc, *roles.features) if name is not None]
        truths = [str(source.schema.field(name).type) == "bool" for name in names]
        if len(set(names)) < len(names) or any(truths):
            return None
        return cls(source.schema.names, roles, source.parsing.delimiter, filler)

    def parse(self, block: bytes | memoryview, X: Matrix) -> PlainRows | None:
        """Parses whole lines into the rows of X, of which there is one for each line feed; None if it cannot."""
        data, labels, spans = np.frombuffer(block, np.uint8), np.full(len(X), np.nan), np.zeros((len(X), 4), np.int64)
        # Kernels look a few bytes ahead: the last lines are parsed in a copy with room behind it.
        found = bytes(block[-LAST:]).rfind(b"\n", 0, -REACH)
        cut = 0 if found < 0 else max(len(data) - LAST, 0) + found + 1
        behind = np.concatenate((data[cut:], np.zeros(REACH, np.uint8)))
        behind.setflags(write=False)  # as the block is: for the compiler, another type otherwise
        row = self._parsed(data, cut, 0, 0, X, labels, spans)
        row = -1 if row < 0 else self._parsed(behind, len(data) - cut, cut, row, X, labels, spans)
        if row != len(X):
            return None
        return PlainRows(labels, _queries(block, data, spans), _documents(data, spans) if self._named else None)

    def _parsed(self, data: Bytes, end: int, base: int, row: int, X: Matrix, labels: Floats, spans: Integers) -> int:
        look = self._separator, self._places, self._filler
        return parse_plain_lines(data, 0, end, base, row, *look, X, labels, spans)


def compile_parser() -> None:
    """Compiles what large files need, by parsing a line."""
    line, roles = b"1,q,2,d\n", Roles("label", "query", "doc", ("feature",), (), ())
    names = ["label", "query", "feature", "doc"]
    assert PlainCsv(names, roles, ",", 0.0).parse(line, np.empty((1, 1), np.float32)) is not None
    count_plain_lines(np.frombuffer(line, np.uint8))


def _queries(block: bytes | memoryview, data: Bytes, spans: Integers) -> npt.NDArray[Any]:
    starts = heads(data, spans)
    words = np.array([bytes(block[a:b]).decode("ascii") for a, b in spans[starts, :2].tolist()])
    return np.repeat(words, np.diff(np.append(starts, len(spans))))


def _documents(data: Bytes, spans: Integers) -> npt.NDArray[Any]:
    width = max(int((spans[:, 3] - spans[:, 2]).max(initial=0)), 1)
    letters = np.zeros((len(spans), width), np.uint32)
    spell(data, spans, letters)
    return letters.view(f"U{width}").reshape(-1)
