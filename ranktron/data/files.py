"""Paths to files and back: folders of parts, standard input and output, and writing completely or not at all."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ranktron.errors import DataError, MissingExtra

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

BLOCK = 1 << 24
PARTS = {
    "train": ("train", "training", "trainingset"),
    "vali": ("vali", "valid", "validation", "validationset", "dev"),
    "test": ("test", "testing", "testset", "heldout"),
}
"""Common names of the files of a fold."""


def parts(paths: Paths) -> list[Path]:
    """Lists the files of a path, several paths, or a directory of parts.

    A directory means its files in the order of their names, without those that start with a dot or an underscore.
    """
    sources = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [part for path in sources for part in _list_parts(Path(path))]
    if not files:
        raise DataError("there is no file to read: the list of paths is empty")
    return files


def _list_parts(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    fold = fold_parts(path)
    if fold:
        files = ", ".join(str(file) for file in fold.values())
        raise DataError(f"{path}: this folder has the train, vali and test files of a fold: name {files}")
    with readable(path):
        found = sorted(part for part in path.iterdir() if part.is_file() and part.name[0] not in "._")
    if not found:
        raise DataError(f"{path}: this folder has no file to read")
    held_out = [part for part in found if _is_held_out(part)]
    if 0 < len(held_out) < len(found):
        others = " ".join(str(part) for part in found if part not in held_out)
        raise DataError(
            f"{path}: this folder has {held_out[0].name} beside other files: name the files to read ({others}), or put "
            f"{held_out[0].name} into a folder of its own"
        )
    return found


def _is_held_out(path: Path) -> bool:
    """Whether a file is a test or validation set, or a numbered part of one, by its name."""
    stem = path.name.partition(".")[0].lower().rstrip("0123456789").rstrip("-_")
    return stem in PARTS["vali"] + PARTS["test"]


def fold_parts(path: str | os.PathLike[str]) -> dict[str, Path]:
    """The files of a fold: a folder with a training set and a validation or test set; empty for any other path.

    >>> folder = getfixture("tmp_path")
    >>> for name in ("train.txt", "vali.txt", "test.txt"):
    ...     _ = (folder / name).write_text("1 qid:1 1:1")
    >>> {part: file.name for part, file in fold_parts(folder).items()}
    {'train': 'train.txt', 'vali': 'vali.txt', 'test': 'test.txt'}
    """
    folder = Path(path)
    if not folder.is_dir():
        return {}
    with readable(folder):
        files = sorted(file for file in folder.iterdir() if file.is_file() and file.name[0] not in "._")
    found: dict[str, list[Path]] = {part: [] for part in PARTS}
    for file in files:
        stem = file.name.partition(".")[0].lower()
        for part, names in PARTS.items():
            found[part] += [file] if stem in names else []
    whole = found["train"] and (found["vali"] or found["test"]) and all(len(some) <= 1 for some in found.values())
    return {part: some[0] for part, some in found.items() if some} if whole else {}


@contextmanager
def from_standard_input(paths: Any) -> Iterator[Any]:
    """Replaces `-` by a temporary file with the contents of standard input; errors name it "standard input"."""
    one = isinstance(paths, str | os.PathLike)
    sources = [paths] if one else list(paths)
    if "-" not in map(os.fspath, sources):
        yield paths if one else sources
        return
    with tempfile.TemporaryDirectory() as folder:
        spooled = Path(folder, "input")
        with open(spooled, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, BLOCK)
        if spooled.stat().st_size == 0:
            raise DataError("standard input: there is nothing in it")
        try:
            yield spooled if one else [spooled if os.fspath(path) == "-" else path for path in sources]
        except DataError as error:
            raise DataError(str(error).replace(str(spooled), "standard input")) from None


@contextmanager
def readable(path: os.PathLike[str]) -> Iterator[None]:
    """Turns errors of the system and of decompressors into a `DataError`."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except EOFError:
        raise DataError(f"{path}: the compressed file is cut off before its end; fetch or write it again") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"{path}: the compressed file is damaged ({error}); fetch or write it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


@contextmanager
def atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file for writing that appears under its name only when it is complete and on disk.

    Replaces the target of a symbolic link, and writes to a device or a pipe directly. `-` is standard output, which
    also gets everything or nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomically(f"{folder}/a") as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "a").read_bytes()
    b'all of it'
    """
    if os.fspath(path) == "-":
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    try:
        target = Path(os.path.realpath(path))
        special = target.exists() and not target.is_file()
    except (OSError, ValueError) as error:  # a name too long, or one with a zero byte
        raise DataError(f"{os.fspath(path)!r}: cannot be written: {getattr(error, 'strerror', error)}") from None
    if not os.fspath(path) or target.is_dir():
        raise DataError(f"{os.fspath(path) or 'an empty name'}: cannot be written: it does not name a file")
    draft = target if special else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(draft, target)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from None
    finally:
        if not special:
            with suppress(OSError):  # there is none where its name was too long
                draft.unlink()


@contextmanager
def open_compressed(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing atomically, compressed according to its extension."""
    with atomically(path) as file:
        if path.suffix == ".gz":
            # Neither name nor time in the header, so that the same data give the same bytes.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as squeezed:
                yield squeezed  # type: ignore[misc]
        elif path.suffix == ".zst":
            with import_zstandard().ZstdCompressor().stream_writer(file, closefd=False) as squeezed:
                yield squeezed
        elif path.suffix == ".bz2":
            with bz2.BZ2File(file, "wb") as squeezed:
                yield squeezed
        elif path.suffix == ".xz":
            with lzma.LZMAFile(file, "wb") as squeezed:
                yield squeezed
        else:
            yield file


def import_zstandard() -> Any:
    """Imports the library for `.zst` files; the error says how to install it."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra("reading and writing .zst files", "zstd") from None
    return zstandard


def package_version() -> str:
    """The version of the package, which files carry."""
    # Not imported: the package imports its parts, and no part the package.
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def other_format(path: object, version: object, advice: str) -> DataError:
    """The error for a file in a format that this version does not read; `version` wrote it, None before 0.3."""
    writer = "a ranktron before 0.3" if version is None else f"ranktron {ascii(str(version))[1:-1][:40]}"
    reader = f"ranktron {package_version()} cannot read its format"
    return DataError(f"{path} was written by {writer}, and {reader}: {advice}")
