"""Who sees which arm: a function of the experiment's seed and the user, so that nothing has to be kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate

import numpy as np

_PERIODS = 9  # whose users are remembered: rounds wait for feedback for a week, unless configured otherwise


def user_key(seed: int, user: str, period: int = 0) -> int:
    """A number that stands for a user in one experiment, and, if it assigns anew, in one period of it.

    >>> user_key(1, "ann") == user_key(1, "ann"), user_key(1, "ann") == user_key(2, "ann")
    (True, False)
    """
    named = f"{seed} {period} {user}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(named, digest_size=8).digest(), "little") >> 1  # journals keep signed numbers


def assigned_arm(key: int, shares: Sequence[float]) -> int:
    """The arm of a user: each with the probability that is its share.

    >>> keys = [user_key(1, str(user)) for user in range(10_000)]
    >>> sum(assigned_arm(key, [0.2, 0.8]) for key in keys)
    8015
    """
    place = key / 2.0**63
    ends = list(accumulate(shares))
    return next((arm for arm, end in enumerate(ends[:-1]) if place < end), len(ends) - 1)


class SeenUsers:
    """The users that have counted, each once in a period; those of the last periods are remembered.

    >>> seen = SeenUsers()
    >>> seen.add(7, period=0), seen.add(7, period=0), seen.add(7, period=1), len(seen)
    (True, False, True, 2)
    """

    def __init__(self) -> None:
        self._users: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._users.values()))

    def add(self, user: int, period: int) -> bool:
        """Whether this is the user's first time in a period that is still remembered."""
        if period not in self._users:
            if len(self._users) >= _PERIODS and period < min(self._users):
                return False
            self._users[period] = set()
            while len(self._users) > _PERIODS:
                del self._users[min(self._users)]
        users, before = self._users[period], len(self._users[period])
        users.add(user)
        return len(users) > before

    def state(self) -> dict[int, bytes]:
        """All of them, for the journal."""
        return {period: np.array(sorted(users), np.int64).tobytes() for period, users in self._users.items()}

    def restore(self, state: Mapping[int, bytes]) -> None:
        self._users = {period: set(np.frombuffer(users, np.int64).tolist()) for period, users in state.items()}
