"""Leader election among the servers of one database: one leads, the others stand by to take over.

A standby refuses every request but `/healthz`, so that a load balancer that probes `/readyz` skips it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ranktron.service.http.endpoint import JSON, Content, Receive, Scope, Send, send_answer, send_refusal
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import InUseError, JournalError

_ELECTION_INTERVAL = 0.25  # seconds between a standby's attempts to become the leader
_logger = logging.getLogger("ranktron.service")

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Leadership:
    """An ASGI application that serves while this server leads, and refuses requests while it stands by.

    Parameters
    ----------
    open_service : function () -> RankingService
        Opens the service; raises `InUseError` while another server leads.
    make_application : function (RankingService) -> ASGI application
        Builds the application of a started service.
    """

    def __init__(
        self, open_service: Callable[[], RankingService], make_application: Callable[[RankingService], Application]
    ) -> None:
        self._open_service, self._make_application = open_service, make_application  # fixed
        self._application: Application = _stand_by  # answers requests; `run` swaps it when a term begins and ends
        self.service: RankingService | None = None  # None while standing by; `run` sets and clears it
        self.settled = asyncio.Event()  # set, for good, by the first election won or lost

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    async def run(self, begin: Callable[[RankingService], Awaitable[None]]) -> None:
        """Runs for leader, leads until superseded, and runs again, until cancelled; each term awaits `begin` first."""
        while True:
            service = await self._win_election()
            try:
                service.start()
            except JournalError as error:  # the connection to the database broke after the election
                _logger.warning("standing by: %s", error)
                await asyncio.to_thread(service.journal.close)
                continue
            try:
                self.service = service
                await begin(service)
                self._application = self._make_application(service)
                self.settled.set()
                await service.superseded.wait()
            finally:
                self.service, self._application = None, _stand_by
                await service.stop()

    async def _win_election(self) -> RankingService:
        """Waits until this server is elected. An unreachable database is an error only before the first election."""
        while True:
            try:
                return await asyncio.to_thread(self._open_service)
            except InUseError:
                self.settled.set()
            except JournalError as error:
                if not self.settled.is_set():
                    raise
                _logger.warning("standing by: %s", error)
            await asyncio.sleep(_ELECTION_INTERVAL)


async def _stand_by(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/healthz":
        await send_answer(send, 200, Content(b'{"ready":true}', JSON), [])
    else:
        message = "this server stands by to take over if the leader fails: send requests to the leader"
        await send_refusal(send, RequestError(503, "not_leader", message), [])
