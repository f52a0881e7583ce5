"""A server that follows a leader: it ranks with the leader's weights, some milliseconds old, and learns nothing itself.

A ranking is answered when the leader has its round, so that its feedback can be sent at once, to any server. If the
leader is away, rankings go on after a short wait, and their rounds are handed in when it is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from ranktron.data import serialization
from ranktron.errors import DataError, RanktronError
from ranktron.service.config import Config
from ranktron.service.replication.journal_feed import (
    FollowAnswer,
    FollowedRanker,
    FollowRequest,
    RankerCopy,
    RoundsAnswer,
    RoundsRequest,
    decode_message,
    encode_message,
    fingerprint,
)
from ranktron.service.replication.leader_client import LeaderClient
from ranktron.service.sealed_rounds import SealedRounds
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import JournalEntry
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.rankers import apply_entry
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import warm
from ranktron.store.rankers.recovery import copied_ranker
from ranktron.store.types import RankAnswer, RankRequest

if TYPE_CHECKING:
    from ranktron.service.sealing_keys import SealingKeys

_WAIT = 0.5  # seconds that the leader waits for something new before it answers that there is nothing
_PAUSE = 0.2  # seconds until a leader that was away is asked again
_PATIENCE = 1.0  # seconds that a ranking waits for the leader to have its round
_LEASE = 256  # numbers of rounds that are leased at once
PROMOTED = 1_000_000  # terms that a promotion adds: no leader of before reaches them by being started again
_decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode
_logger = logging.getLogger("ranktron.service")


class Follower:
    """The rankers of a leader, as far as they are known here."""

    def __init__(self, leader: LeaderClient, config: Config, carry_keys: SealingKeys | None = None) -> None:
        self.leader, self.config = leader, config
        self.sealed = SealedRounds(self, carry_keys, config)
        self.rankers: dict[str, FollowedCopy] = {}
        self._feed, self.cluster, self.term = 0, "", 0
        self.acknowledged: dict[str, int] = {}  # the last version of each ranker that the leader is known to have had
        self._current = float("-inf")  # when the leader last said that this is all
        self.synchronised = asyncio.Event()

    @property
    def lag(self) -> float:
        """Seconds since this server was known to have all that the leader had learnt."""
        return monotonic() - self._current

    async def run(self) -> None:
        """Follows until it is cancelled; it can be taken up again."""
        away = False
        while True:
            try:
                await self.follow()
                if away:
                    _logger.warning("the leader at %s answers again", self.leader.url)
                away = False
            except RequestError as error:
                if not away:
                    _logger.error("%s", error)
                away = True
                await asyncio.sleep(_PAUSE)

    async def close(self) -> None:
        """Shows and hands in nothing more."""
        for each in self.rankers.values():
            each.stop()
        await self.leader.close()

    async def follow(self, seconds: float = 30.0) -> None:
        """Applies what the leader has learnt since."""
        have = {name: (each.live.incarnation, each.live.version) for name, each in self.rankers.items()}
        wait = _WAIT if self.synchronised.is_set() else 0.0
        data = await self.leader.ask("/v1/follow", encode_message(FollowRequest(self._feed, have, wait)), seconds)
        answer: FollowAnswer = decode_message(data, FollowAnswer)
        if answer.cluster == self.cluster and answer.term // PROMOTED < self.term // PROMOTED:
            was = f"{self.leader.url} led before a follower was promoted, and what was learnt since is not there"
            raise RequestError(409, "superseded", f"{was}: it is not followed; let it follow, or restart this server")
        self._feed, self.cluster, self.term = answer.feed, answer.cluster, answer.term
        for name in self.rankers.keys() - answer.rankers.keys():
            self.rankers.pop(name).stop()
        for name, lacking in answer.rankers.items():
            self._apply(name, lacking)
            self.note_acknowledged(name, lacking.version)
        self._current = monotonic()
        self.synchronised.set()

    def note_acknowledged(self, name: str, version: int) -> None:
        """Notes that the leader has had a version of a ranker."""
        self.acknowledged[name] = max(version, self.acknowledged.get(name, 0))

    def _apply(self, name: str, lacking: FollowedRanker) -> None:
        try:
            if lacking.copy is not None:
                self._take_copy(name, lacking.incarnation, lacking.copy)
            each = self.rankers[name]
            each.live.rounds.set_clock(lacking.at)
            each.reserved = max(each.reserved, lacking.reserved)
            for version, body, shown in lacking.entries:
                each.learn(_decode_entry(body), version, shown)
        except (RanktronError, msgspec.DecodeError) as error:  # a later version of this package may lead
            _logger.error("ranker %s cannot be followed, and its requests are forwarded: %s", name, error)
            if name in self.rankers:
                self.rankers.pop(name).stop()

    def _take_copy(self, name: str, incarnation: int, copy: RankerCopy) -> None:
        stored = copy.stored(name, incarnation)
        kept = serialization.deserialize(copy.content, f"the copy of {name}")
        live = copied_ranker(stored, kept, Snapshots(Path(), stored.id, 2), self.config)
        warm(live.model, live.k)
        known = self.rankers.get(name)
        if known is not None and known.live.incarnation == incarnation:
            known.replace(live)
        else:
            if known is not None:
                known.stop()
            self.rankers[name] = FollowedCopy(self, live)


class FollowedCopy:
    """A ranker at work on a follower: it has leased numbers, and hands in the rounds that it shows."""

    def __init__(self, follower: Follower, live: LiveRanker) -> None:
        self._follower, self.live = follower, live
        self._kind, self.reserved = fingerprint(live), 0
        self._leased: deque[range] = deque()
        self._outdated = False  # the leader has another kind of model by now, and gives no numbers for this one
        self._shown: dict[int, tuple[tuple[int, bytes], asyncio.Future[bool]]] = {}  # the leader lacks them
        self._upload_needed, self._lease_arrived = (
            asyncio.Event(),
            asyncio.Event(),
        )  # something is to be sent; numbers have come
        self._upload_task = asyncio.create_task(self._upload_rounds())

    def replace(self, live: LiveRanker) -> None:
        """Goes on with another copy of the same ranker; rounds that the leader does not have yet stay."""
        self.live, self._kind = live, fingerprint(live)
        self._leased.clear()

    def stop(self) -> None:
        self._upload_task.cancel()

    @property
    def next_free_round(self) -> int:
        """A number that neither the leader nor this server is known to have given to a round, nor any after it."""
        return max(self.reserved, self.live.rounds.next, *(each.stop for each in self._leased))

    @property
    def waiting(self) -> dict[int, bytes]:
        """Rounds that were shown here and that the leader does not have, of the present kind of model."""
        return {number: body for number, ((kind, body), _) in self._shown.items() if kind == self._kind}

    def learn(self, entry: JournalEntry, version: int, shown: bytes | None) -> None:
        """Applies what the leader has learnt."""
        if version <= self.live.version:
            return
        if version != self.live.version + 1:
            raise DataError(f"version {version} does not follow version {self.live.version}")
        if shown is not None:
            self.live.rounds.open[entry.round] = shown
        apply_entry.apply(self.live, entry, version)
        self.live.rounds.forgotten.clear()
        if entry.kind == "model":  # of another kind of model the leader keeps no round with a number from before
            self._leased.clear()
            self._kind = fingerprint(self.live)

    async def rank(self, request: RankRequest) -> RankAnswer:
        """Shows a ranking when the leader keeps its round, or a little later, if the leader is away.

        A round that its client carries need not be kept by anyone, and waits for nothing.
        """
        if request.carry:
            self._follower.sealed.check(self.live)
        self.live.rounds.next = await self._next_number()
        answer, number, kept = self.live.rank(request)
        if request.carry:
            answer.carry = self._follower.sealed.seal(self.live, answer.round, kept)
            return answer
        self.live.rounds.open.pop(number)  # the leader keeps it
        arrived: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._shown[number] = (self._kind, kept), arrived
        while len(self._shown) > self._follower.config.max_open:
            self._shown.pop(next(iter(self._shown)))
        self._upload_needed.set()
        await asyncio.wait([arrived], timeout=_PATIENCE)
        if arrived.done() and not arrived.result():
            raise RequestError(503, "busy", "the model is being replaced: try again in a moment")
        return answer

    async def _next_number(self) -> int:
        deadline = monotonic() + _PATIENCE
        if self._few_numbers():
            self._outdated = False
            self._upload_needed.set()
        while not self._leased:
            if self._outdated:
                raise RequestError(503, "busy", "the model is being replaced: try again in a moment")
            self._upload_needed.set()
            came = self._lease_arrived
            try:
                async with asyncio.timeout(deadline - monotonic()):
                    await came.wait()
            except TimeoutError:
                raise RequestError(503, "leader_away", "the leader gives no numbers for rounds: try again") from None
        numbers = self._leased[0]
        if len(numbers) == 1:
            self._leased.popleft()
        else:
            self._leased[0] = numbers[1:]
        return numbers[0]

    def _few_numbers(self) -> bool:
        return sum(map(len, self._leased)) < _LEASE // 2

    async def _upload_rounds(self) -> None:
        """Hands in rounds without end, all that wait together, and leases numbers before they run out."""
        while True:
            await self._upload_needed.wait()
            self._upload_needed.clear()
            rounds = dict(self._shown)
            lease = _LEASE if self._few_numbers() else 0
            bodies = {number: kept for number, (kept, _) in rounds.items()}
            request = RoundsRequest(self.live.name, self.live.incarnation, bodies, lease, self._kind)
            live = self.live
            try:
                data = await self._follower.leader.ask("/v1/follow/rounds", encode_message(request))
                answer: RoundsAnswer = decode_message(data, RoundsAnswer)
            except RequestError:
                await asyncio.sleep(_PAUSE)
                self._upload_needed.set()
                continue
            for number, (_, arrived) in rounds.items():
                self._shown.pop(number, None)
                if not arrived.done():
                    arrived.set_result(number not in answer.refused)
            if answer.refused:  # other numbers of before would be, too
                self._leased.clear()
            self._outdated = bool(lease) and answer.end == answer.first
            if self.live is live and (answer.end > answer.first or self._outdated):
                if not self._outdated:
                    self._leased.append(range(answer.first, answer.end))
                came, self._lease_arrived = self._lease_arrived, asyncio.Event()
                came.set()
