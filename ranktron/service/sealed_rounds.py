"""Rounds that carry themselves: the answer of a ranking holds its round, sealed, and feedback brings it back.

Nothing is kept of a list that nobody answers, and any process with the keys can take its feedback. What a round brings
back is written with the feedback, as if it had been kept: a replay learns from the same bytes.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

import msgspec

from ranktron.service.config import Config
from ranktron.store.errors import RequestError, round_gone
from ranktron.store.journal.entries import JournalEntry, Result
from ranktron.store.journal.journal import Journal, SealedRow
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.types import FeedbackRequest

if TYPE_CHECKING:  # which imports the library of ciphers: only who has keys needs it
    from ranktron.service.sealing_keys import SealingKeys

KEPT_LONGER = 3_600.0  # seconds that numbers stay known after their rounds expire: a crash sets the clock back a little


class CarriedRound(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What is sealed: whose round it is, its number with its epoch, when it expires, and the round as it would be kept.

    `shown` has the time of issue, the version of the model, the documents in order, their propensities and the pending
    update (see `StoredRound`); the format and the id of the key stand before what is sealed, and are verified with it.
    """

    cluster: str
    ranker: int
    incarnation: int
    round: int
    expires: float
    shown: bytes


_decoder = msgspec.msgpack.Decoder(CarriedRound)
_encoder = msgspec.msgpack.Encoder()


class Identified(Protocol):
    """What knows which state its rankers belong to: a journal, or a server that follows."""

    cluster: str


class SealedRounds:
    """Seals the rounds of one service's rankers, or of those that a server follows."""

    def __init__(self, state: Identified, keys: SealingKeys | None, config: Config) -> None:
        self._state, self._keys, self._config = state, keys, config

    def check(self, live: LiveRanker) -> None:
        """Refuses to rank for someone who would carry the round, where that is not possible."""
        self._known_keys()
        if live.definition.close_after is not None:
            why = "this ranker closes rounds without feedback (`close_after`), and would not know of this one"
            raise RequestError(409, "closes_rounds", f"{why}: rank without `carry`")

    def _known_keys(self) -> SealingKeys:
        if self._keys is None:
            how = "make some with `ranktron keys FILE` and set `carry_keys`, or rank without `carry`"
            raise RequestError(409, "no_keys", f"this service has no keys for rounds that carry themselves: {how}")
        return self._keys

    def seal(self, live: LiveRanker, public: int, shown: bytes) -> str:
        """The round as the answer of a ranking has it."""
        expires = open_rounds.shown_at(shown) + self._config.open_seconds
        content = CarriedRound(self._state.cluster, live.id, live.incarnation, public, expires, shown)
        text, most = self._known_keys().seal(_encoder.encode(content)), self._config.max_carry
        if len(text) > most:
            how = f"at most {most} (`max_carry`) are allowed: raise that, rank fewer features, or rank without `carry`"
            raise RequestError(413, "carry_too_large", f"this round would take {len(text)} characters, and {how}")
        return text


class SealedRoundBook(SealedRounds):
    """Seals the rounds of one service's rankers, and opens those that come back."""

    def __init__(self, journal: Journal, keys: SealingKeys | None, config: Config) -> None:
        super().__init__(journal, keys, config)
        self._journal = journal

    def open(self, live: LiveRanker, request: FeedbackRequest, text: str) -> CarriedRound:
        """The round that feedback has brought back: verified, and one that this ranker has shown and still takes."""
        carried = _decoder.decode(self._known_keys().open(text, self._config.max_carry))
        if (carried.cluster, carried.ranker, carried.incarnation) != (self._journal.cluster, live.id, live.incarnation):
            whose = "of another service" if carried.cluster != self._journal.cluster else "of another ranker"
            raise RequestError(422, "wrong_carry", f"`carry` is {whose}: send it to where it comes from")
        if carried.round != request.round:
            raise RequestError(422, "wrong_carry", f"`carry` is that of round {carried.round}, not of {request.round}")
        number = live.rounds.ids.number_of(carried.round)
        if number >= live.rounds.next:
            raise RequestError(404, "unknown_round", f"there has been no round {carried.round}")
        if live.rounds.now() >= carried.expires or number < live.rounds.barrier:
            raise round_gone(carried.round)
        return carried

    def first_result(self, live: LiveRanker, entry: JournalEntry) -> Result | None:
        """What came of a round that was answered so long ago that only the journal knows; None if it was not."""
        number, public = entry.round, live.rounds.ids.public(entry.round)
        answered = number in live.rounds.answered_ever
        if not answered and live.rounds.answered_ever.knows(number):
            return None
        accepted = self._journal.accepted(live.id, number)
        if accepted is not None:
            version, digest = accepted
            if digest == digest_of(entry):
                return Result(version not in live.refused, version)
        if answered or accepted is not None:
            raise round_gone(public, answered=True)
        return None


def digest_of(entry: JournalEntry) -> bytes:
    """What tells feedback on a round from other feedback on it."""
    return blake2b(entry.body, digest_size=8).digest()


def row_of(carried: CarriedRound, entry: JournalEntry) -> SealedRow:
    """What is written with feedback on a round that came with it."""
    return SealedRow(carried.shown, digest_of(entry), carried.expires + KEPT_LONGER)
