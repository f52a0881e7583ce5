"""Writing LETOR text: the shortest digits that read back as the same 32-bit numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.io.opening import compressing
from ranktron.rounds import Rounds
from ranktron.sparse import Sparse

ROWS = 4096
MOST_WORDS = 1_000_000


class Digits(dict[int, str]):
    """The shortest decimal of each 32-bit number, by its bits; remembered, since features repeat themselves."""

    def __missing__(self, bits: int) -> str:
        if len(self) >= MOST_WORDS:
            self.clear()
        text = self[bits] = str(np.int32(bits).view(np.float32)).removesuffix(".0")
        return text


def write_text(rounds: Rounds, path: Path) -> None:
    """Writes one line per document, with every feature, so that the number of features is kept; sparse ones as held."""
    if isinstance(rounds.X, Sparse):
        _write_sparse(rounds, rounds.X, path)
        return
    form = " ".join(f"{j + rounds.first_index}:%s" for j in range(rounds.n_features))
    qids = [_word(qid, path) for qid in rounds.qids.tolist()]
    owners = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets)).tolist()
    ends = _endings(rounds, path)
    digits = Digits()
    with compressing(path) as file:
        for a in range(0, len(rounds.X), ROWS):
            rows = np.ascontiguousarray(rounds.X[a : a + ROWS]).view(np.int32).tolist()
            labels = rounds.labels[a : a + ROWS].tolist()
            lines = [
                f"{_label(label)} qid:{qids[owners[i]]} {form % tuple([digits[bits] for bits in row])}{ends[i]}"
                for i, (label, row) in enumerate(zip(labels, rows, strict=True), start=a)
            ]
            file.write(("\n".join(lines) + "\n").encode())


def _write_sparse(rounds: Rounds, X: Sparse, path: Path) -> None:
    """Only the first line names the last feature where nothing else does, so that the number of features is kept."""
    qids = [_word(qid, path) for qid in rounds.qids.tolist()]
    owners = np.repeat(np.arange(len(rounds)), np.diff(rounds.offsets)).tolist()
    ends, digits, starts = _endings(rounds, path), Digits(), X.starts.tolist()
    with compressing(path) as file:
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
            file.write(f"{_label(label)} qid:{qids[owners[i]]}{''.join(words)}{ends[i]}\n".encode())


def _label(label: float) -> str:
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
