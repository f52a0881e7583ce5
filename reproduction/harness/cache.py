"""Finished cells on disk, found again only while everything they depend on is the same.

The key of a cell is a hash of its function, arguments and seed, of the code it runs, of the numerical libraries'
versions, and of its data. Changing a learner makes all cells new; changing the report makes none new.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from ranktron.data.files import atomically
from reproduction.harness.experiment import Cell

_ROOT = Path(__file__).parents[2]
_LIBRARY = ("errors.py", "types", "kernels", "data", "metrics", "surrogates", "learners", "training", "estimators",
            "theory")  # fmt: skip
_OWN = ("theory", "datasets", "harness/data.py")
_COUNTS = (*(f"ranktron/{name}" for name in _LIBRARY), *(f"reproduction/{name}" for name in _OWN))
"""What can change a result beside the file of the cell's own function: library, theorems, readers of data."""
_NUMERICS = ("numpy", "scipy", "numba", "scikit-learn")
_WHOLE = 256 << 20
"""Larger data files are known by their size and their first and last megabyte."""


class Kept(NamedTuple):
    """A finished cell: its result, and how many seconds it took."""

    result: Any
    seconds: float


class CellCache:
    """A folder of finished cells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Kept | None:
        """A finished cell; None where there is none, or only a damaged file."""
        try:
            content = json.loads((self.folder / f"{key}.json").read_text())
            return Kept(content["result"], float(content["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, cell: Cell, result: str, seconds: float) -> Kept:
        """Keeps a result, given as JSON text."""
        known = {"function": cell.function, "arguments": dict(cell.arguments), "seed": cell.seed, "data": cell.data}
        kept = Kept(json.loads(result), seconds)
        content = {"cell": known, "seconds": seconds, "result": kept.result}
        with atomically(self.folder / f"{key}.json") as file:
            file.write((json.dumps(content, allow_nan=False) + "\n").encode("ascii"))
        return kept


def cell_key(cell: Cell, folder: Path | None) -> str:
    """The name under which a cell is kept."""
    known = {
        "function": cell.function,
        "arguments": cell.arguments,
        "seed": cell.seed,
        "code": code_version(cell.function.partition(":")[0]),
        "libraries": libraries(),
        "data": None if folder is None else checksum_folder(folder),
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:32]


@lru_cache
def code_version(module: str) -> str:
    """A hash of all code that can change a result: the library below the experiments, and the function's own file."""
    own = import_module(module).__file__
    counting = (_ROOT / name for name in _COUNTS)
    files = sorted(path for place in counting for path in (place.rglob("*.py") if place.is_dir() else [place]))
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    digest.update(Path(own).read_bytes() if own else b"")
    return digest.hexdigest()


@lru_cache
def libraries() -> dict[str, str]:
    """The versions of the libraries that compute."""
    found = {}
    for name in _NUMERICS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@lru_cache
def checksum_folder(folder: Path) -> str:
    """A hash of all files of a data set."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)} {size}".encode())
        with path.open("rb") as file:
            if size <= _WHOLE:
                digest.update(hashlib.file_digest(file, "sha256").digest())
            else:
                digest.update(file.read(1 << 20))
                file.seek(-(1 << 20), 2)
                digest.update(file.read())
    return digest.hexdigest()
