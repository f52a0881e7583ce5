"""Optimized interleaving: of all pages that two rankers may make, the draw that tells most and is fair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.metrics.interleaving.combined import CombinedRanking, checked_clicks, checked_rankings, document_ranks
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count


@dataclass(frozen=True)
class Optimized:
    """Optimized interleaving of two rankers: pages are drawn with probabilities that a linear program has chosen.

    The pages are those that can be made by taking, place after place, the best remaining document of either ranker. A
    click on document d is worth 1 / rank(d) to each ranker. The probabilities p maximise the mean sensitivity

        Σ_L p_L (1 − w_0) H(w_A / (w_A + w_B)),   w_A, w_B, w_0 = how often (1/place) clicks favour A, B, neither

    (H is the entropy in bits) such that random clicks are a tie at every place: Σ_L p_L (credit of A − credit of B at
    place i) = 0. Where there is no such p, the nearest one is taken, in the sum of absolute differences.

    Parameters
    ----------
    k : int
        How many documents are shown, at most 12: there may be 2^k pages. The program is solved once for each pair of
        rankings, and kept.

    Examples
    --------
    >>> method = Optimized(k=3)
    >>> shown = method.combine([[0, 1, 2], [0, 2, 1]], np.random.default_rng(0))
    >>> shown.items.tolist(), method.credit(shown, [0, 0, 1]).round(3).tolist()
    ([0, 2, 1], [0.5, 0.333])

    References
    ----------
    Radlinski and Craswell, Optimized Interleaving for Online Retrieval Evaluation (WSDM 2013), with its inverse-rank
    credit.
    """

    k: int = 10

    def __post_init__(self) -> None:
        if check_count(self.k, "the number of shown documents, k,", 1) > 12:
            raise DataError(f"optimized interleaving weighs up to 2^k pages: show at most 12 documents, not {self.k}")

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """The page to show for two rankings."""
        lists = checked_rankings(rankings, most=2)
        pages, probabilities = _solve(*(tuple(ranking.tolist()) for ranking in lists), self.k)
        page = int(rng.choice(len(pages), p=probabilities))
        return CombinedRanking(np.array(pages[page], dtype=np.int64), lists)

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """For each of the two rankers Σ 1 / rank over the clicked documents."""
        gains = checked_clicks(shown, clicks)
        return np.array([_credits(ranking, shown.items) @ gains for ranking in shown.rankings])


def _credits(ranking: Integers, items: Integers) -> Floats:
    return np.array(1.0 / document_ranks(ranking, items), dtype=np.float64)


def possible_pages(first: tuple[int, ...], second: tuple[int, ...], k: int) -> list[tuple[int, ...]]:
    """All pages made by taking the best remaining document of either ranking, place after place.

    >>> possible_pages((0, 1, 2), (1, 0, 2), 2)
    [(0, 1), (1, 0)]
    """
    pages: list[tuple[int, ...]] = [()]
    length = min(k, len({*first, *second}))
    for _ in range(length):
        longer = list[tuple[int, ...]]()
        for page in pages:
            best = [next((d for d in ranking if d not in page), None) for ranking in (first, second)]
            longer += [(*page, d) for d in dict.fromkeys(best) if d is not None]
        pages = longer
    return pages


@lru_cache(maxsize=4096)
def _solve(first: tuple[int, ...], second: tuple[int, ...], k: int) -> tuple[list[tuple[int, ...]], Floats]:
    """The pages, and how likely each is to be shown."""
    from scipy.optimize import linprog

    pages = possible_pages(first, second, k)
    one, other = np.array(first, dtype=np.int64), np.array(second, dtype=np.int64)
    apart = np.array([_credits(one, np.array(page)) - _credits(other, np.array(page)) for page in pages])
    gain, places = _sensitivities(apart), apart.shape[1]
    fair = np.vstack([apart.T, np.ones(len(pages))])
    target = np.append(np.zeros(places), 1.0)
    found = linprog(-gain, A_eq=fair, b_eq=target, method="highs")
    if not found.success:  # the nearest to fair: each place may miss by something, which is what is minimised
        slack = np.vstack([np.hstack([np.eye(places), -np.eye(places)]), np.zeros(2 * places)])
        cost = np.append(np.zeros(len(pages)), np.ones(2 * places))
        found = linprog(cost, A_eq=np.hstack([fair, slack]), b_eq=target, method="highs")
    assert found.x is not None  # with slack there is always a solution
    probabilities = np.maximum(found.x[: len(pages)], 0.0)
    return pages, probabilities / probabilities.sum()


def _sensitivities(apart: Floats) -> Floats:
    """How much each page is expected to tell about who is better."""
    places = 1.0 / np.arange(1.0, apart.shape[1] + 1.0)
    places /= places.sum()
    ahead, behind = (apart > 0.0) @ places, (apart < 0.0) @ places
    decided = ahead + behind
    share = np.divide(ahead, decided, out=np.zeros_like(ahead), where=decided > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(p > 0.0, -p * np.log2(p), 0.0) for p in (share, 1.0 - share)]
    return np.array(decided * (terms[0] + terms[1]), dtype=np.float64)
