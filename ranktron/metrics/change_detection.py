"""A change detector that needs no model: it notices that a mean has fallen, whenever that happens, and seldom errs."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.metrics.always_valid import BETS


@dataclass(eq=False)
class FallDetector:
    """An e-detector: raises an alarm when the mean of values has fallen below a limit, however late that happens.

        R_t = (1 + R_{t−1}) · (1 − c (x_t − limit) / (high − limit)),    R_0 = 0,    for each bet c = 2^−1 … 2^−10
        alarm as soon as the mean of R_t over the bets reaches `run_length`

    A confidence sequence looks at the mean of all values: what breaks after ten thousand good ones is noticed late. R_t
    is the sum of the capitals of gamblers of whom one begins at each value, so that one of them always begins just when
    the mean falls.

    Theorem (Shin, Ramdas and Rinaldo 2024; the sum is that of Shiryaev and Roberts). If each value, given
    those before, has a mean of at least `limit`, then R_t − t is a supermartingale. So at the alarm τ the mean of R_τ,
    which is at least `run_length`, is at most that of τ: false alarms come once in `run_length` values at most, on
    average, and one among the first n with probability at most n / `run_length`. Values need not be independent, nor
    alike.

    Parameters
    ----------
    limit : float
        What the mean should not fall below.
    run_length : float > 1
        How many values pass on average, at least, until a false alarm.

    Examples
    --------
    >>> detector = FallDetector(limit=0.0, run_length=1000)
    >>> for value in [1, 0, 1, 1] * 500:  # a mean of 0.75
    ...     detector.update(value, high=1.0)
    >>> detector.alarm is None
    True
    >>> while detector.alarm is None:  # then it breaks
    ...     detector.update(-1.0, high=1.0)
    >>> detector.alarm - 2000
    19

    References
    ----------
    Shin, Ramdas and Rinaldo, E-detectors: a nonparametric framework for sequential change detection (NEJSDS 2024).
    """

    limit: float
    run_length: float
    n: int = field(default=0, init=False)
    alarm: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not isfinite(self.limit):
            raise DataError(f"the limit of a mean is a finite number, not {self.limit}")
        if not 1.0 < self.run_length < inf:
            raise DataError(f"false alarms come once in more than 1 value, not in {self.run_length:g}")
        self._sums = np.zeros(len(BETS))

    def update(self, value: float, high: float) -> None:
        """Adds a value; after the alarm nothing changes any more.

        Parameters
        ----------
        value : float
            The next value.
        high : float
            The highest that it could have been, as far as was known before it came.
        """
        if not self.limit < high < inf or not value <= high:
            raise DataError(f"a value is at most `high`, and `high` above {self.limit:g}: not {value} and {high}")
        if self.alarm is not None:
            return
        self.n += 1
        odds = (value - self.limit) / (high - self.limit)
        self._sums = (1.0 + self._sums) * (1.0 - BETS * odds)
        if self.evidence >= self.run_length:
            self.alarm = self.n

    @property
    def evidence(self) -> float:
        """The mean of R_t over the bets: at `run_length` there is an alarm."""
        return float(self._sums.mean())

    def state(self) -> dict[str, Any]:
        """All that is needed to go on elsewhere, as plain numbers.

        >>> one, other = FallDetector(0.0, 100), FallDetector(0.0, 100)
        >>> one.update(-0.5, high=1.0)
        >>> other.restore(one.state())
        >>> other.evidence == one.evidence
        True
        """
        return {"n": self.n, "sums": self._sums.tolist(), "alarm": self.alarm}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a stored state.

        Parameters
        ----------
        state : dict
            As `state` returned it.
        """
        sums = np.array(state["sums"], float)
        if sums.shape != self._sums.shape or not np.isfinite(sums).all():
            raise DataError("this is not the state of a change detector")
        self._sums, self.n, self.alarm = sums, int(state["n"]), state["alarm"]
