"""Streaming in bounded memory: a source yields runs of rows, and `join_runs` joins them to rounds."""

from __future__ import annotations

import mmap
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ranktron.data.io import letor_kernels as kernels
from ranktron.data.io.formats import Source, blocks, is_compressed, map_file
from ranktron.data.io.grouping import fill_nulls, placeholder
from ranktron.data.io.letor import FeatureRange, check_feature_range, query_name, reads_sparse, settings_for
from ranktron.data.io.letor_text import (
    ParsedTable,
    ParseSettings,
    Piece,
    SparseTable,
    Text,
    explain_problem,
    parse_alone,
    parse_sparse,
)
from ranktron.data.rounds import stack_rows
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Round

BLOCK = 1 << 22
LONGEST_LINE = 1 << 26
_LEAVE = 1 << 25  # bytes of a mapped file that are released at once, after reading them


Parser = Callable[[Text, ParseSettings, int], ParsedTable | SparseTable]
Item = TypeVar("Item")
Result = TypeVar("Result")


class QueryRun(NamedTuple):
    """Consecutive rows of one query, perhaps not all of them; `where` describes their position for error messages."""

    qid: Any
    X: Features
    labels: Floats
    path: Source
    where: Callable[[], str]


def join_runs(runs: Iterable[QueryRun], null: str) -> Iterator[Round]:
    """Joins consecutive runs of the same query into rounds; a query that occurs again later is an error."""
    owners: dict[Any, Source] = {}
    parts: list[QueryRun] = []
    known = 0
    for run in runs:
        new = not parts or parts[0].qid != run.qid
        owner = owners.setdefault(run.qid, run.path)
        if owner != run.path:
            raise DataError(f"query {run.qid!r} is split over {owner} and {run.path}; put its rows into one file")
        if new and parts:
            yield _round(parts, null)
            parts = []
        if new and len(owners) == known:
            raise DataError(
                f"{run.where()}: query {run.qid!r} occurs again after other queries; "
                "group its rows with `ranktron convert` first, then stream the result"
            )
        known = len(owners)
        parts.append(run)
    if parts:
        yield _round(parts, null)


def _round(parts: list[QueryRun], null: str) -> Round:
    if len(parts) == 1:
        qid, X, labels, *_ = parts[0]
    else:
        qid = parts[0].qid
        X = stack_rows([part.X for part in parts])
        labels = np.concatenate([part.labels for part in parts])
    if null in ("min", "mean") and not isinstance(X, Sparse) and np.isnan(X).any():
        fill_nulls(X, np.array([0, len(X)]), null == "mean")
    return Round._make((X, labels, qid))


def text_runs(
    sources: Sequence[Source], null: str, n_features: int | None, first_index: int | None, sparse: bool | None
) -> Iterator[QueryRun]:
    """Yields the runs of LETOR text files, a few megabytes at a time."""
    filler = placeholder(null)
    features = check_feature_range(n_features, first_index)
    start = Text(str(sources[0]), bytes(next(_line_blocks(sources[0]), b"\n")))
    parse = _sparse_block if reads_sparse(start, features, null, sparse) else _block
    if None in features:
        features = features.completed(*_index_range(sources))
    lacking = "document"
    for path in sources:
        for run in _read_runs(path, features, filler, parse):
            lacking = "" if features.width else "feature"
            if not lacking:
                yield run
    if lacking:
        raise DataError(f"{', '.join(map(str, sources))}: there is no {lacking} in it")


def _line_blocks(path: Source) -> Iterator[bytes | memoryview]:
    """Yields blocks of whole lines; the last one gets a line feed if it has none."""
    if can_be_mapped(path):
        yield from mapped_blocks(path)
        return
    rest = b""
    for block in blocks(path, BLOCK):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((rest, memoryview(block)[:cut]))
            rest = block[cut:]
        else:
            rest += block
        if len(rest) > LONGEST_LINE:
            raise _long_line(path)
    if rest:
        yield rest + b"\n"


def can_be_mapped(path: Source) -> bool:
    """Whether a path is a regular file, not compressed, and not empty."""
    return os.path.isfile(path) and not is_compressed(path) and os.path.getsize(path) > 0


def mapped_blocks(path: Source, start: int = 0) -> Iterator[bytes | memoryview]:
    """Yields blocks of whole lines of a mapped file from a byte on, without copying them."""
    text, left = map_file(path), 0
    while start < len(text):
        if start - left >= _LEAVE and hasattr(text, "madvise"):
            # Otherwise all pages that were read count as memory in use.
            text.madvise(mmap.MADV_DONTNEED, left, _LEAVE)
            left += _LEAVE
        cut = text.rfind(b"\n", start, start + BLOCK) + 1
        cut = cut or text.find(b"\n", start + BLOCK, start + LONGEST_LINE) + 1
        if not cut and len(text) - start > LONGEST_LINE:
            raise _long_line(path)
        yield memoryview(text)[start:cut] if cut else text[start:] + b"\n"
        start = cut or len(text)


def _long_line(path: Source) -> DataError:
    return DataError(f"{path}: a line is longer than {LONGEST_LINE >> 20} MB; is this a text file?")


def _index_range(sources: Sequence[Source]) -> tuple[int, int]:
    """Scans the files for the smallest and the largest index."""
    low, high = -1, -1
    for path in sources:
        for smallest, largest in ahead(_block_index_range, _line_blocks(path)):
            low = smallest if low < 0 else min(low, smallest) if smallest >= 0 else low
            high = max(high, largest)
    return low, high


def _block_index_range(block: bytes | memoryview) -> tuple[int, int]:
    return kernels.index_range(np.frombuffer(block, np.uint8), 0, len(block))


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Maps a function over items in order, with as many items in flight as there are threads."""
    threads = os.cpu_count() or 1
    in_flight: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            in_flight.append(pool.submit(function, item))
            if len(in_flight) > threads:
                yield in_flight.popleft().result()
        while in_flight:
            yield in_flight.popleft().result()


def _read_runs(path: Source, features: FeatureRange, filler: float, parse: Parser) -> Iterator[QueryRun]:
    def documents() -> Iterator[tuple[Text, ParseSettings, int]]:
        """The blocks from the first document on, with the number of lines before each."""
        lines, settings = 0, None
        for block in _line_blocks(path):
            text = Text(str(path), bytes(block))
            if settings is None and text.ids_after_hash() is not None:
                settings = settings_for(text, features, filler)
            if settings is not None:
                yield text, settings, lines
            lines += kernels.count_lines(text.data, 0, len(block))

    def parse_block(block: tuple[Text, ParseSettings, int]) -> tuple[Text, int, ParsedTable | SparseTable]:
        text, settings, lines = block
        return text, lines, parse(text, settings, lines)

    for text, lines, table in ahead(parse_block, documents()):
        yield from _block_runs(text, lines, table)


def _block(text: Text, settings: ParseSettings, lines: int) -> ParsedTable:
    table, problem = parse_alone(Piece(text.data, 0, text.end, 0), settings)
    if problem is not None:
        raise explain_problem(text.name, text.data, problem, settings, lines)
    return table


def _sparse_block(text: Text, settings: ParseSettings, lines: int) -> SparseTable:
    return parse_sparse(text, Piece(text.data, 0, text.end, 0), settings, lines)


def _block_runs(text: Text, lines: int, table: ParsedTable | SparseTable) -> Iterator[QueryRun]:
    spans = table.spans
    starts = text.query_starts(spans)
    ends = np.append(starts, len(spans))[1:].tolist()
    for a, b, word in zip(starts.tolist(), ends, text.words(spans[starts, :2]), strict=True):
        at = int(spans[a, 0])

        def where(at: int = at) -> str:
            return f"{text.name}, line {lines + kernels.count_lines(text.data, 0, at) + 1}"

        yield QueryRun(query_name(text, at, word, lines), table.X[a:b], table.labels[a:b], Path(text.name), where)
