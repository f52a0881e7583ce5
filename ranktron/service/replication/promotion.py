"""Promotes a follower to leader. An operator decides: a follower cannot tell a failed leader from a broken network."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Collection
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.service.auth import Authenticator, Tokens
from ranktron.service.http.app import application
from ranktron.service.http.endpoint import Action, Endpoint, Receive, Scope, Send, send_refusal
from ranktron.service.replication.follower import TERMS_PER_PROMOTION, Follower, RankerReplica
from ranktron.service.replication.follower_app import FollowerApplication
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.store.errors import RequestError, not_written
from ranktron.store.journal.backup import check_free
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.journal import CAPACITY
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.journal.sqlite_journal import SQLiteDatabase
from ranktron.store.journal.tables import RankerRow, chain_checksum, insert, round_checksum
from ranktron.store.messages import RequestBody, ResponseBody
from ranktron.store.rankers.journal_writer import RESERVE
from ranktron.store.rankers.models import encode_definition
from ranktron.store.rankers.recovery import take_snapshot

_logger = logging.getLogger("ranktron.service")

_LEADER_TIMEOUT = 2.0  # seconds; a leader that has not answered by then counts as gone


class PromoteRequest(RequestBody):
    """`force` promotes even if the leader still answers."""

    force: bool = False


class PromotedRanker(ResponseBody):
    """A ranker, the version it continues from, and the highest version known from the old leader."""

    name: str
    version: int
    acknowledged: int


class PromoteAnswer(ResponseBody):
    """The state folder, the new term, the rankers' versions, and the seconds since the leader last answered.

    `reached` says whether the leader answered during the promotion: `acknowledged` is complete then.
    """

    folder: str
    term: int
    rankers: list[PromotedRanker]
    unheard: float
    reached: bool


class PromotableApplication:
    """An ASGI application: a follower's, and after its promotion a leader's.

    Parameters
    ----------
    follower : Follower
        Ranks until the promotion.
    tokens : Tokens
        Tokens of clients, with their scopes.
    telemetry : Telemetry
        Counts requests.
    folder : Path
        The promotion writes the state here; must not exist then, or be empty.
    open_service : function (Path) -> RankingService
        Opens the service of a folder.
    """

    def __init__(
        self,
        follower: Follower,
        tokens: Tokens,
        telemetry: Telemetry,
        folder: Path,
        open_service: Callable[[Path], RankingService],
    ) -> None:
        self._follower, self._folder, self._open_service = follower, folder, open_service  # fixed
        self._tokens, self._telemetry = tokens, telemetry  # fixed
        self._follower_application = FollowerApplication(follower, tokens, telemetry)  # fixed
        # Answers every other request: the follower's until `_promote`, a refusal during it, the leader's afterwards.
        self._application: Callable[[Scope, Receive, Send], Awaitable[None]] = self._follower_application
        title, path = "Promote this follower to leader", "/v1/promote"
        action = Action("POST", path, title, "admin", PromoteRequest, PromoteAnswer, self._promote_shielded)
        self._endpoint = Endpoint([action], Authenticator(follower.config, tokens), telemetry)  # answers /v1/promote
        self._promoting = asyncio.Lock()  # held during a promotion: one at a time
        self._follow_task: asyncio.Task[None] | None = None  # runs from `start` to a promotion or `stop`
        self.service: RankingService | None = None  # None until the promotion has succeeded; never cleared

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/promote":
            await self._endpoint({**scope, "path_params": {}}, receive, send)
        else:
            await self._application(scope, receive, send)

    def start(self) -> None:
        """Starts following; needs a running event loop."""
        self._follow_task = asyncio.create_task(self._follower.run())

    async def stop(self) -> None:
        """Stops following; a leader finishes its writes and takes snapshots."""
        await self._stop_following()
        await self._follower.close()
        if self.service is not None:
            await self.service.stop()

    async def _stop_following(self) -> None:
        if self._follow_task is not None:
            self._follow_task.cancel()
            await asyncio.wait([self._follow_task])

    def _promote_shielded(self, request: PromoteRequest) -> Awaitable[PromoteAnswer]:
        return asyncio.shield(asyncio.ensure_future(self._promote(request)))  # completes if the client disconnects

    async def _promote(self, request: PromoteRequest) -> PromoteAnswer:
        async with self._promoting:
            if self.service is not None:
                raise RequestError(409, "leads_already", f"this server leads already, from {self._folder}")
            follower = self._follower
            if not follower.synchronised.is_set():
                message = "this server has not synchronised with a leader since it started: it has no rankers"
                raise RequestError(409, "knows_nothing", message)
            try:
                check_free(self._folder)
            except DataError as error:
                raise RequestError(409, "folder_exists", str(error)) from None
            await self._stop_following()
            try:
                lag = follower.lag
                reached = await self._catch_up()
                if reached and not request.force:
                    message = f"the leader at {follower.leader.url} still answers: stop it first"
                    raise RequestError(409, "leader_alive", f"{message}, or what it learns from now on is lost")
                self._application = _refuse
                service = await self._open_as_leader()
            except BaseException:
                self._application = self._follower_application
                self.start()
                raise
            self.service, self._application = service, application(service, self._tokens, (), self._telemetry)
            await follower.close()
        acknowledged = follower.acknowledged
        rankers = [
            PromotedRanker(name, replica.live.version, acknowledged[name]) for name, replica in follower.rankers.items()
        ]
        _logger.warning("this server leads from now on, from %s, in term %d", self._folder, service.journal.term)
        return PromoteAnswer(str(self._folder), service.journal.term, rankers, 0.0 if reached else lag, reached)

    async def _catch_up(self) -> bool:
        """Fetches the last entries from the leader; whether it answered."""
        try:
            await self._follower.follow(_LEADER_TIMEOUT)
        except RequestError:
            return False
        return True

    async def _open_as_leader(self) -> RankingService:
        follower, began = self._follower, monotonic()
        replicas = list(follower.rankers.values())
        try:
            await asyncio.to_thread(write_state, self._folder, follower.cluster, follower.term, replicas)
            service = await asyncio.to_thread(self._open_service, self._folder)
        except DataError as error:
            raise not_written(str(error)) from None
        try:
            service.start()
        except BaseException:
            with suppress(Exception):
                service.journal.close()
            raise
        _logger.info("the state was written in %.2f seconds", monotonic() - began)
        return service


async def _refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send_refusal(send, RequestError(503, "busy", "this server is being promoted: try again in a moment"), [])


_INSERT_OWNER = "INSERT INTO owner (id, term, commits, facts, epoch) VALUES (1, ?, 0, 'promoted', 0)"


def write_state(folder: Path, cluster: str, term: int, replicas: Collection[RankerReplica]) -> None:
    """Writes a new state folder, atomically; `cluster` and `term` are the old leader's."""
    check_free(folder)
    draft = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with closing(FolderLock(draft)) as lock, closing(SQLiteDatabase(draft, lock)) as database:
            database.begin()
            database.execute("UPDATE identity SET cluster = ?", (cluster,))
            database.execute(_INSERT_OWNER, ((term // TERMS_PER_PROMOTION + 1) * TERMS_PER_PROMOTION,))
            for replica in replicas:
                _write_ranker(database, draft, replica)
            database.commit()
        draft.rename(folder)
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{folder} cannot be written: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_ranker(database: SQLiteDatabase, draft: Path, replica: RankerReplica) -> None:
    live, base = replica.live, replica.live.id * CAPACITY
    next_round = replica.next_free_round + RESERVE  # the old leader may have used, or sealed, numbers unknown here
    definition = encode_definition(live.definition)
    row = RankerRow(live.id, live.name, definition, next_round, 0, live.incarnation, live.rounds.ids.starts)
    row.write(database)
    if live.version:
        Snapshots(draft, live.id, 2).write(live.version, serialization.serialize(take_snapshot(live)))
    key, body = base + live.version + 1, encode(JournalEntry("nothing", 0, live.rounds.now(), b""))
    checksum = chain_checksum(key, body, None, live.incarnation)
    insert(database, "entries", [(key, body, checksum, None)])
    rounds = [(base + number, body) for number, body in replica.pending_rounds.items()]
    insert(database, "rounds", [(key, body, round_checksum(key, body)) for key, body in rounds])
