"""The bytes of a text file, cut into pieces of whole lines, and the table that a piece is parsed into."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.io import grammar, lexer
from ranktron.data.io.fast_path import Words, make_tags
from ranktron.data.io.grouping import room_for
from ranktron.data.io.lexer import Bytes
from ranktron.data.io.parse_errors import Look, ParseProblem
from ranktron.types import Floats, Integers, Matrix


class Text:
    """The bytes of one text file: whole lines up to `end`, and a last line without a line feed, the `tail`, if any."""

    def __init__(self, name: str, raw: mmap.mmap | bytes) -> None:
        self.name = name
        self.raw = raw
        self.data: Bytes = np.frombuffer(raw, np.uint8)
        self.end = raw.rfind(b"\n") + 1
        self.tail: Bytes = np.frombuffer(raw[self.end :] + b"\n", np.uint8)

    def pieces(self, size: int) -> Iterator[Piece]:
        """Divides the text into pieces of whole lines."""
        start = 0
        while start < self.end:
            cut = self.raw.find(b"\n", min(start + size, self.end) - 1) + 1
            yield Piece(self.data, start, cut, 0)
            start = cut
        if len(self.tail) > 1:
            yield Piece(self.tail, 0, len(self.tail), self.end)

    def words(self, spans: Integers) -> list[bytes]:
        """The bytes between each pair of positions."""
        return [self.raw[a:b] for a, b in spans.tolist()]

    def line_at(self, place: int) -> bytes:
        """The rest of the line from a place on."""
        end = self.raw.find(b"\n", place)
        return self.raw[place : end if end >= 0 else len(self.raw)]

    def ids_after_hash(self) -> bool | None:
        """Whether the first document has its query id in the comment; None if there is no document."""
        start = 0
        while start < len(self.raw):
            end = self.raw.find(b"\n", start) + 1 or len(self.raw)
            words = self.raw[start:end].partition(b"#")[0].split(maxsplit=2)
            if words:
                return not (len(words) > 1 and words[1].startswith(b"qid:")) and b"#" in self.raw[start:end]
            start = end
        return None


class Piece(NamedTuple):
    """Whole lines: the bytes `start` to `end` of `data`, whose first byte is byte `base` of the file."""

    data: Bytes
    start: int
    end: int
    base: int


@dataclass(frozen=True)
class ParsedTable:
    """The arrays that lines are parsed into. `spans` has the start and end of each row's query and document id."""

    X: Matrix
    labels: Floats
    spans: Integers
    tags: Words

    @classmethod
    def empty(cls, n: int, width: int, first: int) -> ParsedTable:
        return cls(room_for(n, width), np.empty(n), np.empty((n, 4), np.int64), make_tags(first, width))

    def move(self, source: int, target: int, n: int) -> None:
        """Closes a gap that blank lines left."""
        for array in (self.X, self.labels, self.spans):
            array[target : target + n] = array[source : source + n]

    def put(self, target: int, other: ParsedTable) -> None:
        """Copies the rows of another table."""
        rows = slice(target, target + len(other.labels))
        self.X[rows], self.labels[rows], self.spans[rows] = other.X, other.labels, other.spans

    def first(self, n: int) -> ParsedTable:
        return ParsedTable(self.X[:n], self.labels[:n], self.spans[:n], self.tags)


def parse(piece: Piece, row: int, table: ParsedTable, look: Look) -> tuple[int, ParseProblem | None]:
    """Parses a piece into the rows from `row` on: (the row after the last, the error if there is one)."""
    stamps = np.full(look.width, -1, np.int64)
    slow = np.empty((max(256, 2 * look.width + 2), 4), np.int64)
    p, start = piece.start, row
    while p < piece.end:
        wrong, p, row, n = grammar.parse_lines(
            piece.data, p, piece.end, row, look.first, look.after_hash, look.null,
            table.X, table.labels, table.spans, stamps, table.tags, slow,
        )  # fmt: skip
        problem = settle(piece.data, table.X, table.labels, slow[:n])
        if problem is None and wrong != lexer.FINE:
            problem = ParseProblem(wrong, p)
        if problem is not None:
            return row, ParseProblem(problem.wrong, problem.at + piece.base)
    if piece.base:
        table.spans[start:row] += piece.base
    return row, None


def parse_alone(piece: Piece, look: Look) -> tuple[ParsedTable, ParseProblem | None]:
    """Parses a piece into a table of its own."""
    table = ParsedTable.empty(grammar.count_lines(piece.data, piece.start, piece.end), look.width, look.first)
    n, problem = parse(piece, 0, table, look)
    return table.first(n), problem


def settle(data: Bytes, features: Any, labels: Floats, slow: Integers) -> ParseProblem | None:
    """Reads the numbers that the kernel was not sure of: a label where `at` is negative.

    `features` are a matrix, with `at` the column, or the entries of sparse rows, with `at` the entry.
    """
    for row, at, start, end in slow.tolist():
        value = float(data[start:end].tobytes())
        if at < 0:
            labels[row] = value
        else:
            with np.errstate(over="ignore"):
                value = float(np.float32(value))
            features[(row, at) if features.ndim == 2 else at] = value
        if not np.isfinite(value):
            return ParseProblem(lexer.LABEL if at < 0 else lexer.TOO_LARGE, start)
    return None
