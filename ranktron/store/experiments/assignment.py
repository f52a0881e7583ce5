"""Assignment of users to arms, by a hash of the experiment's seed and the user: nothing is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate

import numpy as np

_PERIODS = 9  # remembered; of a day each they cover the default lifetime of open rounds, a week


def user_key(seed: int, user: str, period: int = 0) -> int:
    """A 63-bit hash of a user, of the experiment's seed and of the period.

    >>> user_key(1, "ann") == user_key(1, "ann"), user_key(1, "ann") == user_key(2, "ann")
    (True, False)
    """
    text = f"{seed} {period} {user}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little") >> 1  # 63 bits: a signed 64-bit integer


def assigned_arm(key: int, shares: Sequence[float]) -> int:
    """The arm of a user; each arm's probability is its share.

    >>> keys = [user_key(1, str(user)) for user in range(10_000)]
    >>> sum(assigned_arm(key, [0.2, 0.8]) for key in keys)
    8015
    """
    uniform = key / 2.0**63
    limits = list(accumulate(shares))
    return next((arm for arm, limit in enumerate(limits[:-1]) if uniform < limit), len(limits) - 1)


class SeenUsers:
    """The users already counted, by period; only the latest periods are remembered.

    >>> seen = SeenUsers()
    >>> seen.add(7, period=0), seen.add(7, period=0), seen.add(7, period=1), len(seen)
    (True, False, True, 2)
    """

    def __init__(self) -> None:
        self._users: dict[int, set[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._users.values()))

    def add(self, user: int, period: int) -> bool:
        """Adds a user; whether it is new in its period, which must still be remembered."""
        if period not in self._users:
            if len(self._users) >= _PERIODS and period < min(self._users):
                return False
            self._users[period] = set()
            while len(self._users) > _PERIODS:
                del self._users[min(self._users)]
        users, count = self._users[period], len(self._users[period])
        users.add(user)
        return len(users) > count

    def state(self) -> dict[int, bytes]:
        """The users by period, for a checkpoint."""
        return {period: np.array(sorted(users), np.int64).tobytes() for period, users in self._users.items()}

    def restore(self, state: Mapping[int, bytes]) -> None:
        self._users = {period: set(np.frombuffer(users, np.int64).tolist()) for period, users in state.items()}
