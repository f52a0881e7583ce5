"""A follower replicates a leader's rankers and ranks with them; only the leader learns.

Each round is uploaded to the leader before it is answered, so that its feedback can go to any server at once. If the
leader does not respond within a second, the follower answers anyway and uploads the round when the leader is back.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ranktron.data import serialization
from ranktron.errors import DataError, RanktronError
from ranktron.service.config import Config
from ranktron.service.replication.journal_feed import (
    FollowAnswer,
    FollowRequest,
    RankerCopy,
    RankerUpdate,
    RoundsAnswer,
    RoundsRequest,
    decode_message,
    encode_message,
    fingerprint,
)
from ranktron.service.sealed_rounds import SealedRounds
from ranktron.store.errors import RequestError
from ranktron.store.journal.entries import JournalEntry
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.messages import RankAnswer, RankRequest
from ranktron.store.rankers import apply_entry
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import warm
from ranktron.store.rankers.recovery import copied_ranker

if TYPE_CHECKING:
    from ranktron.service.sealing_keys import SealingKeys

_logger = logging.getLogger("ranktron.service")


_MAX_CONNECTIONS = 64
_MAX_IDLE = 20.0  # seconds after which an idle connection is not reused: the leader may be closing it
_MAX_ANSWER = 1 << 31  # bytes
Headers = Sequence[tuple[bytes, bytes]]


class LeaderAnswer(NamedTuple):
    """An HTTP response of the leader."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class LeaderClient:
    """Sends requests to the leader.

    Parameters
    ----------
    url : str
        Address of the leader, as `http://10.0.0.5:8080`.
    token : str, optional
        A token with the scope `admin`, for the follower's own requests.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise DataError(f"{url!r} is not the address of a server, as http://10.0.0.5:8080")
        self.url, self._host = url.rstrip("/"), parts.hostname
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._netloc = parts.netloc.encode()
        self._authorization = [(b"authorization", b"Bearer " + token.encode())] if token else []
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)

    async def ask(self, path: str, body: bytes, seconds: float = 10.0) -> bytes:
        """The body of the answer to a request of the follower's own; a RequestError unless its status is 200."""
        headers = [(b"content-type", b"application/octet-stream"), *self._authorization]
        answer = await self.send("POST", path.encode(), headers, body, seconds)
        if answer.status != 200:
            raise RequestError(answer.status, "leader_refused", f"the leader refuses: {answer.body.decode()[:500]}")
        return answer.body

    async def send(self, method: str, path: bytes, headers: Headers, body: bytes, seconds: float) -> LeaderAnswer:
        """The answer to a request. Never retries: if the connection breaks, the request may have arrived."""
        try:
            async with asyncio.timeout(seconds), self._slots:
                reader, writer = await self._connection()
                try:
                    lines = [method.encode() + b" " + path + b" HTTP/1.1", b"host: " + self._netloc]
                    lines += [name + b": " + value for name, value in headers]
                    lines.append(b"content-length: " + str(len(body)).encode())
                    writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                    await writer.drain()
                    answer = await _read_answer(reader)
                except BaseException:
                    writer.close()
                    raise
        except (OSError, TimeoutError, ValueError, asyncio.IncompleteReadError) as error:
            away = f"the leader at {self.url} cannot be reached ({type(error).__name__})"
            raise RequestError(503, "leader_away", f"{away}: try again; feedback may be sent again") from None
        if (b"connection", b"close") in answer.headers:
            writer.close()
        else:
            self._idle.append((monotonic(), reader, writer))
        return answer

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            if monotonic() - since < _MAX_IDLE and not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port, ssl=self._ssl, limit=1 << 20)

    async def close(self) -> None:
        for _, _, writer in self._idle:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        self._idle = []


async def _read_answer(reader: asyncio.StreamReader) -> LeaderAnswer:
    head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    pairs = [line.partition(b":") for line in head[1:-2]]
    headers = [(name.strip().lower(), value.strip()) for name, _, value in pairs]
    length = int(dict(headers)[b"content-length"]) if b"content-length" in dict(headers) else 0
    if length > _MAX_ANSWER:
        raise ValueError("the answer is too large")
    return LeaderAnswer(int(head[0].split()[1]), headers, await reader.readexactly(length))


_LONG_POLL = 0.5  # seconds that the leader holds a request open while it has no new entries
_RETRY_INTERVAL = 0.2  # seconds between attempts to reach a leader that does not respond
_UPLOAD_TIMEOUT = 1.0  # seconds that a ranking waits for its round number, and then for its upload
_LEASE_SIZE = 256  # round numbers per lease
TERMS_PER_PROMOTION = 1_000_000  # a promotion sets the term to the next multiple: an old leader's restarts add only 1
_decode_entry = msgspec.msgpack.Decoder(JournalEntry).decode


class Follower:
    """Copies of a leader's rankers, kept current by a long poll."""

    def __init__(self, leader: LeaderClient, config: Config, sealing_keys: SealingKeys | None = None) -> None:
        self.leader, self.config = leader, config  # fixed
        self.sealed = SealedRounds(self, sealing_keys, config)  # seals the rounds whose clients carry them
        self.rankers: dict[str, RankerReplica] = {}  # by name; only `follow` adds, replaces and removes
        self._feed = 0  # the leader's feed that the copies come from; set by `follow`
        self.cluster, self.term = "", 0  # identity and term of the leader; set by `follow`, checked for a step back
        self.acknowledged: dict[str, int] = {}  # by ranker: highest version seen from the leader; only grows
        self._synchronised_at = float("-inf")  # monotonic time of the last complete answer to `follow`
        self.synchronised = asyncio.Event()  # set by the first complete answer, never cleared

    @property
    def lag(self) -> float:
        """Seconds since the last complete answer of the leader."""
        return monotonic() - self._synchronised_at

    async def run(self) -> None:
        """Follows until it is cancelled; may be called again afterwards."""
        leader_away = False
        while True:
            try:
                await self.follow()
                if leader_away:
                    _logger.warning("the leader at %s answers again", self.leader.url)
                leader_away = False
            except RequestError as error:
                if not leader_away:
                    _logger.error("%s", error)
                leader_away = True
                await asyncio.sleep(_RETRY_INTERVAL)

    async def close(self) -> None:
        """Stops all uploads and closes the connections to the leader."""
        for replica in self.rankers.values():
            replica.stop()
        await self.leader.close()

    async def follow(self, seconds: float = 30.0) -> None:
        """Fetches the entries since the last call, by one long poll, and applies them."""
        versions = {name: (each.live.incarnation, each.live.version) for name, each in self.rankers.items()}
        wait = _LONG_POLL if self.synchronised.is_set() else 0.0
        data = await self.leader.ask("/v1/follow", encode_message(FollowRequest(self._feed, versions, wait)), seconds)
        answer: FollowAnswer = decode_message(data, FollowAnswer)
        if answer.cluster == self.cluster and answer.term // TERMS_PER_PROMOTION < self.term // TERMS_PER_PROMOTION:
            reason = f"a follower was promoted over {self.leader.url}, which lacks everything learnt since"
            raise RequestError(409, "superseded", f"{reason}: restart it as a follower, or restart this server")
        self._feed, self.cluster, self.term = answer.feed, answer.cluster, answer.term
        for name in self.rankers.keys() - answer.rankers.keys():
            self.rankers.pop(name).stop()
        for name, update in answer.rankers.items():
            self._apply(name, update)
            self.note_acknowledged(name, update.version)
        self._synchronised_at = monotonic()
        self.synchronised.set()

    def note_acknowledged(self, name: str, version: int) -> None:
        """Notes that the leader has reached a version of a ranker."""
        self.acknowledged[name] = max(version, self.acknowledged.get(name, 0))

    def _apply(self, name: str, update: RankerUpdate) -> None:
        try:
            if update.copy is not None:
                self._load_copy(name, update.incarnation, update.copy)
            replica = self.rankers[name]
            replica.live.rounds.set_clock(update.at)
            replica.reserved = max(replica.reserved, update.reserved)
            for version, body, shown in update.entries:
                replica.apply(_decode_entry(body), version, shown)
        except (RanktronError, msgspec.DecodeError) as error:  # the leader may run a newer version of this package
            _logger.error("ranker %s cannot be followed, and its requests are forwarded: %s", name, error)
            if name in self.rankers:
                self.rankers.pop(name).stop()

    def _load_copy(self, name: str, incarnation: int, copy: RankerCopy) -> None:
        stored = copy.stored(name, incarnation)
        snapshot = serialization.deserialize(copy.content, f"the copy of {name}")
        live = copied_ranker(stored, snapshot, Snapshots(Path(), stored.id, 2), self.config)
        warm(live.model, live.k)
        replica = self.rankers.get(name)
        if replica is not None and replica.live.incarnation == incarnation:
            replica.replace(live)
        else:
            if replica is not None:
                replica.stop()
            self.rankers[name] = RankerReplica(self, live)


class RankerReplica:
    """A follower's copy of one ranker: it ranks with leased round numbers and uploads the rounds."""

    def __init__(self, follower: Follower, live: LiveRanker) -> None:
        self._follower = follower  # fixed
        self.live = live  # the copy; `replace` swaps it, `apply` advances it, `rank` sets its next number
        self._model_kind = fingerprint(live)  # of the model in `live`; changes with it
        self.reserved = 0  # round numbers below may be in use at the leader; only grows, set by `Follower`
        self._leased: deque[range] = deque()  # free numbers; `_upload_rounds` adds, `rank` takes, a new model clears
        self._lease_refused = False  # the leader's model is of another kind; `_upload_rounds` sets it, `rank` clears it
        # By number: rounds not yet at the leader, each with the kind of model that ranked it, and a future that tells
        # `rank` whether the leader kept it. `rank` adds, and drops the oldest; `_upload_rounds` removes.
        self._pending: dict[int, tuple[tuple[int, bytes], asyncio.Future[bool]]] = {}
        self._upload_needed = asyncio.Event()  # rounds or leases are wanted; `rank` sets, `_upload_rounds` clears
        self._lease_arrived = asyncio.Event()  # the next lease, or its refusal; set once, then replaced by a new event
        self._upload_task = asyncio.create_task(self._upload_rounds())  # runs until `stop`

    def replace(self, live: LiveRanker) -> None:
        """Continues with a newer copy of the same ranker; pending rounds stay."""
        self.live, self._model_kind = live, fingerprint(live)
        self._leased.clear()

    def stop(self) -> None:
        self._upload_task.cancel()

    @property
    def next_free_round(self) -> int:
        """The lowest number such that neither it nor any above it is known to be in use."""
        return max(self.reserved, self.live.rounds.next, *(numbers.stop for numbers in self._leased))

    @property
    def pending_rounds(self) -> dict[int, bytes]:
        """Rounds not yet at the leader that the present kind of model can learn from."""
        return {number: body for number, ((kind, body), _) in self._pending.items() if kind == self._model_kind}

    def apply(self, entry: JournalEntry, version: int, shown: bytes | None) -> None:
        """Applies an entry of the leader's journal."""
        if version <= self.live.version:
            return
        if version != self.live.version + 1:
            raise DataError(f"version {version} does not follow version {self.live.version}")
        if shown is not None:
            self.live.rounds.open[entry.round] = shown
        apply_entry.apply(self.live, entry, version)
        self.live.rounds.forgotten.clear()
        if entry.kind == "model":  # the leader refuses rounds whose numbers were leased for another kind of model
            self._leased.clear()
            self._model_kind = fingerprint(self.live)

    async def rank(self, request: RankRequest) -> RankAnswer:
        """Ranks; answers once the leader keeps the round, or after `_UPLOAD_TIMEOUT` if it does not respond.

        A sealed round is kept by its client and not uploaded.
        """
        if request.carry:
            self._follower.sealed.check(self.live)
        self.live.rounds.next = await self._take_number()
        answer, number, body = self.live.rank(request)
        if request.carry:
            answer.carry = self._follower.sealed.seal(self.live, answer.round, body)
            return answer
        self.live.rounds.open.pop(number)  # the leader keeps it
        uploaded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._pending[number] = (self._model_kind, body), uploaded
        while len(self._pending) > self._follower.config.max_open:
            self._pending.pop(next(iter(self._pending)))
        self._upload_needed.set()
        await asyncio.wait([uploaded], timeout=_UPLOAD_TIMEOUT)
        if uploaded.done() and not uploaded.result():
            raise RequestError(503, "busy", "the model is being replaced: try again in a moment")
        return answer

    async def _take_number(self) -> int:
        deadline = monotonic() + _UPLOAD_TIMEOUT
        if self._lease_low():
            self._lease_refused = False
            self._upload_needed.set()
        while not self._leased:
            if self._lease_refused:
                raise RequestError(503, "busy", "the model is being replaced: try again in a moment")
            self._upload_needed.set()
            lease_arrived = self._lease_arrived
            try:
                async with asyncio.timeout(deadline - monotonic()):
                    await lease_arrived.wait()
            except TimeoutError:
                raise RequestError(503, "leader_away", "the leader has leased no round numbers: try again") from None
        numbers = self._leased[0]
        if len(numbers) == 1:
            self._leased.popleft()
        else:
            self._leased[0] = numbers[1:]
        return numbers[0]

    def _lease_low(self) -> bool:
        return sum(map(len, self._leased)) < _LEASE_SIZE // 2

    async def _upload_rounds(self) -> None:
        """Uploads pending rounds in batches, and leases numbers before they run out; never returns."""
        while True:
            await self._upload_needed.wait()
            self._upload_needed.clear()
            rounds = dict(self._pending)
            lease = _LEASE_SIZE if self._lease_low() else 0
            bodies = {number: body for number, (body, _) in rounds.items()}
            request = RoundsRequest(self.live.name, self.live.incarnation, bodies, lease, self._model_kind)
            live = self.live
            try:
                data = await self._follower.leader.ask("/v1/follow/rounds", encode_message(request))
                answer: RoundsAnswer = decode_message(data, RoundsAnswer)
            except RequestError:
                await asyncio.sleep(_RETRY_INTERVAL)
                self._upload_needed.set()
                continue
            for number, (_, uploaded) in rounds.items():
                self._pending.pop(number, None)
                if not uploaded.done():
                    uploaded.set_result(number not in answer.refused)
            if answer.refused:  # the remaining leased numbers would be refused as well
                self._leased.clear()
            self._lease_refused = bool(lease) and answer.end == answer.first
            if self.live is live and (answer.end > answer.first or self._lease_refused):
                if not self._lease_refused:
                    self._leased.append(range(answer.first, answer.end))
                lease_arrived, self._lease_arrived = self._lease_arrived, asyncio.Event()
                lease_arrived.set()
