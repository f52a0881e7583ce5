"""Probabilistic interleaving and multileaving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.metrics.interleaving.combined import CombinedRanking, Rankings, checked_clicks, checked_rankings
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count


@dataclass(frozen=True)
class Probabilistic:
    """Probabilistic interleaving: each place is filled by a ranker drawn at random, from a soft version of its ranking.

        P_r(d at the next place) ∝ 1 / rank_r(d)^tau   over the documents that are not shown yet
        credit of ranker r       = Σ over clicks of P(r filled the place | the page) = Σ P_r(d) / Σ_s P_s(d)

    Who filled a place is not looked at but marginalised out. Random clicks are a tie, wherever on the page they come.
    The price is paid by users: any document may be shown at any place, the more often the smaller tau is.

    Parameters
    ----------
    k : int
        How many documents are shown.
    tau : float > 0
        How closely each draw follows the ranking.

    Examples
    --------
    >>> method = Probabilistic(k=3)
    >>> shown = method.combine([[0, 1, 2], [2, 1, 0]], np.random.default_rng(0))
    >>> shown.items.tolist(), method.credit(shown, [1, 0, 0]).round(3).tolist()
    ([2, 0, 1], [0.036, 0.964])

    References
    ----------
    Hofmann, Whiteson and de Rijke, A Probabilistic Method for Inferring Preferences from Clicks (CIKM 2011).
    """

    k: int = 10
    tau: float = 3.0

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)
        if not 0.0 < self.tau < np.inf:
            raise DataError(f"tau is a number above 0, not {self.tau}")

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two or more rankings."""
        lists = checked_rankings(rankings)
        documents, weights = self._weights(lists)
        items = list[int]()
        while len(items) < min(self.k, len(documents)):
            able = np.flatnonzero(weights.any(axis=1))
            team = able[int(rng.integers(len(able)))]
            place = int(rng.choice(len(documents), p=weights[team] / weights[team].sum()))
            items.append(int(documents[place]))
            weights[:, place] = 0.0
        return CombinedRanking(np.array(items, dtype=np.int64), lists)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each ranker the expected number of clicks on what it filled in, given the page."""
        gains = checked_clicks(shown, clicks)
        documents, weights = self._weights(shown.rankings)
        credit = np.zeros(len(shown.rankings))
        for item, gain in zip(shown.items, gains, strict=True):
            place = int(np.searchsorted(documents, item))
            sums = weights.sum(axis=1)
            shares = weights[:, place] / np.where(sums > 0.0, sums, 1.0)
            credit += gain * shares / shares.sum()
            weights[:, place] = 0.0
        return credit

    def _weights(self, lists: Rankings) -> tuple[Integers, Floats]:
        """All documents in the order of their numbers, and 1 / rank^tau for each ranker and document."""
        documents = np.unique(np.concatenate(lists))
        weights = np.zeros((len(lists), len(documents)))
        for row, ranking in zip(weights, lists, strict=True):
            row[np.searchsorted(documents, ranking)] = np.arange(1.0, len(ranking) + 1.0) ** -self.tau
        return documents, weights
