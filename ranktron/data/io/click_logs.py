"""Click logs: tables with a position and a click for each document shown, and UBI's queries and events."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.files import from_standard_input
from ranktron.data.impressions import Impressions
from ranktron.data.io.columns import (
    CLICK_NAMES,
    POSITION_NAMES,
    Columns,
    Roles,
    as_columns,
    is_frame,
    join_names,
    plain,
    unlikely_features,
)
from ranktron.data.io.formats import TABLES, InputFile, blocks, list_inputs
from ranktron.data.io.grouping import assemble, in_file
from ranktron.data.io.table_sources import FrameSource, TableSource, import_pyarrow, index_columns, open_table
from ranktron.data.io.tables import read_rows
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, warn

# Common names of a click log's columns, in order of precedence.
COMMON_NAMES = {
    "impression": ("impression", "impression_id", "qid", "search_id", "srch_id", "request_id", "session_id", "session"),
    "position": POSITION_NAMES,
    "click": (*CLICK_NAMES, "clicks"),  # which among labels may be a feature, a count
    "query": ("query", "query_id", "user_query", "query_text"),
    "item": ("item", "item_id", "docid", "doc_id", "object_id", "product_id", "prop_id", "doc"),
    "ranker": ("ranker", "ranker_id", "model", "variant"),
    "exploration": ("exploration",),
    "propensity": ("propensity",),
}
NEEDED = ("impression", "position", "click")
_NUMBERS = ("position", "exploration", "propensity")


class ClickLog(NamedTuple):
    """A click log with features: lists whose labels are clicks, and their impressions."""

    rounds: Rounds | None
    impressions: Impressions


def read_impressions(source: Any, *, format: str | None = None, **columns: str | None) -> Impressions:
    """Reads impressions and clicks from a table with a row for each document shown.

    Parameters
    ----------
    source : path, several paths, or a data frame
        CSV, TSV, JSON lines, Parquet or an Arrow file; a frame of pandas, polars or pyarrow.
    format : str, optional
        As in `read`.
    **columns : str
        The columns `impression`, `position` and `click`, and where there are any `query`, `item`, `ranker`,
        `exploration` and `propensity`, as `Impressions` has them; otherwise they are found by their usual names.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "log.csv"
    >>> _ = path.write_text("search_id,position,clicked,price\\n7,1,0,2.5\\n7,2,1,1.5\\n8,1,1,9\\n")
    >>> log = read_impressions(path)
    >>> len(log), log.click_through().tolist()
    (2, [0.5, 1.0])
    """
    return read_click_log(source, features=(), format=format, **columns).impressions


def read_click_log(
    source: Any,
    *,
    features: str | Iterable[str] | None = None,
    drop: str | Iterable[str] | None = None,
    format: str | None = None,
    **columns: str | None,
) -> ClickLog:
    """Reads a click log with the features of each row: the named columns, or all other numeric ones.

    Parameters
    ----------
    source : path, several paths, or a data frame
        As in `read_impressions`.
    features, drop : names, or one text with commas between them, optional
        The columns that are features, or those that are not.
    format : str, optional
        As in `read`.
    **columns : str
        As in `read_impressions`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "log.csv"
    >>> _ = path.write_text("search_id,position,clicked,price\\n7,1,0,2.5\\n7,2,1,1.5\\n8,1,1,9\\n")
    >>> rounds, impressions = read_click_log(path)
    >>> rounds.feature_names, rounds.labels.tolist(), impressions.position.tolist()
    (('price',), [0.0, 1.0, 1.0], [1, 2, 1])
    """
    selected = as_columns(None, None, None, features, drop) if features != () else None
    if is_frame(source):
        return _join_events([_read_one(FrameSource(source), columns, selected)])
    with from_standard_input(source) as paths:
        return _join_events([_read_one(_open_table(file), columns, selected) for file in list_inputs(paths, format)])


def find_log_columns(
    source: Any,
    *,
    needed: Iterable[str] = NEEDED,
    features: str | Iterable[str] | None = None,
    drop: str | Iterable[str] | None = None,
    format: str | None = None,
    **columns: str | None,
) -> dict[str, str]:
    """The columns of a click log by what they hold: as they are named, or as their usual names tell.

    Parameters
    ----------
    source : path, several paths, or a data frame
        As in `read_impressions`; of several files the first one counts.
    needed : names
        What must be found.
    features, drop : names, or one text with commas between them, optional
        Columns that hold nothing of the kind.
    format : str, optional
        As in `read`.
    **columns : str
        As in `read_impressions`.

    Examples
    --------
    >>> path = getfixture("tmp_path") / "log.csv"
    >>> _ = path.write_text("search_id,rank,is_clicked,price\\n7,1,0,2.5\\n7,2,1,1.5\\n")
    >>> find_log_columns(path)
    {'impression': 'search_id', 'position': 'rank', 'click': 'is_clicked'}
    """
    selected = as_columns(None, None, None, features, drop)
    if is_frame(source):
        return _find_columns(FrameSource(source).schema.names, columns, selected, needed)
    with from_standard_input(source) as paths:
        table = _open_table(list_inputs(paths, format)[0])
        with in_file(table.name):
            return _find_columns(table.schema.names, columns, selected, needed)


def _open_table(file: InputFile) -> TableSource:
    if file.format not in TABLES:
        raise DataError(f"{file}: a click log is a table ({', '.join(TABLES)}), and this is {file.format}")
    return open_table(file, whole=True)


class _Part(NamedTuple):
    """The columns of one file, in the order of its rows."""

    X: npt.NDArray[Any] | None
    names: tuple[str, ...]
    columns: dict[str, npt.NDArray[Any]]


def _read_one(table: TableSource, names: Mapping[str, str | None], selected: Columns | None) -> _Part:
    with in_file(table.name):
        found = _find_columns(table.schema.names, names, selected)
        features = () if selected is None else _select_features(table, found, selected)
    numbers = [role for role in _NUMBERS if role in found]
    wanted = (*(found[role] for role in numbers), *features)
    roles = Roles(found["click"], found["impression"], found.get("item"), wanted, (), ())
    X, clicks, ids, items = read_rows(table, roles, "error")
    columns: dict[str, npt.NDArray[Any]] = {"clicks": clicks, "qid": ids}
    columns |= {role: X[:, j].astype(float) for j, role in enumerate(numbers)}
    columns |= {} if items is None else {"item": items}
    for role in ("query", "ranker"):
        if role in found:  # read again, because a table has at most two columns of ids
            again = _read_again(table)
            columns[role] = read_rows(again, Roles(None, found[role], None, (found["position"],), (), ()), "error").qids
    return _Part(np.ascontiguousarray(X[:, len(numbers) :]) if features else None, features, columns)


def _read_again(table: TableSource) -> TableSource:
    file = getattr(table, "path", None)
    return table if file is None else open_table(file, whole=True)


def _find_columns(
    names: Sequence[str],
    chosen: Mapping[str, str | None],
    selected: Columns | None,
    needed: Iterable[str] = NEEDED,
) -> dict[str, str]:
    """The column of each role: chosen by the caller, or recognised by its name, unless it is dropped or a feature."""
    unknown = [role for role in chosen if role not in COMMON_NAMES]
    if unknown:
        raise DataError(f"a click log has no {unknown[0]!r}; it may have {', '.join(COMMON_NAMES)}")
    found = {role: name for role, name in chosen.items() if name is not None}
    others = () if selected is None else (*selected.drop, *(selected.features or ()))
    for name in (*found.values(), *others):
        if name not in names:
            raise DataError(f"there is no column {name!r}; the columns are {join_names(names)}")
    for role, common in COMMON_NAMES.items():
        taken = {*found.values(), *others}
        free = {plain(name): name for name in reversed(names) if name not in taken}
        guess = next((free[plain(word)] for word in common if plain(word) in free), None)
        if role not in found and guess is not None:
            found[role] = guess
    for role in needed:
        if role not in found:
            raise DataError(
                f"found no {role!r} or the like among the columns {join_names(names)}: say which one it is with "
                f"{role}='NAME' (--{role} NAME)"
            )
    return found


def _select_features(table: TableSource, found: Mapping[str, str], selected: Columns) -> tuple[str, ...]:
    if selected.features is not None:
        return selected.features
    kinds = import_pyarrow().types
    taken = {*found.values(), *selected.drop, *index_columns(table.schema), "", "Unnamed: 0"}
    free = [field for field in table.schema if field.name not in taken]
    numeric = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    chosen = tuple(field.name for field in free if any(is_kind(field.type) for is_kind in numeric))
    others = [field.name for field in free if field.name not in chosen]
    if others:
        warn(f"{table.name}: {join_names(others)} hold no numbers and are left out")
    unlikely = unlikely_features(chosen)
    if unlikely:
        warn(f"{table.name}: {unlikely}")
    return chosen


def _join_events(read: list[_Part]) -> ClickLog:
    first = read[0]
    for part in read[1:]:
        if part.names != first.names or part.columns.keys() != first.columns.keys():
            raise DataError("the files of a log must have the same columns")
    columns = {name: np.concatenate([part.columns[name] for part in read]) for name in first.columns}
    log = Impressions.from_arrays(**columns)
    if first.X is None:
        return ClickLog(None, log)
    X = np.concatenate([part.X for part in read if part.X is not None])
    rounds = assemble(X, columns["clicks"].copy(), columns["qid"], columns.get("item"), "error")
    return ClickLog(Rounds(rounds.X, rounds.labels, rounds.offsets, rounds.qids, rounds.docids, rounds.rows,
                           first.names), log)  # fmt: skip


def read_ubi(
    queries: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    events: str | os.PathLike[str] | Iterable[Mapping[str, Any]],
    *,
    click: str | Iterable[str] = "click",
    impression: str = "impression",
) -> Impressions:
    """Reads the queries and events of User Behavior Insights (UBI 1.3), joined by `query_id`.

    The documents shown are those of a query's impression events; without such events, those in its response
    (`query_response_object_ids` or `query_response_hit_ids`), in that order. Events of an unknown query, or on a
    document that was not shown, are left out, and a warning counts them. A query without any event is an impression
    without a click.

    Parameters
    ----------
    queries, events : path of JSON lines, or dicts
        `query_id`, `user_query`, and the response's ids; `query_id`, `action_name`,
        `event_attributes.object.object_id` and `event_attributes.position.ordinal`, which counts from 1.
    click : str or several
        The actions that count as a click.
    impression : str
        The action that records that a document was shown.

    Examples
    --------
    >>> queries = [{"query_id": "7", "user_query": "lamp", "query_response_object_ids": ["a", "b"]}]
    >>> event = {"query_id": "7", "action_name": "click", "event_attributes": {"object": {"object_id": "b"}}}
    >>> log = read_ubi(queries, [event])
    >>> log.item.tolist(), log.position.tolist(), log.clicks.tolist()
    (['a', 'b'], [1, 2], [0.0, 1.0])
    """
    actions = {click} if isinstance(click, str) else set(click)
    shown: dict[str, dict[str, int]] = {}
    words: dict[str, str] = {}
    for row, query in enumerate(_objects(queries)):
        name = str(_field(query, "query_id", f"query {row}"))
        hits = query.get("query_response_object_ids") or query.get("query_response_hit_ids") or []
        shown[name] = {str(item): place for place, item in enumerate(hits, start=1)}
        words[name] = str(query.get("user_query", name))
    said: dict[str, dict[str, int]] = {}
    clicked: set[tuple[str, str]] = set()
    lost = 0
    for row, event in enumerate(_objects(events)):
        action = event.get("action_name")
        if action != impression and action not in actions:
            continue
        name, item, place = _event(event, row)
        if name not in shown:
            lost += 1
        elif action == impression:
            if place is None:
                raise DataError(f"event {row}: an impression has no position (event_attributes.position.ordinal)")
            said.setdefault(name, {})[item] = place
        else:
            clicked.add((name, item))
    shown |= said
    lost += sum(item not in shown[name] for name, item in clicked)
    if lost:
        warn(f"{lost:,} events belong to no known query, or to a document that it did not show, and are left out")
    rows = [(name, item, place) for name, places in shown.items() for item, place in places.items()]
    if not rows:
        raise DataError("no query has shown anything: there are neither impression events nor ids of the response")
    names, items, places = zip(*rows, strict=True)
    gains = [float((name, item) in clicked) for name, item, _ in rows]
    queries_of_rows = [words[name] for name in names]
    return Impressions.from_arrays(gains, np.array(names), places, query=queries_of_rows, item=np.array(items))


def _event(event: Mapping[str, Any], row: int) -> tuple[str, str, int | None]:
    """The query, document and position of an event."""
    attributes = _field(event, "event_attributes", f"event {row}")
    thing = attributes.get("object") or {}
    place = (attributes.get("position") or {}).get("ordinal")
    item = _field(thing, "object_id", f"event {row}, event_attributes.object")
    return str(_field(event, "query_id", f"event {row}")), str(item), place


def _field(value: Any, name: str, where: str) -> Any:
    if not isinstance(value, Mapping) or value.get(name) is None:
        raise DataError(f"{where} has no {name!r}")
    return value[name]


def _objects(source: Any) -> Iterator[Mapping[str, Any]]:
    """The given dicts, or those of a file of JSON lines, which may be documents of a search engine's index."""
    if isinstance(source, str | os.PathLike):
        text = b"".join(blocks(Path(source))).decode("utf-8", "replace")
        values: Iterable[Any] = (json.loads(line) for line in text.splitlines() if line.strip())
        try:
            for value in values:
                yield value.get("_source", value)
        except (ValueError, AttributeError) as error:
            raise DataError(f"{source}: expected one JSON object a line: {error}") from None
        return
    yield from source
