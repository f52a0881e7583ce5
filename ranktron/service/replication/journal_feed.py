"""What a leader gives to servers that follow it: what was learnt since, and numbers for the rounds that they show.

A follower has a copy of each ranker, to which it applies the same entries in the same order: it has the same weights,
to the bit, some milliseconds later. The rounds that it shows are kept by the leader, who alone learns from them: a
follower leases numbers, and hands in each round before it answers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from hashlib import blake2b
from random import SystemRandom
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ranktron.data import serialization
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import FeedEntry
from ranktron.store.journal.journal import StoredRanker, StoreRound
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import encode_definition
from ranktron.store.rankers.recovery import take_snapshot

if TYPE_CHECKING:
    from ranktron.service.awaiting import AwaitedWriter
    from ranktron.service.service import RankingService

_MOST = 16_000_000  # bytes of a ranker's last entries that are kept for followers; one that lacks more gets a copy
_WATCHED = 30.0  # seconds after which a follower that has not asked again is forgotten
LONGEST_LEASE = 1_000


class FollowRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What a follower has, by name: incarnation and version of each ranker; and how long it waits for something new.

    `feed` is the number of the feed that it has it from: another one may have another past.
    """

    feed: int
    have: dict[str, tuple[int, int]]
    wait: Annotated[float, Meta(ge=0.0, le=20.0)] = 0.0


class RankerCopy(Struct, frozen=True):
    """A ranker as a follower needs it: what the journal knows of it, and a snapshot."""

    id: int
    definition: bytes
    epochs: tuple[tuple[int, int], ...]
    content: bytes

    def stored(self, name: str, incarnation: int) -> StoredRanker:
        return StoredRanker(self.id, name, self.definition, 0, incarnation, self.epochs)


class FollowedRanker(Struct, frozen=True):
    """What a follower lacks of a ranker: a copy, if what it has cannot be continued, or entries."""

    incarnation: int
    version: int
    at: float
    copy: RankerCopy | None
    entries: list[FeedEntry]
    reserved: int = 0  # numbers of rounds below this one may have been given out


class FollowAnswer(Struct, frozen=True):
    """The number of the feed, and all rankers of the leader, by name; which state it is, and the leader's term."""

    feed: int
    rankers: dict[str, FollowedRanker]
    cluster: str = ""
    term: int = 0


class RoundsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Rounds that a follower has shown, by number, and how many numbers it wants for further ones.

    With each round comes the fingerprint of the kind of model that has shown it. `kind` is that of the model that
    further ones will be shown by: only the present kind gets numbers, so that a round that is carried, and so never
    handed in, was shown by the kind of model that there was when its number was leased.
    """

    name: str
    incarnation: int
    rounds: dict[int, tuple[int, bytes]]
    lease: Annotated[int, Meta(ge=0, le=LONGEST_LEASE)] = 0
    kind: int = 0


class RoundsAnswer(Struct, frozen=True):
    """The numbers that were leased, and the rounds that cannot be kept."""

    first: int
    end: int
    refused: list[int]


class JournalFeed:
    """The last entries of each ranker, from when the first follower asked, and what followers ask for."""

    def __init__(self, service: RankingService, writer: AwaitedWriter) -> None:
        self._service, self._writer = service, writer
        self._recent: dict[int, deque[FeedEntry]] = {}  # by incarnation
        self._bytes: dict[int, int] = {}
        self._number = SystemRandom().getrandbits(48)  # a leader that was set back does not pass for the one of before
        self._watched = float("-inf")
        self._news = asyncio.Event()

    def add(self, live: LiveRanker, entry: FeedEntry) -> None:
        """Takes an entry that is on disk, just before it is applied."""
        if monotonic() - self._watched > _WATCHED:
            self._recent.clear()
            self._bytes.clear()
            self._writer.followed = None
            return
        recent = self._recent.setdefault(live.incarnation, deque())
        recent.append(entry)
        size = self._bytes.get(live.incarnation, 0) + _size(entry)
        while size > _MOST:
            size -= _size(recent.popleft())
        self._bytes[live.incarnation] = size
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def follow(self, request: FollowRequest) -> FollowAnswer:
        """What a follower lacks; if that is nothing, it waits."""
        self._watched = monotonic()
        self._writer.followed = self.add
        if request.wait and self._has_everything(request):
            with suppress(TimeoutError):
                async with asyncio.timeout(request.wait):
                    await self._news.wait()
        self._service.check_leading()
        have = request.have if request.feed == self._number else {}
        rankers = self._service.live_rankers.items()
        lacking = {name: self._lacking(live, have.get(name)) for name, live in rankers}
        journal = self._service.journal
        return FollowAnswer(self._number, lacking, journal.cluster, journal.term)

    def _has_everything(self, request: FollowRequest) -> bool:
        rankers = self._service.live_rankers.items()
        return request.feed == self._number and request.have == {
            name: (live.incarnation, live.version) for name, live in rankers
        }

    def _lacking(self, live: LiveRanker, have: tuple[int, int] | None) -> FollowedRanker:
        incarnation, version = have or (-1, -1)
        if incarnation == live.incarnation and version <= live.version:
            recent = self._recent.get(incarnation, ())
            entries = [entry for entry in recent if version < entry.version <= live.version]
            if len(entries) == live.version - version:
                return FollowedRanker(incarnation, live.version, live.rounds.now(), None, entries, live.rounds.reserved)
        content = serialization.serialize(take_snapshot(live))
        starts, definition = live.rounds.ids.starts, encode_definition(live.definition)
        copy = RankerCopy(live.id, definition, starts, content)
        return FollowedRanker(live.incarnation, live.version, live.rounds.now(), copy, [], live.rounds.reserved)

    def keep(self, request: RoundsRequest) -> RoundsAnswer:
        """Keeps rounds that a follower has shown, and leases numbers for further ones."""
        live = self._service.live(request.name)
        if live.incarnation != request.incarnation:
            raise RequestError(409, "replaced", f"ranker {request.name!r} was deleted and made again meanwhile")
        kind = fingerprint(live)
        refused = [
            number
            for number, (shown_by, body) in request.rounds.items()
            if shown_by != kind or not self._keep(live, number, body)
        ]
        self._service.drop_rounds(live)
        first = live.rounds.next
        if request.lease and request.kind in (0, kind):
            self._writer.spare_number(live)
            live.rounds.next = min(first + request.lease, live.rounds.reserved)
        return RoundsAnswer(first, live.rounds.next, refused)

    def _keep(self, live: LiveRanker, number: int, body: bytes) -> bool:
        rounds = live.rounds
        if rounds.open.get(number) == body:  # it was sent twice
            return True
        if (
            not live.rounds.barrier <= number < live.rounds.next
            or number in live.rounds.answered_ever
            or number in live.rounds.open
        ):
            return False
        try:
            shown = open_rounds.unpack(body)
            if shown.number != number or len(shown.ids) * len(live.names) != len(shown.rows) // 4:
                return False
            shown.pending(live.mapped)
        except (msgspec.DecodeError, ValueError, TypeError):
            return False
        rounds.open[number] = body
        live.rounds.recent.append(number)
        live.stats.showed(shown.explored)
        self._service.journal.put_later(StoreRound(live.id, number, body))
        return True


def fingerprint(live: LiveRanker) -> int:
    """A number for the kind of a ranker's model: what another kind has shown, it cannot learn from."""
    # Not a CRC: that of bytes that end in their own CRC is a constant.
    digest = blake2b(live.template.to_bytes(), digest_size=6).digest()
    return int.from_bytes(digest, "little")


def _size(entry: FeedEntry) -> int:
    return len(entry.body) + len(entry.shown or b"") + 100


_encode = msgspec.msgpack.Encoder().encode


def encode_message(message: Struct) -> bytes:
    """A message as it is sent."""
    return _encode(message)


def decode_message(data: bytes, kind: Any) -> Any:
    """A message that was sent; a RequestError if it is none."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestError(422, "invalid", f"this is no message of a follower: {error}") from None
