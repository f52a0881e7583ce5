"""How likely a ranker is to show what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.kernels.exploration_price import affordable_shortlist
from ranktron.kernels.sorting import argsort_descending
from ranktron.types import Floats, Integers, validation

_STEP = 0.3  # the trapezoid rule converges like e^(−π² / step) here
_TINY, _LATE = 1e-17, 45.0


@dataclass(frozen=True)
class RankingPolicy:
    """How a ranker with scores chooses what to show for one query: by Plackett-Luce draws, or its best first.

        P(d at the next place | those above) = e^{s_d / temperature} / Σ e^{s / temperature} over what is left

    Parameters
    ----------
    scores : array-like of float
        The score of each candidate.
    temperature : float >= 0
        1 draws from the Plackett-Luce model of the scores, as `PDGDRanker` does; 0 sorts by score and draws nothing.
    exploration_price : float
        That of the ranker: only the order of the documents that it allows is drawn, and the others follow by score.

    Examples
    --------
    >>> policy = RankingPolicy(np.log([0.5, 0.3, 0.2]))
    >>> policy.draws([1, 0]).round(4).tolist()
    [0.3, 0.7143]
    >>> policy.at_places([1, 0], 2).round(4).tolist()  # document 1, document 0: at the first and at the second place
    [[0.3, 0.375], [0.5, 0.3393]]
    >>> RankingPolicy([0.1, 0.7, 0.2], temperature=0).draws([1, 0]).tolist()
    [1.0, 0.0]
    """

    scores: npt.ArrayLike
    temperature: float = 1.0
    exploration_price: float = 1.0

    def __post_init__(self) -> None:
        scores = validation.floats(self.scores, "the scores of a policy are one number for each candidate")
        if not len(scores) or not np.isfinite(scores).all():
            raise DataError("the scores of a policy are finite, one for each candidate, of at least one")
        if not 0.0 <= self.temperature < np.inf:
            raise DataError(f"the temperature is at least 0, not {self.temperature}")
        if not 0.0 <= self.exploration_price <= 1.0:
            raise DataError(f"the price of exploration must be at least 0 and at most 1, not {self.exploration_price}")
        object.__setattr__(self, "scores", scores)

    @property
    def _values(self) -> Floats:
        return np.asarray(self.scores, float)

    def next_draws(self, items: npt.ArrayLike) -> Floats:
        """For each place of a page the probability of every candidate to stand there, after those above it.

        Parameters
        ----------
        items : array of int
            The documents of a page in the order shown, by their number among the candidates.
        """
        shown = np.asarray(items, np.int64)
        order, n = self._shortlist()
        logits = self._logits()
        table = np.zeros((len(shown), len(logits)))
        for place, row in enumerate(table):
            left = order[~np.isin(order, shown[:place])]
            drawn = left[np.isin(left, order[:n])]
            if not len(drawn):
                row[left[0]] = 1.0
                continue
            weights = np.exp(logits[drawn] - logits[drawn].max())
            row[drawn] = weights / weights.sum()
        return table

    def draws(self, items: npt.ArrayLike) -> Floats:
        """For each document of a page the probability of standing there, after those above it.

        Parameters
        ----------
        items : array of int
            The documents of a page in the order shown, by their number among the candidates.
        """
        shown = np.asarray(items, np.int64)
        drawn: Floats = self.next_draws(shown)[np.arange(len(shown)), shown]
        return drawn

    def at_places(self, items: npt.ArrayLike, places: int) -> Floats:
        """For some documents the probability of standing at each of the first places, whatever stands above.

        Of independent exponential clocks with rates e^s, document d rings as the r-th one:

            P(d at place r) = ∫ λ_d e^{−λ_d t} P(exactly r − 1 of the others have rung by t) dt

        The integral over log t is a sum by the trapezoid rule, which is exact to about 14 digits; no sampling.

        Parameters
        ----------
        items : array of int
            Documents, by their number among the candidates.
        places : int
            How many places.
        """
        wanted = np.asarray(items, np.int64)
        order, n = self._shortlist()
        table = np.zeros((len(order), max(places, len(order))))
        table[order, np.arange(len(order))] = 1.0
        if n > 1:
            drawn = order[:n]
            logits = self._logits()[drawn]
            asked, seen = np.flatnonzero(np.isin(drawn, wanted)), min(n, places)
            table[drawn] = 0.0
            if len(asked):
                table[drawn[asked], :seen] = _integrate(logits - logits.max(), asked, seen)
        found: Floats = table[wanted, :places]
        return found

    def _logits(self) -> Floats:
        return self._values / (self.temperature or 1.0)

    def _shortlist(self) -> tuple[Integers, int]:
        """The documents by score, and the number of those whose order is drawn: with one, none is."""
        order = argsort_descending(self._values)
        n = affordable_shortlist(self._values, order, self.exploration_price, len(order))
        return order, 1 if self.temperature == 0.0 else n


def _integrate(log_rates: Floats, wanted: Integers, places: int) -> Floats:
    low, high = np.log(_TINY), np.log(_LATE) - log_rates[wanted].min()
    log_times = np.arange(low, high + _STEP, _STEP)
    silent = np.exp(-np.exp(log_rates[:, None] + log_times))  # P(not yet rung), by document and time
    counts = np.zeros((len(wanted), len(log_times), places))
    counts[:, :, 0] = 1.0
    for other in range(len(log_rates)):
        rung = np.where((wanted == other)[:, None], 0.0, 1.0 - silent[other])[:, :, None]
        stays = counts * (1.0 - rung)
        stays[:, :, 1:] += counts[:, :, :-1] * rung
        counts = stays
    logs = log_rates[wanted][:, None] + log_times
    density = np.exp(logs - np.exp(logs)) * _STEP
    found: Floats = np.einsum("dt,dtp->dp", density, counts)
    return np.minimum(found, 1.0)  # rounding
