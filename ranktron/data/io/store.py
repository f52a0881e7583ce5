"""The `.rounds` store: a small header, then the arrays as in memory, so that opening it only maps the file.

    8 bytes   RANKTRON
    4 + 4     length and CRC-32 of the header, little-endian
    header    JSON: format, version of the package that wrote it, size of the file, and of each array its type, shape,
              position and CRC-32
    arrays    each from a multiple of 64 bytes on

Opening checks the header, the size of the file, the arrays with one entry per query, and every byte of a file below
64 MB. `verify` checks every byte of a file of any size. Sparse features are stored as the three arrays of their rows;
opening also checks their columns, because kernels would read beyond the weights at an invalid one.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.files import atomically, other_format, package_version, readable
from ranktron.data.io.formats import STORE_MAGIC, Source, detect_kind
from ranktron.data.io.grouping import fitted_features
from ranktron.data.io.streaming import QueryRun
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr import ONES
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import as_arrays, as_features
from ranktron.types import Features

FORMAT = 3
ALIGNMENT = 64
WHOLE = 64 << 20
BLOCK = 1 << 24
PER_QUERY = ("offsets", "qids")
ROWS = ("starts", "columns", "values")
Array = npt.NDArray[Any]


def write_store(rounds: Rounds, path: Path) -> None:
    """Writes a store; it appears under its name only when it is complete and on disk."""
    arrays = {name: array for name, array in _arrays(rounds).items() if array is not None}
    head: dict[str, Any] = {"format": FORMAT, "version": package_version(), "size": 0, "arrays": {}}
    head |= {"n_features": rounds.n_features, "first_index": rounds.first_index, "feature_names": rounds.feature_names}
    head |= {"prefix": rounds.prefix}
    for name, array in arrays.items():
        crc = _crc(array)
        # 15 digits reserve room for the positions, which depend on the header's length.
        head["arrays"][name] = {"dtype": array.dtype.str, "shape": array.shape, "at": 10**15, "crc32": crc}
    head["size"] = 10**15
    at = _align(16 + len(_pack_header(head)))
    for name, array in arrays.items():
        head["arrays"][name]["at"] = at
        at = _align(at + array.nbytes)
    head["size"] = at
    header = _pack_header(head)
    with atomically(path) as file:
        file.write(STORE_MAGIC + struct.pack("<II", len(header), zlib.crc32(header)) + header)
        for name, array in arrays.items():
            file.write(b"\0" * (head["arrays"][name]["at"] - file.tell()))
            file.write(array.reshape(-1).view(np.uint8).data)
        file.write(b"\0" * (at - file.tell()))


def _arrays(rounds: Rounds) -> dict[str, Array | None]:
    X = as_arrays(rounds.X.trimmed()) if isinstance(rounds.X, Sparse) else rounds.X
    features = dict(zip(ROWS, X, strict=True)) if isinstance(X, tuple) else {"X": X}
    return {
        **features,
        "labels": rounds.labels,
        "offsets": rounds.offsets,
        "qids": _plain(rounds.qids),
        "docids": None if rounds.docids is None else _plain(rounds.docids),
        "rows": rounds.rows,
    }


def _plain(names: Array) -> Array:
    """Names as fixed-size text or numbers; objects become text."""
    plain = names if names.dtype.kind in "iufU" else np.array([str(name) for name in names.tolist()])
    return np.ascontiguousarray(plain)


def _crc(array: Array) -> int:
    return zlib.crc32(array.reshape(-1).view(np.uint8).data)


def _align(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _pack_header(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


def _map_privately(file: int) -> mmap.mmap:
    """Maps a file as writable, private pages; nothing here writes to them.

    Read-only arrays are a type of their own for numba, so that every kernel would be compiled once more. No memory is
    reserved: a file may be larger than the memory.
    """
    if sys.platform == "win32":
        return mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    # Python has a name for it since 3.13.
    unreserved = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)
    return mmap.mmap(file, 0, mmap.MAP_PRIVATE | unreserved, mmap.PROT_READ | mmap.PROT_WRITE)


class RoundsStore:
    """An open store: its checked header and its mapped bytes."""

    def __init__(self, path: Source) -> None:
        self.path = path
        with readable(path), open(path, "rb") as file:
            self.raw = _map_privately(file.fileno())
        self.head = self._header()

    def _header(self) -> dict[str, Any]:
        if len(self.raw) < 16:
            raise self.damaged("it is cut off")
        length, crc = struct.unpack("<II", self.raw[8:16])
        header = self.raw[16 : 16 + length]
        if len(header) < length or zlib.crc32(header) != crc:
            raise self.damaged("its header does not match its checksum")
        head: dict[str, Any] = json.loads(header)
        if head.get("format") != FORMAT:
            raise other_format(self.path, head["version"] if "format" in head else None, "convert the data again")
        if head["size"] != len(self.raw):
            raise self.damaged(f"it has {len(self.raw)} bytes instead of {head['size']}")
        return head

    def damaged(self, why: str) -> DataError:
        return DataError(f"{self.path}: this store is damaged: {why}; convert the original data again")

    def bytes_of(self, name: str) -> Array:
        array = self.head["arrays"][name]
        size = int(np.prod(array["shape"], dtype=np.int64)) * np.dtype(array["dtype"]).itemsize
        return np.frombuffer(self.raw, np.uint8, size, array["at"])

    def array(self, name: str) -> Array | None:
        array = self.head["arrays"].get(name)
        return None if array is None else self.bytes_of(name).view(array["dtype"]).reshape(array["shape"])

    def rows(self, name: str, start: int, stop: int) -> Array:
        """Copies rows out of the file, because mapped pages would stay in memory."""
        array = self.head["arrays"][name]
        size = np.dtype(array["dtype"]).itemsize * int(np.prod(array["shape"][1:], dtype=np.int64))
        with readable(self.path), open(self.path, "rb") as file:
            file.seek(array["at"] + start * size)
            rows = np.fromfile(file, array["dtype"], (stop - start) * size // np.dtype(array["dtype"]).itemsize)
        return rows.reshape(-1, *array["shape"][1:])

    def check(self, names: tuple[str, ...] | None = None) -> None:
        """Verifies the checksums of some arrays, by default of all."""
        for name, array in self.head["arrays"].items():
            if (names is None or name in names) and _crc(self.bytes_of(name)) != array["crc32"]:
                raise self.damaged(f"its {name} do not match their checksum")

    def rounds(self) -> Rounds:
        names = self.head["feature_names"]
        found = {name: self.array(name) for name in ("labels", "offsets", "qids", "docids", "rows")}
        names = None if names is None else tuple(names)
        first, prefix = self.head["first_index"], self.head.get("prefix", "")
        return Rounds(self.features(), **found, feature_names=names, first_index=first, prefix=prefix)  # type: ignore[arg-type]

    @property
    def sparse(self) -> bool:
        return "X" not in self.head["arrays"]

    @property
    def bytes_of_features(self) -> int:
        return sum(len(self.bytes_of(name)) for name in (ROWS if self.sparse else ("X",)))

    def features(self) -> Features:
        """The features of all documents, mapped."""
        if not self.sparse:
            return self.array("X")
        return as_features(tuple(self.array(name) for name in ROWS), self.head["n_features"])

    def features_between(self, start: int, stop: int) -> Features:
        """Copies the features of some documents out of the file."""
        if not self.sparse:
            return self.rows("X", start, stop)
        starts = self.rows("starts", start, stop + 1)
        a, b = int(starts[0]), int(starts[-1])
        if not 0 <= a <= b <= self.head["arrays"]["columns"]["shape"][0]:
            raise self.damaged("its rows reach beyond its columns")
        values = self.rows("values", a, b) if self.head["arrays"]["values"]["shape"][0] else ONES
        X = Sparse(starts - a, self.rows("columns", a, b), values, self.head["n_features"])
        self.check_places(X)
        return X

    def check_places(self, X: Features) -> None:
        """Raises an error for sparse rows with invalid columns."""
        if isinstance(X, Sparse):
            try:
                X.check_places()
            except DataError as error:
                raise self.damaged(str(error)) from None


def open_store(path: Source) -> RoundsStore:
    """Opens a store; a small one is checked completely."""
    store = RoundsStore(path)
    store.check(None if len(store.raw) < WHOLE else PER_QUERY)
    return store


def read_store(path: Source) -> Rounds:
    """Maps a store into memory, privately, in milliseconds whatever its size, except to check sparse columns."""
    store = open_store(path)
    rounds = store.rounds()
    store.check_places(rounds.X)
    return rounds


def verify(path: str | Path) -> None:
    """Checks every byte of a store against its checksums; raises `DataError` if it is damaged.

    Parameters
    ----------
    path : path
        The `.rounds` file.

    Examples
    --------
    >>> from ranktron.data.rounds import Rounds
    >>> from ranktron.data.io import verify, write
    >>> folder = getfixture("tmp_path")
    >>> write(Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"]), folder / "small.rounds")
    >>> verify(folder / "small.rounds")
    """
    if detect_kind(Path(path)) != "store":
        raise DataError(f"{path}: this is not a store")
    RoundsStore(Path(path)).check()


def store_runs(path: Source, n_features: int | None, first_index: int | None) -> Iterator[QueryRun]:
    """Reads a store some megabytes at a time, without mapping its features."""
    store = open_store(path)
    rounds = store.rounds()
    rows = max(1, BLOCK * len(rounds.labels) // store.bytes_of_features)
    start = 0
    while start < len(rounds):
        stop = int(np.searchsorted(rounds.offsets, rounds.offsets[start] + rows, "right")) - 1
        stop = max(start + 1, stop)
        a, b = int(rounds.offsets[start]), int(rounds.offsets[stop])
        X = store.features_between(a, b)
        X = fitted_features(X, rounds.feature_names, rounds.first_index, n_features, first_index)
        labels = store.rows("labels", a, b)
        for q in range(start, stop):
            i, j = int(rounds.offsets[q]) - a, int(rounds.offsets[q + 1]) - a
            yield QueryRun(rounds.qids[q], X[i:j], labels[i:j], path, lambda: str(path))
        start = stop
