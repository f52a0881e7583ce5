"""Opening files: detecting their kind, listing the parts that a path names, and decompressing while reading."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import mmap
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ranktron.data.files import atomically
from ranktron.errors import DataError, MissingExtra

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

STORE_MAGIC = b"RANKTRON"
MAGICS = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "feather",
    b"PK\x03\x04": "zip",
    STORE_MAGIC: "store",
    b"ranktron\n": "model",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
TEXT = ("text", *COMPRESSED.values())
BLOCK = 1 << 24
PIECE = 1 << 22  # of a text that is decompressed and parsed at the same time
_GZIP = 16 + zlib.MAX_WBITS
PARTS = {
    "train": ("train", "training", "trainingset"),
    "vali": ("vali", "valid", "validation", "validationset", "dev"),
    "test": ("test", "testing", "testset", "heldout"),
}
"""The usual names of the files of a fold."""


def parts(paths: Paths) -> list[Path]:
    """Lists the files that a path, several paths, or a directory of parts stand for.

    A directory means its files in the order of their names, without those that start with a dot or an underscore.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = [part for path in given for part in _list_parts(Path(path))]
    if not found:
        raise DataError("there is no file to read: the list of paths is empty")
    return found


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
    return found


def fold_parts(path: str | os.PathLike[str]) -> dict[str, Path]:
    """The files of a folder with a training set and a validation or test set; empty for any other path.

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
    """Replaces `-` by a temporary file with the contents of standard input; errors then name "standard input"."""
    one = isinstance(paths, str | os.PathLike)
    given = [paths] if one else list(paths)
    if "-" not in map(os.fspath, given):
        yield paths if one else given
        return
    with tempfile.TemporaryDirectory() as folder:
        spooled = Path(folder, "input")
        with open(spooled, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, BLOCK)
        if spooled.stat().st_size == 0:
            raise DataError("standard input: there is nothing in it")
        try:
            yield spooled if one else [spooled if os.fspath(path) == "-" else path for path in given]
        except DataError as error:
            raise DataError(str(error).replace(str(spooled), "standard input")) from None


def detect_kind(path: Path) -> str:
    """Detects the kind of a file by its first bytes: text, plain or compressed, parquet, arrow, store or model."""
    with readable(path), open(path, "rb") as file:
        first = file.read(max(map(len, MAGICS)))
    if not first:
        raise DataError(f"{path}: the file is empty")
    kind = next((kind for magic, kind in MAGICS.items() if first.startswith(magic)), "text")
    if kind == "zip":
        raise DataError(f"{path}: this is a zip archive or a spreadsheet: unpack it, or save the sheet as CSV")
    if kind == "feather":
        raise DataError(f"{path}: Feather of version 1 is not read; write it again as version 2, Arrow's own format")
    return kind


@contextmanager
def readable(path: Path) -> Iterator[None]:
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


def blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """Yields the (decompressed) bytes of a file, some megabytes at a time."""
    kind = detect_kind(path)
    with readable(path), open(path, "rb") as file:
        if kind == "zstd":
            yield from _zstd_blocks(path, file, size)
            return
        if kind == "gzip":
            yield from _gzip_blocks(file, size)
            return
        source: IO[bytes] = _OPENERS[kind](file) if kind in _OPENERS else file
        while block := source.read(size):
            yield block


_OPENERS: dict[str, Any] = {"bzip2": bz2.BZ2File, "xz": lzma.LZMAFile}


def _gzip_blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """As `gzip.GzipFile` reads them, in three quarters of its time: zlib checks the sums while it decompresses."""
    member, ended = zlib.decompressobj(_GZIP), False
    parts: list[bytes] = []
    room = size
    while block := file.read(1 << 18):
        while block := block.lstrip(b"\0") if ended else block:  # zeros may follow a member, or another member
            if ended:
                member, ended = zlib.decompressobj(_GZIP), False
            parts.append(member.decompress(block, room))
            room -= len(parts[-1])
            ended = member.eof
            block = member.unused_data if ended else member.unconsumed_tail
            if room == 0:
                yield b"".join(parts)
                parts, room = [], size
    if not ended:
        raise EOFError
    if room < size:
        yield b"".join(parts)


class Decompressed(io.RawIOBase):
    """A (compressed) file to be read from its start to its end, for libraries that take open files."""

    def __init__(self, path: Path) -> None:
        self.blocks = blocks(path, 1 << 20)
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.rest = self.rest or next(self.blocks, b"")
        n = min(len(buffer), len(self.rest))
        buffer[:n], self.rest = self.rest[:n], self.rest[n:]
        return n


def _zstd_blocks(path: Path, file: IO[bytes], size: int) -> Iterator[bytes]:
    zstandard = import_zstandard()
    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        while block := file.read(1 << 16):
            while block:
                out = frame.decompress(block)
                yield from (out[k : k + size] for k in range(0, len(out), size))
                block = frame.unused_data if frame.eof else b""
                if block:
                    frame = zstandard.ZstdDecompressor().decompressobj()
    except zstandard.ZstdError as error:
        raise DataError(f"{path}: the compressed file is damaged ({error}); fetch or write it again") from None
    if not frame.eof:
        raise EOFError


def import_zstandard() -> Any:
    """Imports the library for `.zst` files; the error says how to install it."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra("reading and writing .zst files", "zstd") from None
    return zstandard


def is_compressed(path: Path) -> bool:
    return detect_kind(path) in COMPRESSED.values()


def map_file(path: Path, see: Callable[[bytes], None] | None = None) -> mmap.mmap:
    """Maps a file into memory; a compressed one is first decompressed into a temporary file, to save memory.

    `see` is called with each block of a compressed one, in order.
    """
    if not is_compressed(path):
        with readable(path), open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with readable(path), tempfile.TemporaryFile() as file:
        for block in blocks(path, PIECE):
            if see is not None:
                see(block)
            file.write(block)
        file.flush()
        if file.tell() == 0:
            raise DataError(f"{path}: the file is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


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
