"""RoundIds: what clients call a round, so that no two copies of a state call two rounds the same."""

from __future__ import annotations

from ranktron.store.errors import foreign, of_deleted_ranker
from ranktron.store.journal.journal import CAPACITY


class RoundIds:
    """From which number of a ranker's rounds on which epoch counts; clients see the number after the epoch.

    Numbers before the first are those of rankers of the same name that have been deleted.

    >>> ids = RoundIds(((0, 0), (20, 3)))
    >>> ids.public(19), ids.public(20) == 3 * 2**40 + 20, ids.number_of(3 * 2**40 + 20)
    (19, True, 20)
    >>> ids.number_of(20)  # which another copy of this ranker has shown
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: round 20 was not shown here: ...
    """

    def __init__(self, starts: tuple[tuple[int, int], ...] = ((0, 0),)) -> None:
        self.starts = starts

    def public(self, number: int) -> int:
        """What clients call a round."""
        epoch = next((epoch for first, epoch in reversed(self.starts) if number >= first), self.starts[0][1])
        return epoch * CAPACITY + number

    def number_of(self, public: int) -> int:
        """The number of a round that was shown here, or will be."""
        number = public % CAPACITY
        if number < self.starts[0][0]:
            raise of_deleted_ranker(public)
        if self.public(number) != public:
            raise foreign(public)
        return number
