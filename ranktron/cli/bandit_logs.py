"""Reading bandit logs and tables of probabilities, for `ranktron estimate`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ranktron.cli.options import log_options
from ranktron.data.files import from_standard_input
from ranktron.data.io.click_logs import find_log_columns
from ranktron.data.io.columns import Roles, join_names
from ranktron.data.io.formats import TABLES, list_inputs
from ranktron.data.io.table_sources import TableSource, open_table
from ranktron.errors import DataError
from ranktron.types import Floats, Integers

Words = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class BanditLog:
    """A row for each document that was shown, with the probability with which it was.

    Parameters
    ----------
    gains, logged : (rows,)
        Clicks, and the logging ranker's probability of the document at its position.
    position : (rows,)
        From 1; 1 everywhere if the log has none.
    targets : {column: (rows,)}
        The probabilities of other rankers.
    item, impression : (rows,), optional
        Names; each row is an impression of its own unless there are any.
    """

    gains: Floats
    logged: Floats
    position: Integers
    targets: dict[str, Floats]
    item: Words | None
    impression: Words | None


def read_bandit_log(path: str, targets: tuple[str, ...], with_items: bool) -> BanditLog:
    """Reads the columns that were named by options or found by their usual names, and checks them."""
    options = log_options()
    needed = ["click", "exploration", *["item"] * with_items]
    with from_standard_input(path) as source:
        found = find_log_columns(source, needed=needed, **options)
        table = _open(source, options.get("format"))
        roles = [role for role in ("click", "exploration", "position") if role in found]
        names = [*(found[role] for role in roles), *targets]
        words = [found[role] for role in ("impression", "item") if role in found]
        columns = _read(table, names, words)
    rows = {role: columns[found[role]] for role in (*roles, "impression", "item") if role in found}
    n = len(rows["click"])
    position = rows.get("position", np.ones(n))
    _check(table, found.get("position", ""), position, (position >= 1) & (position == np.floor(position)),
           "positions of the documents shown are whole numbers from 1 on")  # fmt: skip
    _check(table, found["click"], rows["click"], rows["click"] >= 0.0, "clicks are 1, 0, or a gain of at least 0")
    logged = rows["exploration"]
    _check(table, found["exploration"], logged, (logged > 0.0) & (logged <= 1.0),
           "the probability with which a document was shown is above 0 and at most 1")  # fmt: skip
    for name in targets:
        _check(table, name, columns[name], (columns[name] >= 0.0) & (columns[name] <= 1.0),
               "probabilities lie between 0 and 1")  # fmt: skip
    named = {name: columns[name] for name in targets}
    return BanditLog(
        rows["click"], logged, position.astype(np.int64), named, rows.get("item"), rows.get("impression")
    )  # fmt: skip


def read_policy(path: str, log: BanditLog) -> tuple[Integers, Floats]:
    """The items of the log as columns of a table of probabilities, and that table, with a row for each position.

    An item that the table lacks has a probability of 0.
    """
    with from_standard_input(path) as source:
        found = find_log_columns(source, needed=("item",))
        table = _open(source, None)
        if "probability" not in table.schema.names:
            raise DataError(
                f"{path}: a policy is a table with the columns item, probability and perhaps position; there is no "
                f"'probability' among {join_names(table.schema.names)}"
            )
        positions = [found["position"]] if "position" in found else []
        columns = _read(table, ["probability", *positions], [found["item"]])
    assert log.item is not None
    names, codes = np.unique(np.concatenate([log.item, columns[found["item"]]]), return_inverse=True)
    items, own = codes[: len(log.item)], codes[len(log.item) :]
    places = columns[positions[0]] if positions else np.ones(len(own))
    highest = int(log.position.max()) if positions else 1
    inside = places <= highest  # a policy may have more positions than the log
    probabilities, places, own = columns["probability"][inside], places[inside].astype(np.int64) - 1, own[inside]
    cells = places * len(names) + own
    if len(np.unique(cells)) < len(cells):
        raise DataError(f"{path}: an item has more than one probability{' at a position' if positions else ''}")
    grid = np.zeros((highest, len(names)))
    grid.ravel()[cells] = probabilities
    sums = grid[np.unique(log.position) - 1].sum(axis=1) if positions else grid.sum(axis=1)
    if not ((probabilities >= 0.0).all() and np.abs(sums - 1.0).max() <= 1e-6):
        worst = float(sums[np.abs(sums - 1.0).argmax()])
        raise DataError(f"{path}: probabilities are at least 0 and add up to 1 at each position, not to {worst:.6g}")
    return items, grid


def _open(source: Any, format: str | None) -> TableSource:
    files = list_inputs(source, format)
    if len(files) > 1 or files[0].format not in TABLES:
        raise DataError(f"{files[0]}: expected one table ({', '.join(TABLES)})")
    return open_table(files[0], whole=True)


def _read(table: TableSource, numbers: Iterable[str], words: list[str]) -> dict[str, Any]:
    """Columns of a table as arrays: numbers, or names."""
    names = list(dict.fromkeys(numbers))
    missing = [name for name in names if name not in table.schema.names]
    if missing:
        raise DataError(f"{table.name}: there is no column {missing[0]!r}; there are {join_names(table.schema.names)}")
    first, second = [*words, None, None][:2]
    batches = list(table.batches(Roles(None, cast("str", first), second, tuple(names), (), ())))
    columns: dict[str, Any] = {}
    for name in (*names, *words):
        values = np.concatenate([batch.column(name).to_numpy(zero_copy_only=False) for batch in batches])
        columns[name] = values.astype(str) if name in words else values
    for name in names:
        try:
            columns[name] = columns[name].astype(float)
        except (TypeError, ValueError):
            raise DataError(f"{table.name}: expected numbers in column {name!r}") from None
    return columns


def _check(table: TableSource, name: str, values: Floats, fine: npt.NDArray[np.bool_], rule: str) -> None:
    wrong = np.flatnonzero(~(fine & np.isfinite(values)))
    if len(wrong):
        where = table.place(int(wrong[0]))
        raise DataError(f"{table.name}: {rule}; column {name!r} has {values[wrong[0]]:g} in {where}")
