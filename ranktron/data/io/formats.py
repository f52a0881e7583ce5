"""Detecting the format of a file, by its first (possibly compressed) bytes and then by its name."""

from __future__ import annotations

import re
from pathlib import Path

from ranktron.data.io.files import COMPRESSED, blocks, detect_kind
from ranktron.data.option_names import FORMATS
from ranktron.errors import DataError

TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
SEPARATORS = ",\t;|"
ENDINGS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}
START = 1 << 16
_LETOR = re.compile(rb"[+-]?[\d.]+(?:[eE][+-]?\d+)?[ \t]+(?:qid:\S|\d+:)")
_LETOR_FILE = (".letor", ".svm", ".libsvm", ".svmlight")


def detect_format(path: Path, asked: str | None = None) -> str:
    """Detects the format of a file, one of `FORMATS`; `asked` overrides it.

    >>> path = getfixture("tmp_path") / "some.data"
    >>> _ = path.write_text("label,qid,price\\n1,7,0.5\\n")
    >>> detect_format(path)
    'csv'
    """
    kind = detect_kind(path)
    if kind == "model":
        raise DataError(f"{path}: expected lists of documents, found a model")
    if asked is not None:
        return _check_format(path, asked, kind)
    if kind == "store":
        return "rounds"
    if kind in ("parquet", "arrow"):
        return kind
    return _text_format(path, next(blocks(path, START), b""))


def _check_format(path: Path, asked: str, kind: str) -> str:
    if asked not in FORMATS:
        raise DataError(f"there is no format {asked!r}; there are {', '.join(FORMATS)}")
    found = {"store": "rounds", "parquet": "parquet", "arrow": "arrow"}.get(kind, "text")
    wanted = asked if asked in ("rounds", "parquet", "arrow") else "text"
    if found != wanted:
        raise DataError(f"{path}: expected {asked}, found {found}")
    return asked


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


def header(path: Path) -> str:
    """The first line of a text file."""
    start = next(blocks(path, START), b"").removeprefix(b"\xef\xbb\xbf")
    _refuse_utf_16(path, start)
    line, end, _ = start.partition(b"\n")
    try:
        return line.decode("utf-8", "strict" if end else "replace").rstrip("\r")
    except UnicodeDecodeError:
        raise DataError(f"{path}: {NOT_UTF_8}") from None


def _refuse_utf_16(path: Path, start: bytes) -> None:
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
