"""Pairwise preference multileaving: clicks prefer documents to others, and rankers agree with that or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.metrics.interleaving.combined import (
    CombinedRanking,
    Rankings,
    checked_clicks,
    checked_rankings,
    rank_table,
)
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count


@dataclass(frozen=True)
class PairwisePreference:
    """Pairwise preference multileaving (PPM): fair to every ranker, and kind to users.

    At place i stands a document drawn uniformly from those that some ranker has among its first i and that are not
    shown yet. Every clicked document is preferred to every unclicked one from the top down to the one just below the
    last click. Only pairs of which each could have stood at the other's place count: both stand at place
    r = max(best rank of d, best rank of d') or below. Each counts

        1 / P(both stand at r or below) = 1 / Π_{i = r'}^{r−1} (1 − 1 / choices at place i),   r' = min(best ranks)

    for the rankers that agree with it, and minus that for those that do not. Random clicks are a tie, wherever on the
    page they come, because the two orders of such a pair are equally likely.

    Parameters
    ----------
    k : int
        How many documents are shown.

    Examples
    --------
    >>> method = PairwisePreference(k=3)
    >>> shown = method.combine([[0, 1, 2], [1, 0, 2]], np.random.default_rng(0))
    >>> shown.items.tolist(), method.credit(shown, [1, 0, 0]).tolist()
    ([1, 0, 2], [-1.0, 1.0])

    References
    ----------
    Oosterhuis and de Rijke, Sensitive and Scalable Online Evaluation with Theoretical Guarantees (CIKM 2017).
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two or more rankings."""
        lists = checked_rankings(rankings)
        pool, items = list[int](), list[int]()
        for place in range(min(self.k, len(np.unique(np.concatenate(lists))))):
            new = {int(ranking[place]) for ranking in lists if place < len(ranking)} - {*pool, *items}
            pool += sorted(new)
            items.append(pool.pop(int(rng.integers(len(pool)))))
        return CombinedRanking(np.array(items, dtype=np.int64), lists)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each ranker the weight of the preferences that it agrees with, minus that of the others."""
        gains = checked_clicks(shown, clicks)
        clicked = np.flatnonzero(gains > 0.0)
        if not len(clicked):
            return np.zeros(len(shown.rankings))
        ranks = rank_table(shown)
        best = ranks.min(axis=0)
        # A place with a single choice would make the product 0. No pair that counts is on two sides of it.
        choices = np.maximum(_choices(shown.rankings, len(shown.items)), 2)
        staying = np.append(1.0, np.cumprod(1.0 - 1.0 / choices))
        credit = np.zeros(len(shown.rankings))
        for other in np.flatnonzero(gains[: clicked[-1] + 2] == 0.0):
            low, high = np.minimum(best[clicked], best[other]), np.maximum(best[clicked], best[other])
            allowed = np.minimum(clicked, other) + 1 >= high
            i = clicked[allowed]
            weight = gains[i] * staying[low[allowed] - 1] / staying[high[allowed] - 1]
            credit += np.sign(ranks[:, other][:, None] - ranks[:, i]) @ weight
        return credit


def _choices(rankings: Rankings, length: int) -> Integers:
    """How many documents the draw of each place chooses from, which is the same whatever was drawn before."""
    seen: set[int] = set()
    counts = np.empty(length, dtype=np.int64)
    for place in range(length):
        seen |= {int(ranking[place]) for ranking in rankings if place < len(ranking)}
        counts[place] = len(seen) - place
    return counts
