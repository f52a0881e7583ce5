"""One leader among the servers of a database: the others stand by, and one of them takes over when it is gone.

A server that stands by refuses every request but `/healthz`: a load balancer that asks `/readyz` passes it over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ranktron.service.http.endpoint import JSON, Content, Receive, Scope, Send, send_answer, send_refusal
from ranktron.service.service import RankingService
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import InUseError, JournalError

_PAUSE = 0.25  # seconds between two looks at whether the leader is gone
_logger = logging.getLogger("ranktron.service")

Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Leadership:
    """An ASGI application: that of a service while this server leads, and one that refuses while it does not.

    Parameters
    ----------
    open_service : function () -> RankingService
        Opens the service; an `InUseError` means that another server leads.
    make_application : function (RankingService) -> ASGI application
        Makes the application of a service that has started.
    """

    def __init__(
        self, open_service: Callable[[], RankingService], make_application: Callable[[RankingService], Application]
    ) -> None:
        self._open, self._make = open_service, make_application
        self._application: Application = _stand_by
        self.service: RankingService | None = None
        self.settled = asyncio.Event()  # once it is known whether it leads or stands by

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._application(scope, receive, send)

    async def run(self, begin: Callable[[RankingService], Awaitable[None]]) -> None:
        """Leads whenever no other server does, until it is cancelled; `begin` is awaited when a term has begun."""
        while True:
            service = await self._next_term()
            try:
                service.start()
            except JournalError as error:  # the database was lost just now
                _logger.warning("standing by: %s", error)
                await asyncio.to_thread(service.journal.close)
                continue
            try:
                self.service = service
                await begin(service)
                self._application = self._make(service)
                self.settled.set()
                await service.superseded.wait()
            finally:
                self.service, self._application = None, _stand_by
                await service.stop()

    async def _next_term(self) -> RankingService:
        """Waits until this server is elected. Only at the start a database that cannot be reached is an error."""
        while True:
            try:
                return await asyncio.to_thread(self._open)
            except InUseError:
                self.settled.set()
            except JournalError as error:
                if not self.settled.is_set():
                    raise
                _logger.warning("standing by: %s", error)
            await asyncio.sleep(_PAUSE)


async def _stand_by(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/healthz":
        await send_answer(send, 200, Content(b'{"ready":true}', JSON), [])
    else:
        waiting = "this server stands by, to take over when the leader is gone: send requests to the leader"
        await send_refusal(send, RequestError(503, "not_leader", waiting), [])
