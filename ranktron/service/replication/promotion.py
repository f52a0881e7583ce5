"""A follower that becomes the leader: an operator's decision, since nobody else knows that the leader is gone."""

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
from ranktron.service.replication.follower import PROMOTED, FollowedCopy, Follower
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
from ranktron.store.rankers.journal_writer import RESERVE
from ranktron.store.rankers.models import encode_definition
from ranktron.store.rankers.recovery import take_snapshot
from ranktron.store.types import RequestBody, ResponseBody

_logger = logging.getLogger("ranktron.service")


_PATIENCE = 2.0  # seconds in which a leader that is there answers


class PromoteRequest(RequestBody):
    """Whether to lead even if the leader still answers."""

    force: bool = False


class PromotedRanker(ResponseBody):
    """A ranker: the version it goes on from, and the last one that the leader of before is known to have had."""

    name: str
    version: int
    acknowledged: int


class PromoteAnswer(ResponseBody):
    """Where the state is, the new term, what the rankers have, and the seconds since the leader was heard of.

    `reached` says whether the leader answered just now: then `acknowledged` is all that it had.
    """

    folder: str
    term: int
    rankers: list[PromotedRanker]
    unheard: float
    reached: bool


class PromotableApplication:
    """An ASGI application: that of a follower, and that of a leader once it is promoted.

    Parameters
    ----------
    follower : Follower
        What ranks, until then.
    tokens : Tokens
        Who may do what.
    telemetry : Telemetry
        Where requests are counted.
    folder : Path
        Where the state is written when it is promoted; it must be new then, or empty.
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
        self._follower, self._folder, self._open = follower, folder, open_service
        self._tokens, self._telemetry = tokens, telemetry
        self._application: Callable[[Scope, Receive, Send], Awaitable[None]]
        self._application = self._followed = FollowerApplication(follower, tokens, telemetry)
        what, path = "Lead, since the leader is gone", "/v1/promote"
        action = Action("POST", path, what, "admin", PromoteRequest, PromoteAnswer, self._promote_whole)
        self._endpoint = Endpoint([action], Authenticator(follower.config, tokens), telemetry)
        self._changing = asyncio.Lock()
        self._following: asyncio.Task[None] | None = None
        self.service: RankingService | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/v1/promote":
            await self._endpoint({**scope, "path_params": {}}, receive, send)
        else:
            await self._application(scope, receive, send)

    def start(self) -> None:
        """Begins to follow, from within the event loop."""
        self._following = asyncio.create_task(self._follower.run())

    async def stop(self) -> None:
        """Follows no more; if it leads, waits for what is under way, and takes snapshots."""
        await self._stop_following()
        await self._follower.close()
        if self.service is not None:
            await self.service.stop()

    async def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    def _promote_whole(self, request: PromoteRequest) -> Awaitable[PromoteAnswer]:
        return asyncio.shield(asyncio.ensure_future(self._promote(request)))  # though the operator may be gone

    async def _promote(self, request: PromoteRequest) -> PromoteAnswer:
        async with self._changing:
            if self.service is not None:
                raise RequestError(409, "leads_already", f"this server leads already, from {self._folder}")
            follower = self._follower
            if not follower.synchronised.is_set():
                raise RequestError(409, "knows_nothing", "this server has never heard of the leader: it has no rankers")
            _check_free(self._folder)
            await self._stop_following()
            try:
                unheard = follower.lag
                reached = await self._reaches_leader()
                if reached and not request.force:
                    still = f"the leader at {follower.leader.url} still answers: stop it first"
                    raise RequestError(409, "leader_alive", f"{still}, or what it goes on to learn is lost")
                self._application = _refuse
                service = await self._lead()
            except BaseException:
                self._application = self._followed
                self.start()
                raise
            self.service, self._application = service, application(service, self._tokens, (), self._telemetry)
            await follower.close()
        told = follower.acknowledged
        rankers = [PromotedRanker(name, each.live.version, told[name]) for name, each in follower.rankers.items()]
        _logger.warning("this server leads from now on, from %s, in term %d", self._folder, service.journal.term)
        return PromoteAnswer(str(self._folder), service.journal.term, rankers, 0.0 if reached else unheard, reached)

    async def _reaches_leader(self) -> bool:
        """Whether the leader still answers; then this server has all that it has."""
        try:
            await self._follower.follow(_PATIENCE)
        except RequestError:
            return False
        return True

    async def _lead(self) -> RankingService:
        follower, began = self._follower, monotonic()
        rankers = list(follower.rankers.values())
        try:
            await asyncio.to_thread(write_state, self._folder, follower.cluster, follower.term, rankers)
            service = await asyncio.to_thread(self._open, self._folder)
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


def _check_free(folder: Path) -> None:
    try:
        check_free(folder)
    except DataError as error:
        raise RequestError(409, "folder_exists", str(error)) from None


async def _refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send_refusal(send, RequestError(503, "busy", "this server is about to lead: try again in a moment"), [])


_OWNER = "INSERT INTO owner (id, term, commits, facts, epoch) VALUES (1, ?, 0, 'promoted', 0)"


def write_state(folder: Path, cluster: str, term: int, rankers: Collection[FollowedCopy]) -> None:
    """Writes a new state folder, which is there complete or not at all; `cluster` and `term` are the leader's."""
    check_free(folder)
    draft = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with closing(FolderLock(draft)) as lock, closing(SQLiteDatabase(draft, lock)) as database:
            database.begin()
            database.execute("UPDATE identity SET cluster = ?", (cluster,))
            database.execute(_OWNER, ((term // PROMOTED + 1) * PROMOTED,))
            for each in rankers:
                _write_ranker(database, draft, each)
            database.commit()
        draft.rename(folder)
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{folder} cannot be written: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_ranker(database: SQLiteDatabase, draft: Path, copy: FollowedCopy) -> None:
    live, base = copy.live, copy.live.id * CAPACITY
    following = (
        copy.next_free_round + RESERVE
    )  # the leader may have shown more rounds than is known here; clients carry some
    definition = encode_definition(live.definition)
    row = RankerRow(live.id, live.name, definition, following, 0, live.incarnation, live.rounds.ids.starts)
    row.write(database)
    if live.version:
        Snapshots(draft, live.id, 2).write(live.version, serialization.serialize(take_snapshot(live)))
    key, body = base + live.version + 1, encode(JournalEntry("nothing", 0, live.rounds.now(), b""))
    checksum = chain_checksum(key, body, None, live.incarnation)
    insert(database, "entries", [(key, body, checksum, None)])
    rounds = [(base + number, body) for number, body in copy.waiting.items()]
    insert(database, "rounds", [(key, body, round_checksum(key, body)) for key, body in rounds])
