"""Arms of an experiment: what each ranks, which user sees which, and pages that interleave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.metrics.interleaving import Optimized, SampleScored, TeamDraft
from ranktron.store.errors import RequestError, unknown_version
from ranktron.store.experiments.messages import ArmDefinition
from ranktron.store.journal.journal import JournalError
from ranktron.store.messages import Document, RankAnswer, RankRequest
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.training.model import Model
from ranktron.types import Floats, Integers


class Rankers(Protocol):
    """The part of a service that arms use."""

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name."""
        ...

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Ranks, and opens a round."""
        ...

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round with the order of another system."""
        ...


class Arm:
    """One of the rankers that an experiment compares."""

    def __init__(self, definition: ArmDefinition, rankers: Rankers) -> None:
        self.definition, self._rankers = definition, rankers
        self._frozen: LiveRanker | None = None

    @property
    def live(self) -> LiveRanker:
        """The live ranker, also of a frozen arm."""
        return self._rankers.live(self.definition.ranker)

    @property
    def shown(self) -> LiveRanker:
        """The ranker whose pages are shown: the live one, or one frozen at a kept version."""
        if self.definition.version is None:
            return self.live
        if self._frozen is None:
            live = self.live
            model = Model.from_bytes(kept_model(live, self.definition.version))
            self._frozen = LiveRanker(live.id, live.name, live.definition, model, live.config, live.snapshots)
        return self._frozen

    def order(self, documents: Sequence[Document]) -> Integers:
        """The documents, best first, without exploration."""
        return self.shown.best_order(documents)

    def rank(self, request: RankRequest) -> RankAnswer:
        """Ranks as the live ranker does, with exploration and an open round."""
        return self._rankers.rank(self.definition.ranker, request)

    def shadow(self, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round with the order of the client's own system, for the ranker to learn from."""
        return self._rankers.shadow(self.definition.ranker, request, shown)


def kept_model(live: LiveRanker, version: int) -> bytes:
    """The model file of a kept version; a RequestError if it is unknown or damaged."""
    if version not in live.snapshots.versions():
        raise unknown_version(version)
    try:
        snapshot = live.snapshots.read(version)
        if snapshot.get("incarnation", 0) != live.incarnation:
            raise DataError(f"version {version} belongs to another ranker")
    except JournalError:
        raise
    except DataError as error:
        raise RequestError(409, "damaged_version", str(error)) from None
    model: bytes = snapshot["model"].tobytes()
    return model


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
