"""Pages that mix the arms: what is shown, and what a click at each place is worth to each arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranktron.metrics.interleaving import Optimized, SampleScored, TeamDraft
from ranktron.types import Floats, Integers

MIXERS: dict[str, type[TeamDraft] | type[Optimized] | type[SampleScored]] = {
    "team-draft": TeamDraft,
    "optimized": Optimized,
    "sample-scored": SampleScored,
}
MOST_OPTIMIZED = 6  # documents: for more, the linear program of a page takes too long while others wait


def mixed_page(method: str, orders: Sequence[Integers], k: int, seed: int, number: int) -> tuple[Integers, Floats]:
    """The first k documents to show, and what a click on each is worth to each arm: (arms, documents).

    All methods here give credit by the sum over clicks. The first k of each order decide.

    >>> items, credits = mixed_page("team-draft", [np.array([0, 1, 2]), np.array([2, 1, 0])], 2, seed=0, number=5)
    >>> items.tolist(), credits.tolist()
    ([2, 0], [[0.0, 1.0], [1.0, 0.0]])
    """
    mixer = MIXERS[method](k)
    shown = mixer.combine([order[:k] for order in orders], np.random.default_rng((seed, number)))
    credits = [mixer.credit(shown, click) for click in np.eye(len(shown.items))]
    return shown.items, np.array(credits).T


def highest_credit(method: str, k: int) -> float:
    """The largest difference in credit that the clicks on a page can make."""
    places = np.arange(1.0, k + 1.0)
    credits = {"team-draft": places**0, "optimized": 1.0 / places, "sample-scored": places**-3}
    return float(credits[method].sum())


def outcome_of(method: str, k: int, difference: float) -> float:
    """What a difference in credit counts, between -1 and 1.

    Of a team draft it is the sign: teams are drawn by fair coins, so that random clicks have no preferred sign. The
    credits of the other methods tie in the mean and not in the sign, so that the difference itself has to count.

    >>> outcome_of("team-draft", 10, 3.0), outcome_of("optimized", 2, 0.75)
    (1.0, 0.5)
    """
    if method == "team-draft":
        return float(np.sign(difference))
    return round(difference / highest_credit(method, k), 4)
