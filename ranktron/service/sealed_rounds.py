"""Sealed rounds: a ranking returns its round as an encrypted token (`carry`), and feedback sends the token back.

The service stores nothing of a round without feedback, and any process with the keys accepts its feedback. The round in
the token is written with the feedback, so that a replay learns from the same bytes as from a stored round.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

import msgspec

from ranktron.service.config import Config
from ranktron.store.errors import RequestError, round_gone
from ranktron.store.journal.entries import JournalEntry, Result
from ranktron.store.journal.journal import Journal, SealedRow
from ranktron.store.messages import FeedbackRequest
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker

if TYPE_CHECKING:  # it imports `cryptography`, an optional dependency
    from ranktron.service.sealing_keys import SealingKeys

CLOCK_MARGIN = 3_600.0  # seconds that a digest outlives its round: a crash sets a ranker's clock back a little


class SealedRound(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The content of a token: cluster, ranker and incarnation, the public round number, its expiry, and the round.

    `shown` is a `StoredRound`: time of issue, version of the model, documents in order, propensities, pending update.
    The token's header, its format and the id of the key, is authenticated with it.
    """

    cluster: str
    ranker: int
    incarnation: int
    round: int
    expires: float
    shown: bytes


_decoder = msgspec.msgpack.Decoder(SealedRound)
_encoder = msgspec.msgpack.Encoder()


class HasCluster(Protocol):
    """A journal or a follower: knows the cluster that its rankers belong to."""

    cluster: str


class SealedRounds:
    """Seals rounds of a service's or a follower's rankers."""

    def __init__(self, state: HasCluster, keys: SealingKeys | None, config: Config) -> None:
        self._state, self._keys, self._config = state, keys, config

    def check(self, live: LiveRanker) -> None:
        """Refuses a ranking with `carry` where rounds cannot be sealed."""
        self._require_keys()
        if live.definition.close_after is not None:
            reason = "this ranker closes rounds without feedback (`close_after`), which it cannot do with sealed ones"
            raise RequestError(409, "closes_rounds", f"{reason}: rank without `carry`")
        if live.definition.history == "keep":
            reason = "this ranker can forget users (`history`), which it cannot do with sealed rounds"
            raise RequestError(409, "keeps_history", f"{reason}: rank without `carry`")

    def _require_keys(self) -> SealingKeys:
        if self._keys is None:
            advice = "make some with `ranktron keys FILE` and set `carry_keys`, or rank without `carry`"
            raise RequestError(409, "no_keys", f"this service has no keys to seal rounds: {advice}")
        return self._keys

    def seal(self, live: LiveRanker, public: int, shown: bytes) -> str:
        """The token of a round."""
        expires = open_rounds.shown_at(shown) + self._config.open_seconds
        content = SealedRound(self._state.cluster, live.id, live.incarnation, public, expires, shown)
        token, limit = self._require_keys().seal(_encoder.encode(content)), self._config.max_carry
        if len(token) > limit:
            advice = f"the limit is {limit} (`max_carry`): raise it, rank fewer features, or rank without `carry`"
            raise RequestError(413, "carry_too_large", f"this round would take {len(token)} characters, and {advice}")
        return token


class SealedRoundBook(SealedRounds):
    """Seals rounds of a service's rankers, and opens the tokens that feedback sends back."""

    def __init__(self, journal: Journal, keys: SealingKeys | None, config: Config) -> None:
        super().__init__(journal, keys, config)
        self._journal = journal

    def open(self, live: LiveRanker, request: FeedbackRequest, token: str) -> OpenedSeal:
        """The round in the token of a feedback: authentic, of this ranker, and still open."""
        sealed = _decoder.decode(self._require_keys().open(token, self._config.max_carry))
        if (sealed.cluster, sealed.ranker, sealed.incarnation) != (self._journal.cluster, live.id, live.incarnation):
            owner = "of another service" if sealed.cluster != self._journal.cluster else "of another ranker"
            raise RequestError(422, "wrong_carry", f"`carry` is {owner}: send it to where it comes from")
        if sealed.round != request.round:
            raise RequestError(422, "wrong_carry", f"`carry` is that of round {sealed.round}, not of {request.round}")
        number = live.rounds.ids.number_of(sealed.round)
        if number >= live.rounds.next:
            raise RequestError(404, "unknown_round", f"round {sealed.round} does not exist")
        if live.rounds.now() >= sealed.expires or number < live.rounds.barrier:
            raise round_gone(sealed.round)
        return OpenedSeal(self._journal, live, sealed)


class OpenedSeal:
    """A sealed round that feedback has sent back."""

    def __init__(self, journal: Journal, live: LiveRanker, sealed: SealedRound) -> None:
        self._journal, self._live, self._sealed = journal, live, sealed

    @property
    def shown(self) -> bytes:
        return self._sealed.shown

    def row(self, entry: JournalEntry) -> SealedRow:
        """The row to write with the first feedback."""
        return SealedRow(self.shown, _digest(entry), self._sealed.expires + CLOCK_MARGIN)

    def first_result(self, entry: JournalEntry) -> Result | None:
        """The result of earlier feedback on the round, from the journal if memory no longer has it; None if new."""
        live = self._live
        number, public = entry.round, live.rounds.ids.public(entry.round)
        answered = number in live.rounds.answered_ever
        if not answered and live.rounds.answered_ever.knows(number):
            return None
        accepted = self._journal.accepted(live.id, number)
        if accepted is not None:
            version, digest = accepted
            if digest == _digest(entry):
                return Result(version not in live.refused, version)
        if answered or accepted is not None:
            raise round_gone(public, answered=True)
        return None


def _digest(entry: JournalEntry) -> bytes:
    """Tells repeated feedback on a round from different feedback on it."""
    return blake2b(entry.body, digest_size=8).digest()
