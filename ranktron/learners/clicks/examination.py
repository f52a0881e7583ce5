"""How likely each position is to be seen: the estimate that position-bias corrections need, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ranktron.data.impressions import Impressions, encode_ids
from ranktron.errors import DataError
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count, floats

Z = 1.959963984540054  # of a normal 95 % interval
LOST = 0.025  # the share of resampled logs that may be unable to compare a position with the first


@dataclass(frozen=True, eq=False)
class Examination:
    """P(click at position k) = values[k] · r + offsets[k], with r the chance of a click at position 1.

    Relative to the first position: values[0] is 1, offsets[0] is 0. What cannot be told from clicks, and does not
    change a ranking, is how likely the first position itself is to be seen.

    Parameters
    ----------
    values : array-like of float
        θ_k of the positions from 1 on, above 0. Below the last of them its value counts.
    offsets : array-like of float, optional
        β_k, clicks that come from trust in a position and not from the document; none where it is left out.
    low, high : array-like of float, optional
        A pointwise 95 % interval of the values.
    method : str
        How it was found.
    basis : str, optional
        What makes positions comparable: "documents that moved", "pages drawn at random", or "a model of relevance
        alone", which nothing in the log can check; such a curve has no interval.
    sums : array of shape (9, positions), optional
        Of a randomised estimate: what it needs to go on with further impressions, see `update_examination`.
    after_click : array of shape (positions, positions), optional
        Of users who are not position-based: the examination of position k where the last click above it is at position
        j, in row k - 1 and column j; column 0 where there is none. `values` are then means over a log.

    Examples
    --------
    >>> curve = Examination([1.0, 0.5, 0.25])
    >>> curve.at(np.array([1, 3, 9]))
    array([1.  , 0.25, 0.25])
    """

    values: Floats
    offsets: Floats | None = None
    low: Floats | None = None
    high: Floats | None = None
    method: str = "known"
    basis: str | None = None
    sums: Floats | None = None
    after_click: Floats | None = None

    def __post_init__(self) -> None:
        for name in ("values", "offsets", "low", "high"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, floats(given, f"the {name} of an examination are one number a position"))
        wrong = np.flatnonzero(~(np.isfinite(self.values) & (self.values > 0.0)))
        if not len(self.values) or len(wrong):
            where = f"; position {wrong[0] + 1} has {self.values[wrong[0]]:g}" if len(wrong) else ""
            raise DataError(f"examination is a number above 0 for each position, from the first one on{where}")
        others = (self.offsets, self.low, self.high)
        if any(other is not None and other.shape != self.values.shape for other in others):
            raise DataError("the offsets and the interval of an examination have one number for each of its values")
        if self.sums is not None:
            object.__setattr__(self, "sums", np.asarray(self.sums, float))
            if self.sums.shape != (9, len(self.values)) or not np.isfinite(self.sums).all():
                raise DataError("the sums of an examination are nine finite numbers for each of its values")
        if self.after_click is not None:
            object.__setattr__(self, "after_click", np.asarray(self.after_click, float))
            square = self.after_click.shape == (len(self.values), len(self.values))
            if not square or not (np.isfinite(self.after_click) & (self.after_click > 0.0)).all():
                raise DataError("examination by the last click above is a number above 0 for each pair of positions")

    def at(self, position: Integers) -> Floats:
        """The values at some positions.

        Parameters
        ----------
        position : array of int
            Positions, from 1 on.
        """
        found: Floats = self.values[np.minimum(position, len(self.values)) - 1]
        return found

    def at_rows(self, log: Impressions) -> Floats:
        """The examination of each row of a log: by its position and, where that is known, by the last click above.

        Parameters
        ----------
        log : Impressions
            What was shown and clicked.

        Examples
        --------
        >>> log = Impressions.from_arrays([1, 0, 0, 0], ["a", "a", "b", "b"], [1, 2, 1, 2])
        >>> Examination([1.0, 0.6], after_click=[[1.0, 1.0], [0.5, 0.8]]).at_rows(log).tolist()
        [1.0, 0.8, 1.0, 0.5]
        """
        if self.after_click is None:
            return self.at(log.position)
        lowest = len(self.values) - 1
        found: Floats = self.after_click[np.minimum(log.position - 1, lowest), np.minimum(last_clicks(log), lowest)]
        return found

    def offsets_at(self, position: Integers) -> Floats:
        """The offsets at some positions.

        Parameters
        ----------
        position : array of int
            Positions, from 1 on.
        """
        if self.offsets is None:
            return np.zeros(len(position))
        found: Floats = self.offsets[np.minimum(position, len(self.values)) - 1]
        return found

    def correct(self, clicks: npt.ArrayLike, position: npt.ArrayLike) -> Floats:
        """(c − β) / θ: on average what a click at the first position would be; for losses linear in the label.

        Parameters
        ----------
        clicks : array
            Clicks or gains.
        position : array of int
            Positions, from 1 on.

        Examples
        --------
        >>> Examination([1.0, 0.5], offsets=[0.0, 0.1]).correct([1, 0], [2, 2])
        array([ 1.8, -0.2])
        """
        if self.after_click is not None:
            raise DataError("this examination depends on the clicks above, which a position alone does not tell")
        places = np.asarray(position, np.int64)
        corrected: Floats = (np.asarray(clicks, float) - self.offsets_at(places)) / self.at(places)
        return corrected

    def to_dict(self) -> dict[str, Any]:
        """What a model file holds of it."""
        arrays = {name: getattr(self, name) for name in ("values", "offsets", "low", "high", "sums", "after_click")}
        words = {"method": self.method} | ({} if self.basis is None else {"basis": self.basis})
        return words | {name: array for name, array in arrays.items() if array is not None}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """What `to_dict` gave.

        Parameters
        ----------
        content : dict
            As `to_dict` returns it.
        """
        return cls(**content)


def last_clicks(log: Impressions) -> Integers:
    """For each row, the position of the last click above it in its impression; 0 where there is none.

    >>> last_clicks(Impressions.from_arrays([0, 1, 1], ["a", "a", "a"], [3, 2, 1]))
    array([2, 1, 0])
    """
    of, step = log.impression_of_rows, log.n_positions + 1
    order = np.lexsort((log.position, of))
    start = of[order] * step
    reached = np.maximum.accumulate(start + np.where(log.clicks[order] > 0.0, log.position[order], 0))
    last = np.zeros(len(order), np.int64)
    last[order[1:]] = np.maximum(reached[:-1] - start[1:], 0)
    return last


def power_law(eta: float, positions: int = 10) -> Examination:
    """The curve (1/rank)^eta that simulations assume.

    Parameters
    ----------
    eta : float
        How steeply it falls.
    positions : int
        How many positions it has.

    Examples
    --------
    >>> power_law(1.0, 4).values.round(3).tolist()
    [1.0, 0.5, 0.333, 0.25]
    """
    return Examination((1.0 / np.arange(1, positions + 1)) ** eta)


def with_interval(
    found: Examination,
    estimate: Callable[[Floats], Floats],
    log: Impressions,
    replicates: int,
    seed: int,
    resample: str = "impressions",
) -> Examination:
    """An examination with an interval from resampled logs; `estimate` makes a curve of weights of impressions.

    Impressions, or queries with all of their impressions, are drawn with replacement. The interval is normal on the
    scale of logarithms, θ exp(±1.96 σ) with σ the standard deviation of the resampled log θ: θ is a ratio. For queries
    the factor is Student's, with one degree of freedom less than the effective number of queries (Kish), (Σ n)² / Σ n²
    of their impressions. A position that resampled logs cannot compare with the first (NaN) more often than LOST has an
    interval without bounds.
    """
    check_count(replicates, "the number of resampled logs", 0)
    units = _units(log, resample)
    if replicates < 2:
        return found
    rng = np.random.default_rng(check_count(seed, "the seed", 0))
    n = int(units.max(initial=0)) + 1
    drawn = np.log([estimate(_resample(rng, n)[units]) for _ in range(replicates)])
    lost = np.isnan(drawn).mean(axis=0) > LOST
    spread = np.nanstd(np.where(lost, 0.0, drawn), axis=0, ddof=1)
    factor = Z if resample == "impressions" else _student(np.bincount(units))
    reach = np.where(lost, np.inf, factor * spread)
    return replace(found, low=found.values * np.exp(-reach), high=found.values * np.exp(reach))


def _units(log: Impressions, resample: str) -> Integers:
    """What is drawn together, by number: each impression, or its query."""
    if resample not in ("impressions", "queries"):
        raise DataError(f"what is resampled are impressions or queries, not {resample!r}")
    if resample == "impressions":
        return np.arange(len(log))
    if log.query is None:
        raise DataError("to resample queries takes query= (which impressions share a query)")
    units = encode_ids(log.query[log.offsets[:-1]])
    if len(units) and units.max() == 0:
        raise DataError("there is one query in the log: an interval over queries takes several")
    return units


def _student(sizes: Integers) -> float:
    """The factor of a 95 % interval over groups of these sizes."""
    from scipy.special import stdtrit

    effective = sizes.sum() ** 2 / (sizes.astype(float) ** 2).sum()
    return float(stdtrit(max(effective - 1.0, 1.0), 0.975))


def _resample(rng: np.random.Generator, n: int) -> Floats:
    """How often each of n units is among n that are drawn with replacement."""
    return np.bincount(rng.integers(n, size=n), minlength=n).astype(float)
