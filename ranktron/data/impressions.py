"""Many impressions in a few arrays: the documents shown, their positions and clicks. `Rounds` hold their features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.rounds import Rounds, group_by
from ranktron.errors import DataError
from ranktron.types import Floats, Impression, Integers


@dataclass(frozen=True, eq=False)
class Impressions:
    """A click log: one row for each document that was shown, grouped by impression.

    Build one with `Impressions.from_arrays`, `ranktron.io.read_impressions` or `ranktron.io.read_ubi`, which check the
    values. Rows have the order of a `Rounds` with the same ids, so that `rounds.X[i]` are the features of row i.

    Parameters
    ----------
    position : int64, (rows,)
        The position of the document, counted from 1.
    gains : float64, (rows,)
        1 for a click, 0 for none, or any gain of at least 0.
    offsets : int64, (impressions + 1,)
        Impression i owns the rows `offsets[i]` to `offsets[i + 1]`.
    ids : (impressions,)
        The names of the impressions.
    query, item : (rows,), optional
        Which impressions share a query, and which rows are the same document of it.
    ranker : (rows,), optional
        Which ranker showed the row.
    exploration : float64, (rows,), optional
        The probability that the ranker shows this document at this position: the `propensities` of an `Impression`.
    propensity : float64, (rows,), optional
        The probability that a user examines the position, if known.

    Examples
    --------
    >>> log = Impressions.from_arrays([0, 1, 0, 0], qid=["a", "a", "b", "b"], position=[2, 1, 1, 2])
    >>> len(log), log.n_positions, log.click_through().tolist()
    (2, 2, [0.5, 0.0])
    >>> next(iter(log))
    Impression(items=array([1, 0]), gains=array([1., 0.]), propensities=None)
    """

    position: Integers
    gains: Floats
    offsets: Integers
    ids: npt.NDArray[Any]
    query: npt.NDArray[Any] | None = None
    item: npt.NDArray[Any] | None = None
    ranker: npt.NDArray[Any] | None = None
    exploration: Floats | None = None
    propensity: Floats | None = None

    @classmethod
    def from_arrays(
        cls,
        clicks: Any,
        qid: Any,
        position: Any,
        *,
        query: Any = None,
        item: Any = None,
        ranker: Any = None,
        exploration: Any = None,
        propensity: Any = None,
    ) -> Impressions:
        """Checks and groups plain arrays, one value for each document shown; `qid` is the impression.

        Impressions keep the order in which they first appear, and rows their order within the impression.

        Parameters
        ----------
        clicks : array
            1 for a click, 0 for none, or any gain of at least 0.
        qid : array
            The impression of each row.
        position : array of int
            The position of the document, from 1 on.
        query, item, ranker : array, optional
            The query of the impression, the document, and the ranker that showed it.
        exploration : array, optional
            The probability that the document was shown at its position, for stochastic rankers.
        propensity : array, optional
            The probability that the position was examined, if known.
        """
        gains = _numbers(clicks, "clicks", None)
        n = len(gains)
        if qid is None:
            raise DataError("there are no impressions: pass qid= (the impression of each row)")
        if position is None:
            raise DataError("there are no positions: pass position= (where each document stood, counted from 1)")
        ids, offsets, rows = group_by(_names(qid, "qid", n))
        places = _numbers(position, "position", n)
        if not (np.isfinite(places).all() and (places >= 1).all() and (places == np.floor(places)).all()):
            wrong = int(np.flatnonzero(~((places >= 1) & (places == np.floor(places))))[0])
            raise DataError(f"positions are whole numbers from 1 on; row {wrong} has {places[wrong]:g}")
        if not (np.isfinite(gains).all() and (gains >= 0.0).all()):
            wrong = int(np.flatnonzero(~(np.isfinite(gains) & (gains >= 0.0)))[0])
            raise DataError(f"clicks are 1, 0, or a finite gain of at least 0; row {wrong} has {gains[wrong]:g}")
        named = {"query": query, "item": item, "ranker": ranker}
        known = {"exploration": exploration, "propensity": propensity}
        found: dict[str, Any] = {what: _names(array, what, n) for what, array in named.items() if array is not None}
        found |= {what: _probabilities(array, what, n) for what, array in known.items() if array is not None}
        columns = {"position": places.astype(np.int64), "gains": gains, **found}
        if rows is not None:
            columns = {what: values[rows] for what, values in columns.items()}
        log = cls(offsets=offsets, ids=ids, **columns)
        log._check()
        return log

    def _check(self) -> None:
        """Raises an error if an impression has a position or a document twice, or two queries or rankers."""
        of = self.impression_of_rows
        for what, values in (("position", self.position), ("item", self.item)):
            twice = None if values is None else _first_twice(of, values)
            if twice is not None and values is not None:
                seen = "two documents stand at" if what == "position" else "two rows are of"
                raise DataError(f"impression {self.ids[of[twice]]}: {seen} {what} {values[twice]}")
        for what, values in (("query", self.query), ("ranker", self.ranker)):
            if values is not None:
                other = np.flatnonzero(values != values[self.offsets[:-1]][of])
                if len(other):
                    name = self.ids[of[other[0]]]
                    raise DataError(f"impression {name} has more than one {what}: an impression is one {what}")

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Impression]:
        """Yields each as an `Impression`, from the top position down; documents are numbered as its rows."""
        for a, b in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            order = np.argsort(self.position[a:b], kind="stable")
            drawn = None if self.exploration is None else self.exploration[a:b][order]
            yield Impression(order, self.gains[a:b][order], drawn)

    @property
    def impression_of_rows(self) -> Integers:
        """The impression of each row, by its number."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def n_positions(self) -> int:
        """The lowest position at which a document was shown."""
        return int(self.position.max(initial=0))

    @property
    def clicks(self) -> Floats:
        """1 for rows with a positive gain, else 0."""
        return (self.gains > 0.0).astype(float)

    def click_through(self) -> Floats:
        """The click-through rate of each position; NaN where nothing was shown."""
        shown = np.bincount(self.position - 1, minlength=self.n_positions)
        clicked = np.bincount(self.position - 1, self.clicks, minlength=self.n_positions)
        with np.errstate(invalid="ignore"):
            rate: Floats = clicked / shown
        return rate

    def documents(self) -> Integers:
        """A number for each row, equal for rows of one query and item; an error if the log has no queries or items.

        >>> log = Impressions.from_arrays([0, 1], ["a", "b"], [1, 2], query=["q", "q"], item=[7, 7])
        >>> log.documents()
        array([0, 0])
        """
        if self.query is None or self.item is None:
            lacking = " and ".join(f"{what}=" for what in ("query", "item") if getattr(self, what) is None)
            raise DataError(f"to know the same document of the same query again takes {lacking}")
        return encode_ids(encode_ids(self.query), encode_ids(self.item))


def encode_ids(*columns: npt.NDArray[Any]) -> Integers:
    """Numbers distinct rows of some columns from 0 on.

    >>> encode_ids(np.array(["b", "a", "b"]))
    array([1, 0, 1])
    """
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        found = found * (int(codes.max(initial=0)) + 1) + codes
        _, found = np.unique(found, return_inverse=True)
    return found.astype(np.int64)


def make_impressions(rounds: Rounds, position: Any, **others: Any) -> Impressions:
    """The impressions of lists whose labels are clicks; arrays have one value for each row of the input.

    >>> lists = Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> make_impressions(lists, [2, 1]).clicks
    array([0., 1.])
    """
    qid, clicks = np.repeat(rounds.qids, np.diff(rounds.offsets)), rounds.labels
    return Impressions.from_arrays(rounds.restore(clicks), rounds.restore(qid), position, **others)


def _first_twice(of: Integers, values: npt.NDArray[Any]) -> int | None:
    """A row whose value occurs in its impression before."""
    both = encode_ids(of, values)
    _, first = np.unique(both, return_index=True)
    if len(first) == len(both):
        return None
    again = np.ones(len(both), bool)
    again[first] = False
    return int(np.flatnonzero(again)[0])


def _numbers(array: Any, what: str, n: int | None) -> Floats:
    try:
        values = np.asarray(array, float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must hold numbers: {error}") from None
    if values.ndim != 1 or (n is not None and len(values) != n):
        raise DataError(f"{what} must hold one number per row{'' if n is None else f': {n} rows, not {values.shape}'}")
    return np.ascontiguousarray(values)


def _probabilities(array: Any, what: str, n: int) -> Floats:
    values = _numbers(array, what, n)
    wrong = np.flatnonzero(~((values > 0.0) & (values <= 1.0)))
    if len(wrong):
        how = "shown where it stood" if what == "exploration" else "seen where it stood"
        raise DataError(
            f"{what} is how likely a document was to be {how}, above 0 and at most 1; row {wrong[0]} has "
            f"{values[wrong[0]]:g}"
        )
    return values


def _names(array: Any, what: str, n: int) -> npt.NDArray[Any]:
    if isinstance(array, str | int | float | np.generic):
        return np.full(n, array)
    values = np.asarray(array)
    if values.dtype == object:
        values = values.astype(str)
    if values.shape != (n,):
        raise DataError(f"{what} must hold one name per row: {n} rows, not {values.shape}")
    return values
