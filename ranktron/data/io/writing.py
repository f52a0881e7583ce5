"""Writing LETOR text, with the shortest decimals that read back as the same 32-bit numbers.

Shortest decimals (Steele and White, How to Print Floating-Point Numbers Accurately, 1990) are made by numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ranktron.data.io.files import open_compressed
from ranktron.data.io.lexer import Bytes
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

NUMBERS = 1 << 19  # how many numbers are written at a time
MOST_WORDS = 1_000_000
WIDTH = 16  # the longest shortest decimal of a 32-bit number
SCIENTIFIC = 1e6
Packed = tuple[Bytes, Integers]


class Digits(dict[int, str]):
    """A cache of the shortest decimal of each 32-bit number, by its bits: values of features recur."""

    def __missing__(self, bits: int) -> str:
        if len(self) >= MOST_WORDS:
            self.clear()
        text = self[bits] = str(np.int32(bits).view(np.float32)).removesuffix(".0")
        return text


def write_text(rounds: Rounds, path: Path) -> None:
    """Writes one line per document, with every feature, including zeros, or with the entries of sparse rows."""
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
            heads = [f"{spell_label(label)} qid:{qids[owners[i]]}".encode() for i, label in enumerate(labels, start=a)]
            tails = [f"{end}\n".encode() for end in ends[a : a + at_once]]
            file.write(spell_rows(pack_words(heads), names, rounds.X[a : a + at_once], digits, pack_words(tails)))


def spell_rows(heads: Packed, names: Packed, X: Matrix, digits: Digits, tails: Packed) -> bytes:
    """Formats lines: a head, every feature with its name, and a tail."""
    values = X.flatten()
    words = values.astype(f"S{WIDTH}")
    # numpy formats large numbers differently in an array than alone.
    others = np.flatnonzero(~(np.abs(values) < SCIENTIFIC))
    words[others] = [digits[bits].encode() for bits in values[others].view(np.int32).tolist()]
    lengths = np.char.str_len(words) - 2 * np.char.endswith(words, b".0")
    text = words.view(np.uint8).reshape(-1, WIDTH)
    room = len(heads[0]) + len(X) * len(names[0]) + int(lengths.sum()) + len(tails[0])
    out = np.empty(room, np.uint8)
    return out[: lay(*heads, *names, text, lengths, *tails, out)].tobytes()


@jit
def lay(
    heads: Bytes,
    head_starts: Integers,
    names: Bytes,
    name_starts: Integers,
    text: Bytes,
    lengths: Integers,
    tails: Bytes,
    tail_starts: Integers,
    out: Bytes,
) -> int:
    """Writes lines: a head, then a name and a number for each feature, then a tail; returns how many bytes."""
    p, width = 0, name_starts.shape[0] - 1
    for i in range(head_starts.shape[0] - 1):
        p = copy_bytes(heads, head_starts[i], head_starts[i + 1], out, p)
        for j in range(width):
            p = copy_bytes(names, name_starts[j], name_starts[j + 1], out, p)
            p = copy_bytes(text[i * width + j], 0, lengths[i * width + j], out, p)
        p = copy_bytes(tails, tail_starts[i], tail_starts[i + 1], out, p)
    return p


@jit
def copy_bytes(source: Bytes, a: int, b: int, out: Bytes, p: int) -> int:
    """Copies the bytes from a to b to position p; returns the position after them."""
    for k in range(a, b):
        out[p] = source[k]
        p += 1
    return p


def pack_words(words: Sequence[bytes]) -> Packed:
    """Concatenates words; also returns where each begins."""
    starts = np.concatenate(([0], np.cumsum([len(word) for word in words])))
    return np.frombuffer(bytearray(b"".join(words)), np.uint8), starts


def _write_sparse(rounds: Rounds, X: Sparse, path: Path) -> None:
    """Writes the stored entries; the first line also has the last feature, to keep the number of features."""
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
            file.write(f"{spell_label(label)} qid:{qids[owners[i]]}{''.join(words)}{ends[i]}\n".encode())


def spell_label(label: float) -> str:
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
