"""What a page that several rankers have filled remembers, and the checks that all methods share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import Floats, Integers, validation

Rankings = tuple[Integers, ...]


class CombinedRanking(NamedTuple):
    """The page that is shown to compare rankers, and all that is needed to give them credit for its clicks.

    Parameters
    ----------
    items : array of int
        The documents to show, from the top.
    rankings : tuple of arrays of int
        The ranking of each ranker.
    teams : array of int, or None
        Which ranker contributed each document, where the method goes by that.

    Examples
    --------
    >>> from ranktron.metrics.interleaving import Balanced
    >>> shown = Balanced(k=3).combine([[0, 1, 2], [2, 1, 0]], np.random.default_rng(0))
    >>> shown.items.tolist(), shown.teams
    ([2, 0, 1], None)
    """

    items: Integers
    rankings: Rankings
    teams: Integers | None = None


class InterleavingMethod(Protocol):
    """A way to compare rankers on one page.

    Examples
    --------
    >>> from ranktron.metrics.interleaving import TeamDraft
    >>> method: InterleavingMethod = TeamDraft(k=2)
    >>> shown = method.combine([[0, 1], [1, 0]], np.random.default_rng(0))
    >>> method.credit(shown, [0, 0]).tolist()
    [0.0, 0.0]
    """

    def combine(self, rankings: Sequence[npt.ArrayLike], rng: np.random.Generator) -> CombinedRanking:
        """Returns the page to show.

        Parameters
        ----------
        rankings : sequence of arrays of int
            The documents in the order of each ranker, best first.
        rng : numpy.random.Generator
            What decides by chance.
        """

    def credit(self, shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
        """Returns one number for each ranker; the better one has the higher mean over many impressions.

        Parameters
        ----------
        shown : CombinedRanking
            What `combine` returned.
        clicks : array
            One number for each document shown: 1 for a click, 0 for none, or a gain.
        """


def checked_rankings(rankings: Sequence[npt.ArrayLike], most: int | None = None) -> Rankings:
    """The rankings as arrays; those that cannot be combined are refused."""
    what = "a ranking is documents in the order of a ranker, whole numbers from 0"
    arrays = tuple(validation.integers(ranking, what) for ranking in rankings)
    if len(arrays) < 2 or (most is not None and len(arrays) > most):
        wanted = "exactly two rankings" if most == 2 else "at least two rankings"
        more = "; TeamDraft, Probabilistic, SampleScored and PairwisePreference take more" if len(arrays) > 2 else ""
        raise DataError(f"this method combines {wanted}, not {len(arrays)}{more}")
    for number, array in enumerate(arrays):
        if len(np.unique(array)) < len(array) or (len(array) and array.min() < 0):
            raise DataError(f"{what}, each once; that of ranker {number} is {array.tolist()}")
    return arrays


def checked_clicks(shown: CombinedRanking, clicks: npt.ArrayLike) -> Floats:
    """One number for each document shown; anything else is refused."""
    gains = validation.floats(clicks, "clicks are one number for each document shown: 1 for a click, 0 for none")
    if gains.shape != shown.items.shape:
        raise DataError(f"{len(gains)} clicks for {len(shown.items)} documents: say 1 or 0 for each document shown")
    if not (np.isfinite(gains).all() and (gains >= 0.0).all()):
        raise DataError(f"clicks are finite and at least 0, not {gains.tolist()}")
    return gains


def document_ranks(ranking: Integers, items: Integers, missing: int | None = None) -> Integers:
    """The ranks, from 1, of some documents in a ranking; those that it lacks stand at `missing`, or else just below it.

    >>> document_ranks(np.array([7, 3, 5]), np.array([5, 9])).tolist()
    [3, 4]
    """
    places = {item: place for place, item in enumerate(ranking.tolist(), start=1)}
    below = len(ranking) + 1 if missing is None else missing
    return np.array([places.get(item, below) for item in items.tolist()], dtype=np.int64)


def rank_table(shown: CombinedRanking) -> Integers:
    """The rank of each document shown for each ranker; far below everything where a ranker lacks it."""
    return np.array([document_ranks(ranking, shown.items, missing=1 << 40) for ranking in shown.rankings])
