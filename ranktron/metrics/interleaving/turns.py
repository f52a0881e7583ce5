"""Methods in which rankers take turns: balanced, team draft, and sample-only scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
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
class Balanced:
    """Balanced interleaving of two rankers: one coin says who begins, and then they take turns.

    A click counts for every ranker that has the document among its first r, where r is the rank at which the better
    placed of the two has the lowest clicked document.

    It is not fair to all rankings: with a b c d against b c d a, a single random click favours the second, three times
    in four. Prefer `TeamDraft` or one of those below it in the table of the guide.

    Parameters
    ----------
    k : int
        How many documents are shown.

    Examples
    --------
    >>> method = Balanced(k=4)
    >>> shown = method.combine([[0, 1, 2, 3], [1, 2, 3, 0]], np.random.default_rng(1))
    >>> shown.items.tolist(), method.credit(shown, [0, 0, 1, 0]).tolist()
    ([0, 1, 2, 3], [0.0, 1.0])

    References
    ----------
    Joachims, Evaluating Retrieval Performance Using Clickthrough Data (2003).
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two rankings."""
        lists = checked_rankings(rankings, most=2)
        first = int(rng.integers(2))
        at, items = [0, 0], list[int]()
        while len(items) < self.k and (at[0] < len(lists[0]) or at[1] < len(lists[1])):
            turn = first if at[0] == at[1] else int(at[1] < at[0])
            if at[turn] == len(lists[turn]):
                turn = 1 - turn
            item = int(lists[turn][at[turn]])
            at[turn] += 1
            if item not in items:
                items.append(item)
        return CombinedRanking(np.array(items, dtype=np.int64), lists)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each of the two rankers the clicks on its first r documents."""
        gains = checked_clicks(shown, clicks)
        ranks = rank_table(shown)
        clicked = np.flatnonzero(gains > 0.0)
        if not len(clicked):
            return np.zeros(2)
        depth = ranks[:, clicked[-1]].min()
        return np.array((ranks <= depth) @ gains, dtype=np.float64)


def draft(lists: Rankings, k: int, rng: np.random.Generator) -> tuple[Integers, Integers]:
    """Rankers choose in rounds, in random order within each: the documents, and who chose them."""
    left = [list(ranking.tolist()) for ranking in lists]
    chosen = np.zeros(len(lists), dtype=np.int64)
    items, teams = list[int](), list[int]()
    while len(items) < k and any(left):
        able = [r for r in range(len(lists)) if left[r]]
        least = min(chosen[able])
        candidates = [r for r in able if chosen[r] == least]
        team = candidates[int(rng.integers(len(candidates)))]
        item = left[team][0]
        items.append(item)
        teams.append(team)
        chosen[team] += 1
        left = [[each for each in ranking if each != item] for ranking in left]
    return np.array(items, dtype=np.int64), np.array(teams, dtype=np.int64)


@dataclass(frozen=True)
class TeamDraft:
    """Team draft interleaving and multileaving: in each round every ranker, in random order, adds its best document.

    A click is a point for the ranker that added the document.

    Random clicks are a tie. A better ranker need not win, though: with a b c d against c a b d and only b relevant,
    both have the same chance of adding b.

    Parameters
    ----------
    k : int
        How many documents are shown.

    Examples
    --------
    >>> method = TeamDraft(k=3)
    >>> shown = method.combine([[0, 1, 2], [2, 1, 0], [0, 2, 1]], np.random.default_rng(0))
    >>> shown.items, shown.teams
    (array([0, 2, 1]), array([2, 1, 0]))
    >>> method.credit(shown, [0, 1, 1])
    array([1., 1., 0.])

    References
    ----------
    Radlinski, Kurup and Joachims, How Does Clickthrough Data Reflect Retrieval Quality? (CIKM 2008); more than two:
    Schuth et al., Multileaved Comparisons for Fast Online Evaluation (CIKM 2014).
    """

    k: int = 10

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two or more rankings."""
        lists = checked_rankings(rankings)
        items, teams = draft(lists, self.k, rng)
        return CombinedRanking(items, lists, teams)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each ranker the clicks on the documents that it added."""
        gains = checked_clicks(shown, clicks)
        if shown.teams is None:
            raise DataError("this page was combined by another method: credit it with the one that combined it")
        return np.bincount(shown.teams, weights=gains, minlength=len(shown.rankings)).astype(np.float64)


@dataclass(frozen=True)
class SampleScored:
    """Sample-only scored multileaving: a team draft decides what is shown, and every ranker is scored by all of it.

        credit of a ranker = Σ over clicks of 1 / r^tau,  r = the document's rank among the shown ones alone

    Every click counts for every ranker, so that little is lost with many of them. Clicks that come at the same rate at
    all places are a tie; random clicks that come more often at the top need not be.

    Parameters
    ----------
    k : int
        How many documents are shown.
    tau : float > 0
        How steeply credit falls with the rank.

    Examples
    --------
    >>> method = SampleScored(k=3, tau=1)
    >>> shown = method.combine([[0, 1, 2], [2, 1, 0], [0, 2, 1]], np.random.default_rng(0))
    >>> shown.items.tolist(), method.credit(shown, [0, 1, 0]).round(2).tolist()
    ([0, 2, 1], [0.33, 1.0, 0.5])

    References
    ----------
    Brost et al., An Improved Multileaving Algorithm for Online Ranker Evaluation (SIGIR 2016).
    """

    k: int = 10
    tau: float = 3.0

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two or more rankings."""
        lists = checked_rankings(rankings)
        return CombinedRanking(draft(lists, self.k, rng)[0], lists)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each ranker the clicks, each by its rank among the documents shown."""
        gains = checked_clicks(shown, clicks)
        ranks = rank_table(shown)
        # Those that a ranker does not have share the mean of the credits that are left.
        credits = np.empty(ranks.shape)
        scale = np.arange(1.0, len(shown.items) + 1.0) ** -self.tau
        for row, ranker in zip(ranks, credits, strict=True):
            for rank in np.unique(row):
                above, same = np.count_nonzero(row < rank), np.count_nonzero(row == rank)
                ranker[row == rank] = scale[above : above + same].mean()
        return np.array(credits @ gains, dtype=np.float64)
