"""Tables of every kind as batches of Arrow columns: CSV, JSON lines, Parquet, Arrow files, and data frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Protocol

from ranktron.data.io.columns import Roles, join_names
from ranktron.data.io.formats import (
    NOT_UTF_8,
    Decompressed,
    InputFile,
    Source,
    blocks,
    detect_separator,
    has_names,
    header,
    is_number,
    map_file,
)
from ranktron.data.io.streaming import BLOCK, ahead, can_be_mapped, mapped_blocks
from ranktron.errors import DataError, MissingExtra

ROWS = 1 << 14
CSV_BLOCK = 1 << 20  # larger blocks are no faster, and a stream holds several
JSON_BLOCK = 1 << 22
_CSV_VALUE = re.compile(r"In CSV column #(\d+): .*invalid value", re.DOTALL)

Block = bytes | memoryview


def import_pyarrow(what: str = "Parquet", extra: str = "parquet") -> Any:
    """Imports the library that reads tables; the error says how to install it."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.feather
        import pyarrow.json
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(what, extra) from None
    return pyarrow


class TableSource(Protocol):
    """An open table: its name for messages, its columns, and its number of rows (None if not known in advance)."""

    name: str
    schema: Any
    n: int | None

    def batches(self, roles: Roles) -> Iterator[Any]:
        """The columns that have a role, some thousand rows at a time."""

    def place(self, row: int) -> str:
        """Where a row is, for messages; without lines, rows count from 0."""
        return f"row {row}"

    def content(self, name: str) -> str:
        """The content of a column that is not numeric, for messages."""
        return str(self.schema.field(name).type)


def open_table(file: InputFile, whole: bool) -> TableSource:
    """Opens a file of one of the formats in `formats.TABLES`; `whole` if all of it may be held in memory."""
    if file.format == "parquet":
        return ParquetFile(file)
    if file.format == "arrow":
        return ArrowFile(file)
    if file.format == "jsonl":
        return JsonFile(file, whole)
    return CsvFile(file, "\t" if file.format == "tsv" else None)


@contextmanager
def legible(path: Source, what: str) -> Iterator[None]:
    """Turns errors of pyarrow into a `DataError`."""
    arrow = import_pyarrow(*(("Parquet", "parquet") if what == "Parquet" else (f"reading {what}", "tables")))
    try:
        yield
    except (DataError, MissingExtra):
        raise
    except (arrow.ArrowException, OSError, KeyError, ValueError) as error:
        if "invalid UTF8" in str(error) or isinstance(error, UnicodeDecodeError):
            raise DataError(f"{path}: {NOT_UTF_8}") from None
        raise DataError(f"{path}: not {what} that can be read: {' '.join(str(error).split())}") from None


class ParquetFile(TableSource):
    """A Parquet file; pages are compared with their checksums."""

    def __init__(self, path: Source) -> None:
        self.path, self.name = path, str(path)
        with legible(path, "Parquet"):
            arrow = import_pyarrow()
            self.file = arrow.parquet.ParquetFile(self.name, page_checksum_verification=True)
            self.schema = self.file.schema_arrow
            self.n: int | None = self.file.metadata.num_rows
            self.rows: int = self.file.metadata.num_rows

    def batches(self, roles: Roles) -> Iterator[Any]:
        row, names = 0, _column_names(roles)
        with legible(self.path, "Parquet"):
            for groups in self._row_groups():
                for batch in self.file.iter_batches(ROWS, groups, names):
                    row += len(batch)
                    if row <= self.rows:
                        yield batch
        if row != self.rows:
            raise DataError(f"{self.name}: the file is damaged: {row} rows instead of {self.rows}")

    def _row_groups(self) -> Iterator[list[int]]:
        """The row groups, as many at a time as fill a batch, because pyarrow holds all that it is asked for."""
        groups: list[int] = []
        rows = 0
        for group in range(self.file.num_row_groups):
            groups, rows = [*groups, group], rows + self.file.metadata.row_group(group).num_rows
            if rows >= ROWS:
                yield groups
                groups, rows = [], 0
        if groups:
            yield groups


class ArrowFile(TableSource):
    """An Arrow file, which Feather calls its second version."""

    def __init__(self, path: Source) -> None:
        self.path, self.name = path, str(path)
        with legible(path, "an Arrow file"):
            self.table = import_pyarrow().feather.read_table(self.name, memory_map=True)
            self.schema, self.n = self.table.schema, self.table.num_rows

    def batches(self, roles: Roles) -> Iterator[Any]:
        with legible(self.path, "an Arrow file"):
            yield from self.table.select(_column_names(roles)).to_batches(ROWS)


class FrameSource(TableSource):
    """A data frame of pandas, polars or pyarrow."""

    def __init__(self, frame: Any) -> None:
        self.name = f"the {type(frame).__module__.partition('.')[0]} table"
        arrow = import_pyarrow("reading data frames", "tables")
        frame = frame.collect() if hasattr(frame, "collect_schema") and hasattr(frame, "collect") else frame
        try:
            is_pandas = hasattr(frame, "iloc")
            self.table = arrow.Table.from_pandas(frame) if is_pandas else arrow.table(frame)
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise DataError(f"{self.name} cannot be read: {' '.join(str(error).split())}") from None
        self.schema, self.n = self.table.schema, self.table.num_rows

    def batches(self, roles: Roles) -> Iterator[Any]:
        yield from self.table.select(_column_names(roles)).to_batches(ROWS)


class CsvFile(TableSource):
    """Text with separated values and column names in the first line.

    The start of the file decides which columns are numeric. Ids are always text: 007 is not 7.
    """

    n: int | None = None

    def __init__(self, path: Source, separator: str | None = None) -> None:
        self.path, self.name = path, str(path)
        self.arrow = import_pyarrow("reading CSV", "tables")
        line = header(path)
        if not has_names(line):
            why = f"expected the names of the columns in the first line, found {line[:60]!r}: is that line missing?"
            raise DataError(f"{path}: {why}")
        self.parsing = self.arrow.csv.ParseOptions(
            delimiter=separator or detect_separator(line), newlines_in_values=True
        )
        # closed, because an open reader may abort the interpreter at exit
        with self._explained(), self._open(self.arrow.csv.ConvertOptions()) as rows:
            self.schema = rows.schema
            self.schema.names  # noqa: B018 (raises if they are not UTF-8)

    def _open(self, converting: Any) -> Any:
        reading = self.arrow.csv.ReadOptions(block_size=CSV_BLOCK)
        return self.arrow.csv.open_csv(Decompressed(self.path), reading, self.parsing, converting)

    def batches(self, roles: Roles) -> Iterator[Any]:
        options = self._converting(roles)
        with self._explained():
            start = self._first_row()
            if start is not None:
                for table in ahead(self._block_parser(options), mapped_blocks(self.path, start)):
                    yield from table.to_batches()
                return
            with self._open(options) as rows:
                yield from rows

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Adds the line to pyarrow's errors."""
        with legible(self.path, "CSV"):
            try:
                yield
            except self.arrow.ArrowInvalid as error:
                match = _CSV_VALUE.match(str(error))
                if match is None:
                    with suppress(csv.Error):  # Python cannot parse it either
                        self._check_widths()
                    raise
                column = list(self.schema.names)[int(match[1])]
                content = self.content(column)
                raise DataError(f"{self.name}: expected numbers in column {column!r}, found {content}") from None

    def _check_widths(self) -> None:
        """Raises an error for the first row whose number of values is not that of the names."""
        names = next(csv.reader([header(self.path)], delimiter=self.parsing.delimiter))
        for line, cells in self._cells():
            if len(cells) != len(names):
                why = f"the first line names {len(names)} columns, but line {line} has {len(cells)} values"
                raise DataError(f"{self.name}: {why}: is one left out, or does a text with a separator need quotes?")

    def _first_row(self) -> int | None:
        """The byte where the rows begin, if every line feed ends a row because nothing is quoted; else None."""
        if not can_be_mapped(self.path):
            return None
        with closing(map_file(self.path)) as text:
            start = text.find(b"\n") + 1
            names = text[:start].split(self.parsing.delimiter.encode())
            plain = start > 0 and len(names) == len(self.schema.names) and text.find(b'"') < 0
        return start if plain else None

    def _block_parser(self, converting: Any) -> Callable[[Block], Any]:
        """A function that parses a block of lines without quotes into one table."""
        arrow = self.arrow
        reading = arrow.csv.ReadOptions(column_names=self.schema.names, use_threads=False, block_size=2 * BLOCK)
        parsing = arrow.csv.ParseOptions(delimiter=self.parsing.delimiter)

        def parse(block: Block) -> Any:
            source = arrow.BufferReader(arrow.py_buffer(block))
            return arrow.csv.read_csv(source, reading, parsing, converting).combine_chunks()

        return parse

    def place(self, row: int) -> str:
        return f"line {next(islice(self._cells(), row, None))[0]}"

    def content(self, name: str) -> str:
        column = self.schema.names.index(name)
        texts = ((line, cells[column].strip()) for line, cells in self._cells() if column < len(cells))
        for line, text in texts:
            if text and not is_number(text.encode()):
                comma = " (decimals need a point, not a comma)" if is_number(text.replace(",", ".").encode()) else ""
                return f"{text!r} in line {line}{comma}"
        return super().content(name)

    def _cells(self) -> Iterator[tuple[int, list[str]]]:
        """The last line and the cells of each row: cells may contain line feeds, and empty lines are no rows."""
        text = io.TextIOWrapper(io.BufferedReader(Decompressed(self.path)), "utf-8", "replace", newline="")
        lines = csv.reader(text, delimiter=self.parsing.delimiter)
        return islice(((lines.line_num, cells) for cells in lines if cells), 1, None)

    def _converting(self, roles: Roles) -> Any:
        types = {name: self._type(name, roles) for name in _column_names(roles)}
        return self.arrow.csv.ConvertOptions(column_types=types, include_columns=list(types))

    def _type(self, name: str, roles: Roles) -> Any:
        if name in (roles.query, roles.doc, *roles.categorical):
            return self.arrow.string()
        is_truth = self.arrow.types.is_boolean(self.schema.field(name).type)
        return self.arrow.bool_() if is_truth else self.arrow.float64()


class JsonFile(TableSource):
    """One JSON object per line, or an array of objects; keys of nested objects are columns, too.

    In a stream the first few megabytes determine the keys.
    """

    n: int | None = None

    def __init__(self, path: Source, whole: bool) -> None:
        self.path, self.name = path, str(path)
        self.arrow = import_pyarrow("reading JSON lines", "tables")
        with legible(path, "JSON lines"):
            self.tables = self._tables()
            first = next(self.tables, None)
            if first is None:
                raise DataError(f"{path}: there is no document in it")
            if whole:
                first = self.arrow.concat_tables([first, *self.tables], promote_options="permissive")
            self.first, self.schema = first, first.schema

    def place(self, row: int) -> str:
        return f"object {row + 1}"

    def batches(self, roles: Roles) -> Iterator[Any]:
        with legible(self.path, "JSON lines"):
            yield from self.first.select(_column_names(roles)).to_batches(ROWS)
            known, row = set(self.schema.names), len(self.first)
            for table in self.tables:
                unknown = [name for name in table.schema.names if name not in known]
                if unknown:
                    raise DataError(
                        f"{self.path}: {unknown[0]!r} is not among the keys of the first {row} lines, "
                        f"{join_names([*known])}; streaming needs to know all keys: `ranktron convert` the file first"
                    )
                missing = [name for name in _column_names(roles) if name not in table.schema.names]
                for name in missing:
                    table = table.append_column(name, self.arrow.nulls(len(table)))
                row += len(table)
                yield from table.select(_column_names(roles)).to_batches(ROWS)

    def _tables(self) -> Iterator[Any]:
        rest = b""
        for block in blocks(self.path, JSON_BLOCK):
            if not rest and block.lstrip()[:1] == b"[":
                yield self._flat(self._table(self._content()))
                return
            cut = block.rfind(b"\n") + 1
            if cut:
                yield from self._parsed(rest + block[:cut])
                rest = block[cut:]
            else:
                rest += block
        yield from self._parsed(rest)

    def _table(self, objects: Any) -> Any:
        """A column for each key of any object; pyarrow alone would take the keys of the first one."""
        if not isinstance(objects, list) or not all(isinstance(each, dict) for each in objects):
            raise DataError(f"{self.name}: expected an array of objects, one for each document")
        keys = dict.fromkeys(key for each in objects for key in each)
        return self.arrow.table({key: [each.get(key) for each in objects] for key in keys})

    def _content(self) -> Any:
        try:
            return json.loads(b"".join(blocks(self.path)))
        except ValueError as error:
            raise DataError(f"{self.name}: not JSON that can be read: {error}") from None

    def _parsed(self, lines: bytes) -> Iterator[Any]:
        if lines.strip():
            options = self.arrow.json.ReadOptions(block_size=len(lines) + 1)
            yield self._flat(self.arrow.json.read_json(io.BytesIO(lines), options))

    def _flat(self, table: Any) -> Any:
        """Flattens nested objects into columns with the inner name, unless another column has that name."""
        while any(self.arrow.types.is_struct(kind) for kind in table.schema.types):
            outer = [field.name for field in table.schema if self.arrow.types.is_struct(field.type)]
            table = table.flatten()
            names = list(table.schema.names)
            inner = [n.partition(".")[2] if n.partition(".")[0] in outer else n for n in names]
            table = table.rename_columns(
                [short if inner.count(short) == 1 else n for n, short in zip(names, inner, strict=True)]
            )
        return table


def _column_names(roles: Roles) -> list[str]:
    return [name for name in (roles.label, roles.query, roles.doc, *roles.features) if name is not None]


def index_columns(schema: Any) -> list[str]:
    """The columns that pandas wrote for the index of a data frame."""
    noted = (schema.metadata or {}).get(b"pandas")
    index = json.loads(noted).get("index_columns", []) if noted else []
    return [name for name in index if isinstance(name, str)]
