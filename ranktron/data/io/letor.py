"""Reading LETOR text into `Rounds`: files are memory-mapped and parsed by several threads into the final arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.io import letor_kernels as kernels
from ranktron.data.io.formats import Source, is_compressed, map_file
from ranktron.data.io.grouping import assemble, placeholder
from ranktron.data.io.letor_text import (
    ParsedTable,
    ParseProblem,
    ParseSettings,
    Piece,
    SparseTable,
    Text,
    explain_problem,
    is_rare,
    parse,
    parse_alone,
    parse_sparse,
)
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Integers

CHUNK = 1 << 22
SAMPLE = 1 << 20
MAX_AHEAD = 8  # blocks that are parsed while further ones are decompressed


def read_text(
    sources: Sequence[Source],
    *,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    sparse: bool | None = None,
) -> Rounds:
    """Reads LETOR text files as one set of rounds; all rows of a query must be in one file."""
    declared = check_feature_range(n_features, first_index)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        if len(sources) > 1 or not is_compressed(sources[0]):
            texts = list(pool.map(lambda path: Text(str(path), map_file(path)), sources))
            return _read(texts, pool, null, declared, sparse)
        ahead = _ParseAhead(pool, null, declared, sparse)
        texts = [Text(str(sources[0]), map_file(sources[0], ahead.add))]
        filled = ahead.filled()
        return _read(texts, pool, null, declared, sparse) if filled is None else _group_queries(texts, filled, null)


def read_texts(
    texts: list[Text],
    *,
    null: str = "error",
    n_features: int | None = None,
    first_index: int | None = None,
    sparse: bool | None = None,
) -> Rounds:
    """Reads LETOR texts in memory as one set of rounds."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return _read(texts, pool, null, check_feature_range(n_features, first_index), sparse)


def _read(
    texts: list[Text], pool: ThreadPoolExecutor, null: str, declared: FeatureRange, sparse: bool | None
) -> Rounds:
    parse_all = _parse_sparse_texts if reads_sparse(texts[0], declared, null, sparse) else _parse_texts
    return _group_queries(texts, parse_all(texts, pool, placeholder(null), declared), null)


def text_width(sources: Sequence[Source], first: int) -> int:
    """The number of features in text files: the largest index, counted from that of the first feature."""
    texts = [Text(str(path), map_file(path)) for path in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        _, high = _index_range([piece for text in texts for piece in text.pieces(CHUNK)], pool)
    return max(0, high - first + 1)


def reads_sparse(first: Text, declared: FeatureRange, null: str, sparse: bool | None) -> bool:
    """Whether texts are read as sparse rows: the caller's choice, or decided by the start of the first one."""
    if sparse is None:
        sample = next(first.pieces(SAMPLE))
        guess = declared.completed(*kernels.index_range(sample.data, sample.start, sample.end))
        sparse = is_rare(first, SAMPLE, guess.width or 0)
    if sparse and null in ("min", "mean"):
        raise DataError(f"null={null!r} needs every value of a list, and these features are sparse: use 'zero'")
    return sparse


class FeatureRange(NamedTuple):
    """The first index and the number of features; None if the file decides."""

    first: int | None
    width: int | None

    def completed(self, low: int, high: int) -> FeatureRange:
        """Fills in missing values from the smallest and the largest index (-1 if there are none)."""
        first = self.first if self.first is not None else int(low != 0)
        return FeatureRange(first, self.width if self.width is not None else max(high - first + 1, 0))


def check_feature_range(n_features: int | None, first_index: int | None) -> FeatureRange:
    """Checks the caller's number of features and first index."""
    if n_features is not None and n_features < 1:
        raise DataError(f"n_features must be at least 1, not {n_features}")
    if first_index not in (None, 0, 1):
        raise DataError(f"first_index must be 0 or 1, not {first_index}")
    return FeatureRange(first_index, n_features)


class Filled(NamedTuple):
    """All parsed lines: the table, the end of each text's rows in it, and the first index."""

    table: ParsedTable | SparseTable
    bounds: list[int]
    first: int


class Refused(NamedTuple):
    """The first line that cannot be read."""

    text: Text
    problem: ParseProblem
    settings: ParseSettings


def _parse_texts(texts: list[Text], pool: ThreadPoolExecutor, filler: float, declared: FeatureRange) -> Filled:
    """Parses all texts.

    The number of features is estimated from the start of the first one; if a later line has more, all texts are scanned
    for the largest index and parsed again.
    """
    pieces = [(part, piece) for part, text in enumerate(texts) for piece in text.pieces(CHUNK)]
    guess = declared.completed(*_index_range([next(texts[0].pieces(SAMPLE))], pool))
    filled = _fill(texts, pieces, pool, filler, guess)
    if isinstance(filled, Refused) and filled.problem.code in (kernels.BEYOND, kernels.BELOW) and None in declared:
        known = declared.completed(*_index_range([piece for _, piece in pieces], pool))
        filled = _fill(texts, pieces, pool, filler, known)
    if isinstance(filled, Refused):
        raise explain_problem(filled.text.name, filled.text.data, filled.problem, filled.settings)
    return filled


def _parse_sparse_texts(texts: list[Text], pool: ThreadPoolExecutor, filler: float, declared: FeatureRange) -> Filled:
    """Parses all texts into sparse rows, after scanning them for the largest index."""
    pieces = [(part, piece) for part, text in enumerate(texts) for piece in text.pieces(CHUNK)]
    features = declared.completed(*_index_range([piece for _, piece in pieces], pool)) if None in declared else declared
    settings = [settings_for(text, features, filler) for text in texts]
    tables = list(pool.map(lambda job: parse_sparse(texts[job[0]], job[1], settings[job[0]]), pieces))
    bounds, n = [0] * len(texts), 0
    for (part, _), table in zip(pieces, tables, strict=True):
        n += len(table.labels)
        bounds[part] = n
    whole = SparseTable(
        Sparse.concatenate([table.X for table in tables]),
        np.concatenate([table.labels for table in tables]),
        np.concatenate([table.spans for table in tables]),
    )
    return Filled(whole, bounds, settings[0].first)


class _ParseAhead:
    """Parses the lines of a compressed text while the rest is being decompressed.

    Gives up at an invalid line, a feature that the start of the text lacks, and sparse rows: the text is then parsed
    as a whole after its decompression.
    """

    def __init__(self, pool: ThreadPoolExecutor, null: str, declared: FeatureRange, sparse: bool | None) -> None:
        self._pool, self._null, self._declared, self._sparse = pool, null, declared, sparse
        self._settings: ParseSettings | None = None
        self._jobs: list[Future[ParsedTable | None]] = []
        self._rest = b""  # the incomplete last line of the blocks so far
        self._base = 0  # bytes in the blocks that were submitted
        self._going = True  # false after giving up

    def add(self, block: bytes) -> None:
        """Submits the lines that end in the next block of the text."""
        cut = block.rfind(b"\n") + 1
        if self._going and cut:
            self._parse(b"".join((self._rest, memoryview(block)[:cut])))
            self._rest = b""
        if self._going:
            self._rest += block[cut:]

    def _parse(self, lines: bytes) -> None:
        if self._settings is None:
            text = Text("", lines)
            if text.ids_after_hash() is None or reads_sparse(text, self._declared, self._null, self._sparse):
                self._going = False
                return
            guess = self._declared.completed(*_index_range([next(text.pieces(SAMPLE))], self._pool))
            self._settings = settings_for(text, guess, placeholder(self._null))
        self._jobs.append(self._pool.submit(_parse_block, lines, self._base, self._settings))
        self._base += len(lines)
        if len(self._jobs) > MAX_AHEAD:  # bounds the blocks in memory
            self._going = self._jobs[-MAX_AHEAD].result() is not None

    def filled(self) -> Filled | None:
        """All lines, after the last block; None after giving up."""
        if self._going and self._rest:
            self._parse(self._rest + b"\n")
        tables = [job.result() for job in self._jobs] if self._going else [None]
        self._jobs.clear()
        if self._settings is None or any(table is None for table in tables):
            return None
        starts = np.cumsum([0, *(len(table.labels) for table in tables if table is not None)]).tolist()
        whole = ParsedTable.empty(starts[-1], self._settings.width, self._settings.first)

        def move(part: int) -> None:
            table, tables[part] = tables[part], None  # and frees it
            if table is not None:
                whole.put(starts[part], table)

        list(self._pool.map(move, range(len(tables))))
        return Filled(whole, [starts[-1]], self._settings.first)


def _parse_block(lines: bytes, base: int, settings: ParseSettings) -> ParsedTable | None:
    table, problem = parse_alone(Piece(np.frombuffer(lines, np.uint8), 0, len(lines), base), settings)
    return table if problem is None else None


def _index_range(pieces: list[Piece], pool: ThreadPoolExecutor) -> tuple[int, int]:
    ranges = list(pool.map(lambda p: kernels.index_range(p.data, p.start, p.end), pieces))
    return min((low for low, _ in ranges if low >= 0), default=-1), max(high for _, high in ranges)


def settings_for(text: Text, features: FeatureRange, filler: float) -> ParseSettings:
    """The settings for one text of a set whose features are known."""
    assert features.first is not None
    assert features.width is not None
    return ParseSettings(features.first, features.width, bool(text.ids_after_hash()), filler)


def _fill(
    texts: list[Text], pieces: list[tuple[int, Piece]], pool: ThreadPoolExecutor, filler: float, features: FeatureRange
) -> Filled | Refused:
    """Parses all pieces in parallel into one table; a piece's first row is the number of lines before it."""
    counts = list(pool.map(lambda job: kernels.count_lines(job[1].data, job[1].start, job[1].end), pieces))
    starts = np.cumsum([0, *counts]).tolist()
    settings = [settings_for(text, features, filler) for text in texts]
    table = ParsedTable.empty(starts[-1], settings[0].width, settings[0].first)
    jobs = pool.map(lambda job, row: parse(job[1], row, table, settings[job[0]]), pieces, starts)
    bounds, n = [0] * len(texts), 0
    for (part, _), start, (end, problem) in zip(pieces, starts, jobs, strict=False):
        if problem is not None:
            return Refused(texts[part], problem, settings[part])
        if start > n:
            table.move(start, n, end - start)
        n += end - start
        bounds[part] = n
    return Filled(table.first(n), bounds, settings[0].first)


def _group_queries(texts: list[Text], filled: Filled, null: str) -> Rounds:
    """Decodes the ids of queries and documents and groups rows by query."""
    table, bounds, first = filled
    if 0 in table.X.shape:
        what = "document" if len(table.X) == 0 else "feature"
        raise DataError(f"{', '.join(text.name for text in texts)}: there is no {what} in it")
    owners: dict[str, int] = {}
    spans = [table.spans[a:b] for a, b in zip([0, *bounds], bounds, strict=False)]
    codes = np.concatenate([_codes(texts, part, spans[part], owners) for part in range(len(texts))])
    rounds = assemble(table.X, table.labels, codes, _docids(texts, spans, codes), null)
    return replace(rounds, qids=np.array(list(owners)), first_index=first)


def _codes(texts: list[Text], part: int, spans: Integers, owners: dict[str, int]) -> Integers:
    """Numbers the query of each row, in order of appearance. `owners` maps each query so far to its text."""
    text = texts[part]
    numbers = {name: number for number, name in enumerate(owners)}
    starts = text.query_starts(spans)
    codes = []
    for at, word in zip(spans[starts, 0].tolist(), text.words(spans[starts, :2]), strict=True):
        name = query_name(text, at, word)
        if owners.setdefault(name, part) != part:
            raise DataError(
                f"query {name!r} is split over {texts[owners[name]].name} and {text.name}; put its rows into one file"
            )
        codes.append(numbers.setdefault(name, len(numbers)))
    return np.repeat(np.array(codes, np.int64), np.diff(np.append(starts, len(spans))))


def query_name(text: Text, at: int, word: bytes, lines_before: int = 0) -> str:
    """Decodes a query id."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        problem = ParseProblem(kernels.NOT_TEXT, at)
        raise explain_problem(text.name, text.data, problem, ParseSettings(1, 0, False, 0.0), lines_before) from None


def _docids(texts: list[Text], spans: list[Integers], codes: Integers) -> npt.NDArray[Any] | None:
    """The ids of all documents, None if no document has one.

    If no comment has `docid = X`, the first word of each is the document id, as in RankLib's judgments (`# X title`),
    unless a query has the same word twice: then comments are only comments.
    """
    if any((part[:, 3] > part[:, 2]).any() for part in spans):
        return _all_names(texts, spans)
    first = texts[0].line_at(int(spans[0][0, 1])).partition(b"#")[2] if not texts[0].ids_after_hash() else b""
    if not first.strip(b"# \t\r"):
        return None
    for text, part in zip(texts, spans, strict=True):
        kernels.name_by_comments(text.data, part)
    names = _all_names(texts, spans)
    words, numbers = np.unique(names, return_inverse=True)
    named = names != ""
    pairs = codes[named] * len(words) + numbers[named]
    return names if named.any() and len(np.unique(pairs)) == len(pairs) else None


def _all_names(texts: list[Text], spans: list[Integers]) -> npt.NDArray[Any]:
    return np.concatenate([_names(text, part) for text, part in zip(texts, spans, strict=True)])


def _names(text: Text, spans: Integers) -> npt.NDArray[Any]:
    """The document ids of one text; those in plain ASCII without making a Python string of each."""
    width = max(int((spans[:, 3] - spans[:, 2]).max(initial=0)), 1)
    letters = np.zeros((len(spans), width), np.uint32)
    if kernels.copy_ids(text.data, spans, letters):
        return letters.view(f"U{width}").reshape(-1)
    return np.array([word.decode("utf-8", "replace") for word in text.words(spans[:, 2:])])
