"""Writing tables: Parquet, Arrow, CSV and JSON lines, with columns `label`, `qid`, optionally `docid`, and features."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ranktron.data.files import atomically
from ranktron.data.io.files import open_compressed
from ranktron.data.io.table_sources import import_pyarrow
from ranktron.data.io.writing import NUMBERS, Digits, pack_words, spell_label, spell_rows
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError

BATCH = 1 << 16
RESERVED = ("label", "qid", "docid")


def column_names(rounds: Rounds, path: Path) -> tuple[str, ...]:
    """The names of the features' columns: f1, f2, ... unless they have names."""
    names = rounds.feature_names or tuple(f"f{j + rounds.first_index}" for j in range(rounds.n_features))
    if len({*names, *RESERVED}) < len(names) + len(RESERVED):
        raise DataError(f"{path}: feature names must differ from each other and from {', '.join(RESERVED)}")
    return names


def write_parquet(rounds: Rounds, path: Path) -> None:
    """Writes one row per document."""
    arrow, writer = import_pyarrow(), None
    batches = _arrow_tables(rounds, path, arrow)
    with atomically(path) as file:
        for table in batches:
            writer = writer or arrow.parquet.ParquetWriter(file, table.schema, write_page_checksum=True)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def write_arrow(rounds: Rounds, path: Path) -> None:
    """Writes an Arrow file, which Feather calls its second version."""
    arrow, writer = import_pyarrow("writing Arrow files", "tables"), None
    batches = _arrow_tables(rounds, path, arrow)
    with atomically(path) as file:
        for table in batches:
            writer = writer or arrow.ipc.new_file(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def _arrow_tables(rounds: Rounds, path: Path, arrow: Any) -> Iterator[Any]:
    names = column_names(rounds, path)
    qids = np.repeat(rounds.qids, np.diff(rounds.offsets))
    for a in range(0, len(rounds.X), BATCH):
        rows = slice(a, a + BATCH)
        columns = {"label": rounds.labels[rows], "qid": qids[rows]}
        if rounds.docids is not None:
            columns["docid"] = rounds.docids[rows]
        columns |= {name: rounds.X[rows, j] for j, name in enumerate(names)}
        yield arrow.table({name: arrow.array(column) for name, column in columns.items()})


def write_csv(rounds: Rounds, path: Path, separator: str = ",") -> None:
    """Writes the column names in the first line, then one document per line."""
    names = (*RESERVED[: 2 + (rounds.docids is not None)], *column_names(rounds, path))
    head = separator.join(_cell(name, separator) for name in names) + "\n"

    def start(label: str, qid: Any, docid: Any) -> str:
        return separator.join([label, *(_cell(str(name), separator) for name in (qid, docid) if name is not None)])

    _write_rows(rounds, path, head, start, [separator] * rounds.n_features, "\n")


def write_tsv(rounds: Rounds, path: Path) -> None:
    """Writes CSV with tabs."""
    write_csv(rounds, path, "\t")


def write_jsonl(rounds: Rounds, path: Path) -> None:
    """Writes one JSON object per document."""

    def start(label: str, qid: Any, docid: Any) -> str:
        named = "" if docid is None else f', "docid": {_json(docid)}'
        return f'{{"label": {label}, "qid": {_json(qid)}{named}'

    names = [f", {json.dumps(name)}: " for name in column_names(rounds, path)]
    _write_rows(rounds, path, "", start, names, "}\n")


def _write_rows(
    rounds: Rounds, path: Path, head: str, start: Callable[[str, Any, Any], str], names: list[str], end: str
) -> None:
    """Writes lines: the start of each, then a name and the shortest digits of every feature, and an end."""
    qids = np.repeat(rounds.qids, np.diff(rounds.offsets))
    at_once, digits, cells = max(1, NUMBERS // rounds.n_features), Digits(), pack_words([n.encode() for n in names])
    with open_compressed(path) as file:
        file.write(head.encode())
        for a in range(0, len(rounds.X), at_once):
            rows = slice(a, a + at_once)
            labels = [spell_label(label) for label in rounds.labels[rows].tolist()]
            docids = [None] * len(labels) if rounds.docids is None else rounds.docids[rows].tolist()
            starts = [start(*row).encode() for row in zip(labels, qids[rows].tolist(), docids, strict=True)]
            file.write(
                spell_rows(pack_words(starts), cells, rounds.X[rows], digits, pack_words([end.encode()] * len(starts)))
            )


def _cell(text: str, separator: str) -> str:
    """A value for CSV, in quotes if it would otherwise be read as something else."""
    if text and not any(letter in text for letter in (separator, '"', "\n", "\r")):
        return text
    return '"' + text.replace('"', '""') + '"'


def _json(name: Any) -> str:
    return json.dumps(name if isinstance(name, int) else str(name), ensure_ascii=False)
