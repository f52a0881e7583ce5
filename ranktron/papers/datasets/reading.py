"""Reading the data sets: folds of lists for the rankings, arrays for the rest, compared with the published counts."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ranktron.data.io import read
from ranktron.data.io.formats import TEXT, blocks, detect_kind
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.papers.datasets.locations import Folder, file_at, find_dataset, verify_file
from ranktron.papers.datasets.table import SPARSE, YANDEX, Dataset, dataset
from ranktron.training.cross_validation import PARTS, Fold, split_folds
from ranktron.types import Floats

# Istella has numbers of up to 308 digits: whatever 32 bits cannot hold becomes the largest number that they can.
_LARGE = re.compile(rb"(?<=:)-?(?:\d+\.?\d*[eE]\+?\d{2,3}|\d{38,}(?:\.\d*)?)(?=\s|$)")
_LARGEST = float(np.finfo(np.float32).max)


class Examples(NamedTuple):
    """Examples that are not lists: features and labels, one row each."""

    X: Floats
    y: Floats


def folds(name: str, folder: Folder | None = None) -> Iterator[Fold]:
    """Reads the folds of a ranking set, one at a time, and compares them with what is known of the set.

    Sets without a validation part get one: Istella the last fifth of its training queries; of Yandex's one labelled
    file the queries are, in their order, three fifths training, one fifth validation and one fifth test part. Samples
    of a few queries are divided into folds by `split_folds`: one part tests, the next validates, the others train.

    Examples
    --------
    >>> root = getfixture("tmp_path") / "yandex-imat2009"
    >>> root.mkdir()
    >>> lines = [f"{q % 5}.5 1:{q} 245:1 # {q}\\n" for q in range(9124)]
    >>> _ = (root / "imat2009_learning.txt").write_text("".join(lines))
    >>> [fold] = folds("yandex", root.parent)
    >>> len(fold.train), len(fold.valid), len(fold.test), fold.train.labels[:3].tolist()
    (5474, 1825, 1825, [0.5, 1.5, 2.5])
    """
    what = dataset(name)
    if what.kind != "ranking":
        raise DataError(f"{what.title} is no ranking: read it with ranktron.papers.datasets.examples")
    home = find_dataset(name, folder)
    for places in what.folds:
        for place in places:
            verify_file(name, place, folder)
        paths = [file_at(name, place, folder) for place in places]
        parts = [_read_part(what, path) for path in paths]
        _compare(what, home, parts)
        if what.divided:
            yield from split_folds(Rounds.concat(parts), what.divided)
            return
        yield Fold(places[0].rpartition("/")[0] or name, *_three(parts))


def read_stream(name: str, folder: Folder | None = None) -> list[Rounds]:
    """Reads the lists that an online experiment passes over, file by file: every query once.

    >>> root = getfixture("tmp_path") / "yandex-imat2009"
    >>> root.mkdir()
    >>> _ = (root / "imat2009_learning.txt").write_text("".join(f"1 245:1 # {q}\\n" for q in range(9124)))
    >>> sum(len(part) for part in read_stream("yandex", root.parent))
    9124
    """
    what = dataset(name)
    parts = [_read_part(what, file_at(name, place, folder)) for place in what.stream]
    found = len({qid for part in parts for qid in part.qids.tolist()})
    expected = what.streamed_queries or what.queries
    if found != expected or found != sum(len(part) for part in parts):
        raise DataError(
            f"{find_dataset(name, folder)}: {found:,} queries in {', '.join(what.stream)}, but {what.title} has "
            f"{expected:,} there, each of them once; fetch it again"
        )
    return parts


def read_part(name: str, part: str = "train", folder: Folder | None = None) -> Rounds:
    """Reads one part, "train", "vali" or "test", of the first fold of a ranking set: data for an online run."""
    if part not in PARTS:
        raise DataError(f"the parts of a fold are {', '.join(PARTS)}, not {part!r}")
    fold = next(folds(name, folder))
    return (fold.train, fold.valid, fold.test)[PARTS.index(part)]


def _three(parts: list[Rounds]) -> tuple[Rounds, Rounds, Rounds]:
    """Training, validation and test part of a set that has one, two or three files."""
    if len(parts) == 3:
        return parts[0], parts[1], parts[2]
    n = len(parts[0])
    if len(parts) == 2:
        return parts[0][: n - n // 5], parts[0][n - n // 5 :], parts[1]
    a, b = n - 2 * (n // 5 + (n % 5 > 0)), n - (n // 5 + (n % 5 > 0))
    return parts[0][:a], parts[0][a:b], parts[0][b:]


def _read_part(what: Dataset, path: Path) -> Rounds:
    if what.source == "Istella" and detect_kind(path) in TEXT:
        return _read_capped(path, what.features)
    width = what.features if what.format in (SPARSE, YANDEX) else None
    rounds = read(path, n_features=width)
    if rounds.n_features != what.features:
        raise DataError(f"{path} has {rounds.n_features} features; {what.title} has {what.features}")
    return rounds


def _read_capped(path: Path, features: int) -> Rounds:
    """Reads text through a copy in which numbers that are too large for 32 bits are the largest one."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name.split(".")[0] + ".txt")
        with open(copy, "wb") as file:
            rest = b""
            for block in blocks(path):
                lines = rest + block
                end = lines.rfind(b"\n") + 1
                file.write(_LARGE.sub(_cap_value, lines[:end]))
                rest = lines[end:]
            file.write(_LARGE.sub(_cap_value, rest))
        return read(copy, n_features=features)


def _cap_value(found: re.Match[bytes]) -> bytes:
    value = float(found[0])
    return found[0] if abs(value) <= _LARGEST else f"{np.copysign(_LARGEST, value):.9g}".encode()


def _compare(what: Dataset, home: Path, parts: list[Rounds]) -> None:
    counts = {
        "queries": (sum(len(part) for part in parts), what.queries),
        "documents": (sum(len(part.labels) for part in parts), what.documents),
    }
    for noun, (found, published) in counts.items():
        if published is not None and found != published:
            raise DataError(f"{home}: {found:,} {noun}, but {what.title} has {published:,}; fetch it again")


def examples(name: str, folder: Folder | None = None) -> tuple[Examples, Examples]:
    """Reads a multilabel or ordinal set: (training, test) part; an ordinal set has no division, and an empty test part.

    Labels are 0 and 1, one column each, or classes 1, 2, … in one array.

    Examples
    --------
    >>> root = getfixture("tmp_path") / "ordinal"
    >>> root.mkdir()
    >>> rows = ["3," + ",".join(map(str, range(6)))] * 199
    >>> _ = (root / "machine_ord.csv").write_text("\\n".join(["response,a,b,c,d,e,f", *rows]))
    >>> examples("machine", root.parent)
    Traceback (most recent call last):
    ranktron.errors.DataError: ...machine_ord.csv is not the file that Machine CPU (ordinal) has there (2,... bytes
    instead of 4,599): fetch it again
    """
    what = dataset(name)
    if what.kind == "ranking":
        raise DataError(f"{what.title} is a ranking: read it with ranktron.papers.datasets.folds")
    home = find_dataset(name, folder)
    for place in what.folds[0]:
        verify_file(name, place, folder)
    paths = [file_at(name, place, folder) for place in what.folds[0]]
    if what.kind == "ordinal":
        X, y = read_ordinal(paths[0])
        parts = Examples(X, y), Examples(X[:0], y[:0])
    else:
        parts = read_multilabel(paths[0], what.classes), read_multilabel(paths[1], what.classes)
    count, width = sum(len(part.X) for part in parts), parts[0].X.shape[1]
    if (count, width) != (what.documents, what.features):
        raise DataError(
            f"{home}: {count:,} examples of {width} features, but {what.title} has {what.documents:,} of "
            f"{what.features}; fetch it again"
        )
    return parts


def read_multilabel(path: Folder, classes: int) -> Examples:
    """Reads an ARFF file of numbers whose last attributes are the labels.

    >>> path = getfixture("tmp_path") / "a.arff"
    >>> _ = path.write_text("@relation a\\n@attribute x numeric\\n@attribute y {0,1}\\n@data\\n0.5,1\\n% no\\n2,0\\n")
    >>> read_multilabel(path, classes=1)
    Examples(X=array([[0.5], [2. ]]), y=array([[1.], [0.]]))
    """
    lines = [line.strip() for line in _text(path).splitlines()]
    start = next((i for i, line in enumerate(lines) if line.lower().startswith("@data")), None)
    if start is None:
        raise DataError(f"{path}: no line @data: this is not an ARFF file")
    attributes = sum(line.lower().startswith("@attribute") for line in lines[:start])
    rows = [line.split(",") for line in lines[start + 1 :] if line and not line.startswith("%")]
    table = _numbers(path, rows, attributes)
    if not np.isin(table[:, -classes:], (0.0, 1.0)).all():
        raise DataError(f"{path}: the last {classes} attributes must be labels 0 or 1")
    return Examples(np.ascontiguousarray(table[:, :-classes]), np.ascontiguousarray(table[:, -classes:]))


def read_ordinal(path: Folder) -> Examples:
    """Reads a CSV file with a header whose first column is the class.

    >>> path = getfixture("tmp_path") / "a.csv"
    >>> _ = path.write_text('"response","V1","V2"\\n3,"7.4",0\\n1,5e-04,2\\n')
    >>> read_ordinal(path)
    Examples(X=array([[7.4e+00, 0.0e+00], [5.0e-04, 2.0e+00]]), y=array([3., 1.]))
    """
    header, *rows = list(csv.reader(_text(path).splitlines())) or [[]]
    if not header or header[0] != "response":
        raise DataError(f"{path}: the first column must be called response and hold the class")
    table = _numbers(path, rows, len(header))
    return Examples(np.ascontiguousarray(table[:, 1:]), np.ascontiguousarray(table[:, 0]))


def _text(path: Folder) -> str:
    return b"".join(blocks(Path(path))).decode("utf-8", errors="replace")


def _numbers(path: Folder, rows: list[list[str]], width: int) -> Floats:
    if not rows:
        raise DataError(f"{path}: no rows")
    for i, row in enumerate(rows, 1):
        if len(row) != width:
            raise DataError(f"{path}: row {i} has {len(row)} values instead of {width}")
    try:
        return np.array(rows, np.float64)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
