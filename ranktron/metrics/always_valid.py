"""An always-valid test: look as often as you like, stop when you like, and the error stays what was agreed on."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import Floats, validation

# How much of what can be lost in one round is bet: a mixture over these needs no guess of the effect.
BETS = 2.0 ** -np.arange(1.0, 11.0)
_HALVINGS = 50


def log_capital(values: Floats, mean: float, low: float, high: float) -> tuple[Floats, Floats]:
    """The log of the capital of two gamblers after each value: one bets that the true mean is above `mean`, one below.

        K⁺_t = 1/J Σ_j Π_{i ≤ t} (1 + c_j (x_i − mean) / (mean − low)),    c_j = 2^−j, j = 1 … 10
        K⁻_t = 1/J Σ_j Π_{i ≤ t} (1 − c_j (x_i − mean) / (high − mean))

    If `mean` is the true mean, each is a nonnegative martingale that starts at 1. `values` may have any shape; time is
    the last axis.

    >>> up, down = log_capital(np.array([1.0, 1.0]), 0.0, -1.0, 1.0)
    >>> np.exp(up).round(4).tolist(), np.exp(down).round(4).tolist()
    ([1.0999, 1.2331], [0.9001, 0.8335])
    """
    up, down = _odds(values, mean, low, high)
    return _log_wealth(up), _log_wealth(down)


def _odds(values: Floats, mean: float, low: float, high: float) -> tuple[Floats, Floats]:
    return (values - mean) / (mean - low), (mean - values) / (high - mean)


def _log_wealth(odds: Floats) -> Floats:
    stakes = np.multiply.outer(BETS, odds)
    return _log_mean(np.cumsum(np.log1p(stakes), axis=-1))


def _log_mean(logs: Floats) -> Floats:
    """The log of the mean of e^logs along the first axis."""
    highest = logs.max(axis=0)
    mean: Floats = highest + np.log(np.exp(logs - highest).mean(axis=0))
    return mean


@dataclass(eq=False)
class ConfidenceSequence:
    """A confidence interval of a mean that holds at all times at once, and the decision that follows from it.

    Each value is that of one *user*, once: users are independent, the impressions of a user are not. It is a difference
    of two rankers on a scale with known ends, such as `user_differences` gives. With probability 1 − level the true
    mean is in the interval after every user, however many there are. So one may look after each of them and stop when
    the interval leaves out 0.

    Theorem (Waudby-Smith and Ramdas 2023, after Ville 1939). If all values lie in [low, high] and have conditional mean
    μ given those before, each of the two capitals of `log_capital` at μ is a nonnegative martingale that starts at 1.
    By Ville's inequality each ever reaches 2 / level with probability at most level / 2. The means at which neither has
    are therefore a confidence sequence, whatever the distribution and for every number of values. Both capitals are
    monotone in the mean, so that they are an interval, whose ends are found by bisection.

    Parameters
    ----------
    level : float
        How likely an error is allowed to be, over all times together.
    low, high : float
        The ends of the scale. Values outside are refused.

    Examples
    --------
    >>> sequence = ConfidenceSequence(level=0.05)
    >>> sequence.update([1, 0, 1, 1, 0, 1, 1, 1, 0, 1])
    >>> sequence.decision, sequence.decided_after, round(sequence.mean, 2)
    (0, None, 0.7)
    >>> sequence.update([1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    >>> sequence.decision, sequence.decided_after  # the first ranker is better
    (1, 18)
    >>> [round(end, 3) for end in sequence.interval]
    [0.083, 0.989]

    References
    ----------
    Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting (JRSS B 2023), Theorem 1 and
    section 4; Howard et al., Time-uniform, nonparametric, nonasymptotic confidence sequences (Annals of Statistics
    2021).
    """

    level: float = 0.05
    low: float = -1.0
    high: float = 1.0
    n: int = field(default=0, init=False)
    decided_after: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise DataError(f"the level is a probability such as 0.05, not {self.level}")
        if not -np.inf < self.low < 0.0 < self.high < np.inf:
            raise DataError(f"differences lie on both sides of 0: low < 0 < high, not {self.low} and {self.high}")
        self._counts: Counter[float] = Counter()
        self._logs = np.zeros((2, len(BETS)))
        self._decision = 0

    def update(self, values: npt.ArrayLike) -> None:
        """Adds the values of further users, one after the other.

        Parameters
        ----------
        values : array
            A value per user, within the range of the sequence.
        """
        new = validation.floats(np.atleast_1d(values), "the values of a confidence sequence are numbers")
        outside = ~((new >= self.low) & (new <= self.high))
        if outside.any():
            raise DataError(f"values lie between {self.low:g} and {self.high:g}, not at {new[outside][0]:g}")
        odds = np.array(_odds(new, 0.0, self.low, self.high))
        for value, each in zip(new.tolist(), odds.T, strict=True):
            self.n += 1
            self._counts[value] += 1
            self._logs += np.log1p(each[:, None] * BETS)
            if self._decision == 0:
                evidence = _log_mean(self._logs.T)
                if evidence.max() >= np.log(2.0 / self.level):
                    self._decision, self.decided_after = (1 if evidence[0] > evidence[1] else -1), self.n

    @property
    def mean(self) -> float:
        """The mean so far; 0 where there is nothing yet."""
        return sum(value * count for value, count in self._counts.items()) / self.n if self.n else 0.0

    @property
    def decision(self) -> int:
        """1 if the first ranker is better, -1 if the second one is, 0 while that is open. A decision is final."""
        return self._decision

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval now. Once there is a decision it stays on that side of 0."""
        low, high = self._end(0), self._end(1)
        return max(low, 0.0) if self._decision > 0 else low, min(high, 0.0) if self._decision < 0 else high

    def _end(self, side: int) -> float:
        """The lower (0) or upper (1) end: where the capital of that side passes 2 / level."""
        outer = (self.low, self.high)[side]
        if not self.n:
            return outer
        values, counts = np.array(list(self._counts)), np.array(list(self._counts.values()), float)

        def excluded(mean: float) -> bool:
            stakes = BETS[:, None] * _odds(values, mean, self.low, self.high)[side]
            return bool(_log_mean(np.log1p(stakes) @ counts) >= np.log(2.0 / self.level))

        inner = float(np.clip(self.mean, self.low, self.high))
        for _ in range(_HALVINGS):
            middle = 0.5 * (outer + inner)
            if self.low < middle < self.high and excluded(middle):
                outer = middle
            else:
                inner = middle
        return outer

    def state(self) -> dict[str, Any]:
        """All that is needed to go on elsewhere, as plain numbers.

        >>> one = ConfidenceSequence()
        >>> one.update([0.5, -1, 0.5])
        >>> other = ConfidenceSequence()
        >>> other.restore(one.state())
        >>> other.interval == one.interval
        True
        """
        return {
            "n": self.n,
            "counts": [[value, count] for value, count in self._counts.items()],
            "logs": self._logs.tolist(),
            "decision": self._decision,
            "decided_after": self.decided_after,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a stored state.

        Parameters
        ----------
        state : dict
            As `state` returned it.
        """
        logs = np.array(state["logs"], float)
        if logs.shape != self._logs.shape or not np.isfinite(logs).all():
            raise DataError("this is not the state of a confidence sequence")
        self._counts = Counter({float(value): int(count) for value, count in state["counts"]})
        self._logs, self._decision = logs, int(state["decision"])
        self.n, self.decided_after = int(state["n"]), state["decided_after"]


def user_differences(users: npt.ArrayLike, differences: npt.ArrayLike) -> Floats:
    """The mean difference of each user, in the order in which users first came: one value for each user.

    Impressions of one user are alike, and a test that takes them for independent ones is sure too soon.

    Parameters
    ----------
    users : array-like
        Who saw each impression; any ids.
    differences : array-like of float
        How much better the first ranker did than the second, by impression.

    Examples
    --------
    >>> user_differences(["ann", "bob", "ann"], [1.0, -1.0, 0.0])
    array([ 0.5, -1. ])
    """
    ids = np.asarray(users)
    values = validation.floats(differences, "differences are one number for each impression")
    if ids.shape != values.shape:
        raise DataError(f"{len(values)} differences of {ids.size} users: one user for each impression")
    _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
    means = np.bincount(inverse, weights=values) / np.bincount(inverse)
    ordered: Floats = means[np.argsort(first, kind="stable")]
    return ordered
