"""The leader's side of replication: new journal entries for followers, leases of round numbers, uploads of rounds.

A follower applies the leader's entries in the leader's order to a copy of each ranker, so its weights are the leader's,
bit for bit, some milliseconds later. The leader keeps all rounds, since it alone learns from them: followers lease
round numbers and upload each round before they answer.
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
from ranktron.store.rankers.journal_writer import JournalWriter
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import encode_definition
from ranktron.store.rankers.recovery import take_snapshot

if TYPE_CHECKING:
    from ranktron.service.service import RankingService

_BUFFER_BYTES = 16_000_000  # of a ranker's recent entries; a follower further behind gets a copy
_FOLLOWER_TIMEOUT = 30.0  # seconds without a request from any follower after which no entries are buffered
MAX_LEASE = 1_000  # round numbers


class FollowRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Incarnation and version of each ranker that a follower has, by name, and the seconds of its long poll.

    `feed` identifies the feed that these come from: another one may have another history.
    """

    feed: int
    have: dict[str, tuple[int, int]]
    wait: Annotated[float, Meta(ge=0.0, le=20.0)] = 0.0


class RankerCopy(Struct, frozen=True):
    """A complete ranker: its row in the journal, and a snapshot."""

    id: int
    definition: bytes
    epochs: tuple[tuple[int, int], ...]
    content: bytes

    def stored(self, name: str, incarnation: int) -> StoredRanker:
        return StoredRanker(self.id, name, self.definition, 0, incarnation, self.epochs)


class RankerUpdate(Struct, frozen=True):
    """The entries of a ranker that a follower has not seen, or a copy where these are no longer buffered."""

    incarnation: int
    version: int
    at: float
    copy: RankerCopy | None
    entries: list[FeedEntry]
    reserved: int = 0  # round numbers below this one may be in use


class FollowAnswer(Struct, frozen=True):
    """The feed, an update for every ranker of the leader, by name, and the leader's cluster and term."""

    feed: int
    rankers: dict[str, RankerUpdate]
    cluster: str = ""
    term: int = 0


class RoundsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """An upload of rounds, by number, and the size of the lease that a follower wants.

    Each round comes with the fingerprint of the kind of model that ranked it. `kind` is the fingerprint of the
    follower's current model: the leader leases numbers only if its own is the same. Sealed rounds are not uploaded, and
    so a leased number tells which kind of model ranked them.
    """

    name: str
    incarnation: int
    rounds: dict[int, tuple[int, bytes]]
    lease: Annotated[int, Meta(ge=0, le=MAX_LEASE)] = 0
    kind: int = 0


class RoundsAnswer(Struct, frozen=True):
    """The leased numbers, from `first` to before `end`, and the uploaded rounds that were refused."""

    first: int
    end: int
    refused: list[int]


class JournalFeed:
    """Recent entries of each ranker while there are followers; answers the followers' requests."""

    def __init__(self, service: RankingService, writer: JournalWriter) -> None:
        self._service, self._writer = service, writer  # fixed
        self._recent: dict[int, deque[FeedEntry]] = {}  # by incarnation; `add` appends, drops the oldest, and clears
        self._bytes: dict[int, int] = {}  # sizes of the same, by incarnation
        self._id = SystemRandom().getrandbits(48)  # random: a leader restored from a backup has another history
        self._last_request = float("-inf")  # monotonic time of the last request of any follower; set by `follow`
        self._entry_added = asyncio.Event()  # wakes long polls; `add` sets it once and replaces it by a new one

    def add(self, live: LiveRanker, entry: FeedEntry | None) -> None:
        """Buffers an entry that is on disk, just before it is applied; without one, followers load a copy anew."""
        if monotonic() - self._last_request > _FOLLOWER_TIMEOUT:
            self._recent.clear()
            self._bytes.clear()
            self._writer.followed = None
            return
        if entry is None:
            self._recent.pop(live.incarnation, None)
            self._bytes.pop(live.incarnation, None)
            return
        recent = self._recent.setdefault(live.incarnation, deque())
        recent.append(entry)
        size = self._bytes.get(live.incarnation, 0) + _size(entry)
        while size > _BUFFER_BYTES:
            size -= _size(recent.popleft())
        self._bytes[live.incarnation] = size
        entry_added, self._entry_added = self._entry_added, asyncio.Event()
        entry_added.set()

    async def follow(self, request: FollowRequest) -> FollowAnswer:
        """Entries the follower has not seen; long-polls when there are none."""
        self._last_request = monotonic()
        self._writer.followed = self.add
        if request.wait and self._up_to_date(request):
            with suppress(TimeoutError):
                async with asyncio.timeout(request.wait):
                    await self._entry_added.wait()
        self._service.check_leading()
        have = request.have if request.feed == self._id else {}
        rankers = self._service.live_rankers.items()
        updates = {name: self._update_since(live, have.get(name)) for name, live in rankers}
        journal = self._service.journal
        return FollowAnswer(self._id, updates, journal.cluster, journal.term)

    def _up_to_date(self, request: FollowRequest) -> bool:
        rankers = self._service.live_rankers.items()
        return request.feed == self._id and request.have == {
            name: (live.incarnation, live.version) for name, live in rankers
        }

    def _update_since(self, live: LiveRanker, have: tuple[int, int] | None) -> RankerUpdate:
        incarnation, version = have or (-1, -1)
        if incarnation == live.incarnation and version <= live.version:
            recent = self._recent.get(incarnation, ())
            entries = [entry for entry in recent if version < entry.version <= live.version]
            if len(entries) == live.version - version:
                return RankerUpdate(incarnation, live.version, live.rounds.now(), None, entries, live.rounds.reserved)
        content = serialization.serialize(take_snapshot(live))
        starts, definition = live.rounds.ids.starts, encode_definition(live.definition)
        copy = RankerCopy(live.id, definition, starts, content)
        return RankerUpdate(live.incarnation, live.version, live.rounds.now(), copy, [], live.rounds.reserved)

    def accept_rounds(self, request: RoundsRequest) -> RoundsAnswer:
        """Stores uploaded rounds, and leases round numbers."""
        live = self._service.live(request.name)
        if live.incarnation != request.incarnation:
            raise RequestError(409, "replaced", f"ranker {request.name!r} was deleted and created again meanwhile")
        kind = fingerprint(live)
        refused = [
            number
            for number, (shown_by, body) in request.rounds.items()
            if shown_by != kind or not self._store_round(live, number, body)
        ]
        self._service.engine.drop_rounds(live)
        first = live.rounds.next
        if request.lease and request.kind in (0, kind):
            self._writer.spare_number(live)
            live.rounds.next = min(first + request.lease, live.rounds.reserved)
        return RoundsAnswer(first, live.rounds.next, refused)

    def _store_round(self, live: LiveRanker, number: int, body: bytes) -> bool:
        rounds = live.rounds
        if rounds.open.get(number) == body:  # a repeated upload
            return True
        if not rounds.barrier <= number < rounds.next or number in rounds.answered_ever or number in rounds.open:
            return False
        try:
            shown = open_rounds.unpack(body)
            if shown.number != number or len(shown.ids) * len(live.names) != len(shown.rows) // 4:
                return False
            shown.pending(live.mapped)
        except (msgspec.DecodeError, ValueError, TypeError):
            return False
        rounds.open[number] = body
        rounds.recent.append(number)
        live.stats.showed(shown.explored)
        self._service.journal.put_later(StoreRound(live.id, number, body))
        return True


def fingerprint(live: LiveRanker) -> int:
    """Identifies the kind of a ranker's model: a model cannot learn from rounds of another kind."""
    # Not a CRC: the template ends in its own CRC, so that its CRC would be a constant.
    digest = blake2b(live.template.to_bytes(), digest_size=6).digest()
    return int.from_bytes(digest, "little")


def _size(entry: FeedEntry) -> int:
    return len(entry.body) + len(entry.shown or b"") + 100


_encode = msgspec.msgpack.Encoder().encode


def encode_message(message: Struct) -> bytes:
    """The bytes of a message."""
    return _encode(message)


def decode_message(data: bytes, kind: Any) -> Any:
    """The message in the bytes; a RequestError if they are not valid."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise RequestError(422, "invalid", f"not a valid replication message: {error}") from None
