"""Opening files: what kind a file is, which parts a path names, and bytes that are decompressed as they are read."""

from __future__ import annotations

import gzip
import mmap
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
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
    b"PAR1": "parquet",
    STORE_MAGIC: "store",
    b"ranktron\n": "model",
}
BLOCK = 1 << 24


def parts(paths: Paths) -> list[Path]:
    """Lists the files that a path, several paths, or a directory of parts stand for.

    A directory means its files in the order of their names, without those that start with a dot or an underscore.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found = [part for path in given for part in _parts_of(Path(path))]
    if not found:
        raise DataError("there is no file to read: the list of paths is empty")
    return found


def _parts_of(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    with readable(path):
        found = sorted(part for part in path.iterdir() if part.is_file() and part.name[0] not in "._")
    if not found:
        raise DataError(f"{path}: this directory holds no file to read")
    return found


def kind_of(path: Path) -> str:
    """Tells what a file holds by its first bytes: text, gzip, zstd, parquet, store or model."""
    with readable(path), open(path, "rb") as file:
        first = file.read(max(map(len, MAGICS)))
    if not first:
        raise DataError(f"{path}: the file is empty")
    return next((kind for magic, kind in MAGICS.items() if first.startswith(magic)), "text")


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns what the system and the decompressors raise into an error for people."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file") from None
    except EOFError:
        raise DataError(f"{path}: the compressed file is cut off before its end; fetch or write it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the compressed file is damaged ({error}); fetch or write it again") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None


def blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """Yields the (decompressed) bytes of a file, some megabytes at a time."""
    kind = kind_of(path)
    with readable(path), open(path, "rb") as file:
        if kind == "zstd":
            yield from _zstd_blocks(path, file, size)
            return
        source: IO[bytes] = gzip.GzipFile(fileobj=file) if kind == "gzip" else file  # type: ignore[assignment]
        while block := source.read(size):
            yield block


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
    """Imports the library behind `.zst` files, or says how to install it."""
    try:
        import zstandard
    except ImportError:
        raise MissingExtra("reading and writing .zst files", "zstd") from None
    return zstandard


def mapped(path: Path) -> mmap.mmap:
    """Maps the bytes of a file into memory; a compressed one through a temporary file, so that it costs no memory."""
    if kind_of(path) not in ("gzip", "zstd"):
        with readable(path), open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with readable(path), tempfile.TemporaryFile() as file:
        for block in blocks(path):
            file.write(block)
        file.flush()
        if file.tell() == 0:
            raise DataError(f"{path}: the file is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@contextmanager
def compressing(path: Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing atomically, compressed as its name ends."""
    with atomically(path) as file:
        if path.suffix == ".gz":
            # Neither name nor time in the header: the same data gives the same bytes.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as squeezed:
                yield squeezed  # type: ignore[misc]
        elif path.suffix == ".zst":
            with import_zstandard().ZstdCompressor().stream_writer(file, closefd=False) as squeezed:
                yield squeezed
        else:
            yield file
