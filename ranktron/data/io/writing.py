"""Writing LETOR text and tables: CSV, JSON lines, Parquet, Arrow.

Tables have the columns `label`, `qid`, optionally `docid`, and the features. Numbers in text are the shortest decimals
that read back as the same 32-bit numbers (Steele and White, How to Print Floating-Point Numbers Accurately, 1990):
common ones are found by trying six to nine digits, the others by numpy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.files import atomically, open_compressed
from ranktron.data.io.decimals import DOT, MINUS, POWERS, ZERO, Bytes
from ranktron.data.io.table_sources import import_pyarrow
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

NUMBERS = 1 << 19  # numbers of text that are written at once
BATCH = 1 << 16  # documents of a binary table that are written at once
RESERVED = ("label", "qid", "docid")
MAX_CACHED = 1_000_000
WIDTH = 16  # the longest shortest decimal of a 32-bit number
SMALLEST, SCIENTIFIC = float(np.nextafter(np.float32(1e-4), np.float32(1.0))), 1e6
WHOLE_POWERS = np.array([10**k for k in range(19)], np.int64)
Flags = npt.NDArray[np.bool_]
Packed = tuple[Bytes, Integers]


class Digits(dict[int, str]):
    """A cache of the shortest decimal of each 32-bit number, by its bits: values of features recur."""

    def __missing__(self, bits: int) -> str:
        if len(self) >= MAX_CACHED:
            self.clear()
        text = self[bits] = str(np.int32(bits).view(np.float32)).removesuffix(".0")
        return text


def write_text(rounds: Rounds, path: Path) -> None:
    """Writes one line per document: all features, or the entries of sparse rows."""
    if isinstance(rounds.X, Sparse):
        _write_sparse(rounds, rounds.X, path)
        return
    names = pack_words([f" {j + rounds.first_index}:".encode() for j in range(rounds.n_features)])
    qids = [_word(qid, path) for qid in rounds.qids.tolist()]
    owners = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets)).tolist()
    ends = _endings(rounds, path)
    digits = Digits()
    at_once = max(1, NUMBERS // rounds.n_features)
    with open_compressed(path) as file:
        for a in range(0, len(rounds.X), at_once):
            labels = rounds.labels[a : a + at_once].tolist()
            heads = [f"{format_label(label)} qid:{qids[owners[i]]}".encode() for i, label in enumerate(labels, start=a)]
            tails = [f"{end}\n".encode() for end in ends[a : a + at_once]]
            file.write(format_rows(pack_words(heads), names, rounds.X[a : a + at_once], digits, pack_words(tails)))


def format_rows(heads: Packed, names: Packed, X: Matrix, digits: Digits, tails: Packed) -> bytes:
    """Formats lines: a head, every feature with its name, and a tail."""
    values = X.flatten()
    others = np.flatnonzero(needs_numpy(values, values.view(np.int32)))
    words = pack_words([digits[bits].encode() for bits in values[others].view(np.int32).tolist()])
    room = len(heads[0]) + len(X) * len(names[0]) + WIDTH * values.size + len(tails[0])
    out = np.empty(room, np.uint8)
    return out[: write_rows(*heads, *names, values, np.append(others, -1), *words, *tails, out)].tobytes()


@jit
def needs_numpy(values: Matrix, bits: Integers) -> Flags:
    """Marks the numbers that `write_number` leaves to numpy: large and small ones, NaN, and small powers of two.

    Below a power of two, numbers of 32 bits are closer together than above, so that the nearest short decimal may read
    back as another number.
    """
    marks = np.empty(values.shape[0], np.bool_)
    for i in range(values.shape[0]):
        size = abs(values[i])
        power_of_two = size < 2.0**-8 and bits[i] & 0x7FFFFF == 0
        marks[i] = size != 0.0 and (not SMALLEST <= size < SCIENTIFIC or power_of_two)
    return marks


@jit
def write_rows(
    heads: Bytes,
    head_starts: Integers,
    names: Bytes,
    name_starts: Integers,
    values: Matrix,
    others: Integers,
    words: Bytes,
    word_starts: Integers,
    tails: Bytes,
    tail_starts: Integers,
    out: Bytes,
) -> int:
    """Writes lines: a head, then a name and a number for each feature, then a tail; returns the position after them."""
    p, width, n = 0, name_starts.shape[0] - 1, 0
    for i in range(head_starts.shape[0] - 1):
        p = copy_bytes(heads, head_starts[i], head_starts[i + 1], out, p)
        for j in range(width):
            p = copy_bytes(names, name_starts[j], name_starts[j + 1], out, p)
            if others[n] == i * width + j:
                p = copy_bytes(words, word_starts[n], word_starts[n + 1], out, p)
                n += 1
            else:
                p = write_number(values[i * width + j], out, p)
        p = copy_bytes(tails, tail_starts[i], tail_starts[i + 1], out, p)
    return p


@jit
def write_number(value: float, out: Bytes, p: int) -> int:
    """Writes the shortest decimal of a 32-bit number that is 0 or from 0.0001 to a million; returns the position after.

    The nearest decimal of six digits, then of seven, eight and nine, until one reads back as the same number. Decimals
    of six digits are further apart than numbers of 32 bits, so that at most one reads back; nine are always enough.
    """
    if np.signbit(value):
        out[p] = MINUS
        p += 1
    size = abs(float(value))
    if size == 0.0:
        out[p] = ZERO
        return p + 1
    tens = 5  # size is from 10^tens on
    while size < (POWERS[tens] if tens >= 0 else 1.0 / POWERS[-tens]):
        tens -= 1
    for count in range(6, 10):
        places = count - 1 - tens  # digits after the point, from 0 to 12: all factors are exact
        whole = np.int64(np.rint(size * POWERS[places]))
        if np.float32(float(whole) / POWERS[places]) == np.float32(size):
            break
    while places > 0 and whole % 10 == 0:
        whole //= 10
        places -= 1
    front = whole // WHOLE_POWERS[places]
    p = write_whole(front, 1, out, p)
    if places > 0:
        out[p] = DOT
        p = write_whole(whole - front * WHOLE_POWERS[places], places, out, p + 1)
    return p


@jit
def write_whole(number: int, least: int, out: Bytes, p: int) -> int:
    """Writes an integer, padded with zeros to at least `least` digits; returns the position after."""
    n = least
    while number >= WHOLE_POWERS[n]:
        n += 1
    for k in range(n - 1, -1, -1):
        out[p + k] = ZERO + number % 10
        number //= 10
    return p + n


@jit
def copy_bytes(source: Bytes, a: int, b: int, out: Bytes, p: int) -> int:
    """Copies the bytes from a to b to position p; returns the position after them."""
    for k in range(a, b):
        out[p] = source[k]
        p += 1
    return p


def pack_words(words: Sequence[bytes]) -> Packed:
    """Concatenates words; also returns their starts."""
    starts = np.concatenate(([0], np.cumsum([len(word) for word in words], dtype=np.int64)))
    return np.frombuffer(bytearray(b"".join(words)), np.uint8), starts


def _write_sparse(rounds: Rounds, X: Sparse, path: Path) -> None:
    """Writes the entries of sparse rows; the first line also names the last feature, to keep their number."""
    qids = [_word(qid, path) for qid in rounds.qids.tolist()]
    owners = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets)).tolist()
    ends, digits, starts = _endings(rounds, path), Digits(), X.starts.tolist()
    with open_compressed(path) as file:
        for i, label in enumerate(rounds.labels.tolist()):
            entries = slice(starts[i], starts[i + 1])
            columns = X.columns[entries].tolist()
            held = X.values[entries] if len(X.values) else np.ones(len(columns), np.float32)
            words = [
                f" {j + rounds.first_index}:{digits[bits]}"
                for j, bits in zip(columns, held.view(np.int32).tolist(), strict=True)
            ]
            if i == 0 and X.width - 1 not in columns:
                words.append(f" {X.width - 1 + rounds.first_index}:0")
            file.write(f"{format_label(label)} qid:{qids[owners[i]]}{''.join(words)}{ends[i]}\n".encode())


def format_label(label: float) -> str:
    return repr(label).removesuffix(".0")


def _endings(rounds: Rounds, path: Path) -> list[str]:
    if rounds.docids is None:
        return [""] * len(rounds.X)
    return [f" #docid = {_word(docid, path)}" if docid != "" else "" for docid in rounds.docids.tolist()]


def _word(name: Any, path: Path) -> str:
    word = str(name)
    if not word or "#" in word or any(c <= " " for c in word):
        raise DataError(f"{path}: {word!r} cannot be written to a text file: it is empty or has blanks or '#' in it")
    return word


def column_names(rounds: Rounds, path: Path) -> tuple[str, ...]:
    """The names of the features' columns: f1, f2, ... unless they have names."""
    names = rounds.feature_names or tuple(f"f{j + rounds.first_index}" for j in range(rounds.n_features))
    if len({*names, *RESERVED}) < len(names) + len(RESERVED):
        raise DataError(f"{path}: feature names must differ from each other and from {', '.join(RESERVED)}")
    return names


def write_parquet(rounds: Rounds, path: Path) -> None:
    """Writes one row per document."""
    arrow, writer = import_pyarrow(), None
    batches = _arrow_tables(rounds, path, arrow)
    with atomically(path) as file:
        for table in batches:
            writer = writer or arrow.parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def write_arrow(rounds: Rounds, path: Path) -> None:
    """Writes an Arrow file, which Feather calls its second version."""
    arrow, writer = import_pyarrow("writing Arrow files", "tables"), None
    batches = _arrow_tables(rounds, path, arrow)
    with atomically(path) as file:
        for table in batches:
            writer = writer or arrow.ipc.new_file(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _arrow_tables(rounds: Rounds, path: Path, arrow: Any) -> Iterator[Any]:
    names = column_names(rounds, path)
    qids = np.repeat(rounds.qids, np.diff(rounds.offsets))
    for a in range(0, len(rounds.X), BATCH):
        rows = slice(a, a + BATCH)
        columns = {"label": rounds.labels[rows], "qid": qids[rows]}
        if rounds.docids is not None:
            columns["docid"] = rounds.docids[rows]
        columns |= {name: rounds.X[rows, j] for j, name in enumerate(names)}
        yield arrow.table({name: arrow.array(column) for name, column in columns.items()})


def write_csv(rounds: Rounds, path: Path, separator: str = ",") -> None:
    """Writes the column names in the first line, then one document per line."""
    names = (*RESERVED[: 2 + (rounds.docids is not None)], *column_names(rounds, path))
    head = separator.join(_cell(name, separator) for name in names) + "\n"

    def start(label: str, qid: Any, docid: Any) -> str:
        return separator.join([label, *(_cell(str(name), separator) for name in (qid, docid) if name is not None)])

    _write_rows(rounds, path, head, start, [separator] * rounds.n_features, "\n")


def write_tsv(rounds: Rounds, path: Path) -> None:
    """Writes CSV with tabs."""
    write_csv(rounds, path, "\t")


def write_jsonl(rounds: Rounds, path: Path) -> None:
    """Writes one JSON object per document."""

    def start(label: str, qid: Any, docid: Any) -> str:
        named = "" if docid is None else f', "docid": {_json(docid)}'
        return f'{{"label": {label}, "qid": {_json(qid)}{named}'

    names = [f", {json.dumps(name)}: " for name in column_names(rounds, path)]
    _write_rows(rounds, path, "", start, names, "}\n")


def _write_rows(
    rounds: Rounds, path: Path, head: str, start: Callable[[str, Any, Any], str], names: list[str], end: str
) -> None:
    """Writes lines: the start of each, then a name and the shortest digits of every feature, and an end."""
    qids = np.repeat(rounds.qids, np.diff(rounds.offsets))
    at_once, digits, cells = max(1, NUMBERS // rounds.n_features), Digits(), pack_words([n.encode() for n in names])
    with open_compressed(path) as file:
        file.write(head.encode())
        for a in range(0, len(rounds.X), at_once):
            rows = slice(a, a + at_once)
            labels = [format_label(label) for label in rounds.labels[rows].tolist()]
            docids = [None] * len(labels) if rounds.docids is None else rounds.docids[rows].tolist()
            starts = [start(*row).encode() for row in zip(labels, qids[rows].tolist(), docids, strict=True)]
            file.write(
                format_rows(pack_words(starts), cells, rounds.X[rows], digits, pack_words([end.encode()] * len(starts)))
            )


def _cell(text: str, separator: str) -> str:
    """A value for CSV, in quotes if it would otherwise be read as something else."""
    if text and not any(letter in text for letter in (separator, '"', "\n", "\r")):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json(name: Any) -> str:
    return json.dumps(name if isinstance(name, int) else str(name), ensure_ascii=False)
