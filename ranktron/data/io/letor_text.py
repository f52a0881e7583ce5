"""The bytes of a LETOR file, cut into pieces of whole lines; the table that a piece is parsed into, and its errors."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.io import letor_kernels as kernels
from ranktron.data.io.decimals import Bytes
from ranktron.data.io.grouping import room_for
from ranktron.data.io.letor_kernels import Words, make_tags
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Floats, Integers, Matrix

WIDE, RARE = 1000, 0.05
"""Text with at least this many features, of which a line names at most this share, is read as sparse rows."""


class ParseProblem(NamedTuple):
    """An error code of `letor_kernels`, and the byte at which it occurred."""

    code: int
    at: int


class ParseSettings(NamedTuple):
    """How to parse a text."""

    first: int  # index of the first feature
    width: int  # number of features
    after_hash: bool  # query ids are in comments
    null: float  # replaces NULL; negative: an error


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

    def query_starts(self, spans: Integers) -> Integers:
        """The rows whose query id differs from that of the previous row."""
        starts = np.empty(len(spans), np.int64)
        return starts[: kernels.find_query_starts(self.data, spans, starts)]

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


class SparseTable(NamedTuple):
    """The same of sparse rows."""

    X: Sparse
    labels: Floats
    spans: Integers


def parse(piece: Piece, row: int, table: ParsedTable, settings: ParseSettings) -> tuple[int, ParseProblem | None]:
    """Parses a piece into the rows from `row` on: (the row after the last, the error if there is one)."""
    slow = np.empty((max(256, 2 * settings.width + 2), 4), np.int64)
    p, start = piece.start, row
    while p < piece.end:
        X, labels, stamps = table.X[row:], table.labels[row:], np.full(settings.width, -1, np.int64)
        code, p, rows, n = kernels.parse_lines(
            piece.data, p, piece.end, settings.first, settings.after_hash, settings.null,
            X, labels, table.spans[row:], stamps, table.tags, slow,
        )  # fmt: skip
        row += rows
        problem = parse_slow_numbers(piece.data, X, labels, slow[:n])
        if problem is None and code != kernels.FINE:
            problem = ParseProblem(code, p)
        if problem is not None:
            return row, ParseProblem(problem.code, problem.at + piece.base)
    if piece.base:
        table.spans[start:row] += piece.base
    return row, None


def parse_alone(piece: Piece, settings: ParseSettings) -> tuple[ParsedTable, ParseProblem | None]:
    """Parses a piece into a table of its own."""
    table = ParsedTable.empty(kernels.count_lines(piece.data, piece.start, piece.end), settings.width, settings.first)
    n, problem = parse(piece, 0, table, settings)
    return table.first(n), problem


def parse_slow_numbers(data: Bytes, features: Any, labels: Floats, slow: Integers) -> ParseProblem | None:
    """Parses the numbers that the kernel could not round with certainty: a label where `at` is negative.

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
            return ParseProblem(kernels.LABEL if at < 0 else kernels.TOO_LARGE, start)
    return None


def is_rare(text: Text, sample: int, width: int) -> bool:
    """Whether the lines at the start of a text name few of many features."""
    if width < WIDE:
        return False
    piece = next(text.pieces(sample))
    lines = max(kernels.count_lines(piece.data, piece.start, piece.end), 1)
    return bool(kernels.count_entries(piece.data, piece.start, piece.end) <= RARE * width * lines)


def parse_sparse(text: Text, piece: Piece, settings: ParseSettings, lines_before: int = 0) -> SparseTable:
    """Parses one piece of a text; the error for an invalid line says where it is."""
    lines = kernels.count_lines(piece.data, piece.start, piece.end)
    entries = kernels.count_entries(piece.data, piece.start, piece.end)
    starts, labels, spans = np.zeros(lines + 1, np.int64), np.empty(lines), np.empty((lines, 4), np.int64)
    columns, values = np.empty(entries, np.int32), np.empty(entries, np.float32)
    slow = np.empty((entries + lines, 4), np.int64)
    code, p, rows, n = kernels.parse_sparse_lines(
        piece.data, piece.start, piece.end, settings.first, settings.width, settings.after_hash, settings.null,
        (starts, columns, values), labels, spans, np.full(settings.width, -1, np.int32), slow,
    )  # fmt: skip
    problem = parse_slow_numbers(piece.data, values, labels, slow[:n])
    if problem is None and code != kernels.FINE:
        problem = ParseProblem(code, p)
    if problem is not None:
        raise explain_problem(
            text.name, text.data, ParseProblem(problem.code, problem.at + piece.base), settings, lines_before
        )
    end = starts[rows]
    X = Sparse(starts[: rows + 1], columns[:end].copy(), values[:end].copy(), settings.width)
    return SparseTable(X, labels[:rows], spans[:rows] + piece.base)


def explain_problem(
    name: str, data: Bytes, problem: ParseProblem, settings: ParseSettings, lines_before: int = 0
) -> DataError:
    """The error for a problem in `data`, which starts `lines_before` lines after the start of the file."""
    start = _line_start(data, problem.at)
    rest = data[problem.at : problem.at + 400].tobytes().split(b"\n")[0].rstrip(b"\r")
    before = data[start : problem.at].tobytes()
    line = lines_before + kernels.count_lines(data, 0, start) + 1
    words = _describe(problem.code, before, rest, settings)
    return DataError(f"{name}, line {line}, column {problem.at - start + 1}: {words}")


def _line_start(data: Bytes, at: int) -> int:
    feeds = np.flatnonzero(data[max(0, at - 10_000_000) : at] == kernels.LINE_FEED)
    return max(0, at - 10_000_000) + int(feeds[-1]) + 1 if len(feeds) else max(0, at - 10_000_000)


def _describe(code: int, before: bytes, rest: bytes, settings: ParseSettings) -> str:
    word = _quote((rest.split() or [b""])[0])
    index = _quote(rest.split(b":")[0])
    first = settings.first
    if code == kernels.QID and settings.after_hash:
        return "found 'qid:', but the first document has its query id after '#' at the end of the line"
    if code == kernels.VALUE:
        kind = "a finite number" if rest.lower().lstrip(b"+-").startswith((b"nan", b"inf")) else "a number"
        return f"expected {kind} after {_quote(before.split()[-1])}, found {word}"
    return {
        kernels.LABEL: f"expected a label (a finite number >= 0), found {word}",
        kernels.NEGATIVE: f"expected a label >= 0, found {word}",
        kernels.QID: f"expected 'qid:' and a query id after the label, found {word}",
        kernels.ID_COMMENT: f"expected '#' and a query id (one word) at the end of the line, found {_quote(rest)}",
        kernels.NOT_TEXT: f"expected a query id in UTF-8, found {word}",
        kernels.INDEX: f"expected index:value with an index from {first} to {kernels.LARGEST_INDEX}, found {word}",
        kernels.TOO_LARGE: f"expected a number that fits into 32 bits, found {word}",
        kernels.TWICE: f"expected each feature once, found {index} again",
        kernels.BEYOND: f"expected at most {settings.width} features (from {first} on), found feature {index}",
        kernels.BELOW: f"expected an index >= {first}, found {index}",
        kernels.NULL: "found NULL; choose how to replace it: null='zero', 'min' or 'mean' (or --null zero)",
    }[code]


def _quote(word: bytes) -> str:
    if not word:
        return "the end of the line"
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "…")
