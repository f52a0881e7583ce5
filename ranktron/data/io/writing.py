"""Writing LETOR text, with the shortest decimals that read back as the same 32-bit numbers.

Shortest decimals (Steele and White, How to Print Floating-Point Numbers Accurately, 1990) of usual numbers are found by
trying six to nine digits; those of others are made by numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.io.files import open_compressed
from ranktron.data.io.lexer import DOT, MINUS, POWERS, ZERO, Bytes
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

NUMBERS = 1 << 19  # how many numbers are written at a time
MOST_WORDS = 1_000_000
WIDTH = 16  # the longest shortest decimal of a 32-bit number
SMALLEST, SCIENTIFIC = float(np.nextafter(np.float32(1e-4), np.float32(1.0))), 1e6
WHOLE_POWERS = np.array([10**k for k in range(19)], np.int64)
Flags = npt.NDArray[np.bool_]
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
    others = np.flatnonzero(unusual(values, values.view(np.int32)))
    words = pack_words([digits[bits].encode() for bits in values[others].view(np.int32).tolist()])
    room = len(heads[0]) + len(X) * len(names[0]) + WIDTH * values.size + len(tails[0])
    out = np.empty(room, np.uint8)
    return out[: lay(*heads, *names, values, np.append(others, -1), *words, *tails, out)].tobytes()


@jit
def unusual(values: Matrix, bits: Integers) -> Flags:
    """Which numbers `spell_number` leaves to numpy: large and small ones, and NaN.

    Small powers of two as well: below a power of two, numbers of 32 bits are closer together than above, so that the
    nearest of the short decimals need not be the one that reads back.
    """
    found = np.empty(values.shape[0], np.bool_)
    for i in range(values.shape[0]):
        size = abs(values[i])
        power_of_two = size < 2.0**-8 and bits[i] & 0x7FFFFF == 0
        found[i] = size != 0.0 and (not SMALLEST <= size < SCIENTIFIC or power_of_two)
    return found


@jit
def lay(
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
    """Writes lines: a head, then a name and a number for each feature, then a tail; returns how many bytes."""
    p, width, n = 0, name_starts.shape[0] - 1, 0
    for i in range(head_starts.shape[0] - 1):
        p = copy_bytes(heads, head_starts[i], head_starts[i + 1], out, p)
        for j in range(width):
            p = copy_bytes(names, name_starts[j], name_starts[j + 1], out, p)
            if others[n] == i * width + j:
                p = copy_bytes(words, word_starts[n], word_starts[n + 1], out, p)
                n += 1
            else:
                p = spell_number(values[i * width + j], out, p)
        p = copy_bytes(tails, tail_starts[i], tail_starts[i + 1], out, p)
    return p


@jit
def spell_number(value: float, out: Bytes, p: int) -> int:
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
    p = spell_whole(front, 1, out, p)
    if places > 0:
        out[p] = DOT
        p = spell_whole(whole - front * WHOLE_POWERS[places], places, out, p + 1)
    return p


@jit
def spell_whole(number: int, least: int, out: Bytes, p: int) -> int:
    """Writes a whole number with leading zeros up to so many digits at least; returns the position after."""
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
    """Concatenates words; also returns where each begins."""
    starts = np.concatenate(([0], np.cumsum([len(word) for word in words], dtype=np.int64)))
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
