"""The library's own file: a small header, then the arrays as they are in memory, so that opening one maps it.

    8 bytes   RANKTRON
    4 + 4     length and CRC-32 of the header, little-endian
    header    JSON: version, size of the file, and of each array its type, shape, place and CRC-32
    arrays    each from a multiple of 64 bytes on

Opening checks the header, the size of the file, and the arrays with one entry per query; a file of less than 64 MB is
checked whole. `verify` checks every byte of a file of any size.
"""

from __future__ import annotations

import json
import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.files import atomically
from ranktron.io.assembling import fitted_features
from ranktron.io.opening import STORE_MAGIC, kind_of, readable
from ranktron.io.streaming import Run
from ranktron.rounds import Rounds

VERSION = 1
ALIGNMENT = 64
WHOLE = 64 << 20
BLOCK = 1 << 24
PER_QUERY = ("offsets", "qids")
Array = npt.NDArray[Any]


def write_store(rounds: Rounds, path: Path) -> None:
    """Writes a store; it appears under its name only when it is complete and on disk."""
    arrays = {name: array for name, array in _arrays(rounds).items() if array is not None}
    head: dict[str, Any] = {"version": VERSION, "first_index": rounds.first_index, "size": 0, "arrays": {}}
    head["feature_names"] = rounds.feature_names
    for name, array in arrays.items():
        crc = _crc(array)
        # 15 digits of place hold the header's length while the places are still to be found.
        head["arrays"][name] = {"dtype": array.dtype.str, "shape": array.shape, "at": 10**15, "crc32": crc}
    head["size"] = 10**15
    at = _aligned(16 + len(_packed(head)))
    for name, array in arrays.items():
        head["arrays"][name]["at"] = at
        at = _aligned(at + array.nbytes)
    head["size"] = at
    header = _packed(head)
    with atomically(path) as file:
        file.write(STORE_MAGIC + struct.pack("<II", len(header), zlib.crc32(header)) + header)
        for name, array in arrays.items():
            file.write(b"\0" * (head["arrays"][name]["at"] - file.tell()))
            file.write(array.reshape(-1).view(np.uint8).data)
        file.write(b"\0" * (at - file.tell()))


def _arrays(rounds: Rounds) -> dict[str, Array | None]:
    return {
        "X": rounds.X,
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


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _packed(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode()


class Store:
    """An open store: its checked header and its mapped bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path), open(path, "rb") as file:
            self.raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.head = self._header()

    def _header(self) -> dict[str, Any]:
        if len(self.raw) < 16:
            raise self.damaged("it is cut off")
        length, crc = struct.unpack("<II", self.raw[8:16])
        header = self.raw[16 : 16 + length]
        if len(header) < length or zlib.crc32(header) != crc:
            raise self.damaged("its header does not match its checksum")
        head: dict[str, Any] = json.loads(header)
        if head["version"] != VERSION:
            raise DataError(
                f"{self.path}: written by another version (format {head['version']}, this one reads {VERSION}); "
                "convert the original data again"
            )
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
        """Copies some rows out of the file: mapped pages would stay in memory."""
        array = self.head["arrays"][name]
        size = np.dtype(array["dtype"]).itemsize * int(np.prod(array["shape"][1:], dtype=np.int64))
        with readable(self.path), open(self.path, "rb") as file:
            file.seek(array["at"] + start * size)
            rows = np.fromfile(file, array["dtype"], (stop - start) * size // np.dtype(array["dtype"]).itemsize)
        return rows.reshape(-1, *array["shape"][1:])

    def check(self, names: tuple[str, ...] | None = None) -> None:
        """Compares arrays, all by default, with their checksums."""
        for name, array in self.head["arrays"].items():
            if (names is None or name in names) and _crc(self.bytes_of(name)) != array["crc32"]:
                raise self.damaged(f"its {name} do not match their checksum")

    def rounds(self) -> Rounds:
        names = self.head["feature_names"]
        found = {name: self.array(name) for name in ("X", "labels", "offsets", "qids", "docids", "rows")}
        names = None if names is None else tuple(names)
        return Rounds(**found, feature_names=names, first_index=self.head["first_index"])  # type: ignore[arg-type]


def open_store(path: Path) -> Store:
    """Opens a store, checked whole where it is small."""
    store = Store(path)
    store.check(None if len(store.raw) < WHOLE else PER_QUERY)
    return store


def read_store(path: Path) -> Rounds:
    """Maps a store into memory, read-only: milliseconds, whatever its size."""
    return open_store(path).rounds()


def verify(path: str | Path) -> None:
    """Checks every byte of a store against its checksums; raises `DataError` where it is damaged.

    >>> from ranktron.rounds import Rounds
    >>> from ranktron.io import verify, write
    >>> folder = getfixture("tmp_path")
    >>> write(Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"]), folder / "small.rounds")
    >>> verify(folder / "small.rounds")
    """
    if kind_of(Path(path)) != "store":
        raise DataError(f"{path}: this is not a store")
    Store(Path(path)).check()


def store_runs(path: Path, n_features: int | None, first_index: int | None) -> Iterator[Run]:
    """Reads a store some megabytes at a time, without mapping its features."""
    store = open_store(path)
    rounds = store.rounds()
    rows = max(1, BLOCK // (4 * rounds.n_features))
    start = 0
    while start < len(rounds):
        stop = int(np.searchsorted(rounds.offsets, rounds.offsets[start] + rows, "right")) - 1
        stop = max(start + 1, stop)
        a, b = int(rounds.offsets[start]), int(rounds.offsets[stop])
        X = fitted_features(store.rows("X", a, b), rounds.feature_names, rounds.first_index, n_features, first_index)
        labels = store.rows("labels", a, b)
        for q in range(start, stop):
            i, j = int(rounds.offsets[q]) - a, int(rounds.offsets[q + 1]) - a
            yield Run(rounds.qids[q], X[i:j], labels[i:j], path, lambda: str(path))
        start = stop
