"""Interleaved pages: the documents to show, and the credit of each arm for a click on each of them."""

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
MAX_OPTIMIZED = 6  # documents; the linear program of a longer page would block other requests too long


def mixed_page(method: str, orders: Sequence[Integers], k: int, seed: int, number: int) -> tuple[Integers, Floats]:
    """The top k of the page, and the credits (arms, documents) for clicks, which add up over the clicks.

    Only the first k documents of each order matter.

    >>> items, credits = mixed_page("team-draft", [np.array([0, 1, 2]), np.array([2, 1, 0])], 2, seed=0, number=5)
    >>> items.tolist(), credits.tolist()
    ([2, 0], [[0.0, 1.0], [1.0, 0.0]])
    """
    mixer = MIXERS[method](k)
    shown = mixer.combine([order[:k] for order in orders], np.random.default_rng((seed, number)))
    credits = [mixer.credit(shown, click) for click in np.eye(len(shown.items))]
    return shown.items, np.array(credits).T


def highest_credit(method: str, k: int) -> float:
    """The largest difference in credit between two arms on a page."""
    ranks = np.arange(1.0, k + 1.0)
    credits = {"team-draft": ranks**0, "optimized": 1.0 / ranks, "sample-scored": ranks**-3}
    return float(credits[method].sum())


def outcome_of(method: str, k: int, difference: float) -> float:
    """A difference in credit as an outcome between -1 and 1.

    For team draft it is the sign, since fair coins draw the teams, and so random clicks favour no sign. The other
    methods are unbiased in the mean of the credits and not in the sign, so that the difference itself counts.

    >>> outcome_of("team-draft", 10, 3.0), outcome_of("optimized", 2, 0.75)
    (1.0, 0.5)
    """
    if method == "team-draft":
        return float(np.sign(difference))
    return round(difference / highest_credit(method, k), 4)
