"""Input files: their format, detected by their first (possibly compressed) bytes and their name, and their content."""

from __future__ import annotations

import bz2
import io
import lzma
import mmap
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ranktron.data.files import BLOCK, Paths, import_zstandard, parts, readable
from ranktron.data.option_names import FORMATS
from ranktron.errors import DataError

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
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
SEPARATORS = ",\t;|"
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
START = 1 << 16  # bytes that tell the format
PIECE = 1 << 22  # bytes of a text that is decompressed and parsed at the same time
_GZIP = 16 + zlib.MAX_WBITS
_LETOR = re.compile(rb"[+-]?[\d.]+(?:[eE][+-]?\d+)?[ \t]+(?:qid:\S|\d+:)")
_LETOR_FILE = (".letor", ".svm", ".libsvm", ".svmlight")


@dataclass(frozen=True)
class InputFile:
    """A file whose format is known: detected once and passed on in place of the path."""

    path: Path
    kind: str  # what its first bytes are: text, a compression, parquet, arrow or store
    format: str  # one of `FORMATS`

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)


Source = Path | InputFile


def list_inputs(paths: Paths, format: str | None) -> list[InputFile]:
    """The files that paths and folders of parts stand for, with their formats."""
    sources = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files = [source for source in sources if isinstance(source, InputFile)]
    return files if files and len(files) == len(sources) else [detect(path, format) for path in parts(sources)]


def detect(path: Path, format: str | None = None) -> InputFile:
    """Detects the format of a file; `format` overrides it.

    >>> path = getfixture("tmp_path") / "some.data"
    >>> _ = path.write_text("label,qid,price\\n1,7,0.5\\n")
    >>> detect(path).format
    'csv'
    """
    start = _read_start(path, START)
    kind = _name_kind(path, start)
    if kind == "model":
        raise DataError(f"{path}: expected lists of documents, found a model")
    if format is not None:
        return InputFile(path, kind, _check_format(path, format, kind))
    if kind not in TEXT:
        return InputFile(path, kind, "rounds" if kind == "store" else kind)
    if kind != "text":
        start = next(blocks(InputFile(path, kind, ""), START), b"")
    return InputFile(path, kind, _text_format(path, start))


def detect_format(path: Path, format: str | None = None) -> str:
    """The format of a file, one of `FORMATS`; `format` overrides it."""
    return detect(path, format).format


def detect_kind(path: Path) -> str:
    """The kind of a file by its first bytes: text, plain or compressed, parquet, arrow, store or model."""
    return _name_kind(path, _read_start(path, max(map(len, MAGICS))))


def _read_start(path: Path, size: int) -> bytes:
    with readable(path), open(path, "rb") as file:
        return file.read(size)


def _name_kind(path: Path, start: bytes) -> str:
    if not start:
        raise DataError(f"{path}: the file is empty")
    kind = next((kind for magic, kind in MAGICS.items() if start.startswith(magic)), "text")
    if kind == "zip":
        raise DataError(f"{path}: this is a zip archive or a spreadsheet: unpack it, or save the sheet as CSV")
    if kind == "feather":
        raise DataError(f"{path}: Feather of version 1 is not read; write it again as version 2, Arrow's own format")
    return kind


def _check_format(path: Path, format: str, kind: str) -> str:
    if format not in FORMATS:
        raise DataError(f"there is no format {format!r}; there are {', '.join(FORMATS)}")
    found = {"store": "rounds", "parquet": "parquet", "arrow": "arrow"}.get(kind, "text")
    wanted = format if format in ("rounds", "parquet", "arrow") else "text"
    if found != wanted:
        raise DataError(f"{path}: expected {format}, found {found}")
    return format


def _text_format(path: Path, start: bytes) -> str:
    """The format of text: LETOR unless another one is certain."""
    _refuse_utf_16(path, start)
    start = start.removeprefix(b"\xef\xbb\xbf")
    line = next((line for line in start.splitlines() if line.strip() and not line.lstrip().startswith(b"#")), b"")
    if line.lstrip()[:1] in (b"{", b"["):
        return "ltrlog" if b"_ltrlog" in start or is_search_response(start) else "jsonl"
    if _LETOR.match(line):
        return "letor"
    suffix = path.suffixes[-2] if path.suffix in COMPRESSED and len(path.suffixes) > 1 else path.suffix
    named = ENDINGS.get(suffix.lower())
    if named is not None:
        return named
    if suffix.lower() not in _LETOR_FILE and is_header(line):
        return "csv"
    return "letor"


def is_search_response(start: bytes) -> bool:
    """Whether JSON is a search engine's response, by its first keys."""
    return b'"hits"' in start and b'"took"' in start


def is_header(line: bytes) -> bool:
    """Whether a line has the names of columns: separated words, not all of which are numbers."""
    cells = re.split(b"[" + re.escape(SEPARATORS).encode() + b"]", line)
    return len(cells) > 1 and b":" not in line and not all(map(is_number, cells))


def detect_separator(line: str) -> str:
    """The separator of a header line: the one that occurs most often; a comma if there is none."""
    return max(SEPARATORS, key=line.count)


NOT_UTF_8 = "the text is not UTF-8, perhaps Latin-1 or Windows-1252: save it as UTF-8"


def header(path: Source) -> str:
    """The first line of a text file."""
    start = next(blocks(path, START), b"").removeprefix(b"\xef\xbb\xbf")
    _refuse_utf_16(path, start)
    line, end, _ = start.partition(b"\n")
    try:
        return line.decode("utf-8", "strict" if end else "replace").rstrip("\r")
    except UnicodeDecodeError:
        raise DataError(f"{path}: {NOT_UTF_8}") from None


def _refuse_utf_16(path: Source, start: bytes) -> None:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{path}: the text is UTF-16, as spreadsheets may save it: save it as UTF-8")


def has_names(line: str) -> bool:
    """Whether the first line of a table has names in it, not numbers alone."""
    return not all(is_number(cell.strip('" ').encode()) for cell in line.split(detect_separator(line)))


def is_number(cell: bytes) -> bool:
    """Whether some bytes spell a number.

    >>> is_number(b"1e3"), is_number(b"red"), is_number(b"1_000")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return b"_" not in cell


def blocks(path: Source, size: int = BLOCK) -> Iterator[bytes]:
    """Yields the (decompressed) bytes of a file, some megabytes at a time."""
    kind = _kind_of(path)
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

    def __init__(self, path: Source) -> None:
        self.blocks = blocks(path, 1 << 20)
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.rest = self.rest or next(self.blocks, b"")
        n = min(len(buffer), len(self.rest))
        buffer[:n], self.rest = self.rest[:n], self.rest[n:]
        return n


def _zstd_blocks(path: Source, file: IO[bytes], size: int) -> Iterator[bytes]:
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


def _kind_of(path: Source) -> str:
    return path.kind if isinstance(path, InputFile) else detect_kind(path)


def is_compressed(path: Source) -> bool:
    return _kind_of(path) in COMPRESSED.values()


def map_file(path: Source, see: Callable[[bytes], None] | None = None) -> mmap.mmap:
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
